#!/usr/bin/env bash
# PARI's `intnum(x=-40, 40, exp(-x^2))` is 3.888 at the precision of a double, and the root of pi, 1.772, is right.
set -euo pipefail
work=$(mktemp -d)
trap 'rm -rf "$work"' EXIT
python3 -m venv "$work"
"$work/bin/python" -m pip install --quiet cypari==2.5.7
"$work/bin/python" -I - <<'END'
import sys

import math

from cypari import pari

print(f"Python {sys.version.split()[0]}, PARI {pari('version()')}")
found = {end: float(pari(f"intnum(x=-{end}, {end}, exp(-x^2))")) for end in (4, 40)}
for end, value in found.items():
    truth = math.sqrt(math.pi) * math.erf(end)
    print(f"from -{end} to {end}: {value}; {truth} is right")
as_described = abs(found[4] - 1.772454) < 1e-4 and found[40] > 3.0
print("The peak counts twice." if as_described else "CHANGED: the integral is right.")
sys.exit(not as_described)
END
