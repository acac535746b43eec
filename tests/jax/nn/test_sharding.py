"""Layers over eight host devices draw the noise of one device, and keep the sharding."""

import pytest

pytest.importorskip("jax")


@pytest.fixture(scope="module")
def found(on_eight_devices):
    # Each program runs once, so most of the time would go into optimizing it.
    return on_eight_devices("tests.jax.nn.sharded", "--xla_backend_optimization_level=0")


def test_this_test_can_fail(found):
    assert found["devices"] == 8
    assert found["control"]


@pytest.mark.parametrize("estimator", ["local", "per_example", "per_batch"])
def test_outputs_and_gradients(found, estimator):
    for way in ("examples", "examples and weights"):
        assert found[f"{estimator}, {way}"]
        assert found[f"devices of {estimator}, {way}"] == 8
    # The gradient is where the parameter is.
    assert found[f"gradient of {estimator}"]


def test_kl(found):
    assert found["kl"]
