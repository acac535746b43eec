"""Read a SciPy distribution, a kernel density estimate or a `Density` as w = loc + scale z.

The rest of this package works with z, which is possible because -KL does not depend on the scale of
w. For a narrow posterior such as N(1, 1e-20), doubles are too coarse in w but not in z.
"""

from __future__ import annotations

import math
from collections.abc import Callable
from dataclasses import dataclass, replace
from typing import Any

import numpy as np
from scipy import stats
from scipy.stats.distributions import rv_frozen

from .._arguments import TENSOR, kind_of
from .._errors import shown, unsupported
from ._density import Density, OfFunction, OfKernels, checked_points
from ._new_style import Family, as_frozen, is_new_style


@dataclass(frozen=True, slots=True)
class Standardised:
    """The distribution of w = loc + scale z. All its functions take z.

    Attributes
    ----------
    text : str
        A description of the distribution, for messages.
    family : rv_continuous
        SciPy's object for the family. The closed forms recognise its type.
    shapes : tuple of float
        Its shape parameters.
    loc, scale : float
        Finite numbers; the scale is positive.
    low, high : float
        The support of z.
    points : tuple of float
        The z at which its density is known to jump, to be singular or to have a peak.
    marks : tuple of float
        Other z at which panels of the quadrature end.
    over : callable or None
        The function w -> log(p(w) abs(w)), if the prior p is not 1/abs(w).
    """

    text: str
    family: Any
    shapes: tuple[float, ...]
    loc: float
    scale: float
    low: float
    high: float
    points: tuple[float, ...] = ()
    marks: tuple[float, ...] = ()
    over: Callable[[float], float] | None = None

    @property
    def is_function(self) -> bool:
        """Whether this is a `Density`, whose quantiles and probabilities are estimates."""
        return isinstance(self.family, OfFunction)

    @property
    def zero(self) -> float:
        """The z at which w vanishes."""
        return -self.loc / self.scale

    def logpdf(self, z: float) -> float:
        return float(self.family.logpdf(z, *self.shapes))

    def logpdfs(self, z: np.ndarray) -> np.ndarray:
        if isinstance(self.family, (OfFunction, OfKernels)):
            values = [self.logpdf(one) for one in z.ravel().tolist()]
            return np.array(values).reshape(z.shape)
        return np.asarray(self.family.logpdf(z, *self.shapes), dtype=np.float64)

    def cdf(self, z: float) -> float:
        return _quietly(self.family.cdf, z, self.shapes)

    def sf(self, z: float) -> float:
        return _quietly(self.family.sf, z, self.shapes)

    def ppf(self, p: float) -> float:
        return _quietly(self.family.ppf, p, self.shapes)

    def rounding(self) -> float:
        """Bound the effect of rounding z, which is large for a narrow posterior far from z = 0."""
        low, median, high = self.ppf(0.25), self.ppf(0.5), self.ppf(0.75)
        if median == 0.0:
            return 2.0**-48
        return 2.0**-50 * (4.0 + abs(median) / (high - low)) if low < high else math.inf

    def noise(self) -> float:
        """Return the effect of rounding, or 0 if no quantiles tell how narrow the posterior is."""
        found = self.rounding()
        return found if found < math.inf else 0.0


def _quietly(function: Any, x: float, shapes: tuple[float, ...]) -> float:
    """Call a SciPy function, and return NaN if it raises an error, or a warning as an error.

    If a quantile is wrong, the quadrature notices that the mass it finds is not 1.
    """
    with np.errstate(all="ignore"):
        try:
            return float(function(x, *shapes))
        except (ArithmeticError, RuntimeError, RuntimeWarning, ValueError):
            return math.nan


