#!/usr/bin/env bash
# PyTorch's `functional_call` leaves the tensors of the call in a module that has two names, silently.
set -euo pipefail
work=$(mktemp -d)
trap 'rm -rf "$work"' EXIT
python3 -m venv "$work"
"$work/bin/python" -m pip install --quiet torch==2.13.0 numpy==2.4.6
cat >"$work/shows.py" <<'END'
import sys

import torch

print(f"Python {sys.version.split()[0]}, PyTorch {torch.__version__}")
left = {}
for names in ("one name", "two names"):
    layer = torch.nn.Linear(2, 2, bias=False)
    layers = [layer, layer] if names == "two names" else [layer]
    model, own = torch.nn.Sequential(*layers), layer.weight
    moved = {name: p.detach() + 1.0 for name, p in model.named_parameters()}
    torch.func.functional_call(model, moved, (torch.ones(1, 2),))
    left[names] = layer.weight is own
    print(f"{names}: the module has its own parameter again: {left[names]}")
print("An optimizer that holds the parameter trains a tensor that is in the model no more.")
print("So it is with a prior or an embedding that is a submodule of several layers.")
sys.exit(left != {"one name": True, "two names": False})
END
"$work/bin/python" -I "$work/shows.py" || { echo "CHANGED: functional_call restores it."; exit 1; }
