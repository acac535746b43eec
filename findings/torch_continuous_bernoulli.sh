#!/usr/bin/env bash
# PyTorch's variance of ContinuousBernoulli(0.499) is -1.6, and 0.246 for 0.4989, in float32; 0.0833 is right for both.
set -euo pipefail
work=$(mktemp -d)
trap 'rm -rf "$work"' EXIT
python3 -m venv "$work"
"$work/bin/python" -m pip install --quiet torch==2.13.0 numpy==2.4.6
"$work/bin/python" -I - <<'END'
import sys

import torch
from torch.distributions import ContinuousBernoulli

print(f"Python {sys.version.split()[0]}, PyTorch {torch.__version__}")

found = {}
for probs in (0.4, 0.45, 0.4989, 0.499, 0.501, 0.502):
    single, double = (
        ContinuousBernoulli(torch.tensor(probs, dtype=dtype)).variance
        for dtype in (torch.float32, torch.float64)
    )
    found[probs] = float(single)
    print(f"probs = {probs}: variance {single:.6f} in float32, {double:.6f} in float64")
as_described = found[0.499] < 0.0 and found[0.4989] > 0.2 and 0.0 < found[0.502] < 0.05
print("Two large numbers are subtracted near 1/2." if as_described else "CHANGED")
sys.exit(not as_described)
END
