"""KL from torch's distributions to the prior C/|w|. `_distributions` registers these functions.

Each function takes a distribution and returns `Found`. If torch does not validate the parameters,
KL is NaN for invalid ones.
"""

# torch.distributions has few annotations.
# mypy: allow-untyped-calls, no-warn-return-any
from __future__ import annotations

import math
from collections.abc import Callable, Sequence
from functools import cache
from typing import Any

import torch
from torch import Tensor
from torch.distributions import (
    Cauchy,
    Exponential,
    Gamma,
    HalfNormal,
    Laplace,
    StudentT,
    Uniform,
)

from .._arithmetic import posteriors
from .._arithmetic.unit import power_of_two, unit
from .._convention import PROPER_CONSTANT
from ._derivatives import Family, Members, Row
from ._internals import in_graphs, plain
from ._namespace import exportable, working, xp

# A tensor and a number that add up to KL + log C, and the dtype to which KL is rounded.
Found = tuple[Tensor, float, torch.dtype]
_EULER = 0.5772156649015329
_LOG_2 = math.log(2.0)


def laplace(p: Any) -> Found:
    loc, scale = _scaled(p.loc, p.scale)
    return _posterior("laplace", loc, scale), -1.0 - _LOG_2, p.scale.dtype


def cauchy(p: Any) -> Found:
    return _analytic("cauchy", *_scaled(p.loc, p.scale)), -math.log(4.0 * math.pi), p.scale.dtype


def uniform(p: Any) -> Found:
    low, high = working(p.low), working(p.high)
    factor = power_of_two(torch, torch.maximum(low.detach().abs(), high.detach().abs()))
    return _posterior("uniform", low * factor, high * factor), 0.0, p.low.dtype


def student(p: Any) -> Found:
    df = working(p.df)
    loc, scale = _scaled(p.loc, p.scale)
    given = p.loc.detach()
    centred = given == 0.0
    if not _traced(given) and not bool((centred | given.isnan()).all()):
        raise NotImplementedError(
            "KL of StudentT has no closed form where loc is not 0: use "
            "logunif_kl.neg_kl_posterior of scipy.stats.t, or samples of log_prob"
        )
    # x^2/2, which is 0 at loc = 0, gives KL its second derivative in loc: 1/scale^2 for every df.
    x = loc / scale
    result = 0.5 * (x * x) - _analytic("student", df)
    return (
        _where(centred & (scale.detach() > 0.0) & (df.detach() > 0.0), result),
        -PROPER_CONSTANT,
        p.df.dtype,
    )


def gamma(p: Any) -> Found:
    a, rate = working(p.concentration), working(p.rate)
    result = _nothing(rate) - _analytic("gamma_entropy", a)
    return _where(a.detach() > 0.0, result), 0.0, p.concentration.dtype


def half_normal(p: Any) -> Found:
    return _nothing(working(p.scale)), _LOG_2 - PROPER_CONSTANT, p.scale.dtype


def exponential(p: Any) -> Found:
    return _nothing(working(p.rate)), -1.0 - _EULER, p.rate.dtype


DIVERGENCES: dict[type, Callable[[Any], Found]] = {
    Cauchy: cauchy,
    Exponential: exponential,
    Gamma: gamma,
    HalfNormal: half_normal,
    Laplace: laplace,
    StudentT: student,
    Uniform: uniform,
}


def _scaled(loc: Tensor, scale: Tensor) -> tuple[Tensor, Tensor]:
    """Convert half types, and multiply loc and scale by a factor so that no quotient overflows."""
    loc, scale = working(loc), working(scale)
    factor = unit(torch, torch.rsqrt, loc.detach(), scale.detach())
    return loc * factor, scale * factor


def _nothing(scale: Tensor) -> Tensor:
    """Return 0 for a positive scale or rate, on which KL does not depend, and NaN otherwise."""
    return _where(scale.detach() > 0.0, torch.clamp(scale, 0.0, 0.0))


def _where(valid: Tensor, result: Tensor) -> Tensor:
    return torch.where(valid, result, xp.full_like(result, math.nan))


def _traced(x: Tensor) -> bool:
    """Whether the elements cannot be read, as under torch.compile and transforms."""
    return torch.compiler.is_compiling() or not plain(x.detach())


@in_graphs
@exportable
def _posterior(name: str, a: Tensor, b: Tensor, i: int = 0, j: int = 0) -> Tensor:
    """Compute the named function; differentiate "laplace" i times in a and j times in b."""
    return _family(name)((i, j), a, b)


@in_graphs
@exportable
def _analytic(name: str, *arguments: Tensor) -> Tensor:
    """Compute the named function. torch differentiates its arithmetic."""
    return posteriors.ANALYTIC[name](xp, *arguments)


class _Posterior(Family):
    """A function of `_arithmetic.posteriors`. Its derivatives are other functions there."""

    def __init__(self, name: str) -> None:
        self._name = name

    def compute(self, members: Members, *tensors: Tensor) -> tuple[Tensor]:
        (orders,) = members if self._name == "laplace" else ((),)
        return (posteriors.FUNCTIONS[self._name](xp, *tensors, *orders),)

    def slopes(self, members: Members, tensors: Any, needed: Any) -> Sequence[Row]:
        return [posteriors.slopes(_posterior, self._name, *tensors, *members[0])]


_family = cache(_Posterior)
