#!/usr/bin/env bash
# Two sums of one Float32 column differ in polars: `Series.sum` is right, and that of `group_by` is 3 % too small.
set -euo pipefail
work=$(mktemp -d)
trap 'rm -rf "$work"' EXIT
python3 -m venv "$work"
"$work/bin/python" -m pip install --quiet polars==2.1.0 numpy==2.4.6
"$work/bin/python" -I - <<'END'
import sys

import numpy as np
import polars as pl

print(f"Python {sys.version.split()[0]}, polars {pl.__version__}")
n = 2**25
frame = pl.DataFrame({"layer": np.zeros(n, np.int8), "kl": np.ones(n, np.float32)})
alone = frame["kl"].sum()
grouped = frame.group_by("layer").agg(pl.col("kl").sum())["kl"][0]
print(f"{n} ones: {alone:.0f} by Series.sum, {grouped:.0f} by group_by")
as_described = alone == n and abs(grouped / n - 1.0) > 1e-3
print("The two sums differ." if as_described else "CHANGED: the two sums are equal.")
sys.exit(not as_described)
END
