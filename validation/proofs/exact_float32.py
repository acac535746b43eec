"""The exact functions next to which the steps of the float32 kernels are run, piece by piece.

F and u F' are taken for large u, and F/u and F' for small u. Each piece has a Taylor polynomial, a
bound of its error in float64, and intervals of the function and of its derivative in log(u). The
intervals also hold a little outside of the piece, where the exact u of a computed u may be.
"""

import math
from collections.abc import Iterator, Sequence
from dataclasses import dataclass
from functools import cache
from itertools import pairwise
from typing import Any

import numpy as np
from flint import arb, arb_series, ctx, fmpq

from .exhaustive import ORDER, Pieces
from .truth import FAR, HALF, exact, lower, remainder, taylor, upper

OUTSIDE = 2.0**-20  # relative to u, more than the error of a computed u
HORNER = 2.0**-47  # relative to the sum of the terms: 2 ORDER + 2 roundings in float64, and more
MOST_ERROR = 2.0**-36  # relative to the function
FEW, FEW_FAR = 8, 2.0**12  # the terms of the series in 1/u, from where so few are enough


@dataclass(frozen=True, eq=False)
class Exact:
    """Pieces of x with f: bounds of f, of df/dlog(x), and of the error of the polynomial.

    `binade` is that of the least f.
    """

    pieces: Pieces
    least: Any
    most: Any
    binade: Any
    slope_least: Any
    slope_most: Any
    error: Any


def _far(name: str, u: Any, n: int, terms: int) -> list[Any]:
    """The Taylor coefficients of F or u F' at u > FAR, by the series in 1/u (see `truth`)."""
    ctx.cap = n + 1
    series = arb_series([u, arb(1)])
    w, total, rising = 1 / series, arb_series([arb(0)]), [fmpq(1)]
    for k in range(terms):
        rising.append(rising[-1] * (k + HALF))
    for k in reversed(range(1, terms)):
        total = (total + arb(rising[k] / 2 if name == "Ug" else -rising[k] / (2 * k))) * w
    if name == "Ug":
        total = total + arb(HALF)
    else:
        total = total + series.log() / 2 + arb(2).log() + arb.const_euler() / 2
    return [total[k] for k in range(n + 1)]


def _rest(u: Any, terms: int) -> Any:
    """A bound of what `_far` leaves out of either function: see `truth.beyond`."""
    rising = fmpq(1)
    for k in range(terms):
        rising *= k + HALF
    return arb(rising) / u**terms + 2 * (u + 2 * terms) * (-u / 2).exp()


def _within(size: Any) -> Any:
    """The ball of all numbers of at most this size."""
    return arb(0, size.abs_upper())


def _binade(ball: Any) -> int:
    """floor(log2) of the least number of a positive ball."""
    below = math.frexp(lower(ball))[1] - 1
    return below + 1 if ball >= arb(2) ** (below + 1) else below


def series(name: str, u: Any, n: int) -> list[Any]:
    """The Taylor coefficients of F, u F' ("Ug"), F' ("g") or F/u at u < FAR."""
    if name != "F/u" or u == 0:
        return list(taylor(name, u, n))
    ctx.cap = n + 1
    found = arb_series(list(taylor("F", u, n))) / arb_series([arb(u), arb(1)])
    return [found[k] for k in range(n + 1)]


def _of_piece(name: str, first: float, last: float, centre: float) -> tuple[Any, ...]:
    left, right, c = exact(first), exact(last), exact(centre)
    wide = [left - left * OUTSIDE - c, right + right * OUTSIDE - c]
    h = wide[0].union(wide[1])
    r = arb(h.abs_upper())
    if first >= FAR:
        terms = FEW if first >= FEW_FAR else 20
        found = _far(name, c, ORDER, terms)
        rest = _rest(left - left * OUTSIDE, terms)
        bound = abs(_far(name, c + h, ORDER + 1, terms)[ORDER + 1])
    else:
        found, rest = series(name, c, ORDER), arb(0)
        a, b = left - left * OUTSIDE, right + right * OUTSIDE
        bound = (
            remainder(name, a, b, ORDER + 1)
            if name in ("F", "Ug")  # the others are completely monotone
            else abs(series(name, a if c != 0 else arb(0), ORDER + 1)[ORDER + 1])
        )
    beyond = bound * r ** (ORDER + 1) + rest
    value, slope = arb(0), arb(0)
    for k in reversed(range(ORDER + 1)):
        slope = slope * h + value
        value = value * h + found[k]
    if first >= FAR:
        # u F' = 1/2 + s, and 2 u (u F')' = u F' - 2 u s: the derivative of u F' is small
        large = _far("Ug", c + h, 0, terms)[0]
        s = large - HALF
        slope = large if name == "F" else (large - 2 * (c + h) * s) / 2
        slope = slope + _within(rest * (1 + 2 * (c + h)))
    else:
        slope = (slope + _within((ORDER + 1) * bound * r**ORDER)) * (c + h)
    value = value + _within(beyond)
    size = sum((abs(x) * r**k for k, x in enumerate(found)), arb(0))
    error = upper(beyond + HORNER * size)
    return (
        [float(x.mid()) for x in found],
        lower(value),
        upper(value),
        _binade(value),
        float(np.nextafter(float(slope.lower()), -np.inf)),
        float(np.nextafter(float(slope.upper()), np.inf)),
        error,
    )


