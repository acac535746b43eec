"""Checks of options: a choice, a flag, a count, a finite number.

Arrays are checked where their library is known; `_errors` has the words for them.
"""

from __future__ import annotations

import math
from typing import Any

import numpy as np

from .._errors import real_number, shown


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


def check_flag(name: str, value: Any) -> None:
    """Raise if an argument is not true or false.

    Raises
    ------
    TypeError
        If it is anything else, such as a word.
    """
    if not isinstance(value, (bool, np.bool_)):
        raise TypeError(f"{name} must be True or False, but {shown(value)} was given: pass one")


def count(name: str, value: Any) -> int:
    """Return an option that is a positive integer.

    Raises
    ------
    ValueError
        If it is not.
    """
    if isinstance(value, bool) or not isinstance(value, int) or value < 1:
        raise ValueError(
            f"{name} must be a positive integer, but {shown(value)} was given: pass 1 for the "
            "usual case"
        )
    return value


def finite(name: str, value: Any, instead: str = "a number like -3.0") -> float:
    """Return an option that is one finite number.

    Raises
    ------
    TypeError, ValueError
        If it is not.
    """
    number = real_number(name, value)
    if not math.isfinite(number):
        raise ValueError(f"{name} must be finite, but {number} was given: pass {instead}")
    return number
