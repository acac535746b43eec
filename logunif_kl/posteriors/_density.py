"""Posteriors given by a density function or by a kernel density estimate.

`_quadrature` needs quantiles and probabilities to place its panels. `OfFunction` estimates them by
a scan of the density. After a bad estimate, `_quadrature` is slow or misses probability. It notices
missing probability, because the density must integrate to 1. `OfKernels` computes quantiles and
probabilities from the distribution function of a mixture of normal distributions.
"""

from __future__ import annotations

import math
from collections.abc import Callable, Iterable
from dataclasses import dataclass
from numbers import Real
from typing import Any

import numpy as np
from scipy.optimize import brentq
from scipy.special import ndtr

from .._arguments import TENSOR, kind_of
from .._errors import shown

Points = tuple[float, ...]

_HALF_LOG_2_PI = 0.5 * math.log(2.0 * math.pi)
_FEW = 24  # with more ends and points than this, a scan is coarser
_SCANNED = 6000  # a scan is not refined beyond this many evaluations
_RESOLVED = 2e-3  # a scan splits cells with a larger share of the mass


@dataclass(frozen=True)
class Density:
    """A posterior given by its density, for `neg_kl_posterior` and `neg_kl_split`.

    Parameters
    ----------
    pdf : callable
        ``pdf(w)`` returns the density at one weight, a float, as for `scipy.integrate.quad`. The
        density must integrate to 1. Where `pdf` returns NaN or raises an `ArithmeticError` (as
        ``exp(w)`` does for large w), the density counts as 0. The error estimate of
        `neg_kl_posterior` includes the effect of probability that is missed in this way.
    support : (float, float), optional
        Outside this interval the density is 0 and `pdf` is not called. An end may be infinite.
    points : iterable of float, optional
        Weights at which the density jumps, is singular or has a narrow peak. The ends of the
        support and 0 need not be given.
    log : bool, optional
        Whether `pdf` returns the logarithm of the density. A logarithm resolves tails where the
        density underflows.

    Raises
    ------
    TypeError
        If `pdf` cannot be called, or if `support` or `points` holds something other than numbers.
    ValueError
        If `support` is empty.

    Examples
    --------
    A Laplace distribution, and an exponential distribution that begins at 0.3:

    >>> import math
    >>> from logunif_kl.posteriors import Density, neg_kl_posterior
    >>> laplace = Density(lambda w: math.exp(-abs(w - 1.0)) / 2.0, points=[1.0])
    >>> round(neg_kl_posterior(laplace), 11)
    -0.31055901492
    >>> half = Density(lambda w: math.exp(0.3 - w), support=(0.3, math.inf))
    >>> round(neg_kl_posterior(half), 11)
    -1.07268275669
    """

    pdf: Callable[[float], Any]
    support: tuple[float, float] = (-math.inf, math.inf)
    points: Iterable[float] = ()
    log: bool = False

    def __post_init__(self) -> None:
        if not callable(self.pdf):
            raise TypeError(
                f"pdf must be a function of one weight, but {type(self.pdf).__name__} "
                f"{shown(self.pdf)} was given: pass the density, as lambda w: ..."
            )
        object.__setattr__(self, "support", _interval(self.support))
        object.__setattr__(self, "points", checked_points(self.points))

    def __str__(self) -> str:
        low, high = self.support
        name = getattr(self.pdf, "__name__", type(self.pdf).__name__)
        return f"Density({shown(name)[1:-1]}, support=({low:g}, {high:g}))"


def scaled(density: Density, theta: float) -> Density:
    """Return the density of theta w, for a theta that is finite and not 0."""
    of, shift = density.pdf, math.log(abs(theta))

    def pdf(w: float) -> Any:
        return of(w / theta) - shift if density.log else of(w / theta) / abs(theta)

    low, high = sorted(theta * end for end in density.support)
    return Density(pdf, (low, high), [theta * w for w in density.points], density.log)


