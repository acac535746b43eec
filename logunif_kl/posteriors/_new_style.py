"""Support for SciPy's new distributions (since 1.15), such as ``scipy.stats.Normal(mu=1.0)``.

New-style distributions have no loc and scale, which the closed forms of normal and uniform
distributions need. A new-style normal or uniform distribution is therefore converted to a frozen
one. For any other distribution, the quadrature calls its functions.
"""

from __future__ import annotations

from typing import Any

import numpy as np
from scipy import stats


def is_new_style(dist: Any) -> bool:
    """Whether `dist` is new-style, judged by class names, because the base classes are private."""
    return any(
        cls.__name__ in ("ContinuousDistribution", "Mixture")
        and cls.__module__.startswith("scipy.stats")
        for cls in type(dist).__mro__
    )


def as_frozen(dist: Any) -> Any | None:
    """Convert a normal or uniform distribution to a frozen one; return None for any other."""
    name = type(dist).__name__
    if name in ("Normal", "StandardNormal"):
        return stats.norm(dist.mu, dist.sigma)
    if name == "Uniform":
        return stats.uniform(dist.a, np.subtract(dist.b, dist.a))
    return None


class Family:
    """The functions of a new-style distribution, with the names that `rv_continuous` has."""

    def __init__(self, dist: Any) -> None:
        self.name = type(dist).__name__
        self.logpdf, self.cdf = dist.logpdf, dist.cdf
        self.sf, self.ppf = dist.ccdf, dist.icdf
        self.support = dist.support
