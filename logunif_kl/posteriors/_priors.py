"""Priors other than the log-uniform one."""

from __future__ import annotations

import math
from collections.abc import Callable
from dataclasses import dataclass
from functools import partial
from typing import Any

from .. import _priors
from .._errors import real_number, shown
from .._priors import horseshoe
from .._priors.student import log_beta
from ._distribution import Standardised, standardised


@dataclass(frozen=True)
class TruncatedLogUniform:
    """The log-uniform prior on low <= abs(w) <= high, with both signs: a proper density.

    p(w) is C/abs(w) with C = 1/(2 log(high/low)) in this range, and 0 outside. A posterior with any
    probability outside, such as every Gaussian, has -KL = -inf. For any other posterior, -KL is the
    same as for the improper prior C/abs(w). As low -> 0 and high -> inf, C -> 0 and -KL - log C
    tends to -KL with ``log_c=0`` (Hron et al. 2018, "Variational Bayesian Dropout: Pitfalls and
    Fixes", section 3).

    Parameters
    ----------
    low, high : float
        The least and the greatest magnitude of a weight; finite, with 0 < low < high.

    Raises
    ------
    TypeError
        If `low` or `high` is not a real number.
    ValueError
        If not 0 < low < high < inf.

    Examples
    --------
    >>> from scipy import stats
    >>> from logunif_kl.posteriors import TruncatedLogUniform, neg_kl_posterior
    >>> prior = TruncatedLogUniform(1e-3, 10.0)
    >>> round(neg_kl_posterior(stats.uniform(0.5, 1.0), prior=prior), 9)
    -2.868245239
    >>> neg_kl_posterior(stats.norm(1.0, 0.5), prior=prior)
    -inf
    """

    low: float
    high: float

    def __post_init__(self) -> None:
        low, high = real_number("low", self.low), real_number("high", self.high)
        if not 0.0 < low < high < math.inf:
            raise ValueError(
                f"low and high must be sizes of weights with 0 < low < high < inf, but "
                f"{shown(self.low)} and {shown(self.high)} were given: pass the least and the "
                "greatest size"
            )

    @property
    def log_c(self) -> float:
        """The logarithm of C in p(w) = C/abs(w)."""
        return -math.log(2.0 * (math.log(self.high) - math.log(self.low)))


class HorseshoePrior(_priors.HorseshoePrior):
    r"""The horseshoe prior N(0, scale^2 lambda^2) with a half-Cauchy lambda: a proper density.

    With x = w^2/(2 scale^2), p(w) = exp(x) E1(x)/(scale sqrt(2 pi^3)). It has a logarithmic pole at
    0, and tails as those of a Cauchy distribution (Carvalho, Polson, Scott 2010).

    Parameters
    ----------
    scale : float
        The scale, positive and finite.

    Raises
    ------
    TypeError
        If `scale` is not a real number.
    ValueError
        If `scale` is not positive or not finite.

    Examples
    --------
    >>> from scipy import stats
    >>> from logunif_kl.posteriors import HorseshoePrior, neg_kl_posterior
    >>> round(neg_kl_posterior(stats.laplace(0.3, 0.1), prior=HorseshoePrior(0.5)), 9)
    -1.491825086
    """


class PowerPrior:
    """The improper prior p(w) = abs(w)^-c.

    ``PowerPrior(1.0)`` is the log-uniform prior with C = 1. A posterior with a density at 0 has a
    finite -KL for every c. `logunif_kl.torch.nn.PowerPrior`, for layers, takes 0 <= c <= 1 alone.

    Parameters
    ----------
    c : float
        The power, finite.

    Raises
    ------
    TypeError
        If `c` is not a real number.
    ValueError
        If `c` is not finite.

    Examples
    --------
    >>> from scipy import stats
    >>> from logunif_kl.posteriors import PowerPrior, neg_kl_posterior
    >>> q = stats.laplace(0.3, 0.1)
    >>> [round(neg_kl_posterior(q, prior=PowerPrior(c)), 6) for c in (0.0, 0.5, 1.5)]
    [-0.609438, 0.050672, 1.370891]
    """

    def __init__(self, c: float) -> None:
        value = real_number("c", c)
        if not math.isfinite(value):
            raise ValueError(f"c must be finite, but {value} was given: pass 1.0")
        self.c = value

    def __repr__(self) -> str:
        return f"PowerPrior(c={self.c!r})"


def holds(prior: TruncatedLogUniform, dist: Standardised) -> bool:
    """Whether a distribution has all its probability where the prior's density is positive."""
    # The cdf of a `Density` is a sum with rounding errors, so allow for them.
    least = 1e-12 if dist.is_function else 0.0
    pairs = ((-math.inf, -prior.high), (-prior.low, prior.low), (prior.high, math.inf))
    for low, high in pairs:
        below, above = ((w - dist.loc) / dist.scale for w in (low, high))
        start, end = max(below, dist.low), min(above, dist.high)
        if start < end:
            between = dist.cdf(end) - dist.cdf(start), dist.sf(start) - dist.sf(end)
            if max(between) > least:
                return False
    return True


def correction(prior: Any) -> Callable[[float], float]:
    """Return the function w -> log(p(w) abs(w)) for a prior; else raise TypeError."""
    from scipy import stats

    if isinstance(prior, _priors.HorseshoePrior):
        return partial(_of_horseshoe, prior.scale)
    if isinstance(prior, (PowerPrior, _priors.PowerPrior)):
        return partial(_of_power, prior.c)

    family = getattr(prior, "dist", None)
    if not isinstance(family, type(stats.t)):
        name = getattr(family, "name", None)
        given = f"scipy.stats.{name}" if name else f"{type(prior).__name__} {shown(prior)}"
        raise TypeError(
            "prior must be a TruncatedLogUniform, HorseshoePrior, PowerPrior or a frozen "
            f"scipy.stats.t, but {given} was given: leave it out for the log-uniform prior"
        )
    read = standardised(prior)
    (df,), scale = read.shapes, read.scale
    if read.loc != 0.0:
        raise ValueError(
            f"prior must be symmetric about 0, but loc={read.loc!r} was given: pass "
            "scipy.stats.t(df, scale=scale)"
        )
    if df == math.inf:
        return partial(_of_normal, scale)
    head = -log_beta(0.5 * df)
    unit = math.log(scale) + 0.5 * math.log(df)

    def log_density(w: float) -> float:
        if w == 0.0:
            return -math.inf
        y = 2.0 * (math.log(abs(w)) - unit)  # log(x^2/df), where x = w/scale
        softplus = max(y, 0.0) + math.log1p(math.exp(-abs(y)))
        return head + 0.5 * y - 0.5 * (df + 1.0) * softplus

    return log_density


def _of_normal(scale: float, w: float) -> float:
    x = abs(w) / scale
    return math.log(x) - 0.5 * (math.log(2.0 * math.pi) + x * x) if x else -math.inf


def _of_horseshoe(scale: float, w: float) -> float:
    if w == 0.0:
        return -math.inf
    log_size = math.log(abs(w)) - math.log(scale)
    found = horseshoe.log_s(2.0 * log_size - math.log(2.0))
    return found + log_size - 0.5 * math.log(2.0 * math.pi**3)


def _of_power(c: float, w: float) -> float:
    if w == 0.0:
        return math.copysign(math.inf, c - 1.0) if c != 1.0 else 0.0
    return (1.0 - c) * math.log(abs(w))
