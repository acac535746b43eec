"""The penalty of a layer: the exact -KL, an approximation of the papers, or a fit of one's own.

Closed forms are written over torch's operations, with a finite derivative everywhere. The numerical
methods are those of `logunif_kl.methods`, computed by NumPy. All keep the constant of
``zero_at=inf``, as there.
"""

# mypy: allow-untyped-calls, no-warn-return-any
from __future__ import annotations

import math
from collections.abc import Sequence
from typing import Any

import numpy as np
import torch
from torch.autograd import Function

from ..._errors import shown
from .._api import neg_kl, neg_kl_normal
from .._foreach import total as exact_total
from .._internals import called_by_compiler
from ._prior import NormalPrior

Tensor = torch.Tensor

EXACT = "exact"

# ("normal", mu, log_sigma2, count) or ("alpha", log_alpha, count), of float32 or float64. The count
# is a number, or a tensor with one for each element.
Term = tuple[Any, ...]


def check(penalty: Any) -> Any:
    """Return the penalty, if layers can be trained with it.

    Raises
    ------
    TypeError
        If it is neither a name, a `NormalPrior` nor a `logunif_kl.fitting.Fit`.
    ValueError
        If there is no method of this name, or if it has no gradient.
    """
    if isinstance(penalty, NormalPrior) or (isinstance(penalty, str) and penalty == EXACT):
        return penalty
    from ...fitting import Fit
    from ...methods import METHODS

    if isinstance(penalty, Fit):
        return penalty
    names = ", ".join(map(repr, (EXACT, *(n for n, m in METHODS.items() if m.gradient))))
    if not isinstance(penalty, str):
        raise TypeError(
            f"penalty must be a name, a Fit or a NormalPrior, but {shown(penalty)} was given: pass "
            f"one of {names}"
        )
    if penalty not in METHODS:
        raise ValueError(
            f"there is no penalty {shown(penalty)}: pass one of {names}, a Fit or a NormalPrior"
        )
    if METHODS[penalty].gradient is None:
        raise ValueError(
            f"penalty={penalty!r} was given, a method without a gradient: pass one of {names}"
        )
    return penalty


def total(parts: Sequence[tuple[Any, Sequence[Term]]]) -> Tensor:
    """Add up -KL over the terms of layers, each with the penalty that its layer has.

    The exact penalty takes one call for each type and device. A sum over DTensors is the same in
    every process, and no DTensor, so that it can be added to a loss.

    Returns
    -------
    Tensor
        Of no dimensions: in float64 if any term is, on the device of the first.
    """
    groups: dict[Any, list[Any]] = {}
    sums: list[Tensor] = []
    for penalty, terms in parts:
        for kind, *tensors, count in terms:
            if isinstance(count, Tensor):
                sums.append(_counted(penalty, kind, tensors, count))
            elif penalty == EXACT:
                first = tensors[0]
                mesh = getattr(first, "device_mesh", None)
                groups.setdefault((first.dtype, first.device, mesh), []).append(
                    (tuple(tensors), count)
                )
            else:
                sums.append(count * approximate(penalty, kind, *tensors).sum())
    sums = [*(exact_total(group) for group in groups.values()), *sums]
    sums = [_gathered(value) for value in sums]
    found = sums[0]
    for value in sums[1:]:
        found = found + value.to(found.device)
    return found


def _gathered(value: Any) -> Tensor:
    return value.full_tensor() if hasattr(value, "full_tensor") else value


def _counted(penalty: Any, kind: str, tensors: Sequence[Tensor], counts: Tensor) -> Tensor:
    """Add up -KL, which may be infinite where none is counted."""
    kept = counts > 0
    # At these numbers all methods are finite, and so is every derivative.
    safe = (1.0, 0.0) if kind == "normal" else (0.0,)
    tensors = [torch.where(kept, x, fill) for x, fill in zip(tensors, safe, strict=True)]
    if penalty == EXACT:
        found = (neg_kl_normal if kind == "normal" else neg_kl)(*tensors)
    else:
        found = approximate(penalty, kind, *tensors)
    return torch.where(kept, counts.to(found.dtype) * found, 0.0).sum()


