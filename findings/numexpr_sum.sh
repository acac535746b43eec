#!/usr/bin/env bash
# The sum of 2**25 float32 ones by numexpr is 16777216, half of the right value.
set -euo pipefail
work=$(mktemp -d)
trap 'rm -rf "$work"' EXIT
python3 -m venv "$work"
"$work/bin/python" -m pip install --quiet numexpr==2.14.2 numpy==2.4.6
"$work/bin/python" -I - <<'END'
import sys

import numexpr
import numpy as np

print(f"Python {sys.version.split()[0]}, numexpr {numexpr.__version__}, NumPy {np.__version__}")
x = np.ones(2**25, np.float32)
found = float(numexpr.evaluate("sum(x)"))
print(f"{found:.0f} by numexpr, {x.sum():.0f} by NumPy")
as_described = found == 2.0**24 and x.sum() == 2.0**25
print("The sum stops at 2**24." if as_described else "CHANGED: the sum goes on.")
sys.exit(not as_described)
END
