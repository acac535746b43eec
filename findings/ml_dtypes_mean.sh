#!/usr/bin/env bash
# NumPy's mean of 100,000 ones is 0.00256 in the bfloat16 of ml_dtypes, because the sum stops at 256; in float16 it is 1.
set -euo pipefail
work=$(mktemp -d)
trap 'rm -rf "$work"' EXIT
python3 -m venv "$work"
"$work/bin/python" -m pip install --quiet numpy==2.4.6 ml_dtypes==0.6.0
"$work/bin/python" -I - <<'END'
import sys

import ml_dtypes
import numpy as np

print(f"Python {sys.version.split()[0]}, NumPy {np.__version__}, ml_dtypes {ml_dtypes.__version__}")
means = {}
for dtype in (ml_dtypes.bfloat16, np.float16, np.float32):
    means[dtype] = float(np.ones(100_000, dtype).mean())
    print(f"the mean of 100,000 ones in {np.dtype(dtype)} is {means[dtype]}")
as_described = means[ml_dtypes.bfloat16] < 0.01 and means[np.float16] == 1.0
print("The sum stops." if as_described else "CHANGED: the mean is 1.")
sys.exit(not as_described)
END
