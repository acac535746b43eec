#!/usr/bin/env bash
# TensorFlow's `tf.math.erfinv` is 0 at 1e-8 and 5 % off at 1e-6 in float32; in float64 it has 8 correct digits at 1e-8.
set -euo pipefail
work=$(mktemp -d)
trap 'rm -rf "$work"' EXIT
python3 -m venv "$work"
"$work/bin/python" -m pip install --quiet tensorflow==2.21.0 numpy==2.4.6 mpmath==1.4.1
"$work/bin/python" -I - <<'END'
import sys

import mpmath as mp
import tensorflow as tf

print(f"Python {sys.version.split()[0]}, TensorFlow {tf.__version__}")
mp.mp.dps = 40

off = {}
for dtype in (tf.float32, tf.float64):
    for x in (1e-8, 1e-6, 1e-4, 0.5):
        at = tf.constant(x, dtype)
        found = float(tf.math.erfinv(at))
        off[dtype.name, x] = abs(float(found / mp.erfinv(mp.mpf(float(at))) - 1))
        print(f"{dtype.name}: erfinv({x:g}) = {found:.9g}; relative error {off[dtype.name, x]:.1e}")
as_described = (
    off["float32", 1e-8] == 1.0
    and off["float32", 1e-6] > 0.03
    and off["float64", 1e-8] > 1e-9
    and off["float64", 0.5] < 1e-15
)
print("It takes the normal quantile of (1 + x)/2." if as_described else "CHANGED")
sys.exit(not as_described)
END
