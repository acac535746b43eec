#!/usr/bin/env bash
# JAX's `random.bernoulli` with a probability of 0.001 in bfloat16 is true for 0.8 % of the draws.
set -euo pipefail
work=$(mktemp -d)
trap 'rm -rf "$work"' EXIT
python3 -m venv "$work"
"$work/bin/python" -m pip install --quiet jax==0.10.2 jaxlib==0.10.2 numpy==2.4.6 scipy==1.17.1
"$work/bin/python" -I - <<'END'
import sys

import jax
import jax.numpy as jnp

print(f"Python {sys.version.split()[0]}, JAX {jax.__version__}")
share = {}
for dtype in ("bfloat16", "float32"):
    p = jnp.array(0.001, dtype)
    share[dtype] = float(jax.random.bernoulli(jax.random.key(0), p, (1_000_000,)).mean())
    print(f"p = {float(p):.6f} in {dtype}: true for {share[dtype]:.6f} of a million draws")
as_described = share["bfloat16"] > 0.005 and abs(share["float32"] - 0.001) < 2e-4
print("Rare events are not rare." if as_described else "CHANGED: the share is right.")
sys.exit(not as_described)
END
