#!/usr/bin/env bash
# JAX's `random.normal` in bfloat16 draws 128 different numbers, none above 2.9, with a mean of -0.012.
set -euo pipefail
work=$(mktemp -d)
trap 'rm -rf "$work"' EXIT
python3 -m venv "$work"
"$work/bin/python" -m pip install --quiet jax==0.10.2 jaxlib==0.10.2 numpy==2.4.6 scipy==1.17.1
"$work/bin/python" -I - <<'END'
import sys

import jax
import numpy as np

print(f"Python {sys.version.split()[0]}, JAX {jax.__version__}")
largest, different, mean = {}, {}, {}
for dtype in ("bfloat16", "float16", "float32"):
    x = jax.random.normal(jax.random.key(0), (1_000_000,), dtype)
    x = np.asarray(x.astype("float32"), "float64")
    largest[dtype], different[dtype], mean[dtype] = np.abs(x).max(), len(np.unique(x)), x.mean()
    print(
        f"{dtype}: largest {largest[dtype]:.3f}, {different[dtype]} different, "
        f"mean {mean[dtype]:.4f} +- {x.std() / 1000.0:.4f}"
    )
as_described = largest["bfloat16"] < 3.0 < 4.5 < largest["float32"] and mean["bfloat16"] < -0.01
print("The tails are missing." if as_described else "CHANGED: the tails are there.")
sys.exit(not as_described)
END
