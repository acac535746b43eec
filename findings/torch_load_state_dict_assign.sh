#!/usr/bin/env bash
# PyTorch's `load_state_dict(values, assign=True)` marks `values`: later plain loads share memory, too.
set -euo pipefail
work=$(mktemp -d)
trap 'rm -rf "$work"' EXIT
python3 -m venv "$work"
"$work/bin/python" -m pip install --quiet torch==2.13.0 numpy==2.4.6
"$work/bin/python" -I - <<'END'
import sys

import torch

print(f"Python {sys.version.split()[0]}, PyTorch {torch.__version__}")


def after(assign):
    """Load values into two networks, the second plainly, and train the second by one step."""
    torch.manual_seed(0)
    values = torch.nn.Linear(2, 2).state_dict()
    one, two = torch.nn.Linear(2, 2), torch.nn.Linear(2, 2)
    one.load_state_dict(values, assign=assign)
    two.load_state_dict(values)
    before = values["weight"].clone()
    with torch.no_grad():
        two.weight.add_(1.0)
    return [float((x.detach() - before).abs().max()) for x in (values["weight"], one.weight)]


plain, marked = after(False), after(True)
print(f"first load plain: the values change by {plain[0]}, the first network by {plain[1]}")
print(f"first load assign=True: they change by {marked[0]} and {marked[1]}")
as_described = plain == [0.0, 0.0] and min(marked) > 0.5
print("The second network shares its memory." if as_described else "CHANGED")
sys.exit(not as_described)
END
