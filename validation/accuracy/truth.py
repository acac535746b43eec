"""The exact functions to about 75 bits, a million points per second.

The power series of `series` are summed in double-double arithmetic. ``check`` compares the results
with rigorous balls, which is the evidence for their accuracy.

A truth is ``(hi + lo) * 2**scale``, because it may lie far below or above the range of float64.
"""

from typing import NamedTuple

import numpy as np
from numpy.typing import NDArray

from . import doubledouble as dd
from .doubledouble import DD, Array
from .functions import ISOTROPIC
from .series import CENTRES, OCTAVES, X_LIMIT, X_STEPS, tables

_FAR = 1e5  # above this abs(log alpha), exp() counts as zero or infinite


class Truth(NamedTuple):
    """``(hi + lo) * 2**scale``, elementwise; ``hi`` may be infinite or NaN."""

    hi: Array
    lo: Array
    scale: NDArray[np.int64]


def _ldexp(a: DD, e: NDArray[np.int64]) -> DD:
    e = np.clip(e, -4000, 4000).astype(np.int32)
    return DD(np.ldexp(a.hi, e), np.ldexp(a.lo, e))


class _Scaled(NamedTuple):
    """``(hi + lo) * 2**scale`` with ``hi`` in [1, 2) or zero."""

    value: DD
    scale: NDArray[np.int64]


def _blank(shape: tuple[int, ...]) -> Truth:
    return Truth(np.zeros(shape), np.zeros(shape), np.zeros(shape, dtype=np.int64))


def _put(out: Truth, mask: NDArray[np.bool_], value: DD, scale: NDArray[np.int64] | int) -> None:
    out.hi[mask], out.lo[mask], out.scale[mask] = value.hi, value.lo, scale


def _of_u(which: int, u: _Scaled) -> Truth:
    """F, F', F'' or u F' (``which`` = 0 to 3) of positive, finite, normalised u."""
    t = tables()
    e = u.scale
    out = _blank(e.shape)

    low = e < OCTAVES[0]
    if low.any():
        m, em = DD(u.value.hi[low], u.value.lo[low]), e[low]
        series = t.small[which if which < 3 else 1](_ldexp(m, em))
        if which in (0, 3):
            _put(out, low, dd.mul(series, m), em)
        else:
            _put(out, low, series, 0)

    middle = (e >= OCTAVES[0]) & (e < OCTAVES[1])
    if middle.any():
        m, em = DD(u.value.hi[middle], u.value.lo[middle]), e[middle]
        j = np.clip(((m.hi - 1) * CENTRES).astype(np.intp), 0, CENTRES - 1)
        centre = 1 + (j + 0.5) / CENTRES
        index = (em - OCTAVES[0]) * CENTRES + j
        near = dd.fast_two_sum(m.hi - centre, m.lo)
        series = t.u[which if which < 3 else 1](near, index)
        if which == 3:
            _put(out, middle, dd.mul(series, m), em)
        else:
            _put(out, middle, series, 0)

    high = e >= OCTAVES[1]
    if high.any():
        m, em = DD(u.value.hi[high], u.value.lo[high]), e[high]
        one = DD(np.ones_like(m.hi), np.zeros_like(m.hi))
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

    middle = np.abs(x) <= X_LIMIT
    if middle.any():
        xm = x[middle]
        j = np.rint(xm * X_STEPS)
        near = DD(xm - j / X_STEPS, np.zeros_like(xm))
        _put(out, middle, t.x[which](near, j.astype(np.intp) + X_LIMIT * X_STEPS), 0)
        if which == 2:
            z0, z1, z2 = t.zero
            beside = middle & (np.abs(x - z0) < 1 / 32)
            if beside.any():
                s = dd.two_sum(x[beside] - z0, np.full(int(beside.sum()), -z1))
                distance = dd.fast_two_sum(s.hi, s.lo - z2)
                _put(out, beside, dd.mul(t.by_zero(distance), distance), 0)

    right = x > X_LIMIT
    if right.any():
        m, k = dd.exp(-np.minimum(x[right], _FAR))
        series = t.small[(0, 1, 3)[which]](_ldexp(m, k - 1))
        value = dd.mul(series, m)
        if which == 0:
            value = DD(-value.hi, -value.lo)
        _put(out, right, value, k - 1)

    left = x < -X_LIMIT
    if left.any():
        xl = x[left]
        m, k = dd.exp(np.maximum(xl, -_FAR))
        series = t.large[(0, 1, 3)[which]](_ldexp(m, k + 8))
        if which == 0:
            hi, lo = t.x_constant
            constant = DD(np.full_like(xl, -hi), np.full_like(xl, -lo))
            value = dd.add(DD(xl / 2, np.zeros_like(xl)), constant)
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
    mu, log_sigma2 = np.broadcast_arrays(mu, log_sigma2)
    out = _blank(mu.shape)
    ordinary = np.isfinite(mu) & (mu != 0) & np.isfinite(log_sigma2)
    m, e = np.frexp(mu[ordinary])
    e = e.astype(np.int64)
    # Above 1e5 every result equals its limit to far more than 75 bits, or is out of range.
    power, k = dd.exp(-np.clip(log_sigma2[ordinary], -_FAR, _FAR))
    value = dd.mul(dd.two_prod(m, m), power)
    exponent = np.where(value.hi == 0, 0, np.frexp(value.hi)[1].astype(np.int64) - 1)
    u = _Scaled(_ldexp(value, -exponent), 2 * e + k - 1 + exponent)
    if which == 0:
        part = _of_u(0, u)
        if (far := log_sigma2[ordinary] < -_FAR).any():
            # Take the logarithm here, because exp() overflows or underflows.
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
    arrays = [np.atleast_1d(np.asarray(a, dtype=np.float64)) for a in args]
    if name in ISOTROPIC:
        from . import balls  # needs python-flint

        hi, lo, scale = np.array(balls.parts(ISOTROPIC[name], *arrays)).T
        return Truth(hi, lo, scale.astype(np.int64))
    with np.errstate(all="ignore"):
        if name in _U_NAMES:
            return _unary_u(_U_NAMES.index(name), *arrays)
        if name in _X_NAMES:
            return _unary_x(_X_NAMES.index(name), *arrays)
        outputs = ("neg_kl_normal", "neg_kl_normal.dmu", "neg_kl_normal.dlog_sigma2")
        return _normal(outputs.index(name), *arrays)
