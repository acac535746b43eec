"""A formula over a namespace -> a function of whatever arrays `logunif_kl.neg_kl` takes.

NumPy arrays are computed in blocks and in float64, rounded once to their own type; arrays of an
array-API namespace in their own type. No formula here warns: where one leaves the range of the
type, infinity is the right answer.
"""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

from .._convention import additive_constant, shifted
from .._dispatch import Operation, evaluate
from .._numpy.blocked import BlockedUFunc, in_float64


def operation(name: str, arithmetic: Callable[[Any, Any], Any], module: str) -> Operation:
    """Make ``arithmetic(xp, x)`` an operation, whose ufunc is the module's attribute ``name``."""
    return Operation(BlockedUFunc(name, in_float64(arithmetic), module=module), arithmetic)


def value(of: Operation, log_alpha: Any, zero_at: float, log_c: float | None) -> Any:
    """Evaluate under a convention: the constant that moves the exact -KL moves a method."""
    constant = additive_constant(zero_at, log_c)
    return shifted(evaluate(of, log_alpha=log_alpha), constant)
