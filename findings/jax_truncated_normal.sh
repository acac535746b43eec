#!/usr/bin/env bash
# JAX's `random.truncated_normal(key, 6.0, 7.0)` returns 7 for each draw, where the mean is 6.157.
set -euo pipefail
work=$(mktemp -d)
trap 'rm -rf "$work"' EXIT
python3 -m venv "$work"
"$work/bin/python" -m pip install --quiet jax==0.10.2 jaxlib==0.10.2 numpy==2.4.6 scipy==1.17.1
"$work/bin/python" -I - <<'END'
import sys

import jax
from scipy import stats

print(f"Python {sys.version.split()[0]}, JAX {jax.__version__}")
off = {}
for low in (3.0, 6.0, 10.0):
    x = jax.random.truncated_normal(jax.random.key(0), low, low + 1.0, (100_000,))
    truth = float(stats.truncnorm(low, low + 1.0).mean())
    off[low] = abs(float(x.mean()) - truth)
    print(
        f"from {low} to {low + 1.0}: draws from {float(x.min()):.4f} to {float(x.max()):.4f}, "
        f"mean {float(x.mean()):.4f}; {truth:.4f} is right"
    )
as_described = off[3.0] < 0.01 and off[6.0] > 0.8 and off[10.0] > 0.8
print("Each draw is at the far end." if as_described else "CHANGED: the draws vary.")
sys.exit(not as_described)
END
