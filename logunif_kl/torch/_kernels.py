"""The float32 C kernels: as NumPy ufuncs, and as functions that run on PyTorch's threads.

The functions come from the extension `logunif_kl.torch._library`. The extension is built without
PyTorch, and looks up a few functions of the loaded libtorch by name. The kernel functions take and
check tensors, so Python passes no memory addresses. If the extension or a function of libtorch is
missing, the ufuncs compute on threads of this package, and compilers trace the composite backend.
"""

from __future__ import annotations

import os
import sys
from functools import cache
from importlib import import_module
from pathlib import Path
from typing import Any

import torch

from .._numpy import ufuncs as _ufuncs
from ._internals import extension_file


@cache
def ufuncs() -> Any:
    """Return the ufuncs, or None if they were not built or LOGUNIF_KL_KERNEL=python is set."""
    if _ufuncs.kernel_name() == "python":
        return None
    try:
        return import_module("logunif_kl._numpy._float32")
    except ImportError:
        return None


def library() -> Any:
    """Return the extension, or None if it cannot be used (see `why_not`)."""
    return _connected()[0] if _refusal is None else None


def why_not() -> str | None:
    """Return the reason why `library` returns None, or None if it returns the extension."""
    return _connected()[1] or _refusal


def refuse(reason: str) -> None:
    """Make `library` return None from now on."""
    global _refusal
    _refusal = reason


# The reason why PyTorch refused to register the operators, or None.
_refusal: str | None = None


@cache
def _connected() -> tuple[Any, str | None]:
    kernels = ufuncs()
    if kernels is None:
        return None, "the float32 kernels of C are not in use"
    try:
        extension: Any = import_module("logunif_kl.torch._library")
    except ImportError as error:
        return None, f"the extension cannot be loaded: {error}"
    found, missing = _addresses(extension.shims)
    exchange = getattr(torch.Tensor, "__dlpack_c_exchange_api__", None)
    if exchange is None:
        missing.append("__dlpack_c_exchange_api__")
    if missing:
        return None, f"PyTorch {torch.__version__} lacks {', '.join(missing)}"
    try:
        extension.connect(found, kernels.kernels, exchange)
    except ValueError as error:
        return None, f"PyTorch {torch.__version__} has another interface: {error}"
    if hasattr(os, "register_at_fork"):
        os.register_at_fork(after_in_child=extension.after_fork)
    return extension, None


def _addresses(names: tuple[str, ...]) -> tuple[tuple[int, ...], list[str]]:
    """Find functions of the loaded libtorch; return their addresses and the missing names."""
    import ctypes

    try:
        # For an empty name, CDLL would open the program itself instead of a library.
        if not (file := _libtorch()):
            return (), list(names)
        loaded = ctypes.CDLL(file)
    except OSError:
        return (), list(names)
    functions = [getattr(loaded, name, None) for name in names]
    missing = [name for name, f in zip(names, functions, strict=True) if f is None]
    found = [ctypes.cast(f, ctypes.c_void_p).value or 0 for f in functions if f is not None]
    return tuple(found), missing


def _libtorch() -> str:
    """Return the file of a library that defines libtorch's functions, or that loads libtorch."""
    if sys.platform == "win32":
        return str(Path(torch.__file__).parent / "lib" / "torch_cpu.dll")
    return extension_file()
