"""Bounds of the errors of the float32 kernels of training, in ulp of float32.

The kernels take mu and log sigma^2. With x = -log sigma^2, they compute in this order

    e = exp(x)/2 from x alone,  s = mu,  u = s (s e), which rounds twice,
    far  -KL and its derivative in log sigma^2 from the computed u alone,
         d_mu = -2 far/s, which rounds once,
    near t from u alone, q = e + e t, s (s q), which rounds twice, and d_mu = -2 s q.

Steps that depend on one number are run on every number, which needs no algebra. A relative error of
u changes log f(u) by that error times the derivative of log f in log u. The mantissas of u and e
determine those of s, s e and s q. So a piece is a range of u, and has a bound for each bin of the
mantissa of e. For large |x| the kernels move powers of two from e to s, which is exact.

`in_domain` tells for which arguments this holds. No step overflows or is subnormal for them, and
x is not limited (`check_limit`). Among them is the box of `float32_magnitudes.h`, for which the
kernels take their usual form.

`tiny_float32` has the form for small means, and `rare_float32` that for other arguments. Not
proved: the lanes that `float32_rare.h` computes with scaled arguments. Nor are sums and products
with a factor bounded.
"""

from functools import cache
from typing import Any, NamedTuple

import numpy as np

from . import exact_float32
from .algebra import UP
from .bounds import Bound, join
from .exact_float32 import OUTSIDE, Exact
from .exhaustive import sweep
from .graph import Graph
from .steps_float32 import LEAST_X, Steps, take_apart
from .truth import FAR

NAMES = ("neg_kl_normal", "neg_kl_normal.dmu", "neg_kl_normal.dlog_sigma2")
HALF_ULP = 2.0**-24 * (1 + 2.0**-20)  # relative; of log(1 + d) as well
TINY = 2.0**-61
X = (LEAST_X, 236.0)
U = (2.0**-124, 2.0**86)
"""More than all computed u of the domain."""
BINS = 32
WIDER = 2.0**-18  # in log2, more than the error of a computed step
# Without FMA, a product that is added to e may be subnormal: relative to e, which is above 2^-66.
FLUSHED = 2.0**-60
NEAR_STEPS, FAR_STEPS = 64, 32


def in_domain(fused: bool, mu: Any, log_sigma2: Any) -> Any:
    """Which float32 arguments the bounds are for.

    They have margins: 2^-122 <= u and 2^-121 <= |d_mu| are far enough from subnormal numbers. The
    kernels compute all of them with their own arguments, and not as small, large or scaled.
    """
    mu, log_sigma2 = (np.asarray(x, np.float64) for x in (mu, log_sigma2))
    with np.errstate(divide="ignore"):
        size = np.log2(np.abs(mu))
    u = 2 * size - log_sigma2 / np.log(2) - 1
    d_mu = np.minimum(u, 0) - size
    found = (u > -122) & (d_mu > -121) & (size >= -126) & (size < 122)
    found &= (log_sigma2 == 0) | (np.abs(log_sigma2) >= TINY)
    if fused:
        return found & (u < 83)
    return found & (u < 79) & (u > np.maximum(np.abs(log_sigma2) / np.log(2), 22) - 122)


class Of(NamedTuple):
    """The exact functions for small and for large u."""

    near: str
    far: str


OF = {
    "neg_kl_normal": Of("F/u", "F"),
    "neg_kl_normal.dmu": Of("g", "Ug"),
    "neg_kl_normal.dlog_sigma2": Of("g", "Ug"),
}
Log2 = tuple[Any, Any]
"""An interval of log2 of a number of which the mantissa matters."""


def logarithm(relative: Any) -> Any:
    """A bound of |log(1 + d)| for |d| <= relative < 2^-10."""
    if not (np.asarray(relative) < 2.0**-10).all():
        raise AssertionError("a step errs by more than 2^-10")
    return relative * (1 + relative)


def log2_of(least: Any, most: Any) -> Log2:
    return np.log2(least) - WIDER, np.log2(most) + WIDER


def rounding(x: Log2) -> Any:
    """A bound of |log(1 + d)| for the relative error d of rounding x."""
    low = np.floor(x[0])
    return HALF_ULP * np.where(np.floor(x[1]) == low, np.exp2(low - x[0]), 1.0)


