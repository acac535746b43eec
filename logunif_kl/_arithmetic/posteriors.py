"""Compute E log|w| - log(scale) of posteriors that are not Gaussian, with exact derivatives.

`laplace`, `uniform`, `scaled_log` and `log_ratio` have differentiation rules: `slopes` returns the
partial derivatives of each in terms of these four functions. `slopes` gets the functions
through ``call``, which adds the differentiation rules. `gamma_entropy`, `student` and `cauchy` are
analytic on each range, and the framework differentiates their arithmetic.
"""

from __future__ import annotations

from collections.abc import Callable
from fractions import Fraction
from functools import cache
from math import comb, factorial
from typing import Any

from .tables import Array, Namespace, constant, dtype_name, lookup

Call = Callable[..., Array]
Polynomial = tuple[Fraction, ...]

_EULER = Fraction("0.57721566490153286060651209008240243104215933593992")
_SMALL = 1.5  # the series about 0 is used up to this |loc|/scale


def _horner(row: tuple[float, ...], v: Array) -> Array:
    p = row[-1] + 0.0 * v
    for entry in reversed(row[:-1]):
        p = p * v + entry
    return p


def _tabulated(xp: Namespace, name: str, t: Array, rows: Any = None) -> Array:
    """Evaluate a table at t. `rows` replaces the coefficients of the table, but not its ranges."""
    from .posterior_tables import TABLES

    bounds, centres, _ = TABLES[name, dtype_name(xp, t)]
    at = lookup(xp, t, [t > bound for bound in bounds])
    v = t - at(centres)
    rows = _rows(name, dtype_name(xp, t)) if rows is None else rows
    p = at(rows[-1])
    for row in reversed(rows[:-1]):
        p = p * v + at(row)
    return p


@cache
def _rows(name: str, dtype: str) -> tuple[tuple[float, ...], ...]:
    from .posterior_tables import TABLES

    return _by_powers([tuple(map(Fraction, p)) for p in TABLES[name, dtype][2]])


def _by_powers(polynomials: list[Polynomial]) -> tuple[tuple[float, ...], ...]:
    length = max(map(len, polynomials))
    filled = [(*p, *([Fraction(0)] * (length - len(p)))) for p in polynomials]
    return tuple(tuple(map(float, row)) for row in zip(*filled, strict=True))


# Laplace. Let L(x) = E log|x + X| for X ~ Laplace(0, 1), x = loc/scale and s = scale. Then
#     d^(i+j) L/(dloc^i ds^j) = (-1)^j s^(-i-j) sum_l c_l x^l L^(i+l)(x),
#     c_l = binom(j, l) (i + l) (i + l + 1) ... (i + j - 1).
# Near 0, with the digamma function psi(m + 1) = 1 + 1/2 + ... + 1/m - gamma,
#     L = -(cosh x - 1) log|x| + sum over even m of psi(m + 1) x^m/m!
# and L' = -sinh(x) log|x| + the same sum for odd m; L'' = L - log|x|. Elsewhere L = log|x| + M with
# M = -t^2 T(t), t = 1/|x| and a tabulated T; M and log|x| are differentiated separately.


def laplace(xp: Namespace, loc: Array, scale: Array, i: int = 0, j: int = 0) -> Array:
    """Return E log|w| - log(scale) of Laplace(loc, scale), or its derivative.

    ``i`` and ``j`` are the orders of the derivative in loc and in scale.
    """
    size = xp.abs(loc)
    small = size <= _SMALL * scale
    one = constant(xp, loc, 1.0)
    near = _laplace_near(xp, xp.where(small, loc, one), xp.where(small, scale, one), i, j)
    away, spread = xp.where(small, 2.0 * one, loc), xp.where(small, one, scale)
    far = _laplace_far(xp, away, spread, i, j)
    result = xp.where(small, near, far)
    return xp.where((scale > 0.0) & (loc == loc), result, constant(xp, loc, float("nan")))


def _laplace_near(xp: Namespace, loc: Array, scale: Array, i: int, j: int) -> Array:
    zero, one = constant(xp, loc, 0.0), constant(xp, loc, 1.0)
    x = loc / scale
    origin = x == 0.0
    logarithm = xp.log(xp.abs(xp.where(origin, one, x)))
    total: Any = None
    for power in range(j + 1):
        factor = float(_factor(i, j, power))
        if not factor:
            continue
        term = factor * _near_term(xp, x, xp.where(origin, one, x), logarithm, i + power, power)
        if power:
            term = xp.where(origin, zero, term)
        elif i >= 2:
            # The second derivative has a logarithmic pole; higher derivatives have no limit.
            limit = float("inf") if i == 2 else float("nan")
            term = xp.where(origin, constant(xp, loc, limit), term)
        total = term if total is None else total + term
    for _ in range(i + j):
        total = total / scale
    return -total if j % 2 else total


