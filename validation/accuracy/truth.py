"""The exact functions to about 75 bits, a million points a second.

Power series about many centres, computed with mpmath from

    F'(u) = e^-u sum_k u^k / (k! (2k+1)),    F(u) = e^-u sum_k u^k/k! sum_{j<k} 1/(2j+1),

whose terms are all positive, and continued by the differential equations that F' satisfies in u
and u F' in x = log alpha. Nothing is shared with the kernels or with their coefficients. ``check``
compares the result with rigorous balls; the results there, not this paragraph, are the evidence.

A truth is ``(hi + lo) * 2**scale``, because it may lie far below or above the range of float64.
"""

from __future__ import annotations

from functools import lru_cache
from typing import NamedTuple

import mpmath
import numpy as np
from mpmath import mpf
from numpy.typing import NDArray

from . import doubledouble as dd
from .doubledouble import DD, Array, Taylor

_OCTAVES = (-7, 7)  # the table in u covers 2**-7 <= u < 2**7
_CENTRES = 16  # of each octave
_X_LIMIT = 8  # the table in x covers abs(x) <= 8
_X_STEPS = 16  # to the unit
_FAR = 1e5  # beyond abs(log alpha) of this, exp() is zero for every purpose here


class Truth(NamedTuple):
    """``(hi + lo) * 2**scale``, elementwise; ``hi`` may be infinite or NaN."""

    hi: Array
    lo: Array
    scale: NDArray[np.int64]


def _seeds(u: mpf) -> tuple[mpf, mpf]:
    """F(u) and F'(u) at the working precision."""
    bits = mpmath.mp.prec
    one = 1 << (bits + 40)
    if u > bits:
        step = int(one / (2 * u))
        term, gap, grad, k = one, 0, one, 0
        while term:
            k += 1
            term = ((term * step) >> (bits + 40)) * (2 * k - 1)
            gap -= term // (2 * k)
            grad += term
        log = (mpmath.log(4 * u) + mpmath.euler) / 2
        return log + mpf(gap) / one, mpf(grad) / one / (2 * u)
    # The sums are e^u times the results, the terms below e^u: no carry is lost.
    fixed = int(u * one)
    term, harmonic, gap, grad, k = one, 0, 0, one, 0
    while k < u or term:
        k += 1
        term = ((term * fixed) >> (bits + 40)) // k
        harmonic += one // (2 * k - 1)
        gap += (term * harmonic) >> (bits + 40)
        grad += term // (2 * k + 1)
    decay = mpmath.exp(-u) / one
    return gap * decay, grad * decay


def _about_u(c: mpf, unit: mpf, terms: int) -> list[list[mpf]]:
    """Series of F, F' and F'' about u = c in ``t = (u - c) / unit``."""
    value, first = _seeds(c)
    g = [first]
    for k in range(terms):
        before = g[k - 1] if k else mpf(0)
        right = (1 if k == 0 else 0) - (2 * k + 1 + 2 * c) * g[k] - 2 * before
        g.append(right / (2 * c * (k + 1)))
    gap = [value] + [g[k] / (k + 1) for k in range(terms - 1)]
    hess = [(k + 1) * g[k + 1] for k in range(terms)]
    return [[a * unit**k for k, a in enumerate(row)] for row in (gap, g[:terms], hess)]


def _about_x(c: mpf, terms: int) -> list[list[mpf]]:
    """Series of -F, u F' and its derivative about log alpha = c."""
    u0 = mpmath.exp(-c) / 2
    u = [u0 * (-1) ** k / mpmath.factorial(k) for k in range(terms + 2)]
    gap, grad = _seeds(u0)
    w = [u0 * grad]
    for k in range(terms + 1):
        product = mpmath.fsum(u[j] * w[k - j] for j in range(k + 1))
        w.append((product - (u[k] + w[k]) / 2) / (k + 1))
    value = [-gap] + [w[k] / (k + 1) for k in range(terms - 1)]
    hess = [(k + 1) * w[k + 1] for k in range(terms + 1)]
    return [value, w[:terms], hess]


def _hess_zero() -> mpf:
    """Find the log alpha at which the second derivative changes sign, near -1.507."""

    def hess(x: mpf) -> mpf:
        u = mpmath.exp(-x) / 2
        g = _seeds(u)[1]
        return 1 + g - 2 * u * g

    return mpmath.findroot(hess, (mpf("-1.51"), mpf("-1.50")), solver="anderson", tol=1e-150)


