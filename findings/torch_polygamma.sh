#!/usr/bin/env bash
# PyTorch's `torch.polygamma(1, x)` has only about 9 correct digits in float64 for x from 0.5 to 2.
set -euo pipefail
work=$(mktemp -d)
trap 'rm -rf "$work"' EXIT
python3 -m venv "$work"
"$work/bin/python" -m pip install --quiet torch==2.13.0 numpy==2.4.6 mpmath==1.3.0
"$work/bin/python" -I - <<'END'
import sys

import mpmath
import torch

print(f"Python {sys.version.split()[0]}, PyTorch {torch.__version__}")
errors = []
for x in (0.5, 1.0, 2.0):
    found = float(torch.polygamma(1, torch.tensor(x, dtype=torch.float64)))
    truth = mpmath.psi(1, x)
    errors.append(abs(float(found / truth - 1)))
    print(f"polygamma(1, {x}) = {found!r}, relative error {errors[-1]:.1e}")
    print(f"    by mpmath        {mpmath.nstr(truth, 17)}")
as_described = max(errors) > 1e-11
print("Digits are missing." if as_described else "CHANGED: the digits are there.")
sys.exit(not as_described)
END
