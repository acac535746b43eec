#!/usr/bin/env bash
# PyTorch's selective checkpointing that saves matrix products gives wrong gradients for `torch.nn.GRUCell` and `torch.nn.GRU` on a CPU, silently.
set -euo pipefail
work=$(mktemp -d)
trap 'rm -rf "$work"' EXIT
python3 -m venv "$work"
"$work/bin/python" -m pip install --quiet torch==2.13.0 numpy==2.4.6
cat >"$work/shows.py" <<'END'
import sys
from functools import partial

import torch
from torch.utils.checkpoint import (
    CheckpointPolicy,
    checkpoint,
    create_selective_checkpoint_contexts,
)

print(f"Python {sys.version.split()[0]}, PyTorch {torch.__version__}")
torch.manual_seed(0)
x = torch.randn(4, 3, dtype=torch.float64, requires_grad=True)
products = torch.ops.aten.mm.default, torch.ops.aten.addmm.default


def result(output):
    return (output[0] if isinstance(output, tuple) else output).sin().sum()


def policy(context, operator, *args, **kwargs):
    saved = operator in products
    return CheckpointPolicy.MUST_SAVE if saved else CheckpointPolicy.PREFER_RECOMPUTE


found = {}
for kind in (torch.nn.Linear, torch.nn.RNNCell, torch.nn.GRUCell, torch.nn.GRU):
    cell = kind(3, 3, dtype=torch.float64)
    parameters = [*cell.parameters()]
    expected = torch.autograd.grad(result(cell(x)), parameters)
    for name, given in (("nothing", []), ("matrix products", policy)):
        context = partial(create_selective_checkpoint_contexts, given)
        output = checkpoint(cell, x, use_reentrant=False, context_fn=context)
        try:
            slopes = torch.autograd.grad(result(output), parameters)
        except RuntimeError as error:
            found[kind.__name__, name] = "refused"
            print(f"{kind.__name__:8} saved: {name:16} {str(error).strip()[:78]}")
            continue
        error = max(float((a - b).abs().max()) for a, b in zip(slopes, expected))
        found[kind.__name__, name] = "wrong" if error > 1e-6 else "right"
        print(f"{kind.__name__:8} saved: {name:16} largest error of the gradients {error:.2g}")
print("The product's saved output is changed in place by the rest of the cell or layer.")
sys.exit([*found.values()] != ["right", "right", "right", "refused", *2 * ["right", "wrong"]])
END
"$work/bin/python" -I "$work/shows.py" || { echo "CHANGED: the gradients are right, or the call is refused."; exit 1; }
