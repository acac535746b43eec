#!/usr/bin/env bash
# JAX's `gammaln` in float32 is 13 % off at 1 + 1e-6 and 2.4 times too large at 2 + 1e-6; in float64 it has 8 correct digits there.
set -euo pipefail
work=$(mktemp -d)
trap 'rm -rf "$work"' EXIT
python3 -m venv "$work"
"$work/bin/python" -m pip install --quiet jax==0.10.2 jaxlib==0.10.2 numpy==2.4.6 mpmath==1.4.1
"$work/bin/python" -I - <<'END'
import sys

import jax
import jax.numpy as jnp
import mpmath as mp
from jax.scipy.special import gammaln

print(f"Python {sys.version.split()[0]}, JAX {jax.__version__}")
mp.mp.dps = 40
jax.config.update("jax_enable_x64", True)

off = {}
for dtype in (jnp.float32, jnp.float64):
    name = dtype.__name__
    for x in (1.000001, 1.0001, 1.5, 2.000001):
        at = jnp.asarray(x, dtype)
        found = float(gammaln(at))
        right = mp.loggamma(mp.mpf(float(at)))
        off[name, x] = abs(float(found / right - 1))
        print(f"{name}: gammaln({x}) = {found:.9g}; right: {float(right):.9g}")
as_described = (
    off["float32", 1.000001] > 0.1
    and off["float32", 2.000001] > 1.0
    and off["float64", 2.000001] > 1e-9
    and off["float64", 1.5] < 1e-14
)
print("Digits cancel near its zeros, 1 and 2." if as_described else "CHANGED")
sys.exit(not as_described)
END