def _near_term(
    xp: Namespace, x: Array, divisor: Array, logarithm: Array, order: int, power: int
) -> Array:
    """Return x^power times the derivative L^(order)(x), for |x| <= 3/2."""
    y = x * x
    odd = order % 2
    series = _horner(_PSI[odd], y)
    if order == 0:
        return series - (y * _horner(_COSH_1, y)) * logarithm
    growing = _horner(_SINH, y) if odd else 1.0 + y * _horner(_COSH_1, y)
    result = series - growing * logarithm
    for _ in range(odd + power):
        result = result * x
    # L'' is L - log|x|, so add the derivatives of -log|x| of order `order` - 2, `order` - 4, ...
    for q in range(order - 2, 0, -2):
        pole: Any = float((-1) ** q * factorial(q - 1))
        for _ in range(abs(power - q)):
            pole = pole * divisor if power > q else pole / divisor
        result = result + pole
    return result


def _laplace_far(xp: Namespace, loc: Array, scale: Array, i: int, j: int) -> Array:
    t = scale / xp.abs(loc)
    sign = xp.where(loc < 0.0, constant(xp, loc, -1.0), constant(xp, loc, 1.0))
    result = _tabulated(xp, "laplace", t, _laplace_rows(dtype_name(xp, t), i, j)) * t * t
    # Multiply by s^(-i-j) t^i, which is loc^-i s^-j up to the sign.
    for _ in range(i):
        result = result / loc
    for _ in range(j):
        result = result / scale
    if i == 0 and j == 0:
        return result - (xp.log(scale) - xp.log(xp.abs(loc)))
    if j == 0:
        plain: Any = float((-1) ** (i - 1) * factorial(i - 1)) * (sign * sign)
        for _ in range(i):
            plain = plain / loc
        return result + plain
    if i == 0:
        plain = float((-1) ** j * factorial(j - 1)) * (sign * sign)
        for _ in range(j):
            plain = plain / scale
        return result + plain
    return result


def _factor(i: int, j: int, power: int) -> int:
    """Return c_l = binom(j, l) (i + l) (i + l + 1) ... (i + j - 1) for l = power."""
    product = comb(j, power)
    for m in range(power, j):
        product *= i + m
    return product


@cache
def _laplace_rows(dtype: str, i: int, j: int) -> tuple[tuple[float, ...], ...]:
    """Compute exactly the derivative of M of orders i and j, divided by t^2 loc^-i s^-j.

    M^(n) = (-1)^(n+1) t^(2+n) T_n for loc > 0, with T_0 = T and T_(n+1) = (2 + n) T_n + t T_n'.
    """
    from .posterior_tables import TABLES

    _, centres, polynomials = TABLES["laplace", dtype]
    if i + j >= 2 and dtype == "float32":
        # Use the float64 fit. A derivative of the float32 fit has an error as large as itself.
        _, centres, polynomials = TABLES["laplace", "float64"]
    found = []
    for centre, coefficients in zip(centres, polynomials, strict=True):
        p: Polynomial = tuple(map(Fraction, coefficients))
        total = [Fraction(0)] * len(p)
        for n in range(i + j + 1):
            if n >= i:
                factor = -((-1) ** (n + j)) * _factor(i, j, n - i)
                total = [a + factor * b for a, b in zip(total, p, strict=True)]
            slope = [*(k * c for k, c in enumerate(p[1:], start=1)), Fraction(0)]
            shifted = [Fraction(0), *slope[:-1]]
            p = tuple(
                (2 + n) * a + b + Fraction(centre) * c
                for a, b, c in zip(p, shifted, slope, strict=True)
            )
        found.append(tuple(total))
    return _by_powers(found)


def _psi_series(odd: int) -> tuple[float, ...]:
    found = []
    for m in range(odd, 24, 2):
        harmonic = sum((Fraction(1, k) for k in range(1, m + 1)), Fraction(0))
        found.append(float((harmonic - _EULER) / factorial(m)))
    return tuple(found)


_PSI = (_psi_series(0), _psi_series(1))
_SINH = tuple(1.0 / factorial(2 * k + 1) for k in range(11))  # series of sinh(x)/x in x^2
_COSH_1 = tuple(1.0 / factorial(2 * k + 2) for k in range(11))  # series of (cosh(x) - 1)/x^2


# Uniform. With d = high - low and k = (low + high)/d, E log|w| - log(d) is
#     -1 - log 2 + sum_n k^(2n)/(2n (2n - 1)) for small k, and
#     log|k/2| - sum_n k^(-2n)/(2n (2n + 1)) for large k.

_CENTRAL = tuple(1.0 / (2 * n * (2 * n - 1)) for n in range(1, 17))
_DISTANT = tuple(1.0 / (2 * n * (2 * n + 1)) for n in range(1, 17))
_ARTANH = tuple(1.0 / (2 * n + 3) for n in range(17))  # series of (artanh(z) - z)/z^3
_LOG_2 = 0.6931471805599453


