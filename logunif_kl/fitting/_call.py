"""Calls of a formula on the arrays of any framework, as `logunif_kl.neg_kl` takes them.

NumPy's arrays, and types that implement its ufunc protocol, are computed in float64 by blocks and
rounded once to their own type. Arrays of an array-API namespace are computed in their own type.
Tensors of PyTorch and arrays of JAX are recognised by their type and computed by that framework's
own functions, so they can be differentiated, vectorised and compiled. The functions are found in
`sys.modules`; no framework is imported.
"""

from __future__ import annotations

import sys
from collections.abc import Callable
from functools import lru_cache
from typing import Any

from .._convention import shifted
from .._dispatch import Operation, evaluate
from .._numpy.blocked import BlockedUFunc, in_float64
from ._formula import Formula

# Framework -> the module that holds its functions.
_OWN = {"torch": "torch", "jax": "jax.numpy", "jaxlib": "jax.numpy"}


class _FormulaUFunc(BlockedUFunc):
    """A ufunc that is pickled by its formula, because no module has it as an attribute."""

    formula: Formula
    of: str

    def __reduce__(self) -> Any:
        return _ufunc, (self.formula, self.of)


@lru_cache(maxsize=64)
def _ufunc(formula: Formula, of: str) -> _FormulaUFunc:
    made = _FormulaUFunc(f"fitted_{of}", in_float64(getattr(formula, of)), module=__name__)
    made.formula, made.of = formula, of
    return made


def call(formula: Formula, of: str, log_alpha: Any, constant: float) -> Any:
    """Evaluate the formula's ``value`` or ``slope`` plus a constant."""
    arithmetic: Callable[[Any, Any], Any] = getattr(formula, of)
    for base in type(log_alpha).__mro__:
        module = sys.modules.get(_OWN.get(base.__module__.partition(".")[0], ""))
        if module is not None:
            result = arithmetic(module, _real(log_alpha))
            return result + constant if constant else result
    operation = Operation(_ufunc(formula, of), arithmetic)
    return shifted(evaluate(operation, log_alpha=log_alpha), constant)


def _real(array: Any) -> Any:
    kind = str(array.dtype)
    if "complex" in kind or "bool" in kind:
        raise TypeError(
            f"log_alpha must hold real numbers, but {type(array).__name__} of dtype {kind} was "
            "given: pass an array of floats"
        )
    return array * 1.0 if "int" in kind else array
