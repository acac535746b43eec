"""Conversions between parametrisations: as arithmetic over a namespace ``xp``, and as ufuncs.

Each formula is accurate where the result is tiny or huge. Its limits are those of IEEE arithmetic.
"""

from __future__ import annotations

import math
from typing import Any

from ._dispatch import Operation
from ._numpy.blocked import BlockedUFunc, in_float64

_LOG2 = math.log(2.0)


def _from_dropout_rate(xp: Any, p: Any) -> Any:
    # Near p = 1/2 the quotient is near 1, and its logarithm loses digits. 2 p - 1 is exact there.
    middle = xp.abs(p - 0.5) < 0.25
    s = xp.where(middle, 2.0 * p - 1.0, xp.zeros_like(p))
    return xp.where(middle, 2.0 * xp.atanh(s), xp.log(p / (1.0 - p)))


def _to_dropout_rate(xp: Any, x: Any) -> Any:
    z = xp.exp(-xp.abs(x))
    return xp.where(x < 0.0, z, xp.ones_like(z)) / (1.0 + z)


def _from_alpha(xp: Any, alpha: Any) -> Any:
    return xp.log(alpha)


def _to_alpha(xp: Any, x: Any) -> Any:
    return xp.exp(x)


def _from_u(xp: Any, u: Any) -> Any:
    doubled = 2.0 * u
    # 0 - log and not -log, which is -0 at u = 1/2.
    return 0.0 - xp.where(xp.isinf(doubled), xp.log(u) + _LOG2, xp.log(doubled))


def _to_u(xp: Any, x: Any) -> Any:
    # exp(-x) leaves the range of the type before exp(-x)/2 does.
    whole = xp.exp(-x)
    half = xp.exp(-0.5 * x)
    return xp.where(xp.isinf(whole), (0.5 * half) * half, 0.5 * whole)


def _from_normal(xp: Any, mu: Any, log_sigma2: Any) -> Any:
    return log_sigma2 - 2.0 * xp.log(xp.abs(mu))


def _to_log_sigma2(xp: Any, x: Any, mu: Any) -> Any:
    return x + 2.0 * xp.log(xp.abs(mu))


def _blocked(name: str, arithmetic: Any, nin: int = 1) -> BlockedUFunc:
    return BlockedUFunc(name, in_float64(arithmetic), module=__name__, nin=nin)


# pickle, and with it dask, finds the functions by these names.
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
