"""Layers and the KL of models over two processes: DDP, FSDP2, DTensors, tensor parallelism."""

import pytest

torch = pytest.importorskip("torch")

from logunif_kl.torch import neg_kl, neg_kl_normal, nn  # noqa: E402

POSTERIORS = ("additive", "output", "layer", "correlated")
KINDS = {"linear": 3, "embedding": 3, "conv1d": 1}


@pytest.fixture(scope="module")
def found(two_processes):
    return two_processes.found("tests.torch.nn.distributed")


@pytest.fixture(scope="module")
def models(two_processes):
    return two_processes.found("tests.torch.nn.models_sharded")


def check(found, key):
    for rank, each in enumerate(found):
        assert each[key], f"{key} in process {rank}"


@pytest.mark.parametrize(
    "control", ["torch repeats the noise", "these shards differ", "a generator", "agree"]
)
def test_these_tests_can_fail(found, control):
    check(found, f"control:{control}")


@pytest.mark.parametrize("posterior", POSTERIORS)
@pytest.mark.parametrize("kind", ["DDP", "FSDP2"])
def test_data_parallel(found, kind, posterior):
    """At the mean, the steps are those of one process; with noise, the training goes on."""
    check(found, f"{kind}:{posterior}:step")
    check(found, f"{kind}:{posterior}:training")


@pytest.mark.parametrize("posterior", POSTERIORS)
@pytest.mark.parametrize("kind", KINDS)
def test_dtensors(found, kind, posterior):
    """Output and gradients of one process, with the same noise."""
    keys = [k for k in found[0] if k.startswith("DTensor:") and k.endswith(f":{posterior}:{kind}")]
    assert len(keys) == KINDS[kind]
    for key in keys:
        check(found, key)


@pytest.mark.parametrize("row", ["mean", "noise"])
def test_tensor_parallel(found, row):
    check(found, f"tensor parallel:{row}")


@pytest.mark.parametrize("label", ["Shard(0)", "Shard(1)", "Replicate"])
def test_weights_are_counted_over_all_processes(found, label):
    check(found, f"sparsity:{label}")


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
def test_as_in_one_process(models, what):
    assert [each[what] for each in models] == [True, True]


def test_every_check_is_looked_at(models):
    assert len(models[0]) == 16


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
