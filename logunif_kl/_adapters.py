"""The choice of `logunif_kl.torch`, `logunif_kl.jax` or `logunif_kl.tensorflow` by the arguments.

PyTorch, JAX and TensorFlow differentiate automatically, so that their tensors need differentiation
rules, which these modules have. A module is found by the name of the tensor's library, and imported
when the first tensor is given. This package therefore imports no framework that the caller has not
imported.
"""

from __future__ import annotations

from typing import Any

from . import _errors
from ._dispatch import NUMBERS, TENSOR, opened

# The compilers of torch and TensorFlow can trace import statements, but not import_module.


def _torch() -> Any:
    from . import torch

    return torch


def _jax() -> Any:
    from . import jax

    return jax


def _tensorflow() -> Any:
    from . import tensorflow

    return tensorflow


_ADAPTERS = {"torch": _torch, "jax": _jax, "tensorflow": _tensorflow}


def adapter(**arguments: Any) -> Any:
    """Find the module for the arguments' framework; None if they are no tensors of the three.

    Raises
    ------
    TypeError
        If tensors were given together with arrays, or with tensors of another framework.
    """
    arguments, ways = opened(arguments)
    if TENSOR not in ways:
        return None
    # The module of the framework refuses what is neither an array nor a number.
    names = {
        _errors.framework(type(value)) if way == TENSOR else None
        for value, way in zip(arguments.values(), ways, strict=True)
        if way not in NUMBERS and not isinstance(value, _errors.NO_ARRAY)
    }
    known = {name if name in _ADAPTERS else None for name in names}
    if known == {None}:
        return None
    if len(known) > 1:
        raise _errors.mixture(arguments)
    return _ADAPTERS[known.pop() or ""]()
