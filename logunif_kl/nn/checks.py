"""Check options: a choice, a flag, a count, a finite number.

The modules of each framework check their own arrays.
"""

from __future__ import annotations

import math
from typing import Any

import numpy as np

from .._errors import real_number, shown


def one_of(name: str, value: Any, choices: tuple[str, ...]) -> str:
    """Return the option if it is one of the choices, otherwise raise ValueError."""
    if isinstance(value, str) and value in choices:
        return value
    listed = ", ".join(map(repr, choices[:-1])) + f" or {choices[-1]!r}"
    raise ValueError(f"{name} must be {listed}, but {shown(value)} was given: pass one of these")


def check_flag(name: str, value: Any) -> None:
    if not isinstance(value, (bool, np.bool_)):
        raise TypeError(f"{name} must be True or False, but {shown(value)} was given: pass one")


def count(name: str, value: Any) -> int:
    """Return the option if it is a positive integer, otherwise raise ValueError."""
    if isinstance(value, bool) or not isinstance(value, int) or value < 1:
        raise ValueError(
            f"{name} must be a positive integer, but {shown(value)} was given: pass 1 for the "
            "usual case"
        )
    return value


def finite(name: str, value: Any, instead: str = "a number like -3.0") -> float:
    """Return the option if it is a finite number, otherwise raise TypeError or ValueError."""
    number = real_number(name, value)
    if not math.isfinite(number):
        raise ValueError(f"{name} must be finite, but {number} was given: pass {instead}")
    return number


def check_cycle(period: Any, rising: Any) -> tuple[float, float]:
    """Return the period of a cyclical warm-up and its rising part, or raise an error."""
    period, rising = real_number("period", period), real_number("rising", rising)
    if not 0.0 < period < math.inf:
        raise ValueError(f"period must be positive, but {period} was given: pass a number of steps")
    if not 0.0 < rising <= 1.0:
        raise ValueError(f"rising must be in (0, 1], but {rising} was given: pass a fraction")
    return period, rising
