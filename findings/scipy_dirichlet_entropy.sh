#!/usr/bin/env bash
# SciPy's entropies of `dirichlet([1e14, 1e14])` and of `beta(1e14, 1e14)`, the same distribution, differ by 1.7 nats.
set -euo pipefail
work=$(mktemp -d)
trap 'rm -rf "$work"' EXIT
python3 -m venv "$work"
"$work/bin/python" -m pip install --quiet scipy==1.17.1 numpy==2.4.6
"$work/bin/python" -I - <<'END'
import sys

import math

import scipy
from scipy import stats

print(f"Python {sys.version.split()[0]}, SciPy {scipy.__version__}")
off = {}
for a in (1e6, 1e12, 1e14, 1e16):
    one = float(stats.dirichlet([a, a]).entropy())
    two = float(stats.beta(a, a).entropy())
    normal = 0.5 * math.log(2.0 * math.pi * math.e / (8.0 * a))
    off[a] = abs(one - normal), abs(two - normal)
    print(f"a = {a:.0e}: {one} as Dirichlet, {two} as beta; a normal distribution has {normal:.9f}")
as_described = off[1e14][0] > 1.0 and off[1e14][1] < 1e-6 and off[1e6][0] < 1e-6
print("Dirichlet's entropy cancels." if as_described else "CHANGED: both have the same entropy.")
sys.exit(not as_described)
END
