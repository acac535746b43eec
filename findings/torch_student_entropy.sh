#!/usr/bin/env bash
# PyTorch's `StudentT(1e10).entropy()` is 11.5 in float32, and 1.419, that of a normal distribution, is right.
set -euo pipefail
work=$(mktemp -d)
trap 'rm -rf "$work"' EXIT
python3 -m venv "$work"
"$work/bin/python" -m pip install --quiet torch==2.13.0 numpy==2.4.6
"$work/bin/python" -I - <<'END'
import sys

import math

import torch
from torch.distributions import StudentT

print(f"Python {sys.version.split()[0]}, PyTorch {torch.__version__}")
normal = 0.5 * math.log(2.0 * math.pi * math.e)
off = {}
for dtype, freedom in (
    (torch.float32, 100.0),
    (torch.float32, 1e6),
    (torch.float32, 1e10),
    (torch.float64, 1e14),
    (torch.float64, 1e17),
):
    found = float(StudentT(torch.tensor(freedom, dtype=dtype)).entropy())
    off[freedom] = abs(found - normal)
    print(f"{freedom:.0e} degrees of freedom, {dtype}: {found}; the limit is {normal:.6f}")
as_described = off[1e6] > 0.01 and off[1e10] > 5.0 and off[1e17] > 5.0
print("The entropy cancels." if as_described else "CHANGED: the entropy is right.")
sys.exit(not as_described)
END