class _Tables:
    """Every series, built once a process."""

    def __init__(self) -> None:
        with mpmath.workprec(600):
            rows = [
                _about_u(
                    mpmath.ldexp(1 + (j + mpf(0.5)) / _CENTRES, e), mpmath.ldexp(mpf(1), e), 20
                )
                for e in range(*_OCTAVES)
                for j in range(_CENTRES)
            ]
            self.u = [Taylor([row[i] for row in rows], 6) for i in range(3)]

            rows = [
                _about_x(mpf(j) / _X_STEPS, 20)
                for j in range(-_X_LIMIT * _X_STEPS, _X_LIMIT * _X_STEPS + 1)
            ]
            self.x = [Taylor([row[i] for row in rows], 6) for i in range(3)]

            # F' = sum (-2u)^k / (2k+1)!!
            g = [(-2) ** k / mpmath.fac2(2 * k + 1) for k in range(18)]
            small = [
                [g[k] / (k + 1) for k in range(16)],  # F / u
                g[:16],
                [(k + 1) * g[k + 1] for k in range(16)],
                [-(k + 1) * g[k] for k in range(16)],  # the derivative in x, over u
            ]
            self.small = [Taylor([row], 6) for row in small]

            # 2u F' = sum (2k-1)!! y^k, y = 1/(2u) = alpha, here in terms of 256 y
            a = [mpmath.fac2(2 * k - 1) / mpf(256) ** k for k in range(28)]
            large = [
                [a[k] / (2 * k) if k else mpf(0) for k in range(26)],  # log(4 e^gamma u)/2 - F
                a[:26],
                [-2 * (k + 1) * a[k] for k in range(26)],  # F'' / y**2
                [128 * (k + 1) * a[k + 1] for k in range(26)],  # the derivative in x, over y
            ]
            self.large = [Taylor([row], 9) for row in large]

            self.large_constant = dd.constant(mpmath.log(4) / 2 + mpmath.euler / 2)
            self.x_constant = dd.constant((mpmath.log(2) + mpmath.euler) / 2)
            zero = _hess_zero()
            self.zero = dd.constant(zero, 3)
            self.by_zero = Taylor([_about_x(zero, 20)[2][1:]], 6)


@lru_cache(maxsize=1)
def tables() -> _Tables:
    """Every series, built on first use (about a second)."""
    return _Tables()


def hess_zero() -> tuple[float, ...]:
    """Return the zero of ``neg_kl_hess`` as an unevaluated sum."""
    return tables().zero


def _zeros(a: Array) -> Array:
    return np.zeros_like(a)


def _ldexp(a: DD, e: NDArray[np.int64]) -> DD:
    e = np.clip(e, -4000, 4000).astype(np.int32)
    return DD(np.ldexp(a.hi, e), np.ldexp(a.lo, e))


class _Scaled(NamedTuple):
    """``(hi + lo) * 2**scale`` with ``hi`` in [1, 2) or zero."""

    value: DD
    scale: NDArray[np.int64]


def _normalised(value: DD, scale: NDArray[np.int64]) -> _Scaled:
    _, e = np.frexp(value.hi)
    e = np.where(value.hi == 0, 0, e.astype(np.int64) - 1)
    return _Scaled(_ldexp(value, -e), scale + e)


def _blank(shape: tuple[int, ...]) -> Truth:
    return Truth(np.zeros(shape), np.zeros(shape), np.zeros(shape, dtype=np.int64))


def _put(out: Truth, mask: NDArray[np.bool_], value: DD, scale: NDArray[np.int64] | int) -> None:
    out.hi[mask], out.lo[mask], out.scale[mask] = value.hi, value.lo, scale


