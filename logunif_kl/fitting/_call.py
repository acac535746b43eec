"""Evaluate a formula on the arrays of any framework that `logunif_kl.neg_kl` accepts.

All arrays and tensors are handled as in `logunif_kl.methods`: the result for a tensor can be
differentiated, vectorised and compiled.
"""

from __future__ import annotations

from dataclasses import dataclass
from functools import partial
from typing import Any

from .._dispatch import Operation
from .._dispatch import formula as evaluate
from .._errors import framework
from ..methods._operation import pair
from ._formula import Formula


@dataclass(frozen=True, slots=True)
class _Part:
    """A picklable and hashable function (xp, x) that returns the value or slope of a formula."""

    formula: Formula
    of: str

    def __call__(self, xp: Any, x: Any) -> Any:
        return getattr(self.formula, self.of)(xp, x)


def call(formula: Formula, of: str, log_alpha: Any, constant: float) -> Any:
    """Evaluate the formula's ``value`` or ``slope`` plus a constant."""
    parts = _Part(formula, "value"), _Part(formula, "slope")
    if framework(type(log_alpha)) == "torch":  # torch.compile warns of the caches in `pair`
        slope = Operation(None, parts[1])
        both = Operation(None, parts[0], partial(tuple, (slope,))), slope
    else:
        both = pair(*parts)
    return evaluate(both[of == "slope"], constant, log_alpha=log_alpha)
