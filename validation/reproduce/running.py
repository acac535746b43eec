"""Commands run one after the other, and what was finished by an earlier one."""

import contextlib
import hashlib
import json
import shlex
import signal
import subprocess
import threading
from collections.abc import Iterator
from pathlib import Path

from validation.output import CommandError, Record, write_json
from validation.paths import ROOT
from validation.reproduce.work import Work

FINISHED = ROOT / "build" / "reproduce" / "finished.json"
_GRACE = 5.0  # seconds that a command has to end by itself after an interrupt


def run(argv: list[str]) -> int:
    with subprocess.Popen(argv, cwd=ROOT) as process:
        try:
            return process.wait()
        except KeyboardInterrupt:
            _end(process)
            raise


def _end(process: subprocess.Popen[bytes]) -> None:
    """End a process, which a terminal has interrupted already, and another signal has not."""
    with contextlib.suppress(subprocess.TimeoutExpired):
        process.wait(_GRACE)
        return
    process.terminate()
    with contextlib.suppress(subprocess.TimeoutExpired):
        process.wait(_GRACE)
        return
    process.kill()
    process.wait()


@contextlib.contextmanager
def terminated_as_interrupted() -> Iterator[None]:
    """Take SIGTERM for an interrupt, so that no command outlives this one."""
    if threading.current_thread() is not threading.main_thread():
        yield
        return
    before = signal.signal(signal.SIGTERM, signal.default_int_handler)
    try:
        yield
    finally:
        signal.signal(signal.SIGTERM, before)


class Finished:
    """The commands that were finished, kept in a file, so that the same command goes on.

    A command counts as finished if it was the same, and its record is as the command left it.
    """

    def __init__(self, path: Path | None = None, root: Path = ROOT) -> None:
        path = path or FINISHED
        self._path, self._root = path, root
        self._known: Record = {}
        if path.exists():
            try:
                self._known = dict(json.loads(path.read_text(encoding="utf-8")))
            except (ValueError, TypeError):
                raise CommandError(f"{path} cannot be read: remove it, and all are run") from None

    def has(self, work: Work, argv: list[str]) -> bool:
        return bool(self._known.get(work.name) == self._about(work, argv))

    def add(self, work: Work, argv: list[str]) -> None:
        self._known[work.name] = self._about(work, argv)
        self._path.parent.mkdir(parents=True, exist_ok=True)
        write_json(str(self._path), self._known)

    def _about(self, work: Work, argv: list[str]) -> Record:
        path = self._root / work.record
        there = path.exists()
        return {
            "command": shlex.join(argv[1:]),
            "record_sha256": hashlib.sha256(path.read_bytes()).hexdigest() if there else None,
        }
