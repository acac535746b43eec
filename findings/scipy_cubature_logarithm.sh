#!/usr/bin/env bash
# SciPy's `cubature` integrates log|x| from -1 to 1 to minus infinity with the status "converged"; -2 is right.
set -euo pipefail
work=$(mktemp -d)
trap 'rm -rf "$work"' EXIT
python3 -m venv "$work"
"$work/bin/python" -m pip install --quiet scipy==1.17.1 numpy==2.4.6
"$work/bin/python" -I - <<'END'
import sys
import warnings

import numpy as np
import scipy
from scipy.integrate import cubature, quad

print(f"Python {sys.version.split()[0]}, SciPy {scipy.__version__}")
warnings.simplefilter("ignore", RuntimeWarning)
found = cubature(lambda x: np.log(np.abs(x[:, 0])), [-1.0], [1.0])
print(f"cubature: {found.estimate}, error {found.error}, status {found.status!r}")
print(f"quad with points=[0]: {quad(lambda x: np.log(abs(x)), -1.0, 1.0, points=[0.0])[0]:.12f}")
as_described = found.status == "converged" and found.estimate == -np.inf
print("The status hides it." if as_described else "CHANGED: the status says so.")
sys.exit(not as_described)
END
