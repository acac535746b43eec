#!/usr/bin/env bash
# A step of a fused optimizer is not counted as a change in place, so a backward pass after it mixes old and new values, silently.
set -euo pipefail
work=$(mktemp -d)
trap 'rm -rf "$work"' EXIT
python3 -m venv "$work"
"$work/bin/python" -m pip install --quiet torch==2.13.0 numpy==2.4.6
cat >"$work/shows.py" <<'END'
import sys

import torch

print(f"Python {sys.version.split()[0]}, PyTorch {torch.__version__}")
found = {}
for kind in (torch.optim.SGD, torch.optim.Adam, torch.optim.AdamW, torch.optim.Adagrad):
    for fused in (False, True):
        weight = torch.tensor([2.0], requires_grad=True)
        optimizer = kind([weight], lr=0.5, fused=fused)
        loss = weight[0] ** 3
        loss.backward(retain_graph=True)
        before, version = weight.item(), weight._version
        optimizer.step()
        name = f"{kind.__name__}, fused={fused}"
        counted = weight._version - version
        try:
            (slope,) = torch.autograd.grad(loss, weight)
            found[name] = "silent"
            said = f"gradient {slope.item():.4g}, where 3 w^2 was {3 * before**2:.4g}"
        except RuntimeError:
            found[name] = "refused"
            said = "raises: modified by an inplace operation"
        print(f"{name:22} changes counted: {counted}; a second backward pass {said}")
sys.exit([*found.values()] != 4 * ["refused", "silent"])
END
"$work/bin/python" -I "$work/shows.py" || { echo "CHANGED: the step is counted."; exit 1; }
