"""Replace a file when the new file is complete."""

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
    """Yield the path of a temporary file, which replaces the old file after the ``with`` block.

    If writing fails, the old file is unchanged and no other file is left. The directory must be
    writable, and PermissionError is raised if the old file is read-only. The new file has the mode
    of the old one. A device or a pipe is written directly. With ``flushed``, the new file is on the
    disk before it replaces the old one.
    """
    given = Path(path)
    # The links in /dev/fd name no path, so a pipe of the shell is looked for before links are read.
    if given.exists() and not given.is_file():
        yield given
        return
    target = Path(os.path.realpath(given))
    if target.is_symlink():  # realpath returns a link only for a loop of links
        raise OSError(errno.ELOOP, os.strerror(errno.ELOOP), str(path))
    if target.exists() and not os.access(target, os.W_OK):
        raise PermissionError(errno.EACCES, os.strerror(errno.EACCES), str(target))
    # A random name, because other threads and machines may write the same file.
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
