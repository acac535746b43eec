"""Files that are replaced when the new one is complete."""

from __future__ import annotations

import contextlib
import errno
import os
import secrets
import shutil
from collections.abc import Iterator
from pathlib import Path


@contextlib.contextmanager
def replacing(path: str | os.PathLike[str], *, flushed: bool = False) -> Iterator[Path]:
    """Give the path of a new file, which takes the place of the old one when it is complete.

    If it cannot be written, what was there is left as it was, and nothing else is. The directory
    must be writable. The new file has the mode of the old one. A device or a pipe is written
    itself. A ``flushed`` file is on the disk before it takes that place.

    Raises
    ------
    PermissionError
        If the old file is read-only.
    """
    target = Path(os.path.realpath(path))
    if target.is_symlink():  # what a loop of links ends in
        raise OSError(errno.ELOOP, os.strerror(errno.ELOOP), str(path))
    if target.exists() and not target.is_file():
        yield target
        return
    if target.exists() and not os.access(target, os.W_OK):
        raise PermissionError(errno.EACCES, os.strerror(errno.EACCES), str(target))
    # Other threads, and processes of other machines, may write the same file.
    part = target.with_name(f".{target.stem}.{secrets.token_hex(8)}{target.suffix}")
    try:
        yield part
        if flushed:
            with part.open("rb+") as written:
                os.fsync(written.fileno())
        if target.exists():
            shutil.copymode(target, part)
        os.replace(part, target)
    finally:
        part.unlink(missing_ok=True)
