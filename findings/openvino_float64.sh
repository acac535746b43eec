#!/usr/bin/env bash
# OpenVINO computes a model in float64 in float32 on a CPU, and returns its outputs as float64.
set -euo pipefail
work=$(mktemp -d)
trap 'rm -rf "$work"' EXIT
python3 -m venv "$work"
"$work/bin/python" -m pip install --quiet openvino==2026.4.1 numpy==2.4.6
"$work/bin/python" -I - <<'END'
import sys

import numpy as np
import openvino as ov
from openvino import opset13 as op

print(f"Python {sys.version.split()[0]}, OpenVINO {ov.__version__}")
x = op.parameter([3], np.float64)
compiled = ov.Core().compile_model(ov.Model([op.exp(x)], [x]), "CPU")
given = np.array([0.1, 1.0, 100.0])
found = compiled(given)[0]
for each, value in zip(given, found):
    print(f"exp({each:g}) = {value!r}; {np.exp(each)!r} is right")
error = abs(found[1] / np.e - 1.0)
as_described = found.dtype == np.float64 and error > 1e-9 and found[2] < 1e39
print("The digits and the range are lost." if as_described else "CHANGED: they are there.")
sys.exit(not as_described)
END
