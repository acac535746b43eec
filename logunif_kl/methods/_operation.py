"""Turn a formula ``f(xp, x)`` into a function of any array that `logunif_kl.neg_kl` accepts.

For NumPy arrays the formula is computed in blocks in float64, and the result is rounded once to the
array's type. For arrays of an array-API namespace the formula is computed in the array's type. An
overflow gives infinity without a warning, because infinity is the right result here.
"""

from __future__ import annotations

from collections.abc import Callable, Hashable
from functools import lru_cache
from typing import Any

import numpy as np

from .._convention import additive_constant, shifted
from .._dispatch import Operation, evaluate
from .._numpy.blocked import BlockedUFunc, in_float64

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


def operation(arithmetic: Arithmetic, *, on_host: bool = False) -> Operation:
    """Make an operation from ``arithmetic(xp, x)``, which must be picklable and hashable.

    With `on_host`, `arithmetic` only ever gets NumPy arrays. Use `on_host` for SciPy's functions,
    table look-ups and sorting, which not every namespace has. Arrays of other libraries are then
    converted to NumPy and back. If an array cannot be converted (it is on a device, or traced by a
    compiler), its library raises an error.
    """
    ufunc = _ufunc(arithmetic)
    if not on_host:
        return Operation(ufunc, arithmetic)

    def converted(xp: Any, x: Any) -> Any:
        result = ufunc(np.asarray(x, dtype=np.float64))
        return xp.asarray(np.asarray(result), dtype=x.dtype)

    return Operation(ufunc, converted)


def value(of: Operation, log_alpha: Any, zero_at: float, log_c: float | None) -> Any:
    """Evaluate the operation, and add the same constant that `logunif_kl.neg_kl` adds."""
    constant = additive_constant(zero_at, log_c)
    return shifted(evaluate(of, log_alpha=log_alpha), constant)
