"""What a lack of memory looks like: not only `MemoryError`."""

from __future__ import annotations

import errno

# Of the dynamic loader, of `threading`, and of CPython where it reads bytecode.
_MESSAGES = (
    "cannot allocate memory",
    "failed to map segment",
    "can't start new thread",
    "without setting an exception",
    "without exception set",
)


def lacks_memory(error: BaseException) -> bool:
    """Tell whether an error comes from a lack of memory."""
    if isinstance(error, OSError):
        return error.errno == errno.ENOMEM
    if isinstance(error, (ImportError, RuntimeError, SystemError)):
        return any(words in str(error).lower() for words in _MESSAGES)
    return isinstance(error, MemoryError)


def sentence(error: BaseException) -> str:
    """Say that memory is lacking."""
    reason = f" ({error})" if isinstance(error, MemoryError) and str(error) else ""
    return f"not enough memory{reason}: ask for less, or give the process more"
