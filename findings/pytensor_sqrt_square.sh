#!/usr/bin/env bash
# PyTensor compiles sqrt(x * x) to a function that is NaN for negative x, where 3 is right for -3.
set -euo pipefail
work=$(mktemp -d)
trap 'rm -rf "$work"' EXIT
python3 -m venv "$work"
"$work/bin/python" -m pip install --quiet pytensor==2.38.3 numpy==2.4.6
"$work/bin/python" -I - <<'END'
import sys

import numpy as np
import pytensor
from pytensor import tensor as pt

print(f"Python {sys.version.split()[0]}, PyTensor {pytensor.__version__}")
x = pt.dvector("x")
given = np.array([-3.0, 3.0])
found = pytensor.function([x], pt.sqrt(x * x))(given)
plain = pytensor.function([x], pt.sqrt(x * x), mode="FAST_COMPILE")(given)
print(f"sqrt(x * x) at {given}: {found}, in the mode FAST_COMPILE {plain}")
as_described = bool(np.isnan(found[0])) and found[1] == 3.0
print("A rewrite takes x for positive." if as_described else "CHANGED: it is 3.")
sys.exit(not as_described)
END
