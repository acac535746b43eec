#!/usr/bin/env bash
# PyTorch's KL divergence of Beta(1e6, 1e6) from Beta(2e6, 2e6) is -2 in float32, and 0.1534 is right.
set -euo pipefail
work=$(mktemp -d)
trap 'rm -rf "$work"' EXIT
python3 -m venv "$work"
"$work/bin/python" -m pip install --quiet torch==2.13.0 numpy==2.4.6
"$work/bin/python" -I - <<'END'
import sys

import torch
from torch.distributions import Beta, kl_divergence

print(f"Python {sys.version.split()[0]}, PyTorch {torch.__version__}")
found = {}
for c in (1e2, 1e4, 1e6, 1e8):
    for dtype in (torch.float32, torch.float64):
        a = torch.tensor(c, dtype=dtype)
        found[c, dtype] = float(kl_divergence(Beta(a, a), Beta(2.0 * a, 2.0 * a)))
    single, double = found[c, torch.float32], found[c, torch.float64]
    print(f"Beta({c:g}, {c:g}) from Beta({2 * c:g}, {2 * c:g}): {single:.6g}, in float64 {double:.6g}")
as_described = found[1e6, torch.float32] < 0.0 and found[1e8, torch.float32] > 1.0
as_described = as_described and abs(found[1e6, torch.float64] - 0.15343) < 1e-3
print("The terms cancel." if as_described else "CHANGED: the KL is right.")
sys.exit(not as_described)
END
