"""Conversions between parametrisations, as arithmetic over a namespace ``xp`` and as ufuncs.

The formulas are accurate for tiny and huge results. At the ends of its domain, a function returns
its limit. Frameworks differentiate both branches of ``where``, and an infinite derivative in the
unused branch would give NaN, so the formulas avoid such derivatives.
"""

from __future__ import annotations

import math
from typing import Any

from ._dispatch import Operation
from ._numpy.blocked import BlockedUFunc, in_float64

_LOG2 = math.log(2.0)


def _from_dropout_rate(xp: Any, p: Any) -> Any:
    # Near p = 1/2, log(p) and log(1 - p) cancel, so use log(p/(1 - p)) = log1p((2 p - 1)/(1 - p))
    # for p > 1/2, and -log1p((1 - 2 p)/p) for p < 1/2. Both numerators are exact.
    one, low, middle = xp.ones_like(p), p < 0.5, xp.abs(p - 0.5) < 0.25
    s = xp.where(low, 1.0 - 2.0 * p, 2.0 * p - 1.0)
    near = xp.log1p(xp.where(middle, s, one) / xp.where(middle, xp.where(low, p, 1.0 - p), one))
    return xp.where(middle, xp.where(low, -near, near), xp.log(p) - xp.log1p(-p))


def _to_dropout_rate(xp: Any, x: Any) -> Any:
    zero, negative = xp.zeros_like(x), x < 0.0
    down = xp.exp(xp.where(negative, x, zero))
    up = xp.exp(-xp.where(negative, zero, x))
    return xp.where(negative, down / (1.0 + down), 1.0 / (1.0 + up))


def _from_alpha(xp: Any, alpha: Any) -> Any:
    return xp.log(alpha)


def _to_alpha(xp: Any, x: Any) -> Any:
    return xp.exp(x)


def _from_u(xp: Any, u: Any) -> Any:
    zero, doubled = xp.zeros_like(u), 2.0 * u
    large = xp.isinf(doubled)
    # Write 0 - log, because -log would be -0 at u = 1/2.
    return (0.0 - xp.log(xp.where(large, u, doubled))) - xp.where(large, zero + _LOG2, zero)


def _to_u(xp: Any, x: Any) -> Any:
    # exp(-x) may overflow where exp(-x)/2 does not. There, multiply exp(-x/2)/2 by exp(-x/2). With
    # no 1/2 in one of the factors, the product would overflow.
    large = xp.isinf(xp.exp(-x))
    first = xp.exp(xp.where(large, -0.5 * x, -x))
    return (0.5 * first) * xp.exp(xp.where(large, -0.5 * x, xp.zeros_like(x)))


def _log_size(xp: Any, mu: Any) -> Any:
    # Write |mu| as a product, because frameworks give abs the derivative 0 at mu = 0, not 1.
    one = xp.ones_like(mu)
    return xp.log(mu * xp.where(mu < 0.0, -one, one))


def _from_normal(xp: Any, mu: Any, log_sigma2: Any) -> Any:
    return log_sigma2 - 2.0 * _log_size(xp, mu)


def _to_log_sigma2(xp: Any, x: Any, mu: Any) -> Any:
    return x + 2.0 * _log_size(xp, mu)


def _blocked(name: str, arithmetic: Any, nin: int = 1) -> BlockedUFunc:
    return BlockedUFunc(name, in_float64(arithmetic), module=__name__, nin=nin)


# pickle, which dask uses, finds the functions by these names.
from_dropout_rate = _blocked("from_dropout_rate", _from_dropout_rate)
to_dropout_rate = _blocked("to_dropout_rate", _to_dropout_rate)
from_alpha = _blocked("from_alpha", _from_alpha)
to_alpha = _blocked("to_alpha", _to_alpha)
from_u = _blocked("from_u", _from_u)
to_u = _blocked("to_u", _to_u)
from_normal = _blocked("from_normal", _from_normal, nin=2)
to_log_sigma2 = _blocked("to_log_sigma2", _to_log_sigma2, nin=2)

FROM_DROPOUT_RATE = Operation(from_dropout_rate, _from_dropout_rate)
TO_DROPOUT_RATE = Operation(to_dropout_rate, _to_dropout_rate)
FROM_ALPHA = Operation(from_alpha, _from_alpha)
TO_ALPHA = Operation(to_alpha, _to_alpha)
FROM_U = Operation(from_u, _from_u)
TO_U = Operation(to_u, _to_u)
FROM_NORMAL = Operation(from_normal, _from_normal)
TO_LOG_SIGMA2 = Operation(to_log_sigma2, _to_log_sigma2)
