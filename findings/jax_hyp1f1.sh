#!/usr/bin/env bash
# JAX's `jax.scipy.special.hyp1f1(1.0, 1.5, -50.0)` returns 3156 in float64 and -4e11 in float32; 0.0101 is right.
set -euo pipefail
work=$(mktemp -d)
trap 'rm -rf "$work"' EXIT
python3 -m venv "$work"
"$work/bin/python" -m pip install --quiet jax==0.10.2 jaxlib==0.10.2 numpy==2.4.6 scipy==1.17.1 mpmath==1.4.1
JAX_PLATFORMS=cpu "$work/bin/python" -I - <<'END'
import sys
import warnings

import jax
import mpmath
from jax.scipy.special import hyp1f1

print(f"Python {sys.version.split()[0]}, JAX {jax.__version__}")
warnings.simplefilter("error")
truth = float(mpmath.hyp1f1(1, 1.5, -50))
print(f"hyp1f1(1, 1.5, -50) = {truth} by mpmath")
as_described = True
for wide in (True, False):
    jax.config.update("jax_enable_x64", wide)
    found = float(hyp1f1(1.0, 1.5, -50.0))
    print(f"    {found} by JAX in {'float64' if wide else 'float32'}")
    as_described &= not abs(found - truth) < 1.0
print("The result is far off." if as_described else "CHANGED: the result is near the truth, or warns.")
sys.exit(not as_described)
END