def _of_u(which: int, u: _Scaled) -> Truth:
    """F, F', F'' or u F' (``which`` = 0 to 3) of positive, finite, normalised u."""
    t = tables()
    e = u.scale
    out = _blank(e.shape)

    low = e < _OCTAVES[0]
    if low.any():
        m, em = DD(u.value.hi[low], u.value.lo[low]), e[low]
        series = t.small[which if which < 3 else 1](_ldexp(m, em))
        if which in (0, 3):
            _put(out, low, dd.mul(series, m), em)
        else:
            _put(out, low, series, 0)

    middle = (e >= _OCTAVES[0]) & (e < _OCTAVES[1])
    if middle.any():
        m, em = DD(u.value.hi[middle], u.value.lo[middle]), e[middle]
        j = np.clip(((m.hi - 1) * _CENTRES).astype(np.intp), 0, _CENTRES - 1)
        centre = 1 + (j + 0.5) / _CENTRES
        index = (em - _OCTAVES[0]) * _CENTRES + j
        near = dd.fast_two_sum(m.hi - centre, m.lo)
        series = t.u[which if which < 3 else 1](near, index)
        if which == 3:
            _put(out, middle, dd.mul(series, m), em)
        else:
            _put(out, middle, series, 0)

    high = e >= _OCTAVES[1]
    if high.any():
        m, em = DD(u.value.hi[high], u.value.lo[high]), e[high]
        one = DD(np.ones_like(m.hi), _zeros(m.hi))
        inverse = dd.div(one, m)  # y = inverse * 2**(-e-1)
        series = t.large[which if which < 3 else 1](_ldexp(inverse, 7 - em))
        if which == 0:
            log = dd.log(m, em)
            value = dd.add(DD(log.hi / 2, log.lo / 2), DD(-series.hi, -series.lo))
            hi, lo = t.large_constant
            constant = DD(np.full_like(value.hi, hi), np.full_like(value.hi, lo))
            _put(out, high, dd.add(value, constant), 0)
        elif which == 1:
            _put(out, high, dd.mul(series, inverse), -em - 1)
        elif which == 2:
            _put(out, high, dd.mul(series, dd.mul(inverse, inverse)), -2 * em - 2)
        else:
            _put(out, high, series, -1)
    return out


def _of_x(which: int, x: Array) -> Truth:
    """-F, u F' or its derivative (``which`` = 0 to 2) at finite log alpha."""
    t = tables()
    out = _blank(x.shape)

    middle = np.abs(x) <= _X_LIMIT
    if middle.any():
        xm = x[middle]
        j = np.rint(xm * _X_STEPS)
        near = DD(xm - j / _X_STEPS, _zeros(xm))
        _put(out, middle, t.x[which](near, j.astype(np.intp) + _X_LIMIT * _X_STEPS), 0)
        if which == 2:
            z0, z1, z2 = t.zero
            beside = middle & (np.abs(x - z0) < 1 / 32)
            if beside.any():
                s = dd.two_sum(x[beside] - z0, np.full(int(beside.sum()), -z1))
                distance = dd.fast_two_sum(s.hi, s.lo - z2)
                _put(out, beside, dd.mul(t.by_zero(distance), distance), 0)

    right = x > _X_LIMIT
    if right.any():
        m, k = dd.exp(-np.minimum(x[right], _FAR))
        series = t.small[(0, 1, 3)[which]](_ldexp(m, k - 1))
        value = dd.mul(series, m)
        if which == 0:
            value = DD(-value.hi, -value.lo)
        _put(out, right, value, k - 1)

    left = x < -_X_LIMIT
    if left.any():
        xl = x[left]
        m, k = dd.exp(np.maximum(xl, -_FAR))
        series = t.large[(0, 1, 3)[which]](_ldexp(m, k + 8))
        if which == 0:
            hi, lo = t.x_constant
            constant = DD(np.full_like(xl, -hi), np.full_like(xl, -lo))
            value = dd.add(DD(xl / 2, _zeros(xl)), constant)
            _put(out, left, dd.add(value, series), 0)
        elif which == 1:
            _put(out, left, series, -1)
        else:
            _put(out, left, dd.mul(series, m), k)
    return out


_U_NAMES = ("kl_gap", "kl_gap_grad", "kl_gap_hess")
_X_NAMES = ("neg_kl", "neg_kl_grad", "neg_kl_hess")
_U_AT_INF = (np.inf, 0.0, -0.0)
_X_AT_INF = (-0.0, 0.0, -0.0)
_X_AT_MINUS_INF = (-np.inf, 0.5, 0.0)


def _unary_u(which: int, u: Array) -> Truth:
    out = _blank(u.shape)
    ordinary = (u > 0) & (u < np.inf)
    m, e = np.frexp(u[ordinary])
    part = _of_u(which, _Scaled(DD(2 * m, np.zeros_like(m)), e.astype(np.int64) - 1))
    _put(out, ordinary, DD(part.hi, part.lo), part.scale)
    zero = u == 0
    third = -2.0 / 3.0
    out.hi[zero] = (0.0, 1.0, third)[which]
    out.lo[zero] = (0.0, 0.0, third / 2.0**54)[which]  # -2/3 = third * (1 + 2**-54 + ...)
    out.hi[u == np.inf] = _U_AT_INF[which]
    out.hi[~((u >= 0) & (u <= np.inf))] = np.nan
    return out


