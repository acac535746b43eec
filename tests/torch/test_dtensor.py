"""DTensors over two processes: placements are kept, and the numbers are those of one process."""

import json
import os
import subprocess
import sys

import pytest

torch = pytest.importorskip("torch")
if not torch.distributed.is_available():
    pytest.skip("this PyTorch was built without torch.distributed", allow_module_level=True)

PROCESSES = 2
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
def found(tmp_path_factory):
    """What `tests/torch/sharded.py` found in each of the processes."""
    directory = tmp_path_factory.mktemp("dtensor")
    command = [sys.executable, "-m", "tests.torch.sharded"]
    environment = {**os.environ, "OMP_NUM_THREADS": "1"}
    processes = [
        subprocess.Popen(
            [*command, str(rank), str(directory)],
            env=environment,
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


def check(found, keys):
    assert keys
    for rank, each in enumerate(found):
        for key in keys:
            assert each[key], f"{key} in process {rank}"


@pytest.mark.parametrize("control", ["bits", "placements", "kernel"])
def test_these_tests_can_fail(found, control):
    check(found, [f"control:{control}"])


@pytest.mark.parametrize("placement", ["Shard(0)", "Shard(1)", "Replicate"])
@pytest.mark.parametrize("name", NAMES)
def test_value_and_backward(found, name, placement, capability):
    """Bit for bit, in three types; reductions within the rounding of sums in another order."""
    capability(name, f"DTensor over two processes, {placement}")
    keys = [key for key in found[0] if key.startswith(f"{name}:{placement}:")]
    assert len(keys) == (3 if name in ("neg_kl_grad", "neg_kl_hess") else 7)
    check(found, keys)


def test_a_plain_tensor_is_refused(found):
    check(found, ["a plain tensor beside it"])


@pytest.mark.parametrize("row", FURTHER)
def test_of_neg_kl_normal(found, row, capability):
    capability("neg_kl_normal", f"DTensor over two processes, {row}")
    check(found, [row])
