#!/usr/bin/env bash
# Blosc2's arrays give numpy.exp a lazy result, which changes when its argument is updated later.
set -euo pipefail
work=$(mktemp -d)
trap 'rm -rf "$work"' EXIT
python3 -m venv "$work"
"$work/bin/python" -m pip install --quiet blosc2==4.14.0 numpy==2.4.6
"$work/bin/python" -I - <<'END'
import sys

import blosc2
import numpy as np

print(f"Python {sys.version.split()[0]}, Blosc2 {blosc2.__version__}")
x = blosc2.asarray(np.zeros(4))
y = np.exp(x)
before = y[:]
x[:] = 1.0
after = y[:]
print(f"np.exp(x) is a {type(y).__name__}: {before}, after an update of x {after}")
as_described = before[0] == 1.0 and after[0] == np.e
print("The result follows its argument." if as_described else "CHANGED: the result stays.")
sys.exit(not as_described)
END