@cache
def differences(
    graph: Graph,
    outputs: tuple[int, ...],
    given: tuple[tuple[int, str], ...],
    got: str,
    of: Exact,
    relative: bool,
) -> Any:
    """The largest difference from the exact function, with the error of its polynomial."""
    found = sweep(graph, outputs, dict(given), got, of.pieces, relative)
    error = of.error / of.least if relative else of.error
    return (np.max(np.abs(found), axis=0) + error) * UP


def errors_of_e(graph: Graph, steps: Steps) -> Any:
    """The errors of log(e), with the powers of two that it leaves to s, for each bin of log2(e)."""
    c = f"(double)t{steps.c}"
    got = f"(double)t{steps.half_e} * {c} * {c} * {c} * {c}"
    of = exact_float32.exponential(TINY, *X)
    outputs, given = (steps.half_e, steps.c), ((steps.limited, "x"),)
    error = logarithm(differences(graph, outputs, given, got, of, True))
    if not (error + 2 * HALF_ULP < OUTSIDE / 2).all():
        raise AssertionError("the error of u is larger than expected")
    low, high = (np.floor(x * BINS).astype(int) for x in log2_of(of.least, of.most))
    found = np.zeros(BINS)
    for k in range(int((high - low).max()) + 1):
        np.maximum.at(found, np.minimum(low + k, high) % BINS, error)
    return found


@cache
def check_limit(graph: Graph, steps: Steps) -> tuple[float, float]:
    """The least and the largest difference of the limit of x from log(2 u/mu^2) for u = 2^84.

    Fail if x is limited for u < 2^83.5.
    """
    pieces = exact_float32.logarithms(np.log(2.0) * 85, 2.0**-126, 2.0**128)
    least, most = sweep(graph, [steps.most], {steps.size: "x"}, f"t{steps.most}", pieces, False)
    if not least.min() > -np.log(2.0) / 2:
        raise AssertionError("the kernel limits log sigma^2 where it should not")
    return float(least.min()), float(most.max())


def near_cuts(bound: float) -> tuple[float, ...]:
    fine = {2.0**k * (1 + i / NEAR_STEPS) for k in range(-8, 1) for i in range(NEAR_STEPS)}
    return (U[0], *sorted(x for x in fine if x < bound), bound)


def far_cuts(name: str, bound: float) -> tuple[float, ...]:
    fine = {2.0**k * (1 + i / FAR_STEPS) for k in range(-1, 86) for i in range(FAR_STEPS)}
    fine |= {float(FAR), U[1]}
    if name == "F":
        for k in range(1, 5):
            fine |= set(exact_float32.turns(name, 2.0**k, bound, U[1]))
    return (bound, *sorted(x for x in fine if x > bound))


class Sizes:
    """log2 of the steps, in arrays by the piece of u, the bin of e, and the parity of u/e = s^2."""

    def __init__(self, exact: Exact) -> None:
        first, last = exact.pieces.first, exact.pieces.last
        self.u = log2_of(*(x.astype(np.float64)[:, None, None] for x in (first, last)))
        self.f = log2_of(*(x[:, None, None] for x in (exact.least, exact.most)))
        bins, odd = np.arange(BINS)[:, None], np.arange(2)
        self.e = bins / BINS, (bins + 1) / BINS
        self.s = tuple((self.u[k] - self.e[1 - k] + odd) / 2 for k in range(2))
        self.s_e = tuple((self.u[k] + self.e[k] + odd) / 2 for k in range(2))

    def error_of_u(self) -> Any:
        """The error of log(u), apart from that of e."""
        return rounding(self.s_e) + rounding(self.u)


def total(a: Log2, b: Log2) -> Log2:
    return a[0] + b[0], a[1] + b[1]


def prove(graph: Graph, name: str) -> Bound:
    """Bound the error of a result on pieces of the computed u."""
    steps = take_apart(graph, name)
    check_limit(graph, steps)
    bound = join([_prove_near(graph, name, steps), _prove_far(graph, name, steps)])
    first, last = (x.astype(np.float32) for x in (bound.lo, bound.hi))
    following = np.nextafter(last[:-1], np.float32(np.inf))
    if first[0] > U[0] or last[-1] < U[1] / 2 or (first[1:] != following).any():
        raise AssertionError("the pieces do not cover all u")
    return bound


