#!/usr/bin/env bash
# MLX's `sum` adds float32 numbers on a CPU one after the other: the sum of five million equal numbers is off by percents.
set -euo pipefail
work=$(mktemp -d)
trap 'rm -rf "$work"' EXIT
python3 -m venv "$work"
"$work/bin/python" -m pip install --quiet mlx==0.32.4 mlx-cpu==0.32.4 numpy==2.4.6
"$work/bin/python" -I - <<'END'
import sys

import mlx.core as mx

print(f"Python {sys.version.split()[0]}, MLX {mx.__version__}")
mx.set_default_device(mx.cpu)
n, value = 5_000_000, 0.4266856
error = mx.sum(mx.full((n,), value)).item() / (n * value) - 1.0
print(f"the sum of {n} times {value} is off by {100 * error:.2f} %")
as_described = abs(error) > 1e-3
print("The digits are lost." if as_described else "CHANGED: the digits are there.")
sys.exit(not as_described)
END
