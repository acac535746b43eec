#!/usr/bin/env bash
# Torch-Uncertainty's KL divergence of a Bayesian layer is 0.5 too small for each weight: -300 where 600 weights have the prior itself.
set -euo pipefail
work=$(mktemp -d)
trap 'rm -rf "$work"' EXIT
python3 -m venv "$work"
"$work/bin/python" -m pip install --quiet torch==2.13.0 numpy==2.4.6 torch-uncertainty==0.13.0
"$work/bin/python" -I - <<'END'
import importlib.metadata
import importlib.util
import sys

import torch

version = importlib.metadata.version("torch_uncertainty")
print(f"Python {sys.version.split()[0]}, Torch-Uncertainty {version}, PyTorch {torch.__version__}")

# The module alone, because the package imports torchvision and Lightning.
found = importlib.metadata.distribution("torch_uncertainty")
path = found.locate_file("torch_uncertainty/layers/bayesian/sampler.py")
spec = importlib.util.spec_from_file_location("sampler", path)
sampler = importlib.util.module_from_spec(spec)
spec.loader.exec_module(sampler)

torch.manual_seed(0)
sigma = torch.tensor(0.1)
mean, rho = torch.zeros(20, 30), torch.expm1(sigma).log().expand(20, 30)
posterior = sampler.TrainableDistribution(mean, rho)
prior = sampler.CenteredGaussianMixture(0.1, 0.1, 1.0)
off = []
for _ in range(3):
    weight = posterior.sample()
    kl = float(posterior.log_posterior() - prior.log_prob(weight))
    normal = torch.distributions.Normal(mean, sigma)
    right = float(normal.log_prob(weight).sum() - prior.log_prob(weight))
    off.append(kl - right)
    print(f"log q - log p of a sample of 600 weights: {kl:.3f}; right: {right:.3f}")
as_described = all(abs(each + 300.0) < 0.1 for each in off)
print("Its log q has a constant too much." if as_described else "CHANGED")
sys.exit(not as_described)
END