def standardised(dist: Any, points: tuple[float, ...] = ()) -> Standardised:
    """Read a frozen continuous distribution of scipy.stats, a `gaussian_kde` or a `Density`.

    A `Density` is scanned around `points` and around its own points. Anything else, such as a
    family that is not frozen or a discrete distribution, raises TypeError. A parameter that is an
    array or that SciPy does not accept raises ValueError.
    """
    if isinstance(dist, Density):
        return _of_function(replace(dist, points=(*dist.points, *points)))
    if isinstance(dist, stats.gaussian_kde):
        return _of_kernels(dist)
    if isinstance(dist, stats.rv_histogram):  # it has no parameters, so it need not be frozen
        dist = dist()
    if isinstance(dist, stats.rv_continuous):
        raise TypeError(
            f"dist must be one distribution, but the family {dist.name} was given: freeze it "
            f"with its parameters, as in scipy.stats.norm(loc=1.0, scale=0.5)"
        )
    if is_new_style(dist):
        equal = as_frozen(dist)
        return _of_new_style(dist) if equal is None else standardised(equal)
    family = dist.dist if isinstance(dist, rv_frozen) else dist
    if isinstance(family, stats.rv_discrete):
        raise TypeError(
            f"dist must be continuous, but {family.name} is discrete, and -KL from an atom to the "
            "log-uniform prior is -inf: pass a frozen continuous distribution of scipy.stats"
        )
    if not isinstance(family, stats.rv_continuous):
        if callable(dist):
            raise TypeError(
                f"dist must be a distribution, but {type(dist).__name__} {shown(dist)} was given, "
                "which can be called: if it is a density, pass logunif_kl.posteriors.Density(it, "
                "support=(low, high))"
            )
        raise TypeError(
            "dist must be a frozen continuous distribution of scipy.stats, but "
            f"{type(dist).__name__} was given: pass one, as scipy.stats.norm(loc=1.0, scale=0.5)"
        )
    named = _bound(dist)
    plain = {k: v.item() if isinstance(v, np.generic) else v for k, v in named.items()}
    text = f"{family.name}({', '.join(f'{k}={shown(v)}' for k, v in plain.items())})"
    parameters = []
    for name, value in named.items():
        if kind_of(type(value)) == TENSOR:
            raise unsupported(name, value)
        if np.ndim(value) != 0:
            raise ValueError(
                f"dist must be one distribution, but {name} of {family.name} has shape "
                f"{np.shape(value)}: pass its elements one at a time"
            )
        parameters.append(float(value))
    *shapes, loc, scale = parameters
    family, shapes, loc, scale = _about_its_end(family, shapes, loc, scale)
    low, high = (float(end) for end in family.support(*shapes))
    if not (math.isfinite(loc) and 0.0 < scale < math.inf and low < high):
        raise ValueError(
            f"{text} is not a continuous distribution: pass parameters that SciPy accepts, a "
            "finite loc and a positive scale (a scale of 0 gives an atom, with -KL = -inf)"
        )
    if isinstance(family, type(stats.vonmises)) and math.isinf(high - low):
        raise ValueError(
            f"{text} is a distribution on the circle, whose density repeats along the whole line: "
            "pass scipy.stats.vonmises_line with the same parameters, for weights in "
            "loc +- pi scale"
        )
    return Standardised(text, family, tuple(shapes), loc, scale, low, high)


def _about_its_end(
    family: Any, shapes: list[float], loc: float, scale: float
) -> tuple[Any, list[float], float, float]:
    """Return an equal distribution that is accurate at a singular end of the support.

    SciPy's genextreme and genpareto compute 1 - c z, which loses digits near the end z = 1/c.
    """
    if isinstance(family, type(stats.genextreme)) and math.isfinite(shapes[0]) and shapes[0]:
        (c,) = shapes
        equal = stats.weibull_max if c > 0.0 else stats.invweibull
        return equal, [1.0 / abs(c)], loc + scale / c, scale / abs(c)
    if isinstance(family, type(stats.genpareto)) and -math.inf < shapes[0] < 0.0:
        return stats.beta, [1.0, -1.0 / shapes[0]], loc, -scale / shapes[0]
    return family, shapes, loc, scale


def _of_function(dist: Density) -> Standardised:
    low, high = dist.support
    return Standardised(
        str(dist), OfFunction(dist), (), 0.0, 1.0, low, high, checked_points(dist.points)
    )


def _of_kernels(kde: Any) -> Standardised:
    if kde.d != 1:
        raise ValueError(
            f"dist must have one dimension, but a gaussian_kde of {kde.d} dimensions was given: "
            "pass the estimate of one weight, as kde.marginal(0)"
        )
    text = f"gaussian_kde of {kde.n} points"
    family = OfKernels(kde)
    return Standardised(
        text, family, (), family.loc, family.scale, -math.inf, math.inf, marks=family.marks
    )


def _of_new_style(dist: Any) -> Standardised:
    """Read a new-style SciPy distribution, with loc 0 and scale 1, so that z is w."""
    low, high = dist.support()
    if np.ndim(low) != 0:
        raise ValueError(
            f"dist must be one distribution, but parameters of {type(dist).__name__} have shape "
            f"{np.shape(low)}: pass its elements one at a time"
        )
    if not low < high:
        raise ValueError(
            f"{dist} is not a continuous distribution: pass parameters inside its domain"
        )
    return Standardised(str(dist), Family(dist), (), 0.0, 1.0, float(low), float(high))


def _bound(dist: Any) -> dict[str, Any]:
    """Return the arguments of a frozen distribution by name."""
    shapes = dist.dist.shapes.replace(",", " ").split() if dist.dist.shapes else []
    given = dict(zip((*shapes, "loc", "scale"), dist.args, strict=False)) | dist.kwds
    return {name: given[name] for name in shapes} | {
        "loc": given.get("loc", 0.0),
        "scale": given.get("scale", 1.0),
    }
