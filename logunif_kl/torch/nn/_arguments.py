"""What arguments may be: words for what is refused."""

# mypy: allow-untyped-calls, no-warn-return-any
from __future__ import annotations

from typing import Any

import numpy as np
import torch

from ..._refusals import OF_COMPLEX, shown, type_name


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


def one_of(name: str, value: Any, choices: tuple[str, ...]) -> str:
    """Return the option, if it is one of the choices.

    Raises
    ------
    ValueError
        If it is none of them.
    """
    if isinstance(value, str) and value in choices:
        return value
    listed = ", ".join(map(repr, choices[:-1])) + f" or {choices[-1]!r}"
    raise ValueError(f"{name} must be {listed}, but {shown(value)} was given: pass one of these")


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


def check_flag(name: str, value: Any) -> None:
    """Raise if an argument is not true or false.

    Raises
    ------
    TypeError
        If it is anything else, such as a word.
    """
    if not isinstance(value, (bool, np.bool_)):
        raise TypeError(f"{name} must be True or False, but {shown(value)} was given: pass one")