@cache
def of_u(name: str, cuts: tuple[float, ...]) -> Exact:
    """The pieces between neighbours of `cuts`. The first is about 0, if it starts below 2^-8."""
    first = np.array(cuts[:-1], np.float32)
    last = np.nextafter(np.array(cuts[1:], np.float32), np.float32(0.0))
    centre = [0.0 if a < 2.0**-8 else (a + b) / 2 for a, b in pairwise(cuts)]
    ends = zip(first.tolist(), last.tolist(), centre, strict=True)
    rows = [_of_piece(name, *row) for row in ends]
    return _exact(first, last, centre, rows)


def _exact(first: Any, last: Any, centre: Any, rows: Sequence[Any]) -> Exact:
    coefficients, *columns = (np.array(column) for column in zip(*rows, strict=True))
    found = Exact(Pieces(first, last, centre, coefficients), *columns)
    if not (found.error < MOST_ERROR * found.least).all():
        raise AssertionError("a Taylor polynomial is not as accurate as needed")
    return found


def _steps(start: float, end: float) -> Iterator[tuple[float, float, float]]:
    """Intervals [first, last] of float32 from `start` to `end`, and their centres k/32."""
    sign = 1 if end > 0 else -1
    size = max(abs(start), abs(end))
    for k in range(int(size * 32) + 2):
        low, high = max((k - 0.5) / 32, min(abs(start), abs(end))), min((k + 0.5) / 32, size)
        if low < high:
            yield sign * low, sign * float(np.nextafter(np.float32(high), np.float32(0))), k / 32


@cache
def exponential(tiny: float, start: float, end: float) -> Exact:
    """Pieces of exp(x)/2 for x in [start, -tiny], {0} and [tiny, end]."""
    rows = [(0.0, 0.0, 0.0)]
    rows += [(a, b, c) for a, b, c in _steps(tiny, end)]
    rows += [(a, b, -c) for a, b, c in _steps(-tiny, start)]
    found = []
    for first, last, c in rows:
        h = exact(first).union(exact(last)) - exact(c)
        r, top = arb(h.abs_upper()), exact(c).exp() / 2
        coefficients = [top / arb(k + 1).gamma() for k in range(ORDER + 1)]
        beyond = top * r.exp() * r ** (ORDER + 1) / arb(ORDER + 2).gamma()
        value = top * h.exp()
        error = upper(beyond + HORNER * top * r.exp())
        mids = [float(x.mid()) for x in coefficients]
        found.append((mids, lower(value), upper(value), _binade(value), 0.0, 0.0, error))
    ends = np.array(rows)
    return _exact(ends[:, 0], ends[:, 1], ends[:, 2], found)


@cache
def logarithms(constant: float, start: float, end: float) -> Pieces:
    """Pieces of constant - 2 log(x) between two powers of two, to within 2^-40."""
    with np.errstate(over="ignore"):
        cuts = np.exp2(np.arange(16 * np.log2(start), 16 * np.log2(end) + 1) / 16)
        first = cuts.astype(np.float32)
    last = np.nextafter(first[1:], np.float32(0))
    centre = (first[:-1].astype(np.float64) + last) / 2
    rows = [constant - 2 * np.log(centre)]
    rows += [2 * (-1 / centre) ** k / k for k in range(1, ORDER + 1)]
    return Pieces(first[:-1], last, centre, np.stack(rows, axis=1))


@cache
def turns(name: str, at: float, start: float, end: float) -> tuple[float, float]:
    """float32 numbers a little below and above the u in [start, end] with f(u) = at, f growing."""
    while end - start > start * 2.0**-30:
        middle = (start + end) / 2
        u = exact(middle)
        f = (_far(name, u, 0, 20) if middle >= FAR else series(name, u, 0))[0]
        start, end = (middle, end) if f < at else (start, middle)
    beside = start * 2.0**-18
    return float(np.float32(start - beside)), float(np.float32(end + beside))
