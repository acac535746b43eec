#!/usr/bin/env bash
# Bottleneck's `move_sum` forgets all that follows a large number: after 1e16, two ones add up to 0.
set -euo pipefail
work=$(mktemp -d)
trap 'rm -rf "$work"' EXIT
python3 -m venv "$work"
"$work/bin/python" -m pip install --quiet bottleneck==1.6.0 numpy==2.4.6 pandas==3.1.1
"$work/bin/python" -I - <<'END'
import sys

import bottleneck
import numpy as np
import pandas as pd

print(f"Python {sys.version.split()[0]}, Bottleneck {bottleneck.__version__}")
x = np.array([1e16, 1.0, 1.0, 1.0, 1.0])
found = bottleneck.move_sum(x, window=2)
print(f"move_sum({x.tolist()}, 2) = {found.tolist()}")
print(f"    by pandas {pd.__version__}: {pd.Series(x).rolling(2).sum().tolist()}")
as_described = bool(np.all(found[2:] == 0.0))
print("The ones are lost." if as_described else "CHANGED: 1 + 1 is 2.")
sys.exit(not as_described)
END
