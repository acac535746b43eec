#!/usr/bin/env bash
# SciPy's `foldnorm(c).entropy()` is 0 from c = 40 on, but for 1e-25, where that of the normal distribution, 1.4189, is right.
set -euo pipefail
work=$(mktemp -d)
trap 'rm -rf "$work"' EXIT
python3 -m venv "$work"
"$work/bin/python" -m pip install --quiet scipy==1.17.1 numpy==2.4.6
"$work/bin/python" -I - <<'END'
import math
import sys

import scipy
from scipy import stats

print(f"Python {sys.version.split()[0]}, SciPy {scipy.__version__}")
right = 0.5 * math.log(2.0 * math.pi * math.e)
found = {c: float(stats.foldnorm(c).entropy()) for c in (10, 40, 45, 50, 300)}
for c, entropy in found.items():
    print(f"foldnorm({c}).entropy() = {entropy:.6g}; {right:.6f} is right")
as_described = abs(found[10] - right) < 1e-6 and found[50] < 1e-6 and found[300] == 0.0
print("The integral misses the density." if as_described else "CHANGED: it is found.")
sys.exit(not as_described)
END
