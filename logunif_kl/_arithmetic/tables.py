"""Arrange the tables of coefficients by columns, and look up the entries for each element."""

from __future__ import annotations

from collections.abc import Callable
from functools import cache
from typing import Any, NamedTuple

Array = Any
Namespace = Any
Lookup = Callable[[tuple[float, ...]], Array]


class Table(NamedTuple):
    """A table of coefficients. Each tuple of numbers has one entry for each range."""

    bounds: tuple[float, ...]
    centre: tuple[float, ...]
    base_hi: tuple[float, ...]
    base_lo: tuple[float, ...]
    coefficients: tuple[tuple[float, ...], ...]
    first_recip: int  # the first range with v = 1/u - c
    root: int | None  # the range around a zero of the function


@cache
def table(function: str, dtype: str) -> Table:
    from .coefficients import TABLES

    ranges = TABLES[function, dtype]
    forms = [r.form for r in ranges]
    return Table(
        bounds=tuple(r.bound for r in ranges[:-1]),
        centre=tuple(r.centre for r in ranges),
        base_hi=tuple(r.base_hi for r in ranges),
        base_lo=tuple(r.base_lo for r in ranges),
        coefficients=tuple(zip(*(r.coefficients for r in ranges), strict=True)),
        first_recip=forms.index("recip"),
        root=forms.index("root") if "root" in forms else None,
    )


def inflection() -> tuple[float, float, float]:
    from .coefficients import INFLECTION_HI, INFLECTION_LO, INFLECTION_STRETCH

    return INFLECTION_HI, INFLECTION_LO, INFLECTION_STRETCH


def dtype_name(xp: Namespace, a: Array) -> str:
    return "float32" if a.dtype == xp.float32 else "float64"


def constant(xp: Namespace, like: Array, value: float) -> Array:
    return xp.full_like(like, value)


def lookup(xp: Namespace, like: Array, reached: list[Array]) -> Lookup:
    """Return a function that maps a row of a table to an array with the entry for each element.

    ``reached[i]`` tells which elements lie in range i + 1 or in a later range.
    """
    if xp.__name__ == "numpy":
        index = sum(r.astype(xp.int8) for r in reached)
        return lambda row: xp.take(xp.asarray(row, dtype=like.dtype), index)

    def choose(row: tuple[float, ...]) -> Array:
        entry = constant(xp, like, row[0])
        for mask, value in zip(reached, row[1:], strict=True):
            entry = xp.where(mask, constant(xp, like, value), entry)
        return entry

    return choose


@cache
def float32_rest(x0: float) -> float:
    """Return x0 minus its value in float32."""
    import struct

    rounded: float = struct.unpack("f", struct.pack("f", x0))[0]
    return x0 - rounded
