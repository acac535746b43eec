#!/usr/bin/env bash
# JAX's `random.bernoulli` with a probability of 0.001 in bfloat16 is true for 0.8 % of the draws.
set -euo pipefail
work=$(mktemp -d)
trap 'rm -rf "$work"' EXIT
python3 -m venv "$work"
"$work/bin/python" -m pip install --quiet jax==0.10.2 jaxlib==0.10.2 numpy==2.4.6
"$work/bin/python" -I - <<'END'
import sys

import jax
import jax.numpy as jnp

print(f"Python {sys.version.split()[0]}, JAX {jax.__version__}")
share = {}
for dtype, p in ((jnp.float32, 0.001), (jnp.bfloat16, 0.001), (jnp.float16, 0.0001)):
    draws = jax.random.bernoulli(jax.random.key(0), jnp.array(p, dtype), (1_000_000,))
    share[jnp.dtype(dtype).name] = float(draws.mean())
    print(f"p = {p} in {jnp.dtype(dtype).name}: {share[jnp.dtype(dtype).name]:.6f} of the draws")
as_described = share["bfloat16"] > 0.005 and share["float16"] > 0.0005 and share["float32"] < 0.0012
print("The uniform numbers are too coarse." if as_described else "CHANGED: the shares are right.")
sys.exit(not as_described)
END
