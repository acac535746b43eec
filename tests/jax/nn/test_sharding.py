"""Layers over eight host devices draw the noise of one device, and keep the sharding."""

import pytest

pytest.importorskip("jax")

DEVICES = 8
ESTIMATORS = ("local", "per_example", "per_batch")


@pytest.fixture(scope="module")
def found(on_eight_devices):
    # Each program runs once, so most of the time would go into optimizing it.
    return on_eight_devices("tests.jax.nn.sharded", "--xla_backend_optimization_level=0")


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
