"""Support for SciPy's new distributions (since 1.15), such as ``scipy.stats.Normal(mu=1.0)``.

They have no loc and scale, which the closed forms of normal and uniform distributions need. Those
two are converted to the equal frozen distribution. Others are used through the functions that the
quadrature calls.
"""

from __future__ import annotations

from typing import Any

import numpy as np
from scipy import stats


def is_new_style(dist: Any) -> bool:
    """Whether this is a new-style distribution, by class name, as the base classes are private."""
    return any(
        cls.__name__ in ("ContinuousDistribution", "Mixture")
        and cls.__module__.startswith("scipy.stats")
        for cls in type(dist).__mro__
    )


def as_frozen(dist: Any) -> Any | None:
    """Return the frozen distribution that equals a normal or uniform one; otherwise None."""
    name = type(dist).__name__
    if name in ("Normal", "StandardNormal"):
        return stats.norm(dist.mu, dist.sigma)
    if name == "Uniform":
        return stats.uniform(dist.a, np.subtract(dist.b, dist.a))
    return None


class Family:
    """The functions of a new-style distribution, under the names of `rv_continuous`."""

    def __init__(self, dist: Any) -> None:
        self.name = type(dist).__name__
        self.logpdf, self.cdf = dist.logpdf, dist.cdf
        self.sf, self.ppf = dist.ccdf, dist.icdf
        self.support = dist.support
