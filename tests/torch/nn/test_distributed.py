"""The layers over two processes: DDP, FSDP2, DTensors and tensor parallelism."""

import pytest

torch = pytest.importorskip("torch")

POSTERIORS = ("additive", "output", "layer", "correlated")
KINDS = {"linear": 3, "embedding": 3, "conv1d": 1}


@pytest.fixture(scope="module")
def found(two_processes):
    return two_processes.found("tests.torch.nn.distributed")


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
