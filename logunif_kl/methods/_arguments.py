"""Check the options that methods and fits take."""

from __future__ import annotations

from collections.abc import Iterable
from numbers import Integral
from typing import Any

from .._errors import shown


def integer(name: str, given: Any, least: int, most: int | None, remedy: str) -> int:
    """Return an integer option after checking that it is from `least` to `most`."""
    if isinstance(given, bool) or not isinstance(given, Integral):
        raise TypeError(
            f"{name} must be an integer, but {type(given).__name__} {shown(given)} was given: "
            f"{remedy}"
        )
    number = int(given)
    if number < least or (most is not None and number > most):
        bounds = f"at least {least}" if most is None else f"between {least} and {most}"
        raise ValueError(f"{name} must be {bounds}, but {shown(number)} was given: {remedy}")
    return number


def choice(name: str, given: Any, known: Iterable[str]) -> str:
    """Return an option after checking that it is one of the `known` strings."""
    if not isinstance(given, str) or given not in known:
        raise ValueError(
            f"{name}={shown(given)} is not known: pass one of {', '.join(map(repr, known))}"
        )
    return given
