"""The exact functions, and rigorous bounds of how far a polynomial is from them, by Arb.

With g(u) = F'(u) = M(1; 3/2; -u), a function is named by what makes it of g, read from the right:
U multiplies by u, D differentiates. So "UDUg" is u (u F'(u))', which is d^2(-KL)/d(log alpha)^2 but
for its sign. "F" is F itself and "F/u" its quotient by u.

g is the integral of (1 - t)^(-1/2)/2 exp(-u t) over t in [0, 1]. So it is completely monotone:
|g^(n)| falls, and is at most |g^(n)(a)| on [a, b]. That bounds each remainder of Taylor.
"""

from collections.abc import Sequence
from functools import cache
from typing import Any, NamedTuple

import numpy as np
from flint import arb, arb_poly, arb_series, ctx, fmpq, fmpq_poly

BITS = 400
ORDER = 24
AT_ZERO = 60  # the order of the series at u = 0, which is used up to u = 4
FAR = 150  # above it, the series in 1/u
TERMS = 24
HALF = fmpq(1, 2)

ctx.prec = BITS


def exact(x: float) -> Any:
    return arb(fmpq(*float(x).as_integer_ratio()))


def upper(x: Any) -> float:
    """A float above `|x|`."""
    return float(np.nextafter(float(x.abs_upper()), np.inf))


def lower(x: Any) -> float:
    """A float below `|x|`."""
    return max(float(np.nextafter(float(x.abs_lower()), -np.inf)), 0.0)


def _g(u: Any, n: int) -> list[Any]:
    """The Taylor coefficients of g at u, of orders 0 to n."""
    if u == 0:
        c = [arb(1)]
        for k in range(n):
            c.append(-c[-1] / (k + 1 + HALF))
        return c
    u = arb(u)
    c = [(-u).hypgeom_1f1(arb(1), arb(fmpq(3, 2)))]
    for k in range(n):  # of 2u g' + (1 + 2u) g = 1
        before = 2 * c[k - 1] if k else arb(-1)
        c.append(-((1 + 2 * u + 2 * k) * c[k] + before) / (2 * u * (k + 1)))
    return c


def _combine(name: str, c: list[Any], u: Any) -> list[Any]:
    """Make the coefficients of a function at u of those of g."""
    if name == "F/u":  # only at 0
        return [x / (k + 1) for k, x in enumerate(c)]
    if name == "F":
        return [arb(0)] + [x / (k + 1) for k, x in enumerate(c)]
    for letter in reversed(name[:-1]):
        if letter == "U":
            c = [u * c[0]] + [u * c[k] + c[k - 1] for k in range(1, len(c))]
        else:
            c = [(k + 1) * c[k + 1] for k in range(len(c) - 1)]
    return c


def taylor(name: str, u: Any, n: int) -> tuple[Any, ...]:
    """The Taylor coefficients at u, of orders 0 to n."""
    c = _combine(name, _g(u, n + 1), arb(u))
    if name == "F":
        u = arb(u)
        c[0] = u * (-u).hypgeom([arb(1), arb(1)], [arb(fmpq(3, 2)), arb(2)])
    return tuple(c[: n + 1])


def remainder(name: str, a: Any, b: Any, n: int) -> Any:
    """A bound of the n-th Taylor coefficient on [a, b], for n > 0.

    It is made as the coefficients are, of bounds of |g^(k)|/k! and of u, without cancellation.
    """
    return abs(_combine(name, [abs(x) for x in _g(a, n + 1)], arb(b))[n])


def shifted(c: Sequence[Any], shift: Any) -> list[Any]:
    """The coefficients of p(x + shift) of those of p(x)."""
    return list(arb_poly([arb(x) for x in c])(arb_poly([arb(shift), arb(1)])))


def of_ball(c: Sequence[Any], r: Any) -> Any:
    """A bound of ``|sum c_k h**k|`` for ``|h| <= r``."""
    total = arb(0)
    for x in reversed(c):
        total = total * r + abs(x)
    return arb(total.abs_upper())


class Errors(NamedTuple):
    """On parts [a, b] that cover a range of u: bounds of the error of a polynomial."""

    a: Any
    b: Any
    error: Any

    def on(self, lo: Any, hi: Any) -> Any:
        """The largest error on each interval [lo, hi]."""
        found = np.full(len(lo), -np.inf)
        for a, b, error in zip(*self, strict=True):
            found = np.where((lo <= b) & (hi >= a), np.maximum(found, error), found)
        if not (
            np.isfinite(found).all() and (self.a.min() <= lo).all() and (hi <= self.b.max()).all()
        ):
            raise AssertionError("the parts do not cover the pieces")
        return found


