#!/usr/bin/env bash
# PyTorch's `torch.fx.symbolic_trace` records `x += y` as `x + y`, so who else holds x keeps its old values, silently.
set -euo pipefail
work=$(mktemp -d)
trap 'rm -rf "$work"' EXIT
python3 -m venv "$work"
"$work/bin/python" -m pip install --quiet torch==2.13.0 numpy==2.4.6
cat >"$work/shows.py" <<'END'
import sys

import torch


class Residual(torch.nn.Module):
    def forward(self, x):
        stream = x.clone()
        seen = [stream]
        stream += 1.0
        return torch.stack(seen)


class Method(Residual):
    def forward(self, x):
        stream = x.clone()
        seen = [stream]
        stream.add_(1.0)
        return torch.stack(seen)


print(f"Python {sys.version.split()[0]}, PyTorch {torch.__version__}")
x, found = torch.zeros(2), []
for kind in (Residual, Method):
    model = kind()
    expected, traced = model(x), torch.fx.symbolic_trace(model)(x)
    found.append(bool((expected == traced).all()))
    print(f"{kind.__name__:8} itself {expected.tolist()}, traced {traced.tolist()}")
sys.exit(found != [False, True])
END
"$work/bin/python" -I "$work/shows.py" || { echo "CHANGED: the change in place is recorded."; exit 1; }