def _prove_near(graph: Graph, name: str, steps: Steps) -> Bound:
    exact = exact_float32.of_u(OF[name].near, near_cuts(steps.bound))
    given, got = ((steps.u, "x"), (steps.excess, "0.0f")), f"1.0 + (double)t{steps.t}"
    step = differences(graph, (steps.t,), given, got, exact, True)
    # The derivative of log f in log u, between -1 and nearly 0.
    high = exact.slope_most / np.where(exact.slope_most > 0, exact.least, exact.most)
    slope = np.stack([exact.slope_least / exact.least, high])[:, :, None, None]
    size, e = Sizes(exact), errors_of_e(graph, steps)[:, None]
    product = total(size.s_e, size.f)
    parts = {
        "e": e * np.abs(1 + slope).max(axis=0),
        "u": size.error_of_u() * np.abs(slope).max(axis=0),
        "t": logarithm(step)[:, None, None],
        "q": rounding(total(size.e, size.f)),
    }
    if not graph.fused:
        t = np.log2(np.maximum(1 - exact.least, 2.0**-20) * (1 + 2.0**-10))[:, None, None]
        half_ulp = np.exp2(np.floor(size.e[1] + t)) * HALF_ULP
        parts["e t"] = half_ulp / np.exp2(size.e[0] + size.f[0]) + FLUSHED
    if name.endswith(".dmu"):
        return _relative(exact, parts, product)
    parts["product"] = rounding(product)
    return _relative(exact, parts, total(size.u, size.f))


def _prove_far(graph: Graph, name: str, steps: Steps) -> Bound:
    exact = exact_float32.of_u(OF[name].far, far_cuts(OF[name].far, steps.bound))
    given, got = ((steps.u, "x"), (steps.excess, "0.0f")), f"(double)t{steps.far}"
    step = differences(graph, (steps.far,), given, got, exact, False)
    slope = np.maximum(np.abs(exact.slope_least), np.abs(exact.slope_most))
    size = Sizes(exact)
    of_u = size.error_of_u() + errors_of_e(graph, steps)[:, None]
    if name.endswith(".dmu"):
        step, slope = logarithm(step / exact.least * UP), slope / exact.least
        parts = {"far": step[:, None, None], "u": of_u * slope[:, None, None]}
        return _relative(exact, parts, (size.f[0] - size.s[1], size.f[1] - size.s[0]))
    per_ulp = np.ldexp(1.0, (23 - exact.binade).astype(int))
    parts = {
        "far": (step * per_ulp)[:, None, None],
        "u": of_u * (slope * per_ulp)[:, None, None],
    }
    return _worst(exact, parts, 0.0)


def _relative(exact: Exact, parts: dict[str, Any], result: Log2) -> Bound:
    """From bounds of parts of |log(result/truth)| before the last rounding.

    The last rounding errs by half an ulp of the truth, or by one if it is into the next binade.
    """
    binade = np.floor(result[0])
    same = np.floor(result[1]) == binade
    ulp = 2.0**23 * np.where(same, np.exp2(result[1] - binade), 2.0)
    return _worst(exact, {name: x * ulp for name, x in parts.items()}, np.where(same, 0.5, 1.0))


def _worst(exact: Exact, parts: dict[str, Any], last: Any) -> Bound:
    """The worst bin of each piece. If a logarithm is d < 2^-20, its number is 1 + d (1 + 2^-20)."""
    shape = (len(exact.least), BINS, 2)
    ulp = np.broadcast_to(sum(parts.values()) * (1 + 2.0**-20) + last, shape).reshape(shape[0], -1)
    worst = ulp.argmax(axis=1)
    rows = np.arange(len(worst))
    terms = {
        name: np.broadcast_to(x, shape).reshape(len(rows), -1)[rows, worst]
        for name, x in parts.items()
    }
    first, last_ = (x.astype(np.float64) for x in (exact.pieces.first, exact.pieces.last))
    return Bound(first, last_, ulp[rows, worst], terms)
