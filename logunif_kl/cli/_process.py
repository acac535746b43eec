"""Standard streams that may be closed or full, and what a lack of memory looks like."""

from __future__ import annotations

import errno
import os
import sys
from typing import TextIO

# Of the dynamic loader, of `threading`, and of CPython where it reads bytecode.
_MESSAGES = (
    "cannot allocate memory",
    "failed to map segment",
    "can't start new thread",
    "without setting an exception",
    "without exception set",
)


def lacks_memory(error: BaseException) -> bool:
    """Tell whether an error comes from a lack of memory, which is not only a `MemoryError`."""
    if isinstance(error, OSError):
        return error.errno == errno.ENOMEM
    if isinstance(error, (ImportError, RuntimeError, SystemError)):
        return any(words in str(error).lower() for words in _MESSAGES)
    return isinstance(error, MemoryError)


def emit(text: str) -> None:
    """Write to standard output; a closed pipe ends the output, not the command."""
    try:
        sys.stdout.write(text)
        sys.stdout.flush()
    except BrokenPipeError:
        silence(sys.stdout)


def complain(text: str) -> None:
    """Write to standard error, or nowhere if it is closed, full, or a pipe that nobody reads."""
    if sys.stderr is None:
        return
    try:
        sys.stderr.write(text)
        sys.stderr.flush()
    except OSError:
        silence(sys.stderr)


def fail(text: str, status: int = 2) -> int:
    """Write an error in one line, and return the exit status."""
    complain(f"logunif-kl: error: {text}\n")
    return status


def silence(stream: TextIO | None) -> None:
    """Redirect a standard stream to the null device, so that the last flush cannot fail."""
    if stream is None:
        return
    devnull = os.open(os.devnull, os.O_WRONLY)
    try:
        os.dup2(devnull, stream.fileno())
    finally:
        os.close(devnull)
