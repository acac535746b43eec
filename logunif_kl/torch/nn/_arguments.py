"""What arguments may be: words for what is refused."""

# mypy: allow-untyped-calls, no-warn-return-any
from __future__ import annotations

from typing import Any

import torch

from ..._errors import OF_COMPLEX, type_name


def check_module(model: Any) -> torch.nn.Module:
    """Return a model, if it is a module.

    Raises
    ------
    TypeError
        If it is none.
    """
    if not isinstance(model, torch.nn.Module):
        raise TypeError(
            f"model must be a torch.nn.Module, but {type_name(model)} was given: pass the module"
        )
    return model


def check_dtype(dtype: Any) -> None:
    """Raise if parameters of this type are no real numbers.

    Raises
    ------
    TypeError
        If it is a type of integers or of complex numbers.
    """
    if isinstance(dtype, torch.dtype) and not dtype.is_floating_point:
        remedy = OF_COMPLEX if dtype.is_complex else "pass torch.float32"
        raise TypeError(f"dtype must be a real floating type, but {dtype} was given: {remedy}")