def _interval(support: Any) -> tuple[float, float]:
    try:
        low, high = support
    except (TypeError, ValueError):
        low = high = None
    if not all(isinstance(end, Real) and not isinstance(end, bool) for end in (low, high)):
        raise TypeError(
            f"support must be two numbers, but {shown(support)} was given: pass (low, high), where "
            "-math.inf and math.inf are allowed"
        )
    if not low < high:
        raise ValueError(
            f"support must ascend, but {shown(support)} was given, which is empty: pass (low, "
            "high) with low < high"
        )
    return float(low), float(high)


def checked_points(points: Any) -> Points:
    try:
        given = tuple(points)
    except TypeError:
        given = (None,)
    if all(isinstance(w, Real) and math.isfinite(w) for w in given):
        return tuple(float(w) for w in given)
    raise TypeError(
        "points must be finite weights at which the density jumps or is singular, but "
        f"{shown(points)} was given: pass a list of numbers"
    )


class OfFunction:
    """A `Density` with the methods of `rv_continuous`; a scan gives its quantiles."""

    def __init__(self, density: Density) -> None:
        self.name = "Density"
        self._of = density
        low, high = density.support
        self._low, self._high = low, high
        with np.errstate(all="ignore"):
            self._at, self._cumulated = self._scan()

    def support(self) -> tuple[float, float]:
        return self._low, self._high

    def logpdf(self, w: float) -> float:
        try:
            given = self._of.pdf(float(w))
        except ArithmeticError:
            return -math.inf  # such as an overflow; `_quadrature` notices lost probability
        try:
            if kind_of(type(given)) == TENSOR:  # float() would lose the derivative of a tensor
                raise TypeError
            value = float(given)
        except (TypeError, ValueError):
            raise TypeError(
                f"the density of {self._of} must return one real number, but at w = {w:.6g} it "
                f"returned {type(given).__name__} {shown(given)}: return a float"
            ) from None
        if math.isnan(value):
            return -math.inf
        if self._of.log:
            return value
        if value < 0.0:
            raise ValueError(
                f"the density of {self._of} is {value:.6g} at w = {w:.6g}: return a number that is "
                "not negative, or pass log=True if it is a logarithm"
            )
        return math.log(value) if value > 0.0 else -math.inf

    def cdf(self, w: float) -> float:
        if self._at.size == 0:
            return math.nan
        return float(np.interp(w, self._at, self._cumulated))

    def sf(self, w: float) -> float:
        return 1.0 - self.cdf(w)

    def ppf(self, p: float) -> float:
        if self._at.size == 0:
            return math.nan
        return float(np.interp(p, self._cumulated, self._at))

    def _scan(self) -> tuple[np.ndarray, np.ndarray]:
        """Return ascending w and the probability below each w, or empty arrays if none is found."""
        at = sorted(self._grid())
        if len(at) < 2:
            return np.empty(0), np.empty(0)
        values = [self._pdf(w) for w in at]
        for _ in range(12):
            w, q = np.array(at), np.array(values)
            masses = _trapezoids(w, q)
            total = masses.sum()
            if not 0.0 < total < math.inf or w.size > _SCANNED:
                break
            # Split the cells that hold much probability, or in which the density changes much.
            steps = np.diff(w) * np.abs(np.diff(q))
            inside = np.flatnonzero((masses > _RESOLVED * total) | (steps > _RESOLVED * total))
            middles = (w[inside] + w[inside + 1]) / 2.0
            new = sorted(set(middles.tolist()) - set(at))
            if not new:
                break
            both = sorted([*zip(at, values, strict=True), *((m, self._pdf(m)) for m in new)])
            at, values = [p[0] for p in both], [p[1] for p in both]
        w = np.array(at)
        cumulated = np.concatenate([[0.0], np.cumsum(_trapezoids(w, np.array(values)))])
        if not 0.0 < cumulated[-1] < math.inf:
            return np.empty(0), np.empty(0)
        return w, cumulated / cumulated[-1]

    def _pdf(self, w: float) -> float:
        value = self.logpdf(w)
        return math.exp(min(value, 700.0))

    def _grid(self) -> set[float]:
        """Choose values of w near to and far from each end of the support, each point, and 0."""
        ends = [w for w in (self._low, self._high) if math.isfinite(w)]
        anchors = sorted({*ends, *(w for w in (0.0, *self._of.points) if self._inside(w))})
        if len(anchors) > _FEW:
            gaps = np.diff(anchors)
            offsets = [f * gaps for f in (1e-6, 1e-3, 0.1, 0.5, 0.9, 0.999, 1.0 - 1e-6)]
            found = {float(w) for o in offsets for w in anchors[:-1] + o}
            anchors = [anchors[0], anchors[-1]]
        else:
            found = set()
        fine = np.arange(-20.0, 20.0, 0.125)
        coarse = np.arange(24.0, 706.0, 4.0)
        distances = np.exp(np.concatenate([-coarse[::-1], fine, coarse]))
        for anchor in anchors:
            found |= {float(w) for w in (*(anchor - distances), *(anchor + distances))}
        return {w for w in found if self._inside(w)}

    def _inside(self, w: float) -> bool:
        return self._low < w < self._high and math.isfinite(w)