def uniform(xp: Namespace, low: Array, high: Array) -> Array:
    """Return E log|w| - log(high - low) of the uniform distribution on [low, high]."""
    one = constant(xp, low, 1.0)
    width, total = high - low, low + high
    size = xp.abs(total)
    central, distant = 3.0 * size <= width, size >= 3.0 * width
    k = total / xp.where(central, width, one)
    k = xp.where(central, k, 0.0 * one)
    square = k * k
    middle = square * _horner(_CENTRAL, square) - (1.0 + _LOG_2)
    z = width / xp.where(distant, size, one)
    z = xp.where(distant, z, 0.25 * one)
    far = -xp.log(2.0 * z) - z * z * _horner(_DISTANT, z * z)
    x, y = high / width, low / width
    # With k = total/width, 2x = k + 1, 2y = k - 1 and x - y = 1.
    between = _times_log(xp, x, x) - _times_log(xp, y, y) - 1.0
    result = xp.where(central, middle, xp.where(distant, far, between))
    return xp.where(width > 0.0, result, constant(xp, low, float("nan")))


def _times_log(xp: Namespace, a: Array, b: Array) -> Array:
    one = constant(xp, a, 1.0)
    return xp.where(a == 0.0, 0.0 * one, a * xp.log(xp.abs(xp.where(b == 0.0, one, b))))


def log_ratio(xp: Namespace, a: Array, b: Array) -> Array:
    """Return log|b/a|, without cancellation where b is close to a."""
    one = constant(xp, a, 1.0)
    p, q = xp.abs(a), xp.abs(b)
    close = (xp.abs(q - p) <= 0.5 * p) & (p > 0.0)
    # Use 2 artanh(z), |z| <= 1/3, because log(1 + x) is not accurate enough in some frameworks.
    z = xp.where(close, (q - p) / xp.where(close, q + p, one), 0.0 * one)
    near = 2.0 * z + 2.0 * z * (z * z) * _horner(_ARTANH, z * z)
    high, low = xp.where(p > q, p, q), xp.where(p > q, q, p)
    ratio = low / high
    far = xp.where(ratio > 2.0**-100, xp.log(ratio), xp.log(low) - xp.log(high))
    return xp.where(close, near, xp.where(p > q, far, -far))


def scaled_log(xp: Namespace, a: Array, b: Array) -> Array:
    """Return a log|b/a|, which is 0 at a = 0."""
    one = constant(xp, a, 1.0)
    result = a * log_ratio(xp, xp.where(a == 0.0, one, a), b)
    return xp.where(a == 0.0, 0.0 * one, result)


FUNCTIONS: dict[str, Callable[..., Array]] = {
    "laplace": laplace,
    "uniform": uniform,
    "scaled_log": scaled_log,
    "log_ratio": log_ratio,
}


def slopes(call: Call, name: str, a: Array, b: Array, i: int, j: int) -> tuple[Array, Array]:
    """Return the partial derivatives of a function in its two arguments.

    ``call`` takes the name of a function, its arguments and the orders of a derivative, and returns
    the value with its differentiation rule.
    """
    if name == "laplace":
        return call("laplace", a, b, i + 1, j), call("laplace", a, b, i, j + 1)
    if name == "uniform":
        # Compilers turn (x/d)/d with d = b - a into x/d^2. d^2 may underflow, so multiply by 1/d.
        inverse = 1.0 / (b - a)
        return (
            -call("scaled_log", b, a) * inverse * inverse,
            -call("scaled_log", a, b) * inverse * inverse,
        )
    if name == "scaled_log":
        return call("log_ratio", a, b) - 1.0, a / b
    return -1.0 / a, 1.0 / b


def cauchy(xp: Namespace, loc: Array, scale: Array) -> Array:
    """Return 1/2 log(1 + loc^2/scale^2), which is E log|w| - log(scale) of Cauchy(loc, scale)."""
    one = constant(xp, loc, 1.0)
    near = xp.abs(loc) <= scale
    t = xp.where(near, loc, scale) / xp.where(near, scale, loc)
    away = xp.log(xp.abs(xp.where(near, one, loc))) - xp.log(xp.where(near, one, scale))
    return 0.5 * xp.log1p(t * t) + away


def gamma_entropy(xp: Namespace, a: Array) -> Array:
    """Return the entropy of log w for w ~ Gamma(a), which is a + log Gamma(a) - a psi(a)."""
    table = _tabulated(xp, "gamma", 1.0 / (1.0 + a))
    return table + (0.5 * xp.log1p(a) - xp.log(a))


def student(xp: Namespace, df: Array) -> Array:
    """Return entropy - E log|w| of StudentT(df), minus entropy - E log|w| of a Gaussian.

    The result is J(df/2) - J((df + 1)/2) with J = `gamma_entropy`, and tends to 0 as df -> inf.
    """
    one = constant(xp, df, 1.0)
    t = 1.0 / (1.0 + df)
    small = df < 1.0
    inner = xp.where(small, df, one)
    logarithm = xp.where(
        small, xp.log1p(inner) - xp.log(inner), xp.log1p(1.0 / xp.where(small, one, df))
    )
    return logarithm - t * _tabulated(xp, "student", t)


ANALYTIC: dict[str, Callable[..., Array]] = {
    "cauchy": cauchy,
    "gamma_entropy": gamma_entropy,
    "student": student,
}
