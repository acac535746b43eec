"""Proper priors that tend to the log-uniform prior."""

from __future__ import annotations

import math
from collections.abc import Callable
from dataclasses import dataclass
from functools import partial
from typing import Any

from .._errors import real_number, shown
from .._layers import log_beta
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
    """Return the function w -> log(p(w) abs(w)) for a Student's t prior; else raise TypeError."""
    from scipy import stats

    family = getattr(prior, "dist", None)
    if not isinstance(family, type(stats.t)):
        name = getattr(family, "name", None)
        given = f"scipy.stats.{name}" if name else f"{type(prior).__name__} {shown(prior)}"
        raise TypeError(
            f"prior must be a TruncatedLogUniform or a frozen scipy.stats.t, but {given} was "
            "given: leave it out for the log-uniform prior"
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
