#!/usr/bin/env bash
# NumPyro's TruncatedNormal(0, 1, low=8) has in float32 the cdf NaN and above 20 infinite samples, in float64 the cdf 0.667 for 0.558.
set -euo pipefail
work=$(mktemp -d)
trap 'rm -rf "$work"' EXIT
python3 -m venv "$work"
"$work/bin/python" -m pip install --quiet numpyro==0.22.0 jax==0.10.2 jaxlib==0.10.2 scipy==1.17.1
"$work/bin/python" -I - <<'END'
import math
import sys

import jax
import numpyro
from numpyro.distributions import TruncatedNormal
from scipy import stats

print(f"Python {sys.version.split()[0]}, NumPyro {numpyro.__version__}, JAX {jax.__version__}")


def cdf():
    return float(TruncatedNormal(0.0, 1.0, low=8.0).cdf(8.1))


single = cdf()
samples = TruncatedNormal(0.0, 1.0, low=20.0).sample(jax.random.key(0), (1000,))
jax.config.update("jax_enable_x64", True)
double, right = cdf(), stats.truncnorm(8.0, math.inf).cdf(8.1)
print(f"cdf at 8.1 from 8: {single} in float32, {double:.6f} in float64; right: {right:.6f}")
infinite = int((samples == math.inf).sum())
mean = stats.truncnorm(20.0, math.inf).mean()
print(f"{infinite} of 1000 samples from 20 are infinite in float32; their mean is {mean:.4f}")
as_described = math.isnan(single) and abs(double - right) > 0.1 and infinite == 1000
print("The tails are lost." if as_described else "CHANGED")
sys.exit(not as_described)
END
