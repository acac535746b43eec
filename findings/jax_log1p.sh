#!/usr/bin/env bash
# JAX's `log1p` in float64 loses up to 7 of its 53 bits on a CPU just above 1 - sqrt(2).
set -euo pipefail
work=$(mktemp -d)
trap 'rm -rf "$work"' EXIT
python3 -m venv "$work"
"$work/bin/python" -m pip install --quiet jax==0.10.2 jaxlib==0.10.2 numpy==2.4.6 mpmath==1.4.1
"$work/bin/python" -I - <<'END'
import sys

import jax
import jax.numpy as jnp
import mpmath
import numpy as np

print(f"Python {sys.version.split()[0]}, JAX {jax.__version__}")
jax.config.update("jax_enable_x64", True)
x = 1.0 - np.sqrt(2.0) + np.linspace(0.0, 1e-3, 2001)
exact = [mpmath.log1p(mpmath.mpf(float(each))) for each in x]


def worst(values):
    errors = [abs((mpmath.mpf(float(v)) - e) / e) for v, e in zip(values, exact)]
    return float(max(errors)) * 2.0**53


found = {"JAX": worst(jnp.log1p(x)), "NumPy": worst(np.log1p(x))}
for name, error in found.items():
    print(f"{name}: the largest relative error is {error:.2f} * 2^-53")
as_described = found["JAX"] > 64.0 and found["NumPy"] < 4.0
print("The digits are lost." if as_described else "CHANGED: the digits are there.")
sys.exit(not as_described)
END
