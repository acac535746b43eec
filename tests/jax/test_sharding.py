"""Arrays over eight host devices: the sharding is kept, and the results are those of one device."""

import pytest

pytest.importorskip("jax")


@pytest.fixture(scope="module")
def found(on_eight_devices):
    return on_eight_devices("tests.jax.sharded")


def test_these_tests_can_fail(found):
    assert found["devices"] == 8
    assert len(found) > 60
    assert found["control:sharding"]
    assert found["control:bits"]


def test_different_devices(found):
    sentence = "mu is on {} and log_sigma2 is on {}: move one with jax.device_put, so that both are"
    *said, where = found["errors"]
    assert len(said) == 3
    names = [each.split(" ")[i].rstrip(":") for each in said[:1] for i in (3, 8)]
    assert len(set(names)) == 2
    assert where == names[1]
    for each in said:
        assert each == sentence.format(*names) + " on the same devices"


NAMES = ("neg_kl", "neg_kl_grad", "neg_kl_hess", "kl", "neg_kl_normal", "kl_normal")


@pytest.mark.parametrize("axes", ["auto", "explicit"])
@pytest.mark.parametrize("name", NAMES)
def test_sharding_is_kept(found, name, axes, record_property):
    """Of the values and of both gradients; in eager mode and compiled."""
    record_property("capability", f"{name}:jax:eight devices, {axes} axes")
    rows = {key: fine for key, fine in found.items() if key.startswith(f"{name}:") and axes in key}
    # Again with the arrays of one device given to C, where there is such a function.
    assert len(rows) == 6 * (1 + (found["C"] and name.endswith("normal")))
    for key, fine in rows.items():
        assert fine, key


@pytest.mark.parametrize(
    "row",
    [
        *("shard_map", "grad(shard_map)", "shard_map(sum)", "sum", "jit(sum)", "broadcast"),
        "grad of broadcast",
    ],
)
def test_of_neg_kl_normal(found, row, record_property):
    record_property("capability", f"neg_kl_normal:jax:eight devices, {row}")
    assert found[f"neg_kl_normal:{row}"]


@pytest.mark.parametrize(
    ("program", "calls"),
    [
        ("divided by XLA", []),
        ("shard_map", ["value"]),
        ("grad(shard_map)", ["gradient"]),
        ("both", ["value"]),
    ],
)
def test_kernels_are_called_on_the_parts_of_one_device_alone(
    found, program, calls, record_property
):
    """XLA would gather the parts to call a function that it does not know."""
    way = "C" if calls and found["C"] else "XLA"
    record_property("capability", f"neg_kl_normal:jax:eight devices, {program}, by {way}")
    expected = [f"logunif_kl.{name}" for name in calls] if found["C"] else []
    assert found["programs"][program] == expected
