"""Compute the joint entropy of log|w| and the sign of w by quadrature, with an error estimate.

H(q) and E log|w| may both be infinite while their difference is finite. Examples are log-Cauchy
tails, and a density so steep at 0 that E log|w| = -inf. One integral therefore computes the
difference, with the integrand -q log(q |w|).

**Mapping.** Here w = loc + scale z. Special points are the ends of the support, the zero of w,
z = 0, the median and the caller's points. On either side of a special point s, z = s +- exp(t). If
the density of z is a power or a logarithm near s, or has a power tail, the density of t decays
exponentially. For each z the nearest s is used, and |z - s| = exp(t) has no rounding error.

**Panels.** Quantiles divide the range of t into panels. Beyond the outermost quantiles the widths
of panels double, until the integral is negligible or the range of float64 ends. QUADPACK
(`scipy.integrate.quad`) integrates each panel. Where z rounds to s, or exp(t) overflows or
underflows, the integrand is extrapolated as an exponential in t (exact for a power of z).

**Error.** The estimate adds QUADPACK's estimates, the effect of the rounding of z in a narrow
posterior, and the effect of missing mass. The density is integrated together with the entropy. If
the density's integral is not 1, the panels may have missed a spike. A second integration then adds
special points where quantiles are crowded. Mass that is still missing may lie in an arbitrarily
narrow spike or beyond the range of float64, so that its contribution to the entropy is not bounded.
If more than `UNEXPLAINED` is missing, the error is therefore infinite.
"""

from __future__ import annotations

import math
from collections.abc import Callable, Iterable
from dataclasses import dataclass
from itertools import pairwise

import numpy as np
from scipy.integrate import quad

from . import _cells
from ._distribution import Standardised

_QUANTILES = (1e-9, 1e-5, 1e-2, 0.2, 0.5, 0.8, 0.99, 1.0 - 1e-5, 1.0 - 1e-9)
_EPSILON = 2.0**-52
# The least and the largest t: exp(-708) is not subnormal, and exp(709) is finite.
_SMALLEST, _LARGEST = -708.0, 709.0
# Panels end 2^20 ulps of s from a special point s, a distance that is known to a relative 1e-6.
# Nearer to s, the integral is extrapolated. 2^4 ulps suffice where the density is smooth: at the
# median, and where its change over 2^20 ulps is no power of the distance.
_RESOLVED, _SMOOTH = 2.0**20, 2.0**4
_DENSE = tuple(k / 128 for k in range(1, 128))
_STRIDE, _NEGLIGIBLE = math.log(2.0), 1e-18
# The errors allowed in each panel, if the rounding of z does not change the density by more.
_EPSABS, _EPSREL = 1e-14, 1e-11
_WITHIN = (1e-2, 0.5, 0.99)
#: The error is infinite if more mass than this is missing without rounding or tails as the reason.
UNEXPLAINED = 1e-9
# The rounding of densities changes the mass by up to this much, or by `noise` if that is more.
_BY_ROUNDING = 1e-12
# The largest |log(q |w|)| for q and |w| in the range of float64.
_NARROWEST = 1454.0


@dataclass(slots=True)
class Side:
    """Integrals over the negative weights, or over the positive weights.

    If `dist.over` gives a prior p, log(q/p) replaces log(q |w|).

    Attributes
    ----------
    entropy : float
        Minus the integral of q log(q |w|) over this side.
    mass : float
        The integral of q.
    beyond : float
        The part of `mass` that was extrapolated beyond the range of float64.
    error : float
        The quadrature's estimate of its error in `entropy`.
    edge : float
        The largest |log(q |w|)| at a point beyond which the integral is extrapolated.
    mass_error : float
        The quadrature's estimate of its error in `mass`. If a tail is a power of log|w|, the error
        includes the tail's mass beyond the range of float64.
    """

    entropy: float = 0.0
    mass: float = 0.0
    beyond: float = 0.0
    error: float = 0.0
    edge: float = 0.0
    mass_error: float = 0.0


