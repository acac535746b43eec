#!/usr/bin/env bash
# SciPy's excess kurtosis of `loguniform(0.999, 1)` is -14.3 for -1.2, and the variance of `loguniform(1, 1 + 1e-6)` is negative.
set -euo pipefail
work=$(mktemp -d)
trap 'rm -rf "$work"' EXIT
python3 -m venv "$work"
"$work/bin/python" -m pip install --quiet scipy==1.17.1 numpy==2.4.6 mpmath==1.4.1
"$work/bin/python" -I - <<'END'
import sys

import mpmath as mp
import scipy
from scipy import stats

print(f"Python {sys.version.split()[0]}, SciPy {scipy.__version__}")
mp.mp.dps = 50


def exact(a, b):
    """The variance and the excess kurtosis, by integrals over the logarithm."""
    low, high = mp.log(a), mp.log(b)

    def expected(function):
        return mp.quad(lambda t: function(mp.exp(t)), [low, high]) / (high - low)

    mean = expected(lambda x: x)
    second, fourth = (expected(lambda x, k=k: (x - mean) ** k) for k in (2, 4))
    return float(second), float(fourth / second**2 - 3)


found = []
for a, b in ((0.5, 1.0), (0.99, 1.0), (0.999, 1.0), (1.0, 1.000001)):
    variance, kurtosis = map(float, stats.loguniform(a, b).stats(moments="vk"))
    found.append((variance, kurtosis))
    right = "variance {:.6g}, kurtosis {:.6g}".format(*exact(mp.mpf(a), mp.mpf(b)))
    print(f"({a}, {b}): variance {variance:.6g}, kurtosis {kurtosis:.6g}; right: {right}")
as_described = found[2][1] < -10.0 and found[3][0] < 0.0
print("Moments about 0 are subtracted." if as_described else "CHANGED")
sys.exit(not as_described)
END