def _trapezoids(w: np.ndarray, q: np.ndarray) -> np.ndarray:
    return np.asarray(np.diff(w) * (q[1:] / 2.0 + q[:-1] / 2.0))


class OfKernels:
    """A one-dimensional `scipy.stats.gaussian_kde`, with the methods of `rv_continuous`.

    w = ``loc + scale z``, and every method takes z. `_quadrature` ends panels at ``marks``,
    so that it misses no kernel.
    """

    def __init__(self, kde: Any) -> None:
        self.name = "gaussian_kde"
        data = np.asarray(kde.dataset[0], dtype=np.float64)
        weights = np.asarray(kde.weights, dtype=np.float64)
        order = np.argsort(data, kind="stable")
        data, weights = data[order], weights[order] / weights.sum()
        bandwidth = math.sqrt(float(kde.covariance[0, 0]))
        self.loc = float(data[data.size // 2])
        self.scale = bandwidth  # in z every kernel has standard deviation 1
        self._at = (data - self.loc) / bandwidth
        self._weights, self._log_weights = weights, np.log(np.maximum(weights, 1e-300))
        self._quantiles: dict[float, float] = {}
        self.marks = self._marks()

    def support(self) -> tuple[float, float]:
        return -math.inf, math.inf

    def logpdf(self, z: float) -> float:
        # Leave out kernels whose exponent is 1,000 below that of the nearest kernel.
        nearest = self._nearest(z)
        reach = math.hypot(nearest, 45.0) * (1.0 + 1e-9)
        first, last = np.searchsorted(self._at, [z - reach, z + reach])
        d = z - self._at[first:last]
        terms = self._log_weights[first:last] - 0.5 * d * d
        largest = float(terms.max())  # not by scipy.special.logsumexp, which takes 1 ms
        if not largest > -math.inf:
            return -math.inf
        return largest + math.log(float(np.exp(terms - largest).sum())) - _HALF_LOG_2_PI

    def cdf(self, z: float) -> float:
        return float(self._weights @ ndtr(z - self._at))

    def sf(self, z: float) -> float:
        return float(self._weights @ ndtr(self._at - z))

    def ppf(self, p: float) -> float:
        if p not in self._quantiles:
            low, high = self._at[0] - 40.0, self._at[-1] + 40.0
            if p <= 0.5:
                found = brentq(lambda z: self.cdf(z) - p, low, high)
            else:
                found = brentq(lambda z: 1.0 - p - self.sf(z), low, high)
            self._quantiles[p] = float(found)
        return self._quantiles[p]

    def _nearest(self, z: float) -> float:
        place = int(np.searchsorted(self._at, z))
        around = self._at[max(0, place - 1) : place + 1]
        return float(np.min(np.abs(around - z)))

    def _marks(self, most: int = 4000) -> Points:
        """Return the ends of groups of neighbouring kernels, and points inside long groups."""
        apart = np.flatnonzero(np.diff(self._at) > 12.0)
        starts = self._at[np.concatenate([[0], apart + 1])] - 5.0
        stops = self._at[np.concatenate([apart, [self._at.size - 1]])] + 5.0
        found: list[float] = []
        for start, stop in zip(starts.tolist(), stops.tolist(), strict=True):
            pieces = max(1, math.ceil((stop - start) / 16.0))
            if len(found) + pieces > most:
                break
            found += np.linspace(start, stop, pieces + 1).tolist()
        return tuple(found)
