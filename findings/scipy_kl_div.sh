#!/usr/bin/env bash
# SciPy's `scipy.special.kl_div(1.0, 1.0 + 1e-8)` is 0, and that of 1 - 1e-8 is twice the right value, which is 5e-17 for both.
set -euo pipefail
work=$(mktemp -d)
trap 'rm -rf "$work"' EXIT
python3 -m venv "$work"
"$work/bin/python" -m pip install --quiet scipy==1.17.1 numpy==2.4.6 mpmath==1.4.1
"$work/bin/python" -I - <<'END'
import sys

import mpmath
import scipy
from scipy.special import kl_div

print(f"Python {sys.version.split()[0]}, SciPy {scipy.__version__}")
mpmath.mp.dps = 40
ratios = {}
for step in (1e-3, 1e-7, 1e-8, -1e-8):
    x, y = 1.0, 1.0 + step
    found = float(kl_div(x, y))
    truth = mpmath.log(mpmath.mpf(x) / y) - x + mpmath.mpf(y)
    ratios[step] = float(found / truth)
    print(f"kl_div(1, 1 + {step}) = {found:.6e}; {mpmath.nstr(truth, 7)} is right")
as_described = ratios[1e-8] == 0.0 and ratios[-1e-8] > 1.5 and abs(ratios[1e-3] - 1.0) < 1e-6
print("The divergence cancels." if as_described else "CHANGED: the digits are there.")
sys.exit(not as_described)
END
