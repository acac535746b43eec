"""Evaluate a formula on the arrays of any framework that `logunif_kl.neg_kl` accepts.

Tensors of PyTorch and arrays of JAX are recognised by their type. The framework's own functions,
found in `sys.modules`, compute the formula. The result can therefore be differentiated, vectorised
and compiled. Other arrays are handled as in `logunif_kl.methods`.
"""

from __future__ import annotations

import sys
from dataclasses import dataclass
from typing import Any

from .._convention import shifted
from .._dispatch import evaluate
from .._errors import framework
from ..methods._operation import operation
from ._formula import Formula

# The module with the functions of each framework.
_OWN = {"torch": "torch", "jax": "jax.numpy"}


@dataclass(frozen=True, slots=True)
class _Part:
    """A picklable and hashable function (xp, x) that returns the value or slope of a formula."""

    formula: Formula
    of: str

    def __call__(self, xp: Any, x: Any) -> Any:
        return getattr(self.formula, self.of)(xp, x)


def call(formula: Formula, of: str, log_alpha: Any, constant: float) -> Any:
    """Evaluate the formula's ``value`` or ``slope`` plus a constant."""
    part = _Part(formula, of)
    module = sys.modules.get(_OWN.get(framework(type(log_alpha)) or "", ""))
    if module is not None:
        result = part(module, _real(log_alpha))
        return result + constant if constant else result
    return shifted(evaluate(operation(part), log_alpha=log_alpha), constant)


def _real(array: Any) -> Any:
    kind = str(array.dtype)
    if "complex" in kind or "bool" in kind:
        raise TypeError(
            f"log_alpha must hold real numbers, but {type(array).__name__} of dtype {kind} was "
            "given: pass an array of floats"
        )
    return array * 1.0 if "int" in kind else array
