"""The KL of models over two processes: DTensors, FullyShardedDataParallel and DDP."""

import pytest

torch = pytest.importorskip("torch")

from logunif_kl.torch import neg_kl, neg_kl_normal, nn  # noqa: E402


@pytest.fixture(scope="module")
def found(two_processes):
    return two_processes.found("tests.torch.nn.models_sharded")


@pytest.mark.parametrize(
    "what",
    [
        *(
            f"{name}, {penalty}"
            for penalty in ("exact", "molchanov")
            for name in ("a plain tensor", "value", "gradient", "by layer")
        ),
        *(
            f"fully_shard, {name}: {part}"
            for name in ("the whole", "each layer")
            for part in ("type", "value", "gradient")
        ),
        "DistributedDataParallel: gradient",
        "control",
    ],
)
def test_as_in_one_process(found, what):
    assert [each[what] for each in found] == [True, True]


def test_every_check_is_looked_at(found):
    assert len(found[0]) == 16


@pytest.mark.parametrize("dtype", [torch.float32, torch.float64])
def test_a_parameter_can_give_its_memory_back(dtype):
    """FSDP resizes the storage of gathered parameters to 0 when it is done with them."""
    layer = nn.VariationalLinear(3, 2, posterior="multiplicative", dtype=dtype)
    nn.neg_kl(layer).backward()
    mu, log_sigma2 = (torch.randn(100_000, dtype=dtype) for _ in range(2))
    for reduction in ("sum", "none"):
        neg_kl_normal(mu, log_sigma2, reduction=reduction)
        neg_kl(mu, reduction=reduction)
    for x in (layer.log_alpha.detach(), mu):
        x.untyped_storage().resize_(0)
        assert not x.untyped_storage().size()
