"""A run that is killed goes on with the same bits, and files are whole at any moment."""

import hashlib
import os
import signal
import subprocess
import sys
import time

import pytest

torch = pytest.importorskip("torch")
pytest.importorskip("sklearn")

from validation.paths import ROOT  # noqa: E402
from validation.training import checkpoint, data, loop, networks  # noqa: E402

EPOCHS = 3
CODE = """
import sys
from pathlib import Path
from tests.validation.test_training_resume import finish, run_of
torch = __import__("torch")
torch.set_num_threads(1)
print(finish(run_of(sys.argv[1], Path(sys.argv[2]), every=3)))
"""


def run_of(method, file, every=3):
    noise = loop.seeded(5, 1)
    model = networks.network(method, 64, [40, 40], seed=5, generator=noise)
    given = (model, noise, data.digits().train, loop.Settings(50, 5))
    return loop.Run(*given, about={}, file=file, every=every)


def finish(run):
    """Train to the end, and hash every bit that a next step would depend on."""
    list(run.train(EPOCHS))
    found = hashlib.sha256()

    def take(value):
        if isinstance(value, dict):
            for key in value:
                if key not in ("seconds", "history"):  # which hold times
                    found.update(str(key).encode())
                    take(value[key])
        elif isinstance(value, (list, tuple)):
            for item in value:
                take(item)
        elif isinstance(value, torch.Tensor):
            found.update(value.numpy().tobytes())
        else:
            found.update(repr(value).encode())

    take(run.state_dict())
    for record in run.history:
        take({key: value for key, value in record.items() if key != "seconds"})
    return found.hexdigest()


def command(method, file):
    environment = {**os.environ, "OMP_NUM_THREADS": "1"}
    pipes = {"stdout": subprocess.PIPE, "stderr": subprocess.PIPE, "text": True}
    arguments = [sys.executable, "-c", CODE, method, str(file)]
    return subprocess.Popen(arguments, cwd=ROOT, env=environment, **pipes)


def ended(process):
    out, err = process.communicate(timeout=300)
    assert process.returncode == 0, err
    return out.strip()


def test_killed_and_resumed_with_the_same_bits(tmp_path):
    method = "variational_b"
    whole = ended(command(method, tmp_path / "whole.pt"))
    file = tmp_path / "killed.pt"
    process, step = command(method, file), 0
    while process.poll() is None and step < 40:  # inside the second epoch
        time.sleep(0.005)
        if file.exists():
            step = torch.load(file, weights_only=True)["state"]["step"]
    process.kill()
    process.communicate()
    assert process.returncode == -signal.SIGKILL, "it ended before it could be killed"
    assert 40 <= torch.load(file, weights_only=True)["state"]["step"] < EPOCHS * 29
    assert ended(command(method, file)) == whole


def test_resumed_at_every_step(tmp_path):
    """Whichever checkpoint is the last, inside an epoch or at its end."""
    whole = finish(run_of("variational_a", tmp_path / "whole.pt", every=None))
    run = run_of("variational_a", None)
    states = []
    run.save = lambda: states.append(copied(run.state_dict()))
    run._file, run._every = tmp_path, 10
    assert finish(run) == whole
    assert len(states) > 2 * EPOCHS
    for state in states:
        other = run_of("variational_a", None)
        other.load_state_dict(copied(state))
        assert finish(other) == whole


def copied(state):
    if isinstance(state, torch.Tensor):
        return state.clone()
    if isinstance(state, dict):
        return {key: copied(value) for key, value in state.items()}
    if isinstance(state, list):
        return [copied(value) for value in state]
    return state


def test_a_write_that_fails_leaves_the_old_file(tmp_path, monkeypatch):
    file = tmp_path / "a.pt"
    checkpoint.save(file, {"seed": 1}, {"step": 1})

    def full(*_):
        raise OSError(28, "No space left on device")

    monkeypatch.setattr(os, "fsync", full)
    with pytest.raises(OSError, match="No space left"):
        checkpoint.save(file, {"seed": 1}, {"step": 2})
    assert checkpoint.load(file, {"seed": 1}) == {"step": 1}
    assert list(tmp_path.iterdir()) == [file]


def test_a_checkpoint_of_another_run_is_refused(tmp_path):
    file = tmp_path / "a.pt"
    assert checkpoint.load(file, {}) is checkpoint.load_json(file, {}) is None
    checkpoint.save(file, {"seed": 1, "width": 8}, {"step": 1})
    with pytest.raises(checkpoint.CheckpointError) as caught:
        checkpoint.load(file, {"seed": 1, "width": 16})
    said = "is of a run with width 8, not 16: name another folder with --work"
    assert str(caught.value) == f"{file} {said}"
    checkpoint.save_json(file, {"seed": 1}, [1.5], 2.0)
    assert checkpoint.load_json(file, {"seed": 1}) == ([1.5], 2.0)
    with pytest.raises(checkpoint.CheckpointError, match="with seed 1, not 2"):
        checkpoint.load_json(file, {"seed": 2})


@pytest.mark.parametrize("content", [b"", b"PK\x03\x04nothing"])
def test_a_broken_checkpoint_is_refused(tmp_path, content):
    file = tmp_path / "a.pt"
    file.write_bytes(content)
    with pytest.raises(checkpoint.CheckpointError, match="is not a checkpoint that can be read"):
        checkpoint.load(file, {})
    with pytest.raises(checkpoint.CheckpointError, match="is not a record that can be read: "):
        checkpoint.load_json(file, {})
