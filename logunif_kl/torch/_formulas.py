"""Formulas of `logunif_kl.methods` and of fits for tensors, with their derivatives."""

# mypy: allow-untyped-calls, no-warn-return-any
from __future__ import annotations

from collections.abc import Sequence
from typing import Any

import numpy as np
import torch

from .._numpy.operations import NUMBERED, Operation
from . import _arguments
from ._derivatives import Family, Members, Row
from ._internals import in_graphs
from ._namespace import Namespace, exportable, plus

Tensor = torch.Tensor


class _Namespace(Namespace):
    isnan = staticmethod(torch.isnan)
    logaddexp = staticmethod(torch.logaddexp)
    ones_like = staticmethod(torch.ones_like)
    zeros_like = staticmethod(torch.zeros_like)


_xp = _Namespace()


def formula(operation: Operation, constant: float, **given: Any) -> Tensor:
    """Compute a formula in float64, whose derivative is another formula, and round it once."""
    ((name, value),) = given.items()
    x = _arguments.one(value, name)
    wide = x.to(torch.float32 if x.device.type == "mps" else torch.float64)
    if operation.number >= 0:
        result = _computed(operation.number, wide)
    elif torch.compiler.is_compiling():  # of a fit, whose arithmetic has accurate derivatives
        result = _composed(operation, wide)
    else:
        result = _differentiable(operation, wide)
    return plus(result, constant).to(x.dtype)


@in_graphs
@exportable
def _computed(number: int, x: Tensor) -> Tensor:
    return _differentiable(NUMBERED[number], x)


def _differentiable(operation: Operation, x: Tensor) -> Tensor:
    return _composed(operation, x) if operation.slopes is None else _Formula(operation)((0,), x)


def _composed(operation: Operation, x: Tensor) -> Tensor:
    if not operation.host:
        return operation.arithmetic(_xp, x)
    try:
        numbers = x.detach().cpu().numpy()
    except (RuntimeError, TypeError):
        raise NotImplementedError(
            "this method computes on the CPU with NumPy: call it outside of torch.compile and of "
            "torch.vmap"
        ) from None
    found = operation.ufunc(numbers)
    return torch.as_tensor(np.asarray(found), dtype=x.dtype, device=x.device)


class _Formula(Family):
    """A formula, and its first derivative, which PyTorch may differentiate further."""

    def __init__(self, operation: Operation) -> None:
        self._operation = operation

    def compute(self, members: Members, *tensors: Tensor) -> tuple[Tensor]:
        return (_composed(self._operation, *tensors),)

    def slopes(self, members: Members, tensors: Any, needed: Any) -> Sequence[Row]:
        assert self._operation.slopes is not None
        (slope,) = self._operation.slopes()
        return [[_differentiable(slope, *tensors)]]
