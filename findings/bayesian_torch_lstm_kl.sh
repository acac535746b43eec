#!/usr/bin/env bash
# The KL that an LSTM of bayesian-torch returns grows with the length of the sequence, and `get_kl_loss` counts it twice.
set -euo pipefail
work=$(mktemp -d)
trap 'rm -rf "$work"' EXIT
python3 -m venv "$work"
"$work/bin/python" -m pip install --quiet torch==2.13.0 numpy==2.4.6 bayesian-torch==0.5.0
cat >"$work/shows.py" <<'END'
import sys
from importlib.metadata import version

import torch
from bayesian_torch.layers import LSTMReparameterization
from bayesian_torch.models.dnn_to_bnn import get_kl_loss

print(f"Python {sys.version.split()[0]}, PyTorch {torch.__version__}, bayesian-torch {version('bayesian-torch')}")
torch.manual_seed(0)
lstm = LSTMReparameterization(3, 2)
once = lstm.kl_loss().item()
found = [get_kl_loss(lstm).item() / once]
print(f"kl_loss() {once:.4f}, get_kl_loss(lstm) {found[0]:.3f} times that")
for steps in 1, 5, 20:
    _, _, kl = lstm(torch.zeros(4, steps, 3))
    found.append(kl.item() / once)
    print(f"forward of {steps} steps: {found[-1]:.3f} times that")
sys.exit([round(each, 3) for each in found] != [2.0, 1.0, 5.0, 20.0])
END
"$work/bin/python" -I "$work/shows.py" || { echo "CHANGED: each weight counts once."; exit 1; }
