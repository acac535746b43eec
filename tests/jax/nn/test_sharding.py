"""Layers over eight host devices draw the noise of one device, and keep the sharding."""

import pytest

pytest.importorskip("jax")


def test_on_eight_devices(on_eight_devices):
    # Each program runs once, so most of the time would go into optimizing it.
    found = on_eight_devices("tests.jax.nn.sharded", "--xla_backend_optimization_level=0")
    assert len(found) == 3 + 5 * 3
    assert not [check for check, holds in found.items() if not holds]
