"""The distributions that SciPy makes since 1.15, ``scipy.stats.Normal(mu=1.0)``, in the old dress.

They have no loc and scale of their own: those whose closed form needs them are read as the frozen
distribution that they equal, the others through the four functions that the quadrature calls.
"""

from __future__ import annotations

from typing import Any

import numpy as np
from scipy import stats

_CLASSES = ("ContinuousDistribution", "Mixture")


def is_new_style(dist: Any) -> bool:
    """Whether it is one, by name, for the class is not public and older versions lack it."""
    return any(
        cls.__name__ in ("ContinuousDistribution", "Mixture")
        and cls.__module__.startswith("scipy.stats")
        for cls in type(dist).__mro__
    )


def as_frozen(dist: Any) -> Any | None:
    """Find the frozen distribution that it equals, if it is one of two."""
    name = type(dist).__name__
    if name in ("Normal", "StandardNormal"):
        return stats.norm(dist.mu, dist.sigma)
    if name == "Uniform":
        return stats.uniform(dist.a, np.subtract(dist.b, dist.a))
    return None


class Family:
    """The four functions of a new-style distribution, under the names that rv_continuous uses."""

    def __init__(self, dist: Any) -> None:
        self.name = type(dist).__name__
        self.logpdf, self.cdf = dist.logpdf, dist.cdf
        self.sf, self.ppf = dist.ccdf, dist.icdf
        self.support = dist.support
