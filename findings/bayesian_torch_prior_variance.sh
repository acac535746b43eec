#!/usr/bin/env bash
# Layers of bayesian-torch take `prior_variance` as a standard deviation: the KL for a prior of variance 4 is that of variance 16.
set -euo pipefail
work=$(mktemp -d)
trap 'rm -rf "$work"' EXIT
python3 -m venv "$work"
"$work/bin/python" -m pip install --quiet torch==2.13.0 numpy==2.4.6 bayesian-torch==0.5.0
cat >"$work/shows.py" <<'END'
import sys
from importlib.metadata import version

import torch
from bayesian_torch.layers import LinearFlipout, LinearReparameterization
from torch.distributions import Normal, kl_divergence

print(f"Python {sys.version.split()[0]}, PyTorch {torch.__version__}, bayesian-torch {version('bayesian-torch')}")
found = []
for kind in LinearReparameterization, LinearFlipout:
    torch.manual_seed(0)
    layer = kind(30, 20, prior_variance=4.0, bias=False)
    posterior = Normal(layer.mu_weight, torch.nn.functional.softplus(layer.rho_weight))
    theirs = layer.kl_loss()
    # The package averages over the weights of a layer.
    exact = {scale: kl_divergence(posterior, Normal(0.0, scale)).mean() for scale in (2.0, 4.0)}
    print(f"{kind.__name__}: kl_loss() {theirs.item():.4f}; PyTorch's KL", end="")
    print(*(f" {kl.item():.4f} for a variance of {scale**2:.0f}" for scale, kl in exact.items()), sep=",")
    found += [torch.isclose(theirs, exact[2.0]), torch.isclose(theirs, exact[4.0])]
sys.exit([bool(each) for each in found] != [False, True, False, True])
END
"$work/bin/python" -I "$work/shows.py" || { echo "CHANGED: prior_variance is a variance."; exit 1; }
