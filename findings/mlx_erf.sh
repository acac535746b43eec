#!/usr/bin/env bash
# MLX's `erf` on a CPU is 0 at 1e-8 and 0.05 % off at 1e-4; the derivative at 0 is 1.128.
set -euo pipefail
work=$(mktemp -d)
trap 'rm -rf "$work"' EXIT
python3 -m venv "$work"
"$work/bin/python" -m pip install --quiet mlx==0.32.4 mlx-cpu==0.32.4 numpy==2.4.6
"$work/bin/python" -I - <<'END'
import importlib.metadata
import math
import sys

import mlx.core as mx

print(f"Python {sys.version.split()[0]}, MLX {importlib.metadata.version('mlx')}")

off = {}
for x in (1e-8, 1e-6, 1e-4, 0.01, 0.5):
    found = float(mx.erf(mx.array(x), stream=mx.cpu))
    off[x] = abs(found / math.erf(x) - 1)
    print(f"erf({x:g}) = {found:.9g}; right: {math.erf(x):.9g}")
as_described = off[1e-8] == 1.0 and 1e-4 < off[1e-4] < 1e-3 and off[0.5] < 1e-6
print("Its error is absolute, not relative." if as_described else "CHANGED")
sys.exit(not as_described)
END
