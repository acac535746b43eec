#!/usr/bin/env bash
# TensorFlow's gradient of `tf.math.special.dawsn` is 5 % off at 1000 and 0 at 1e5 in float32, and 0 at 1e8 in float64.
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
mp.mp.dps = 50

found = {}
for dtype, x in ((tf.float32, 1e3), (tf.float32, 1e5), (tf.float64, 1e5), (tf.float64, 1e8)):
    at = tf.constant(x, dtype)
    with tf.GradientTape() as tape:
        tape.watch(at)
        value = tf.math.special.dawsn(at)
    gradient = float(tape.gradient(value, at))
    # Abramowitz and Stegun 7.1.23: the derivative is 1 - 2 x F(x), about -1/(2 x^2) - 3/(4 x^4).
    right = float(1 - 2 * x**2 * mp.hyp1f1(1, mp.mpf(3) / 2, -mp.mpf(x) ** 2))
    found[dtype.name, x] = gradient / right
    print(f"{dtype.name}, x = {x:g}: {gradient:.6g}; right: {right:.6g}")
as_described = (
    abs(found["float32", 1e3] - 1.0) > 0.03
    and found["float32", 1e5] == 0.0
    and found["float64", 1e8] == 0.0
)
print("1 is subtracted from what is almost 1." if as_described else "CHANGED")
sys.exit(not as_described)
END
