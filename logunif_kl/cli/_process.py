"""Write to standard streams that may be closed or full, and recognise a lack of memory."""

from __future__ import annotations

import errno
import os
import sys
from typing import TextIO

# What the dynamic loader, `threading` and CPython's bytecode reader say if memory is short.
_MESSAGES = (
    "cannot allocate memory",
    "failed to map segment",
    "can't start new thread",
    "without setting an exception",
    "without exception set",
)


def lacks_memory(error: BaseException) -> bool:
    """Whether an error comes from a lack of memory, even if it is not a `MemoryError`."""
    if isinstance(error, OSError):
        return error.errno == errno.ENOMEM
    if isinstance(error, (ImportError, RuntimeError, SystemError)):
        return any(words in str(error).lower() for words in _MESSAGES)
    return isinstance(error, MemoryError)


def emit(text: str) -> None:
    """Write to standard output. If it is a pipe that nobody reads, drop the output and go on."""
    try:
        sys.stdout.write(text)
        sys.stdout.flush()
    except BrokenPipeError:
        silence(sys.stdout)


def complain(text: str) -> None:
    """Write to standard error, unless it is closed, full, or a pipe that nobody reads."""
    if sys.stderr is None:
        return
    try:
        sys.stderr.write(text)
        sys.stderr.flush()
    except OSError:
        silence(sys.stderr)


def fail(text: str, status: int = 2) -> int:
    complain(f"logunif-kl: error: {text}\n")
    return status


def silence(stream: TextIO | None) -> None:
    """Redirect a standard stream to the null device, so that the flush at exit cannot fail."""
    if stream is None:
        return
    devnull = os.open(os.devnull, os.O_WRONLY)
    try:
        os.dup2(devnull, stream.fileno())
    finally:
        os.close(devnull)