def _unary_x(which: int, x: Array) -> Truth:
    out = _blank(x.shape)
    ordinary = np.isfinite(x)
    part = _of_x(which, x[ordinary])
    _put(out, ordinary, DD(part.hi, part.lo), part.scale)
    out.hi[x == np.inf] = _X_AT_INF[which]
    out.hi[x == -np.inf] = _X_AT_MINUS_INF[which]
    out.hi[np.isnan(x)] = np.nan
    return out


def _normal(which: int, mu: Array, log_sigma2: Array) -> Truth:
    """Return the value of ``neg_kl_normal`` or its derivative in mu or log sigma^2."""
    mu, log_sigma2 = np.broadcast_arrays(mu, log_sigma2)
    out = _blank(mu.shape)
    ordinary = np.isfinite(mu) & (mu != 0) & np.isfinite(log_sigma2)
    m, e = np.frexp(mu[ordinary])
    e = e.astype(np.int64)
    # Beyond 1e5 every result has reached its limit to far more than 75 bits, or has none in range.
    power, k = dd.exp(-np.clip(log_sigma2[ordinary], -_FAR, _FAR))
    u = _normalised(dd.mul(dd.two_prod(m, m), power), 2 * e + k - 1)
    if which == 0:
        part = _of_u(0, u)
        if (far := log_sigma2[ordinary] < -_FAR).any():
            # Here the logarithm is wanted of something that exp() cannot reach.
            part = _far_value(part, far, m, e, log_sigma2[ordinary])
        _put(out, ordinary, DD(-part.hi, -part.lo), part.scale)
    else:
        part = _of_u(3, u)
        if which == 1:
            value = dd.div(DD(part.hi, part.lo), DD(m, np.zeros_like(m)))
            _put(out, ordinary, DD(-value.hi, -value.lo), part.scale - e + 1)
        else:
            _put(out, ordinary, DD(part.hi, part.lo), part.scale)

    undefined = ((mu == 0) & (log_sigma2 == -np.inf)) | (np.isinf(mu) & (log_sigma2 == np.inf))
    undefined |= np.isnan(mu) | np.isnan(log_sigma2)
    pruned = ~undefined & (np.isinf(mu) | (log_sigma2 == -np.inf))
    at_pruned = np.broadcast_to((-np.inf, -2 * 0.5 / mu[pruned], 0.5)[which], mu[pruned].shape)
    out.hi[pruned] = at_pruned
    out.hi[undefined] = np.nan
    return out


def _far_value(part: Truth, far: NDArray[np.bool_], m: Array, e: Array, ls: Array) -> Truth:
    mantissa = DD(np.abs(m[far]), np.zeros(int(far.sum())))
    log_mu = dd.log(mantissa, e[far].astype(np.int64))
    # F = (log 2 + gamma - x)/2 with x = log sigma^2 - 2 log|mu|.
    hi, lo = tables().x_constant
    total = dd.add(log_mu, DD(-ls[far] / 2, np.zeros_like(log_mu.hi)))
    total = dd.add(total, DD(np.full_like(log_mu.hi, hi), np.full_like(log_mu.hi, lo)))
    _put(part, far, total, 0)
    return part


def truth(name: str, *args: Array) -> Truth:
    """Return the exact values of a function at float64 arguments.

    ``name`` is that of a ufunc, and for ``neg_kl_normal`` also ``neg_kl_normal.dmu`` or
    ``neg_kl_normal.dlog_sigma2``.
    """
    arrays = [np.atleast_1d(np.asarray(a, dtype=np.float64)) for a in args]
    with np.errstate(all="ignore"):
        if name in _U_NAMES:
            return _unary_u(_U_NAMES.index(name), *arrays)
        if name in _X_NAMES:
            return _unary_x(_X_NAMES.index(name), *arrays)
        outputs = ("neg_kl_normal", "neg_kl_normal.dmu", "neg_kl_normal.dlog_sigma2")
        return _normal(outputs.index(name), *arrays)
