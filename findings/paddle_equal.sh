#!/usr/bin/env bash
# Paddle's `==` of float32 and float64 is true for numbers that differ by less than 1e-15, so that 1e-30 is equal to 0.
set -euo pipefail
work=$(mktemp -d)
trap 'rm -rf "$work"' EXIT
python3 -m venv "$work"
"$work/bin/python" -m pip install --quiet paddlepaddle==3.3.1 numpy==2.4.6
"$work/bin/python" -I -W ignore - <<'END'
import sys

import numpy as np
import paddle

print(f"Python {sys.version.split()[0]}, Paddle {paddle.__version__}, NumPy {np.__version__}")
x = paddle.to_tensor([9e-16, 1e-30], dtype="float64")
print(f"{x.tolist()} == 0: {(x == 0.0).tolist()}")
as_described = all((x == 0.0).tolist())
print("They are equal." if as_described else "CHANGED: they differ.")
sys.exit(not as_described)
END