@cache
def errors(
    name: str,
    c: tuple[Any, ...],
    centre: Any,
    lo: float,
    hi: float,
    in_reciprocal: bool,
    log: int,
    count: int,
) -> Errors:
    """Bound ``|P - f|/|f|`` on parts of [lo, hi], for P = sum of c_k v^k in v = u - centre.

    With `in_reciprocal`, v = 1/u - centre. With `log` > 0, f is F - log(log*u)/2, and the bound is
    absolute.
    """
    rows = []
    near = min(hi, float(FAR)) if in_reciprocal else hi
    if lo < near:
        ratio = near / lo if in_reciprocal else 0.0
        cuts = [
            lo * ratio ** (i / count) if in_reciprocal else lo + (near - lo) * i / count
            for i in range(count)
        ]
        for a, b in zip(cuts, [*cuts[1:], near], strict=True):
            rows.append((a, b, _on_part(name, c, centre, a, b, lo == 0, in_reciprocal, log)))
    if hi > FAR:
        if not in_reciprocal or centre != 0 or lo > FAR:
            raise AssertionError(f"no series in 1/u for the range from {lo} to {hi}")
        rows.append((float(FAR), np.inf, beyond(name, c, log)))
    return Errors(*map(np.array, zip(*rows, strict=True)))


def _on_part(
    name: str,
    c: Sequence[Any],
    centre: Any,
    a: float,
    b: float,
    from_zero: bool,
    in_reciprocal: bool,
    log: int,
) -> float:
    left, right = exact(a), exact(b)
    m = arb(((left + right) / 2).mid())
    r = arb(((right - left) / 2).abs_upper()) + arb(2) ** -200
    if from_zero:
        if b > 4:
            raise AssertionError("the series at 0 is used up to 4")
        truth = shifted(taylor(name, 0, AT_ZERO), m)
        beyond = remainder(name, 0, right, AT_ZERO + 1) * right ** (AT_ZERO + 1)
    else:
        truth = list(taylor(name, m, ORDER))
        beyond = remainder(name, left, right, ORDER + 1) * r ** (ORDER + 1)
    if in_reciprocal:
        p, p_beyond = _in_reciprocal(c, centre, m, r, left, log)
    else:
        p, p_beyond = shifted(c, m - arb(centre)), arb(0)
    n = max(len(p), len(truth))
    p, truth = (x + [arb(0)] * (n - len(x)) for x in (p, truth))
    error = of_ball([x - y for x, y in zip(p, truth, strict=True)], r) + p_beyond + beyond
    if log:
        return upper(error)
    least = abs(truth[0]) - of_ball([arb(0), *truth[1:]], r) - beyond
    if not least > 0:
        raise AssertionError(f"{name} may have a zero between {a} and {b}")
    return upper(error / least)


def _in_reciprocal(
    c: Sequence[Any], centre: Any, m: Any, r: Any, left: Any, log: int
) -> tuple[list[Any], Any]:
    """The Taylor coefficients of P(1/u - centre), with `log` + log(log*u)/2, and the remainder."""
    ctx.cap = ORDER + 2

    def series(at: Any) -> Any:
        v = 1 / arb_series([at, arb(1)]) - arb(centre)
        total = arb_series([arb(0)])
        for x in reversed(c):
            total = total * v + arb(x)
        return total

    p = series(m)
    # The coefficient at a ball has that of each of its points, and so Lagrange's remainder.
    beyond = abs(series(arb(m.mid(), r))[ORDER + 1])
    if log:
        p = p + arb_series([log * m, arb(log)]).log() / 2
        beyond = beyond + 1 / (2 * (ORDER + 1) * left ** (ORDER + 1))
    return [p[k] for k in range(ORDER + 1)], beyond * r ** (ORDER + 1)


