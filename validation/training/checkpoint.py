"""Files that hold the state of a run and are complete at any moment.

A file is written next to the old one, flushed to the disk, and renamed, so that a killed process
leaves either the old state or the new one.
"""

import json
from pathlib import Path
from typing import Any

from logunif_kl._atomic_io import replacing
from validation.output import CommandError, Record


class CheckpointError(CommandError):
    """A file that cannot be read or belongs to another run."""


def save(path: Path, about: Record, state: Record) -> None:
    import torch

    path.parent.mkdir(parents=True, exist_ok=True)
    with replacing(path, flushed=True) as part:
        torch.save({"about": _canonical(about), "state": state}, part)


def load(path: Path, about: Record) -> Record | None:
    """Read the state of the run that ``about`` describes, or return None without a file."""
    if not path.exists():
        return None
    import torch

    try:
        found = torch.load(path, weights_only=True)
        written, state = found["about"], found["state"]
    except Exception as error:  # torch.load raises many types of errors for a broken file
        raise CheckpointError(
            f"{path} is not a checkpoint that can be read ({type(error).__name__}): remove it"
        ) from None
    _refuse_another(path, json.loads(written), about)
    assert isinstance(state, dict)
    return state


def save_json(path: Path, about: Record, state: Any, seconds: float = 0.0) -> None:
    document = {"about": about, "seconds": round(seconds, 3), "state": state}
    text = json.dumps(document, indent=1) + "\n"
    path.parent.mkdir(parents=True, exist_ok=True)
    with replacing(path, flushed=True) as part:
        part.write_text(text, encoding="utf-8")


def load_json(path: Path, about: Record) -> tuple[Any, float] | None:
    """Read the result and the seconds that `save_json` wrote, or return None without a file."""
    if not path.exists():
        return None
    try:
        found = json.loads(path.read_text(encoding="utf-8"))
        written, state, seconds = found["about"], found["state"], float(found["seconds"])
    except (ValueError, KeyError, TypeError):
        raise CheckpointError(f"{path} is not a record that can be read: remove it") from None
    _refuse_another(path, written, about)
    return state, seconds


def _canonical(about: Record) -> str:
    return json.dumps(about, sort_keys=True)


def _refuse_another(path: Path, written: Record, about: Record) -> None:
    wanted = json.loads(_canonical(about))
    for key in {**wanted, **written}:
        if written.get(key) != wanted.get(key):
            raise CheckpointError(
                f"{path} is of a run with {key} {written.get(key)!r}, not {wanted.get(key)!r}: "
                "name another folder with --work"
            )
