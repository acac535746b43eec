#!/usr/bin/env bash
# JAX's `erfcx` is 0 between two of its branches: near 9.3 in float32 and near 26.6 in float64.
set -euo pipefail
work=$(mktemp -d)
trap 'rm -rf "$work"' EXIT
python3 -m venv "$work"
"$work/bin/python" -m pip install --quiet jax==0.10.2 jaxlib==0.10.2 numpy==2.4.6 scipy==1.17.1
"$work/bin/python" -I - <<'END'
import sys

import jax
import numpy as np
import scipy.special
from jax.scipy.special import erfcx

print(f"Python {sys.version.split()[0]}, JAX {jax.__version__}")
jax.config.update("jax_enable_x64", True)
as_described = True
for kind in ("float32", "float64"):
    x = np.linspace(0.0, 30.0, 300_001).astype(kind)
    found = np.asarray(erfcx(x))
    zeros = x[found == 0.0]
    others = found != 0.0
    errors = np.abs(found / scipy.special.erfcx(x.astype("float64")) - 1.0)[others]
    if not len(zeros):
        print(f"{kind}: nowhere 0")
        as_described = False
        continue
    least, most = zeros.min(), zeros.max()
    right = scipy.special.erfcx(float(least))
    print(f"{kind}: 0 from {least:.4f} to {most:.4f}, where it is {right:.5f} or less;")
    print(f"  elsewhere the relative error is at most {errors.max():.1e}")
    as_described &= errors.max() < 1e-4
print("It is 0." if as_described else "CHANGED")
sys.exit(not as_described)
END
