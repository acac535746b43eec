"""Turn a formula ``f(xp, x)`` into a function of any array that `logunif_kl.neg_kl` accepts.

For NumPy arrays the formula is computed in blocks in float64, and the result is rounded once to the
array's type. For arrays of an array-API namespace the formula is computed in the array's type. An
overflow gives infinity without a warning, because infinity is the right result here.
"""

from __future__ import annotations

from collections.abc import Callable, Hashable
from functools import lru_cache, partial
from typing import Any

import numpy as np

from .._convention import additive_constant
from .._dispatch import Operation, formula
from .._numpy.blocked import BlockedUFunc, in_float64
from .._numpy.operations import numbered

Arithmetic = Callable[[Any, Any], Any]


class _UFunc(BlockedUFunc):
    """A ufunc that can be pickled: unpickling makes it again from its function `arithmetic`."""

    arithmetic: Arithmetic

    def __reduce__(self) -> Any:
        return _ufunc, (self.arithmetic,)


@lru_cache(maxsize=128)
def _ufunc(arithmetic: Arithmetic | Hashable) -> _UFunc:
    assert callable(arithmetic)
    name = getattr(arithmetic, "__name__", type(arithmetic).__name__)
    made = _UFunc(name, in_float64(arithmetic), module=arithmetic.__module__)
    made.arithmetic = arithmetic
    return made


def operation(
    arithmetic: Arithmetic,
    *,
    on_host: bool = False,
    slopes: Callable[[], tuple[Operation, ...]] | None = None,
) -> Operation:
    """Make an operation from ``arithmetic(xp, x)``, which must be picklable and hashable.

    With `on_host`, `arithmetic` only ever gets NumPy arrays. Use `on_host` for SciPy's functions,
    table look-ups and sorting, which not every namespace has. Arrays of other libraries are then
    converted to NumPy and back. If an array cannot be converted (it is on a device, or traced by a
    compiler), its library raises an error.
    """
    ufunc = _ufunc(arithmetic)
    if not on_host:
        return Operation(ufunc, arithmetic, slopes)

    def converted(xp: Any, x: Any) -> Any:
        result = ufunc(np.asarray(x, dtype=np.float64))
        return xp.asarray(np.asarray(result), dtype=x.dtype)

    return Operation(ufunc, converted, slopes, host=True)


@lru_cache(maxsize=128)
def pair(
    value: Arithmetic | Hashable, slope: Arithmetic | Hashable, *, on_host: bool = False
) -> tuple[Operation, Operation]:
    """Make the operations of a formula and of its derivative in log alpha.

    Frameworks take the second as the derivative of the first. They differentiate the arithmetic of
    the second, unless NumPy computes it, which ends with an error.
    """
    assert callable(value)
    assert callable(slope)
    second = operation(slope, on_host=on_host, slopes=no_slopes if on_host else None)
    return operation(value, on_host=on_host, slopes=partial(tuple, (second,))), second


def method(value: Arithmetic, slope: Arithmetic, *, on_host: bool = False) -> tuple[Operation, ...]:
    """Make the operations of a method, once, when its module is imported."""
    first, second = pair(value, slope, on_host=on_host)
    second = numbered(second)
    return numbered(first._replace(slopes=partial(tuple, (second,)))), second


def no_slopes() -> tuple[Operation, ...]:
    raise NotImplementedError(
        "this method computes on the CPU with NumPy, and has a first derivative only: call "
        "logunif_kl.neg_kl, whose derivatives of any order are exact"
    )


def value(of: Operation, log_alpha: Any, zero_at: float, log_c: float | None) -> Any:
    """Evaluate the operation, and add the same constant that `logunif_kl.neg_kl` adds."""
    return formula(of, additive_constant(zero_at, log_c), log_alpha=log_alpha)
