#!/usr/bin/env bash
# NumPyro's KL divergence of Kumaraswamy(1, 0.1) from Beta(1, 2) is 8.5 in float64, and 16.0 is right.
set -euo pipefail
work=$(mktemp -d)
trap 'rm -rf "$work"' EXIT
python3 -m venv "$work"
"$work/bin/python" -m pip install --quiet numpyro==0.22.0 jax==0.10.2 jaxlib==0.10.2
"$work/bin/python" -I - <<'END'
import sys

import jax
import numpyro
from numpyro.distributions import Beta, Kumaraswamy, kl_divergence

jax.config.update("jax_enable_x64", True)
print(f"Python {sys.version.split()[0]}, NumPyro {numpyro.__version__}, JAX {jax.__version__}")

# With the first parameter 1, both densities are b (1 - x)^(b - 1).
off = []
for b, prior in ((0.01, 5.0), (0.1, 2.0), (0.5, 10.0), (3.0, 3.0)):
    kl = float(kl_divergence(Kumaraswamy(1.0, b), Beta(1.0, prior)))
    right = float(kl_divergence(Beta(1.0, b), Beta(1.0, prior)))
    off.append(kl - right)
    print(f"b = {b}, prior Beta(1, {prior}): {kl:.4f}; of the same densities as Beta {right:.4f}")
as_described = off[0] < -300.0 and off[1] < -7.0 and off[2] < -4.0 and off[3] < -0.002
print("A series is cut after 10 terms." if as_described else "CHANGED")
sys.exit(not as_described)
END
