#!/usr/bin/env bash
# MLX's `exp` of float32 is off by up to 60 units in the last place on a CPU, and its `exp` of float64 by as much as one of float32.
set -euo pipefail
work=$(mktemp -d)
trap 'rm -rf "$work"' EXIT
python3 -m venv "$work"
"$work/bin/python" -m pip install --quiet mlx==0.32.4 mlx-cpu==0.32.4 numpy==2.4.6
"$work/bin/python" -I - <<'END'
import sys

import mlx.core as mx
import numpy as np

print(f"Python {sys.version.split()[0]}, MLX {mx.__version__}, NumPy {np.__version__}")
mx.set_default_device(mx.cpu)
x = np.linspace(-80, 80, 10001).astype("float32")
truth = np.exp(x.astype("float64"))
narrow = np.array(mx.exp(mx.array(x))).astype("float64")
ulps = np.max(np.abs(narrow - truth) / np.spacing(truth.astype("float32")))
wide = np.array(mx.exp(mx.array(x.astype("float64"), dtype=mx.float64)))
error = np.max(np.abs(wide / truth - 1.0))
print(f"float32: off by up to {ulps:.0f} ulp; float64: relative error up to {error:.1e}")
as_described = ulps > 30 and error > 1e-9
print("The digits are lost." if as_described else "CHANGED: the digits are there.")
sys.exit(not as_described)
END
