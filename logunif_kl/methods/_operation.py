"""Makes a formula over an array namespace a function of any array that `neg_kl` takes.

NumPy arrays are computed in blocks in float64, and rounded once to their own type. Arrays of an
array-API namespace are computed in their own type. No formula here warns on overflow: infinity is
then the right result.
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
    """Evaluate under a convention, by adding the constant that it adds to the exact -KL."""
    constant = additive_constant(zero_at, log_c)
    return shifted(evaluate(of, log_alpha=log_alpha), constant)
