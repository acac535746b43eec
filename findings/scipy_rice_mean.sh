#!/usr/bin/env bash
# SciPy's `scipy.stats.rice(40.0).mean()` is NaN, and that of `rice(38.0)` is infinite; 40.0125 and 38.0132 are right.
set -euo pipefail
work=$(mktemp -d)
trap 'rm -rf "$work"' EXIT
python3 -m venv "$work"
"$work/bin/python" -m pip install --quiet scipy==1.17.1 numpy==2.4.6 mpmath==1.4.1
"$work/bin/python" -I - <<'END'
import sys

import math

import mpmath
import scipy
from scipy import stats

print(f"Python {sys.version.split()[0]}, SciPy {scipy.__version__}")
found = {}
for b in (37.0, 38.0, 40.0):
    found[b] = float(stats.rice(b).mean())
    truth = mpmath.sqrt(mpmath.pi / 2) * mpmath.laguerre(0.5, 0, -mpmath.mpf(b) ** 2 / 2)
    print(f"rice({b}).mean() = {found[b]}; {mpmath.nstr(truth, 12)} is right")
as_described = found[38.0] == math.inf and math.isnan(found[40.0])
print("The mean overflows." if as_described else "CHANGED: the mean is finite.")
sys.exit(not as_described)
END