def signed_entropies(dist: Standardised, points: Iterable[float] = ()) -> tuple[Side, Side]:
    """Integrate over the negative and over the positive weights.

    ``points`` are values of w at which the density jumps or is singular. The errors do not include
    the effect of missing mass, which `total` adds.
    """
    named = [*dist.points, *((w - dist.loc) / dist.scale for w in points)]
    found = _integrated(dist, named, [z for z in map(dist.ppf, _QUANTILES) if math.isfinite(z)])
    if _unexplained(dist, found) > UNEXPLAINED:
        # Quantiles are crowded in a spike, so add the middle of each crowded run to the points.
        dense = [z for z in map(dist.ppf, _DENSE) if math.isfinite(z)]
        again = _integrated(dist, [*named, *_crowded(dense)], dense)
        if _unexplained(dist, again) < _unexplained(dist, found):
            return again
    return found


def _unexplained(dist: Standardised, sides: tuple[Side, Side]) -> float:
    """Return the missing mass, minus what rounding and the estimated errors of the mass explain."""
    missed = abs(1.0 - sides[0].mass - sides[1].mass)
    by_rounding = max(_BY_ROUNDING, dist.noise())
    return missed - by_rounding - sides[0].mass_error - sides[1].mass_error


def _crowded(quantiles: list[float]) -> list[float]:
    """Return the middle of each run of quantiles whose gaps are below 1/1000 of the median gap."""
    gaps = np.diff(quantiles)
    if gaps.size == 0:
        return []
    near = [int(k) for k in np.flatnonzero(gaps < 1e-3 * np.median(gaps))]
    runs: list[list[int]] = []
    for k in near:
        if runs and runs[-1][-1] == k - 1:
            runs[-1].append(k)
        else:
            runs.append([k])
    return [quantiles[run[len(run) // 2]] for run in runs]


def _integrated(
    dist: Standardised, named: list[float], quantiles: list[float]
) -> tuple[Side, Side]:
    special = _special_points(dist, named, quantiles)
    sides = Side(), Side()
    noise = dist.noise()
    with np.errstate(all="ignore"):
        done = _short_cells(dist, special, sides)
        for at, point in enumerate(special):
            before = special[at - 1] if at else -math.inf
            after = special[at + 1] if at + 1 < len(special) else math.inf
            for direction, neighbour, end in ((-1.0, before, dist.low), (1.0, after, dist.high)):
                length = abs(neighbour - point) / 2.0 if math.isfinite(neighbour) else math.inf
                if point != end and (at if direction > 0.0 else at - 1) not in done:
                    positive = point > dist.zero or (point == dist.zero and direction > 0.0)
                    near = _within(dist, point, point + direction * length)
                    marks = [direction * (z - point) for z in (*quantiles, *near, *dist.marks)]
                    _half_line(dist, point, direction, length, marks, noise, sides[positive])
    return sides


def _short_cells(dist: Standardised, special: list[float], sides: tuple[Side, Side]) -> set[int]:
    """Integrate the cells between special points; return the indices of the accurate cells.

    Cells next to w = 0 are never accepted, because the logarithm is singular there.
    """
    if len(special) < _cells.MANY or dist.over is not None:
        return set()
    ends = np.array(special)
    found = _cells.integrate(dist, ends, _EPSABS, _EPSREL)
    beside = (ends[1:] == dist.zero) | (ends[:-1] == dist.zero)
    accepted = found.accepted & ~beside
    for side, chosen in zip(
        sides, (accepted & ~found.positive, accepted & found.positive), strict=True
    ):
        side.entropy += float(found.entropy[chosen].sum())
        side.mass += float(found.mass[chosen].sum())
        side.error += float(found.entropy_error[chosen].sum())
        side.mass_error += float(found.mass_error[chosen].sum())
    return set(np.flatnonzero(accepted).tolist())


def total(dist: Standardised, sides: tuple[Side, Side]) -> tuple[float, float, float]:
    """Return entropy, error bound and mass. Extrapolation does not raise the mass above 1."""
    entropy = sides[0].entropy + sides[1].entropy
    mass = sides[0].mass + sides[1].mass
    missed = abs(1.0 - mass)
    # A mass m spread over a range R of log|w| has at most the entropy m log(R/m).
    weight = 1.0 + abs(entropy) + max(side.edge for side in sides)
    weight += math.log((_LARGEST - _SMALLEST) / min(max(missed, _EPSILON), 1.0))
    error = sides[0].error + sides[1].error + missed * weight + dist.rounding()
    unexplained = _unexplained(dist, sides)
    if unexplained > UNEXPLAINED or not math.isfinite(entropy):
        error = math.inf
    elif unexplained > 0.0:
        error += unexplained * _NARROWEST
    return entropy, error, max(mass - sides[0].beyond - sides[1].beyond, min(mass, 1.0))


def _special_points(dist: Standardised, named: list[float], quantiles: list[float]) -> list[float]:
    inner = (dist.zero, 0.0, *named)
    found = {z for z in inner if math.isfinite(z) and dist.low < z < dist.high}
    found |= {z for z in (dist.low, dist.high) if math.isfinite(z)}
    median = dist.ppf(0.5)
    apart = 1e-3 * (max(quantiles) - min(quantiles)) if quantiles else 0.0
    if math.isfinite(median) and all(abs(median - z) > apart for z in found):
        found.add(median)
    return sorted(found)


def _within(dist: Standardised, one: float, other: float) -> list[float]:
    """Return quantiles of the distribution restricted to the range between two points."""
    low, high = dist.cdf(min(one, other)), dist.cdf(max(one, other))
    return [dist.ppf(low + p * (high - low)) for p in _WITHIN] if low < high else []


def _half_line(
    dist: Standardised,
    point: float,
    direction: float,
    length: float,
    marked: list[float],
    noise: float,
    side: Side,
) -> None:
    """Integrate over z = point + direction exp(t), up to the distance `length`; add to `side`.

    `marked` has distances from `point`. Panels end at those that are positive and below `length`.
    QUADPACK cannot find an integral more closely than the relative `noise` of the density.
    """
    weight_at = point - dist.zero
    logs: dict[float, tuple[float, float]] = {}

    def over(t: float) -> float:
        """Return log(p |w|) for the prior p, or 0 without one."""
        signed = dist.scale * (weight_at + direction * math.exp(t))
        return dist.over(signed) if dist.over is not None else 0.0

    def log_density(t: float) -> tuple[float, float]:
        """Return the logarithms of the density of t and of q |w|."""
        if t not in logs:
            distance = math.exp(t)
            weight = abs(weight_at + direction * distance) if weight_at else distance
            log_q = dist.logpdf(point + direction * distance)
            if -math.inf < log_q < math.inf and weight > 0.0:
                logs[t] = log_q + t, log_q + math.log(weight) - over(t)
            else:
                logs[t] = -math.inf, 0.0
        return logs[t]

    def entropy(t: float) -> float:
        log_r, log_qw = log_density(t)
        return -math.exp(log_r) * log_qw if log_r > -math.inf else 0.0

    def mass(t: float) -> float:
        return math.exp(log_density(t)[0])

    def panel(low: float, high: float) -> bool:
        """Add a panel, and return whether it contributed to the integral."""
        if side.mass > 2.0:  # not a probability density
            side.error = math.inf
            return False
        value, error = _integrate(entropy, low, high, noise)
        part, part_error = _integrate(mass, low, high, noise)
        side.entropy, side.error = side.entropy + value, side.error + error
        side.mass, side.mass_error = side.mass + part, side.mass_error + part_error
        return max(abs(value), abs(part)) > _NEGLIGIBLE

    def extrapolated(end: float, outwards: float) -> tuple[float, float, float]:
        """Return the mass beyond `end`, the decay of the density of t, and their relative error."""
        log_r, log_r1, log_r2 = (log_density(end - outwards * n * _STRIDE)[0] for n in range(3))
        near, before = (log_r1 - log_r) / _STRIDE, (log_r2 - log_r1) / _STRIDE
        decay = 2.0 * near - before  # assume that the deviation from a power law halves each step
        if not (0.0 < decay < math.inf and 0.0 < before < math.inf):
            return 0.0, decay, math.inf
        return math.exp(log_r) / decay, decay, 2.0 * abs(decay / before - 1.0)

    def beyond(end: float, outwards: float) -> None:
        """Add the integral beyond `end`, as if the density of t decayed exponentially there."""
        log_r, log_qw = log_density(end)
        side.edge = max(side.edge, abs(log_qw))
        part, decay, doubt = extrapolated(end, outwards)
        if not math.isfinite(doubt):
            missing = beyond_range(end)
            side.mass_error += missing
            side.error += missing * abs(over(end)) if missing else 0.0
            return
        if weight_at == 0.0 or outwards > 0.0:  # |w| is proportional to exp(t)
            value, drift = part * (1.0 - log_qw), 0.0
        else:  # |w| is constant, equal to its value at the point
            drift = math.log(abs(weight_at)) - (log_qw - log_r + end)
            value = part * (1.0 - 1.0 / decay - log_qw - drift)
        side.mass += part
        side.beyond += part
        side.entropy += value
        side.error += doubt * (abs(value) + part) + abs(part * drift)
        if dist.over is not None:  # allow `over` to change by 1 per unit of t, or by its slope
            slope = (over(end) - over(end - outwards * _STRIDE)) / _STRIDE
            side.error += part * (1.0 + max(1.0, abs(slope)) / decay)
        side.mass_error += doubt * part + max(0.0, beyond_range(end) - part)

    def beyond_range(end: float) -> float:
        """Estimate the mass beyond the range of float64, if the density of t is a power of t."""
        if end not in (_SMALLEST, _LARGEST):
            return 0.0
        inside = end / 2.0
        if log_density(end)[0] == -math.inf:  # q underflows here
            for _ in range(40):
                middle = (inside + end) / 2.0
                if log_density(middle)[0] > -math.inf:
                    inside = middle
                else:
                    end = middle
            end = 0.95 * inside
        log_r = log_density(end)[0]
        power = (log_density(end / 2.0)[0] - log_r) / math.log(2.0)
        # the factor 1.05 allows for a second, smaller power of t in the tail
        return 1.05 * math.exp(log_r) * abs(end) / (power - 1.0) if power > 1.0 else 0.0

    if length == 0.0:
        return
    top = math.log(length) if length < math.inf else _LARGEST
    bottom = _SMALLEST
    if point:
        smooth, bottom = (math.log(n * math.ulp(point)) for n in (_SMOOTH, _RESOLVED))
        part, decay, doubt = extrapolated(bottom, -1.0)
        # A decay below 1 is that of a singularity. Otherwise a doubt is that of a narrow peak.
        if point == dist.ppf(0.5) or not (doubt * part <= _EPSABS or 0.0 < decay < 0.9):
            bottom = smooth
    if not bottom < top:
        return
    # Quantiles may be wrong. If no mark lies on this side, mirror the marks on the other side.
    this_way = [d for d in marked if 0.0 < d < math.inf] or [-d for d in marked]
    marks = sorted({math.log(d) for d in this_way if 0.0 < d < math.inf})
    marks = [t for t in marks if bottom < t < top] or [max(bottom, top - 1.0)]
    for low, high in pairwise(marks):
        panel(low, high)
    for start, stop in ((marks[-1], top), (marks[0], bottom)):
        if not _outwards(panel, start, stop) and (stop != top or length == math.inf):
            beyond(stop, math.copysign(1.0, stop - start))


def _outwards(panel: Callable[[float, float], bool], start: float, stop: float) -> bool:
    """Add panels of doubling width up to `stop`. Return True early if two in a row add nothing."""
    step, empty, here = math.copysign(0.5, stop - start), 0, start
    while here != stop:
        there = here + step
        if (there - stop) * step >= 0.0:
            there = stop
        empty = 0 if panel(min(here, there), max(here, there)) else empty + 1
        if empty == 2:
            return True
        here, step = there, 2.0 * step
    return False


def _integrate(
    function: Callable[[float], float], low: float, high: float, noise: float
) -> tuple[float, float]:
    allowed = {"epsabs": max(_EPSABS, noise), "epsrel": max(_EPSREL, noise)}
    value, error = quad(function, low, high, limit=100, full_output=1, **allowed)[:2]
    return float(value), float(error)
