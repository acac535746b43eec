#!/usr/bin/env bash
# The KL of blitz adds 1e-6 to the density of its prior, so that a weight a few standard deviations away costs no more, with no gradient.
set -euo pipefail
work=$(mktemp -d)
trap 'rm -rf "$work"' EXIT
python3 -m venv "$work"
"$work/bin/python" -m pip install --quiet torch==2.13.0 numpy==2.4.6 blitz-bayesian-pytorch==0.2.8
cat >"$work/shows.py" <<'END'
import sys
from importlib.metadata import version

import torch
from blitz.losses import kl_divergence_from_nn
from blitz.modules import BayesianLinear
from torch.distributions import Normal, kl_divergence

print(f"Python {sys.version.split()[0]}, PyTorch {torch.__version__}, blitz {version('blitz-bayesian-pytorch')}")
print("one weight with a prior of standard deviation 0.1 and a posterior of 0.0009")
torch.manual_seed(0)
layer = BayesianLinear(1, 1, bias=False, prior_sigma_1=0.1, prior_pi=1.0)
sampler, wrong = layer.weight_sampler, []
for mean in 0.1, 0.5, 1.0, 2.0:
    with torch.no_grad():
        sampler.mu.fill_(mean)
        sampler.rho.fill_(-7.0)
    layer.zero_grad()
    layer(torch.ones(1, 1))
    kl = kl_divergence_from_nn(layer)
    kl.backward()
    exact = kl_divergence(Normal(sampler.mu, torch.nn.functional.softplus(sampler.rho)), Normal(0.0, 0.1)).item()
    print(
        f"mean {mean}: KL from one sample {kl.item():.1f}, exact {exact:.1f}; "
        f"derivative {sampler.mu.grad.item():.1f}, exact {mean / 0.1**2:.1f}"
    )
    wrong.append(kl.item() < 0.5 * exact and sampler.mu.grad.item() == 0.0)
sys.exit(wrong != [False, False, True, True])
END
"$work/bin/python" -I "$work/shows.py" || { echo "CHANGED: the prior holds far weights."; exit 1; }
