#!/usr/bin/env bash
# ONNX Runtime's convolution of 31 channels takes more than twice as long as that of 32, because 31 is not a multiple of 4.
set -euo pipefail
work=$(mktemp -d)
trap 'rm -rf "$work"' EXIT
python3 -m venv "$work"
"$work/bin/python" -m pip install --quiet onnxruntime==1.32.0 onnx==1.23.2 numpy==2.4.6
"$work/bin/python" -I - <<'END'
import statistics
import sys
import time

import numpy as np
import onnxruntime
from onnx import TensorProto, helper, numpy_helper

print(f"Python {sys.version.split()[0]}, ONNX Runtime {onnxruntime.__version__}")
CHANNELS = 27, 28, 31, 32


def session(channels):
    weights = np.full((channels, channels, 3, 3), 0.01, np.float32)
    shape = ["n", channels, 8, 8]
    graph = helper.make_graph(
        [
            helper.make_node("Conv", ["x", "w"], ["h"], kernel_shape=[3, 3], pads=[1, 1, 1, 1]),
            helper.make_node("Conv", ["h", "w"], ["y"], kernel_shape=[3, 3], pads=[1, 1, 1, 1]),
        ],
        "graph",
        [helper.make_tensor_value_info("x", TensorProto.FLOAT, shape)],
        [helper.make_tensor_value_info("y", TensorProto.FLOAT, shape)],
        [numpy_helper.from_array(weights, "w")],
    )
    model = helper.make_model(graph, opset_imports=[helper.make_opsetid("", 18)], ir_version=9)
    options = onnxruntime.SessionOptions()
    options.intra_op_num_threads = 1
    return onnxruntime.InferenceSession(
        model.SerializeToString(), options, providers=["CPUExecutionProvider"]
    )


sessions = {n: session(n) for n in CHANNELS}
images = {n: {"x": np.ones((16, n, 8, 8), np.float32)} for n in CHANNELS}
times = {n: [] for n in CHANNELS}
for _ in range(50):
    for n in CHANNELS:
        began = time.process_time()
        for _ in range(4):
            sessions[n].run(None, images[n])
        times[n].append(time.process_time() - began)
medians = {n: statistics.median(each) for n, each in times.items()}
for n, each in medians.items():
    print(f"{n} channels: {1e6 * each / 4:.0f} microseconds")
slow = medians[27] / medians[28], medians[31] / medians[32]
print("ratios of 27 to 28 and of 31 to 32 channels: {:.2f}, {:.2f}".format(*slow))
as_described = min(slow) > 1.6
print("More channels are faster." if as_described else "CHANGED: fewer channels are faster.")
sys.exit(not as_described)
END
