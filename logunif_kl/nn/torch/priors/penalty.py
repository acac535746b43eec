"""The penalty of a layer: exact -KL, a published approximation, a fit, or another prior.

Closed forms use torch's operations. NumPy computes the numerical methods of `logunif_kl.methods`.
All penalties except other priors have the additive constant of ``zero_at=inf``.
"""

# mypy: allow-untyped-calls, no-warn-return-any
from __future__ import annotations

import math
from collections.abc import Sequence
from typing import Any

import numpy as np
import torch
from torch.autograd import Function

from ....torch import neg_kl, neg_kl_normal
from ....torch._foreach import total as exact_total
from ....torch._internals import called_by_compiler
from ....torch._sharded import on_shards
from ....torch.isotropic import neg_kl_vector
from ...penalty import is_exact
from ...priors import returned
from ...terms import Term, of_groups
from ..noise.local import without_autocast
from ..variances import alike
from .proper import NormalPrior

Tensor = torch.Tensor

_STANDARD = NormalPrior(1.0)


def total(parts: Sequence[tuple[Any, Sequence[Term]]]) -> Tensor:
    """Return the sum of -KL over the terms of layers; `parts` lists (penalty, terms) by layer.

    Exact penalties of one dtype and device are computed together. A sum over DTensors becomes a
    plain tensor with the same value in every process, so it can be added to a loss. The result is
    a 0-d tensor on the device of the first term, in float64 if any term is in float64.
    """
    groups: dict[Any, list[Any]] = {}
    sums: list[Tensor] = []
    for penalty, terms in parts:
        exact = is_exact(penalty)
        for term in terms:
            tensors = tuple(alike(*term.arrays))
            if term.grouped:
                log_alpha, size = of_groups(torch, *tensors)
                sums.append(neg_kl_vector(log_alpha, size, reduction="sum"))
                continue
            count, chosen = term.count, _STANDARD if term.standard else penalty
            if isinstance(count, Tensor):
                sums.append(_counted(chosen, tensors, count))
            elif exact and chosen is penalty:
                first = tensors[0]
                mesh = getattr(first, "device_mesh", None)
                groups.setdefault((first.dtype, first.device, mesh), []).append((tensors, count))
            else:
                sums.append(count * approximate(chosen, *tensors).sum())
    sums = [*(exact_total(group) for group in groups.values()), *sums]
    sums = [gathered(value) for value in sums]
    found = sums[0]
    for value in sums[1:]:
        found = found + value.to(found.device)
    return found


def gathered(value: Any) -> Tensor:
    """Gather a DTensor from all processes; return another tensor unchanged."""
    return value.full_tensor() if hasattr(value, "full_tensor") else value


def _counted(penalty: Any, tensors: Sequence[Tensor], counts: Tensor) -> Tensor:
    """Sum count * -KL over elements with a positive count. Elsewhere it may be 0 * inf."""
    kept = counts > 0
    # Replace the skipped elements by numbers at which all methods and derivatives are finite.
    safe = (1.0, 0.0) if len(tensors) == 2 else (0.0,)
    tensors = [torch.where(kept, x, fill) for x, fill in zip(tensors, safe, strict=True)]
    if is_exact(penalty):
        found = (neg_kl_normal if len(tensors) == 2 else neg_kl)(*tensors)
    else:
        found = approximate(penalty, *tensors)
    return torch.where(kept, counts.to(found.dtype) * found, 0.0).sum()


def approximate(penalty: Any, *tensors: Tensor) -> Tensor:
    """Compute -KL with a penalty that is a method, a fit or a prior.

    The tensors are log alpha, or the means and the logarithms of the variances.
    """
    if not isinstance(penalty, str):
        from ....fitting import Fit

        if not isinstance(penalty, Fit):
            # Autocast would compute products of matrices in a half type.
            with without_autocast(tensors[0].device.type):
                return returned(penalty, tensors[0], penalty.neg_kl(*tensors))
    x = tensors[0] if len(tensors) == 1 else _log_alpha(*tensors)
    numbers = _of_method(penalty) if isinstance(penalty, str) else _of_fit(penalty)
    if numbers is None:
        if torch.compiler.is_compiling():
            raise RuntimeError(
                f"penalty={penalty!r} is computed by NumPy, which torch.compile cannot trace: pass "
                "'exact', 'kingma', 'molchanov', 'lower_bound' or a Fit"
            )
        return Numerical.apply(x, penalty, 0)
    family, constant, coefficients = numbers
    if family == "polynomial":
        return 0.5 * x + (_polynomial(x, coefficients) + constant)
    found = 0.5 * _log_sigmoid(x)
    for k1, k2, k3 in zip(*(iter(coefficients),) * 3, strict=True):
        found = found - k1 * torch.sigmoid(-(k2 + k3 * x))
    return found + constant if constant else found


def _log_alpha(mu: Tensor, log_sigma2: Tensor) -> Tensor:
    """Compute log alpha. At mu = 0 it is inf and has no gradient."""
    none = mu == 0.0
    found = log_sigma2 - 2.0 * torch.where(none, 1.0, mu).abs().log()
    return torch.where(none, math.inf, found)


def _log_sigmoid(x: Tensor) -> Tensor:
    if hasattr(x, "placements"):
        # logsigmoid has no derivative for DTensors.
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
    """Return the family and coefficients of a closed form, or None for a numerical method."""
    from ....methods import _kingma, _lower_bound, _molchanov

    if name == "kingma":
        cubic = _kingma.C1, _kingma.C2, _kingma.C3
        return "polynomial", float(_kingma.kingma(0.0)) - math.fsum(cubic), cubic
    if name == "lower_bound":
        return "polynomial", float(_lower_bound.lower_bound(0.0)), ()
    if name == "molchanov":
        return "sigmoid", 0.0, (_molchanov.K1, _molchanov.K2, _molchanov.K3)
    return None


class Numerical(Function):
    """Compute -KL, or its derivative for ``order=1``, by a numerical method in NumPy's float64."""

    @staticmethod
    def forward(x: Tensor, name: str, order: int) -> Tensor:
        return _by_numpy(name, "gradient" if order else "function", x)

    @staticmethod
    def setup_context(ctx: Any, inputs: Any, output: Tensor) -> None:
        x, ctx.name, ctx.order = inputs
        ctx.save_for_backward(x)
        ctx.save_for_forward(x)

    @staticmethod
    def backward(ctx: Any, grad: Tensor) -> tuple[Tensor, None, None]:
        return Numerical.jvp(ctx, grad), None, None

    @staticmethod
    def jvp(ctx: Any, tangent: Tensor, *_: None) -> Tensor:
        if ctx.order:
            raise NotImplementedError(
                f"penalty={ctx.name!r} has only a first derivative: pass 'exact' for higher ones"
            )
        (x,) = ctx.saved_tensors
        return tangent * Numerical.apply(x, ctx.name, 1)

    @staticmethod
    def vmap(info: Any, in_dims: Any, x: Tensor, name: str, order: int) -> tuple[Tensor, Any]:
        return Numerical.apply(x, name, order), in_dims[0]


def _by_numpy(name: str, what: str, x: Tensor) -> Tensor:
    from ....methods import METHODS

    if hasattr(x, "placements"):
        return on_shards(lambda shard: _by_numpy(name, what, shard))(x)
    found = getattr(METHODS[name], what)(x.detach().cpu().numpy())
    return torch.from_numpy(np.asarray(found)).to(x)
