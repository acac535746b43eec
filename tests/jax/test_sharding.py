"""Arrays over eight host devices: the sharding is kept, and the results are those of one device."""

import pytest

pytest.importorskip("jax")


def test_every_row_on_eight_devices(on_eight_devices, record_property):
    """In eager mode and compiled, of the values and of both gradients, with C and without."""
    found = on_eight_devices("tests.jax.sharded")
    for row in found["rows"]:
        record_property("capability", row)
    # 6 functions with each kind of axes, and what else is tried with neg_kl_normal.
    assert len(found["rows"]) == 6 * 2 + 7 + 4
    assert min(len(found["rows"][row]) for row in found["rows"] if row.endswith(" axes")) >= 6
    every = {"others": found["others"], **found["rows"]}
    assert not [(row, label) for row in every for label, holds in every[row].items() if not holds]


@pytest.mark.slow
def test_layers_on_eight_devices(on_eight_devices):
    """They draw the noise of one device."""
    # Each program runs once, so most of the time would go into optimizing it.
    found = on_eight_devices("tests.jax.nn.sharded", "--xla_backend_optimization_level=0")
    assert len(found) == 3 + 5 * 3
    assert not [check for check, holds in found.items() if not holds]
