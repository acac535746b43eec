"""DTensors over two processes: placements are kept, and the numbers are those of one process."""

import pytest

torch = pytest.importorskip("torch")

NAMES = ("neg_kl", "neg_kl_grad", "neg_kl_hess", "kl", "neg_kl_normal", "kl_normal")
FURTHER = (
    "second backward",
    "pending sum",
    "backward of a pending sum",
    "broadcast",
    "a number beside it",
    "a replicated argument beside it",
    "transposed",
    "of a pending sum",
    "compile(value + backward)",
)


@pytest.fixture(scope="module")
def found(two_processes):
    return two_processes.found("tests.torch.sharded")


def check(found, keys):
    assert keys
    for rank, each in enumerate(found):
        for key in keys:
            assert each[key], f"{key} in process {rank}"


@pytest.mark.parametrize("placement", ["Shard(0)", "Shard(1)", "Replicate"])
@pytest.mark.parametrize("name", NAMES)
def test_value_and_backward(found, name, placement, capability):
    """Bit for bit, in three types; reductions within the rounding of sums in another order."""
    capability(name, f"DTensor over two processes, {placement}")
    keys = [key for key in found[0] if key.startswith(f"{name}:{placement}:")]
    assert len(keys) == (3 if name in ("neg_kl_grad", "neg_kl_hess") else 7)
    check(found, keys)


@pytest.mark.parametrize("row", FURTHER)
def test_of_neg_kl_normal(found, row, capability):
    capability("neg_kl_normal", f"DTensor over two processes, {row}")
    check(found, [row])


def test_without_a_row(found):
    check(found, ["a plain tensor is refused", "by the kernel"])


def test_different_placements(found):
    rows = (
        "two placements",
        "a gradient with another placement",
        "two meshes are refused",
        "a mesh of two dimensions",
    )
    check(found, rows)
