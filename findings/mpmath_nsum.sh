#!/usr/bin/env bash
# The probabilities of a Poisson distribution of mean 50 add up to 4e-22 by `nsum` of mpmath, and not to 1.
set -euo pipefail
work=$(mktemp -d)
trap 'rm -rf "$work"' EXIT
python3 -m venv "$work"
"$work/bin/python" -m pip install --quiet mpmath==1.4.1
"$work/bin/python" -I - <<'END'
import sys

import mpmath
from mpmath import exp, factorial, inf, mpf, nsum

print(f"Python {sys.version.split()[0]}, mpmath {mpmath.__version__}")
found = {u: nsum(lambda k, u=u: exp(-u) * mpf(u) ** k / factorial(k), [0, inf]) for u in (5, 50)}
for u, total in found.items():
    print(f"the probabilities of mean {u} add up to {mpmath.nstr(total, 10)}")
as_described = abs(found[5] - 1) < 1e-10 and abs(found[50] - 1) > 0.5
print("The sum ends before its terms have grown." if as_described else "CHANGED: the sum is 1.")
sys.exit(not as_described)
END
