"""The examples train: the error falls, and the KL goes the way that it should."""

import os
import re
import subprocess
import sys
from importlib.util import find_spec
from pathlib import Path

import pytest

pytest.importorskip("jax")

EXAMPLES = Path(__file__).parent / "examples"
NEEDED = {
    "with_optax": ("optax", "sklearn"),
    "with_flax": ("flax", "optax", "sklearn"),
    "with_equinox": ("equinox", "optax", "sklearn"),
}


def run(name):
    """The KL and the error before, and the log-likelihood, the KL and the error as they go."""
    missing = [package for package in NEEDED[name] if find_spec(package) is None]
    if missing:
        pytest.skip(f"the example needs {' and '.join(missing)}")
    done = subprocess.run(
        [sys.executable, "-W", "ignore", str(EXAMPLES / f"{name}.py")],
        env={
            **os.environ,
            "PYTHONPATH": os.pathsep.join(p for p in sys.path if p),
            # Most of the time is that of the compiler.
            "JAX_DISABLE_MOST_OPTIMIZATIONS": "1",
        },
        capture_output=True,
        text=True,
        check=True,
        timeout=600,
    )
    number = r"(-?[\d.]+)"
    before = re.match(f"before: KL {number}, error {number}\n", done.stdout).groups()
    rows = re.findall(
        rf"^epoch \d+: log-likelihood {number}, KL {number}, error {number}", done.stdout, re.M
    )
    return [float(x) for x in before], [[float(x) for x in row] for row in rows]


@pytest.mark.parametrize("name", NEEDED)
def test_example(name):
    (kl, error), rows = run(name)
    assert error > 0.7
    assert len(rows) >= 4
    assert max(row[2] for row in rows) < 0.15
    assert rows[-1][2] < 0.1
    assert rows[-1][0] > -0.5
    kls = [kl, *(row[1] for row in rows)]
    assert kls == sorted(kls, reverse=True)
    # The noise of weights makes most of them superfluous. The scales keep theirs.
    assert kls[-1] < (0.96 if name == "with_equinox" else 0.4) * kl


def test_the_examples_are_these():
    assert {path.stem for path in EXAMPLES.glob("*.py")} == set(NEEDED)
