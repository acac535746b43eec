#!/usr/bin/env bash
# PyTorch's gradient of `torch.special.log_ndtr` in float32 is 4 % off at -1000, 64930 for 10000 at -10000, and 0 at -1e6.
set -euo pipefail
work=$(mktemp -d)
trap 'rm -rf "$work"' EXIT
python3 -m venv "$work"
"$work/bin/python" -m pip install --quiet torch==2.13.0 numpy==2.4.6
"$work/bin/python" -I - <<'END'
import sys

import torch

print(f"Python {sys.version.split()[0]}, PyTorch {torch.__version__}")


def slope(x, dtype):
    """Differentiate the logarithm of the normal distribution, which is -x^2/2 - log(-x) here."""
    x = torch.tensor(x, dtype=dtype, requires_grad=True)
    torch.special.log_ndtr(x).backward()
    return float(x.grad)


ratios = {}
for x in (-10.0, -1e3, -1e4, -1e6):
    found = slope(x, torch.float32)
    ratios[x] = found / (-x - 1.0 / x)
    print(f"at {x}: {found} in float32, {slope(x, torch.float64)} in float64; {-x - 1.0 / x} is right")
as_described = abs(ratios[-1e3] - 1.0) > 0.01 and ratios[-1e4] > 2.0 and ratios[-1e6] == 0.0
print("The gradient is lost." if as_described else "CHANGED: the gradient is right.")
sys.exit(not as_described)
END
