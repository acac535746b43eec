#!/usr/bin/env bash
# PyTorch's `special.ndtr` and `Normal.cdf` are 0 at -6 in float32, which holds the right value, 9.87e-10.
set -euo pipefail
work=$(mktemp -d)
trap 'rm -rf "$work"' EXIT
python3 -m venv "$work"
"$work/bin/python" -m pip install --quiet torch==2.13.0 numpy==2.4.6
"$work/bin/python" -I - <<'END'
import math
import sys

import torch

print(f"Python {sys.version.split()[0]}, PyTorch {torch.__version__}")
zeros = []
for x, dtype in ((-5.0, torch.float32), (-6.0, torch.float32), (-9.0, torch.float64)):
    given = torch.tensor(x, dtype=dtype)
    found = float(torch.special.ndtr(given))
    cdf = float(torch.distributions.Normal(given.new_zeros(()), given.new_ones(())).cdf(given))
    right = 0.5 * math.erfc(-x / math.sqrt(2.0))
    print(f"at {x} in {dtype}: ndtr {found:.6g}, Normal.cdf {cdf:.6g}; {right:.6g} is right")
    zeros.append(found == 0.0 == cdf)
as_described = zeros == [False, True, True]
print("The tail is lost." if as_described else "CHANGED: the tail is there.")
sys.exit(not as_described)
END
