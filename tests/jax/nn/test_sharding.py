"""Layers over eight host devices draw the noise of one device, and keep the sharding."""

import json
import os
import subprocess
import sys

import pytest

pytest.importorskip("jax")

DEVICES = 8
ESTIMATORS = ("local", "per_example", "per_batch")


@pytest.fixture(scope="module")
def found():
    """What `tests/jax/nn/sharded.py` found."""
    environment = {
        **os.environ,
        # The programs run once each, so that compiling them is the time.
        "XLA_FLAGS": f"--xla_force_host_platform_device_count={DEVICES} "
        "--xla_backend_optimization_level=0",
        "JAX_PLATFORMS": "cpu",
    }
    done = subprocess.run(
        [sys.executable, "-m", "tests.jax.nn.sharded"],
        env=environment,
        capture_output=True,
        text=True,
        check=True,
        timeout=600,
    )
    return json.loads(done.stdout)


def test_this_test_can_fail(found):
    assert found["devices"] == DEVICES
    assert found["control"]


@pytest.mark.parametrize("way", ["examples", "examples and weights"])
@pytest.mark.parametrize("estimator", ESTIMATORS)
def test_outputs_and_gradients(found, estimator, way):
    assert found[f"{estimator}, {way}"]
    assert found[f"devices of {estimator}, {way}"] == DEVICES


@pytest.mark.parametrize("estimator", ESTIMATORS)
def test_the_gradient_is_where_the_parameter_is(found, estimator):
    assert found[f"gradient of {estimator}"]


def test_kl(found):
    assert found["kl"]
