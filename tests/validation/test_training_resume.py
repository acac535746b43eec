"""A run that was ended goes on with the same bits, and files are whole at any moment."""

import hashlib
import os

import pytest

torch = pytest.importorskip("torch")
pytest.importorskip("sklearn")

from validation.training import checkpoint, data, loop, networks  # noqa: E402

EPOCHS = 2


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
        file = tmp_path / "state.pt"
        checkpoint.save(file, run._about, state)
        assert finish(run_of("variational_a", file, every=None)) == whole


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
