#!/usr/bin/env bash
# SciPy's `scipy.special.dawsn` is off by up to 100 units in the last place (7 bits) for x in (0.0101, 0.05).
set -euo pipefail
work=$(mktemp -d)
trap 'rm -rf "$work"' EXIT
python3 -m venv "$work"
"$work/bin/python" -m pip install --quiet scipy==1.17.1 numpy==2.4.6 mpmath==1.4.1
"$work/bin/python" -I - <<'END'
import sys

import mpmath
import numpy as np
import scipy

print(f"Python {sys.version.split()[0]}, SciPy {scipy.__version__}, NumPy {np.__version__}")
mpmath.mp.dps = 30


def worst(low, high):
    """The largest error in units in the last place, and where it is."""
    x = np.linspace(low, high, 2001)
    found = scipy.special.dawsn(x)
    ulps, truth = [], []
    for t, y in zip(map(mpmath.mpf, x), found):
        truth.append(mpmath.sqrt(mpmath.pi) / 2 * mpmath.exp(-t * t) * mpmath.erfi(t))
        ulps.append(abs(float((mpmath.mpf(y) - truth[-1]) / np.spacing(y))))
    at = int(np.argmax(ulps))
    print(f"x in [{low}, {high}]: off by up to {ulps[at]:.0f} ulp")
    print(f"    dawsn({float(x[at])!r}) = {float(found[at])!r}")
    print(f"    by mpmath                     {mpmath.nstr(truth[at], 20)}")
    return ulps[at]


as_described = worst(0.0101, 0.05) > 64 and worst(0.001, 0.01) < 4
print("The digits are lost." if as_described else "CHANGED: the digits are there.")
sys.exit(not as_described)
END
