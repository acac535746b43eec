#!/usr/bin/env bash
# NumPy's `var` of float16 numbers overflows where its `mean` does not: the variance of 300, 400, 300, ... is infinite and not 2500.
set -euo pipefail
work=$(mktemp -d)
trap 'rm -rf "$work"' EXIT
python3 -m venv "$work"
"$work/bin/python" -m pip install --quiet numpy==2.4.6
"$work/bin/python" -I - <<'END'
import sys

import warnings

import numpy as np

print(f"Python {sys.version.split()[0]}, NumPy {np.__version__}")
warnings.simplefilter("ignore", RuntimeWarning)  # "overflow encountered in reduce"
x = np.array([300.0, 400.0] * 1000, np.float16)
print(f"mean {x.mean()}, variance {x.var()}, variance by dtype=float32 {x.var(dtype=np.float32)}")
as_described = x.mean() == 350.0 and x.var() == np.inf
print("The variance overflows." if as_described else "CHANGED: the variance is finite.")
sys.exit(not as_described)
END