def beyond(name: str, c: Sequence[Any], log: int, far: float = float(FAR)) -> float:
    """The bound for u > far >= FAR, with w = 1/u, S = sum over k < TERMS of (1/2)_k w^k/2.

    u g = S + rho with |rho| <= (1/2)_K u^-K + (u + 2 K) exp(-u/2): for t < 1/2 the rest of the
    binomial series of (1 - t)^(-1/2) is at most twice its first term. For t > 1/2 the integral of
    (1 - t)^(-1/2)/2 exp(-u t) is below exp(-u/2), and each of the K terms of the series is below
    exp(-u/2)/(u - 2 K), because t^k exp(-u t) falls. All bounds here fall in u. "DUg" and "Dg" are
    made by the differential equation of g: (u g)' = (1 + g - 2 u g)/2, g' = (1 - (1 + 2u) g)/(2u).
    """
    rising = [fmpq(1)]
    for k in range(TERMS):
        rising.append(rising[-1] * (k + HALF))
    w, one = fmpq_poly([0, 1]), fmpq_poly([1])
    S = fmpq_poly([x / 2 for x in rising[:TERMS]])
    if far < FAR:
        raise AssertionError(f"the series in 1/u is not for u = {far}")
    u = exact(far)
    rho = arb(rising[TERMS]) / u**TERMS + (u + 2 * TERMS) * (-u / 2).exp()
    if name == "F":  # F - log(log*u)/2: the integral of what g lacks, from u to infinity
        constant = (2 * arb(2).log() + arb.const_euler() - arb(log).log()) / 2
        f = [constant] + [arb(-rising[k] / (2 * k)) for k in range(1, TERMS)]
        rest = arb(rising[TERMS]) / u**TERMS / TERMS + 2 * (1 + 2 * TERMS / u) * (-u / 2).exp()
        drop = 0
    else:  # f w^-drop is a polynomial in w with a constant term, to within rest
        exact_f, rest, drop = {
            "g": (S, rho, 0),  # u g, for the factor w of both is dropped
            "Ug": (S, rho, 0),
            "Dg": ((one - (w + 2) * S) / 2, (1 + 2 * u) * rho / 2, 1),
            "UUDUg": ((one + (w - 2) * S) / 2, u**2 * rho, 2),
        }[name]
        f = [arb(exact_f[k]) for k in range(drop, exact_f.degree() + 1)]
        if any(exact_f[k] != 0 for k in range(drop)):
            raise AssertionError("the leading terms do not cancel")
    lost = {"g": 1, "Dg": 2}.get(name, 0)  # the powers of w that the polynomial has as a factor
    if any(x != 0 for x in c[:lost]):
        raise AssertionError(f"the polynomial for {name} is not a multiple of w^{lost}")
    p = [arb(x) for x in c[lost:]]
    n = max(len(p), len(f))
    p, f = (x + [arb(0)] * (n - len(x)) for x in (p, f))
    worst, parts = 0.0, 16
    for i in range(parts):
        m, r = arb(2 * i + 1) / (2 * parts * u), arb(1) / (2 * parts * u)
        r = r + abs(m - m.mid())
        error = of_ball(shifted([x - y for x, y in zip(p, f, strict=True)], m), r) + rest
        if not log:
            truth = shifted(f, m)
            least = abs(truth[0]) - of_ball([arb(0), *truth[1:]], r) - rest
            if not least > 0:
                raise AssertionError(f"{name} may have a zero above {far}")
            error = error / least
        worst = max(worst, upper(error))
    return worst


class Root(NamedTuple):
    """A Taylor series of u (u F')' in x = log alpha, with -u = -exp(-x)/2, about `middle`."""

    middle: Any
    radius: Any
    coefficients: list[Any]
    remainder: Any


def around_root(a: float, b: float, n: int = 22) -> Root:
    """The series of d^2(-KL)/dx^2 in x on [a, b], of orders 0 to n, and a bound of the rest."""
    left, right = exact(a), exact(b)
    m = arb(((left + right) / 2).mid())
    r = arb(((right - left) / 2).abs_upper()) + arb(2) ** -200
    ctx.cap = n + 2
    factorial = [arb(k).gamma() if k else arb(1) for k in range(n + 3)]  # factorial[k] = (k - 1)!
    u = (-m).exp() / 2
    change = arb_series([arb(0)] + [u * (-1) ** k / factorial[k + 1] for k in range(1, n + 2)])
    f = arb_series([-x for x in taylor("UDUg", u, n + 1)])(change)
    low, high = arb(((-right).exp() / 2).lower()), arb(((-left).exp() / 2).upper())
    # The coefficients of the composition are at most those of the composed bounds.
    outer = arb_series([arb(0)] + [remainder("UDUg", low, high, k) for k in range(1, n + 2)])
    inner = arb_series([arb(0)] + [high / factorial[k + 1] for k in range(1, n + 2)])
    beyond = outer(inner)[n + 1] * r ** (n + 1)
    return Root(m, r, [f[k] for k in range(n + 1)], beyond)
