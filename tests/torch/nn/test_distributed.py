"""Layers and the KL of models over two processes: DDP, FSDP2, DTensors, tensor parallelism."""

import pytest

torch = pytest.importorskip("torch")

from logunif_kl.torch import neg_kl, neg_kl_normal, nn  # noqa: E402


def test_as_in_one_process(two_processes):
    """The checks of a module, with those that the checks can fail."""
    for found in two_processes.found("tests.torch.nn.distributed"):
        assert len(found) == 155
        assert [name for name, fine in found.items() if not fine] == []


@pytest.mark.parametrize("dtype", [torch.float32, torch.float64])
def test_a_parameter_can_give_its_memory_back(dtype):
    """FSDP resizes the storage of gathered parameters to 0 when it is done with them."""
    layer = nn.VariationalLinear(3, 2, posterior=nn.Multiplicative(), dtype=dtype)
    nn.neg_kl(layer).backward()
    mu, log_sigma2 = (torch.randn(100_000, dtype=dtype) for _ in range(2))
    for reduction in ("sum", "none"):
        neg_kl_normal(mu, log_sigma2, reduction=reduction)
        neg_kl(mu, reduction=reduction)
    for x in (layer.log_alpha.detach(), mu):
        x.untyped_storage().resize_(0)
        assert not x.untyped_storage().size()
