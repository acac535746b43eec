"""The KL of models over two processes: DTensors, FullyShardedDataParallel and DDP."""

import json
import os
import subprocess
import sys

import pytest

torch = pytest.importorskip("torch")
if not torch.distributed.is_available():
    pytest.skip("this PyTorch was built without torch.distributed", allow_module_level=True)

from logunif_kl.torch import neg_kl, neg_kl_normal, nn  # noqa: E402

PROCESSES = 2


@pytest.fixture(scope="module")
def found(tmp_path_factory):
    """What `tests/torch/nn/models_sharded.py` found in each of the processes."""
    directory = tmp_path_factory.mktemp("sharded")
    command = [sys.executable, "-m", "tests.torch.nn.models_sharded"]
    processes = [
        subprocess.Popen(
            [*command, str(rank), str(directory)],
            env={**os.environ, "OMP_NUM_THREADS": "1"},
            stdout=subprocess.PIPE,
            stderr=subprocess.STDOUT,
            text=True,
        )
        for rank in range(PROCESSES)
    ]
    try:
        outputs = [process.communicate(timeout=240)[0] for process in processes]
    finally:
        for process in processes:
            process.kill()
    reports = [directory / f"found{rank}.json" for rank in range(PROCESSES)]
    assert all(report.exists() for report in reports), "\n".join(outputs)
    return [json.loads(report.read_text()) for report in reports]


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
