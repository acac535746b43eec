#!/usr/bin/env bash
# A transposed NumPy array is saved by safetensors without an error, and its numbers are read back in another order.
set -euo pipefail
work=$(mktemp -d)
trap 'rm -rf "$work"' EXIT
python3 -m venv "$work"
"$work/bin/python" -m pip install --quiet safetensors==0.8.0 numpy==2.4.6
"$work/bin/python" -I - <<'END'
import sys

import numpy as np
import safetensors
from safetensors.numpy import load, save

print(f"Python {sys.version.split()[0]}, safetensors {safetensors.__version__}")
x = np.arange(6.0).reshape(2, 3).T
back = load(save({"x": x}))["x"]
copied = load(save({"x": np.ascontiguousarray(x)}))["x"]
print(f"saved {x.tolist()}\nread  {back.tolist()}\nread  {copied.tolist()} of a copy")
as_described = back.shape == x.shape and not np.array_equal(back, x) and np.array_equal(copied, x)
print("The order is lost." if as_described else "CHANGED: the order is kept.")
sys.exit(not as_described)
END
