#!/usr/bin/env bash
# TensorFlow's exact `gelu` has 6 to 9 correct digits in float64: a constant of it has the precision of float32.
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
for x in (-8.0, -5.0, -2.0, -1.0, 0.5, 1.0, 3.0):
    found = float(tf.nn.gelu(tf.constant(x, tf.float64), approximate=False))
    right = x * mp.ncdf(x)
    off[x] = abs(float(found / right - 1))
    print(f"gelu({x}) = {found!r}; right: {float(right)!r}; relative error {off[x]:.1e}")
as_described = off[-5.0] > 1e-7 and off[-1.0] > 1e-8 and off[1.0] > 1e-9
print("The result is that of float32 arithmetic in part." if as_described else "CHANGED")
sys.exit(not as_described)
END
