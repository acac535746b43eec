#!/usr/bin/env bash
# SciPy's `Mixture.entropy()` is hundreds of thousands of nats off if one part is narrow, silently.
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
of_unit = 0.5 * math.log(2.0 * math.pi * math.e)
off = []
for sigma in (1e-1, 1e-2, 1e-4, 1e-6, 1e-8):
    parts = [stats.Normal(mu=0.0, sigma=sigma), stats.Normal(mu=3.0, sigma=1.0)]
    found = float(stats.Mixture(parts, weights=[0.5, 0.5]).entropy())
    apart = math.log(2.0) + of_unit + 0.5 * math.log(sigma)  # up to the overlap
    off.append(abs(found - apart))
    print(f"half N(0, {sigma:g}^2), half N(3, 1): entropy() = {found:.6g}; {apart:.6g} is right")
as_described = off[0] < 0.02 and off[1] < 0.01 and off[2] > 10.0 and off[4] > 1e5
print("The integral misses the narrow part." if as_described else "CHANGED: it finds the narrow part.")
sys.exit(not as_described)
END
