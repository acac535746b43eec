#!/usr/bin/env bash
# ONNX Runtime's `Softplus` in float64 is 0 at -37 and below, and is wrong in the fourth digit at -30; in float32 it is right there.
set -euo pipefail
work=$(mktemp -d)
trap 'rm -rf "$work"' EXIT
python3 -m venv "$work"
"$work/bin/python" -m pip install --quiet onnxruntime==1.32.0 onnx==1.23.2 numpy==2.4.6
"$work/bin/python" -I - <<'END'
import sys

import math

import numpy as np
import onnxruntime
from onnx import TensorProto, helper

print(f"Python {sys.version.split()[0]}, ONNX Runtime {onnxruntime.__version__}")


def softplus(x, dtype, element):
    """Run a graph of one node."""
    node = helper.make_node("Softplus", ["x"], ["y"])
    ends = [helper.make_tensor_value_info(name, element, [1]) for name in "xy"]
    graph = helper.make_graph([node], "graph", ends[:1], ends[1:])
    model = helper.make_model(graph, opset_imports=[helper.make_opsetid("", 18)], ir_version=9)
    session = onnxruntime.InferenceSession(
        model.SerializeToString(), providers=["CPUExecutionProvider"]
    )
    return float(session.run(None, {"x": np.array([x], dtype)})[0][0])


off = {}
for x in (-30.0, -37.0):
    truth = math.log1p(math.exp(x))
    narrow = softplus(x, np.float32, TensorProto.FLOAT)
    wide = softplus(x, np.float64, TensorProto.DOUBLE)
    off[x] = abs(wide / truth - 1.0), abs(narrow / truth - 1.0)
    print(f"Softplus({x}) = {wide:.8g} in float64, {narrow:.8g} in float32; {truth:.8g} is right")
as_described = off[-37.0][0] == 1.0 and off[-30.0][0] > 1e-4 and max(off[-30.0][1], off[-37.0][1]) < 1e-5
print("float64 is less exact than float32." if as_described else "CHANGED: float64 is right.")
sys.exit(not as_described)
END
