#!/usr/bin/env bash
# The KL of torchbnn with `last_layer_only=True` is that of the last layer's bias alone.
set -euo pipefail
work=$(mktemp -d)
trap 'rm -rf "$work"' EXIT
python3 -m venv "$work"
"$work/bin/python" -m pip install --quiet torch==2.13.0 numpy==2.4.6 torchbnn==1.2
cat >"$work/shows.py" <<'END'
import sys
from importlib.metadata import version

import torch
import torchbnn
from torch.distributions import Normal, kl_divergence

print(f"Python {sys.version.split()[0]}, PyTorch {torch.__version__}, torchbnn {version('torchbnn')}")
torch.manual_seed(0)
model = torch.nn.Sequential(torchbnn.BayesLinear(0, 1.0, 30, 20), torchbnn.BayesLinear(0, 1.0, 20, 10))
last = model[1]
with torch.no_grad():
    last.weight_log_sigma.fill_(-2.0)
    last.bias_log_sigma.fill_(-1.0)


def exact(part):
    mean, log_sigma = getattr(last, f"{part}_mu"), getattr(last, f"{part}_log_sigma")
    return kl_divergence(Normal(mean, log_sigma.exp()), Normal(0.0, 1.0)).sum()


theirs = torchbnn.BKLLoss(reduction="sum", last_layer_only=True)(model)
print(f"BKLLoss {theirs.item():.3f}; weights {exact('weight').item():.3f}, bias {exact('bias').item():.3f}")
sys.exit(not torch.isclose(theirs, exact("bias"), rtol=1e-4))
END
"$work/bin/python" -I "$work/shows.py" || { echo "CHANGED: the weights count too."; exit 1; }