def approximate(penalty: Any, kind: str, *tensors: Tensor) -> Tensor:
    """-KL of each element by a method or a fit, or from a normal prior."""
    if isinstance(penalty, NormalPrior):
        return penalty.neg_kl(*tensors)
    x = tensors[0] if kind == "alpha" else _log_alpha(*tensors)
    numbers = _of_method(penalty) if isinstance(penalty, str) else _of_fit(penalty)
    if numbers is None:
        if torch.compiler.is_compiling():
            raise RuntimeError(
                f"penalty={penalty!r} is computed by NumPy, which torch.compile cannot trace: pass "
                "'exact', 'kingma', 'molchanov', 'lower_bound' or a Fit"
            )
        return Numerical.apply(x, penalty)
    family, constant, coefficients = numbers
    if family == "polynomial":
        return 0.5 * x + (_polynomial(x, coefficients) + constant)
    found = 0.5 * _log_sigmoid(x)
    for k1, k2, k3 in zip(*(iter(coefficients),) * 3, strict=True):
        found = found - k1 * torch.sigmoid(-(k2 + k3 * x))
    return found + constant if constant else found


def _log_alpha(mu: Tensor, log_sigma2: Tensor) -> Tensor:
    """The logarithm of alpha, infinite at mu = 0, where no gradient passes."""
    none = mu == 0.0
    found = log_sigma2 - 2.0 * torch.where(none, 1.0, mu).abs().log()
    return torch.where(none, math.inf, found)


def _log_sigmoid(x: Tensor) -> Tensor:
    if hasattr(x, "placements"):
        # DTensors have no rule for the derivative of the function itself.
        return -torch.logaddexp(-x, torch.zeros_like(x))
    return torch.nn.functional.logsigmoid(x)


def _polynomial(x: Tensor, coefficients: Sequence[float]) -> Any:
    if not coefficients:
        return 0.0
    alpha = x.exp()
    found: Any = coefficients[-1]
    for c in coefficients[-2::-1]:
        found = c + alpha * found
    return alpha * found


def _of_fit(fit: Any) -> tuple[str, float, tuple[float, ...]]:
    return fit.family, fit.constant, fit.coefficients


@called_by_compiler
def _of_method(name: str) -> tuple[str, float, tuple[float, ...]] | None:
    """The numbers of a closed form, as those of a fit; None for a numerical method."""
    from ...methods import _kingma, _lower_bound, _molchanov

    if name == "kingma":
        cubic = _kingma.C1, _kingma.C2, _kingma.C3
        return "polynomial", float(_kingma.kingma(0.0)) - math.fsum(cubic), cubic
    if name == "lower_bound":
        return "polynomial", float(_lower_bound.lower_bound(0.0)), ()
    if name == "molchanov":
        return "sigmoid", 0.0, (_molchanov.K1, _molchanov.K2, _molchanov.K3)
    return None


class Numerical(Function):
    """-KL by a numerical method, computed by NumPy in float64, with its first derivative."""

    @staticmethod
    def forward(x: Tensor, name: str) -> Tensor:
        return _by_numpy(name, "function", x)

    @staticmethod
    def setup_context(ctx: Any, inputs: Any, output: Tensor) -> None:
        x, ctx.name = inputs
        ctx.save_for_backward(x)
        ctx.save_for_forward(x)

    @staticmethod
    def backward(ctx: Any, grad: Tensor) -> tuple[Tensor, None]:
        (x,) = ctx.saved_tensors
        return grad * Slope.apply(x, ctx.name), None

    @staticmethod
    def jvp(ctx: Any, tangent: Tensor, _: None) -> Tensor:
        (x,) = ctx.saved_tensors
        return tangent * Slope.apply(x, ctx.name)

    @staticmethod
    def vmap(info: Any, in_dims: Any, x: Tensor, name: str) -> tuple[Tensor, Any]:
        return Numerical.apply(x, name), in_dims[0]


class Slope(Function):
    """The derivative of a numerical method; it has no derivative itself."""

    @staticmethod
    def forward(x: Tensor, name: str) -> Tensor:
        return _by_numpy(name, "gradient", x)

    @staticmethod
    def setup_context(ctx: Any, inputs: Any, output: Tensor) -> None:
        ctx.name = inputs[1]

    @staticmethod
    def backward(ctx: Any, grad: Tensor) -> Any:
        raise NotImplementedError(
            f"penalty={ctx.name!r} has a first derivative alone: pass 'exact' for higher ones"
        )

    jvp = backward

    @staticmethod
    def vmap(info: Any, in_dims: Any, x: Tensor, name: str) -> tuple[Tensor, Any]:
        return Slope.apply(x, name), in_dims[0]


def _by_numpy(name: str, what: str, x: Tensor) -> Tensor:
    from ...methods import METHODS

    found = getattr(METHODS[name], what)(x.detach().cpu().numpy())
    return torch.from_numpy(np.asarray(found)).to(x)
