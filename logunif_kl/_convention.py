"""Compute the additive constant of -KL from ``zero_at`` or ``log_c``.

The prior p(w) = C/|w| is improper, so -KL is defined up to a constant, which the caller chooses.
With u = 1/(2 alpha), F(u) = `logunif_kl.special.kl_gap` and the digamma function psi,

    zero_at = a:    -KL = F(1/(2 a)) - F(u)                              (zero at alpha = a)
    log_c = log C:  -KL = 1/2 log(pi e) - 1/2 psi(1/2) + log C - F(u)    (Hron et al. 2017, Eq. 1)

Either choice adds one number to -F(u). ``zero_at=inf`` adds 0.
"""

from __future__ import annotations

import math
from collections.abc import Callable
from enum import ReprEnum
from functools import lru_cache, wraps
from operator import neg
from typing import Any, NamedTuple, TypeVar, cast

import numpy as np

from ._errors import real_number, shown

Function = TypeVar("Function", bound=Callable[..., Any])


class _Default(float, ReprEnum):
    """The type of the default of ``zero_at``, an infinity that is not the object ``math.inf``.

    The functions test ``zero_at is ZERO_AT_INFINITY``, and an enum member stays the same object
    when it is pickled, copied or traced. torch.compile compares plain floats by value, and rejects
    an instance of a plain subclass of float as the default of a method that it traces.
    """

    ZERO_AT_INFINITY = math.inf

    __repr__ = float.__repr__


ZERO_AT_INFINITY = _Default.ZERO_AT_INFINITY

# (log(pi e) - psi(1/2))/2 = (1 + log pi + gamma)/2 + log 2 with Euler's constant gamma, rounded
# once; tests/test_convention.py derives this number.
PROPER_CONSTANT = 2.0541199559354117
# The entropy of N(0, 1).
HALF_LOG_2_PI_E = 0.5 + 0.5 * math.log(2.0 * math.pi)
# (gamma + log 2)/2, rounded once: the limit of F(u) - 1/2 log(2 u) as u -> inf, and -E log|z| for
# z ~ N(0, 1).
HALF_GAMMA_LOG_2 = 0.6351814227307391


def additive_constant(zero_at: float = ZERO_AT_INFINITY, log_c: float | None = None) -> float:
    """Compute the constant that is added to -F(u)."""
    if log_c is None:
        if zero_at is ZERO_AT_INFINITY:
            return 0.0
        return _vanishing_at(real_number("zero_at", zero_at))
    if zero_at is not ZERO_AT_INFINITY:
        raise ValueError(
            f"zero_at={shown(zero_at)} and log_c={shown(log_c)} were both given, and each "
            "fixes the constant of -KL: pass only one of them"
        )
    value = real_number("log_c", log_c)
    if not math.isfinite(value):
        raise ValueError(
            f"log_c must be finite, but {shown(log_c)} was given: pass math.log(C), where C "
            "is the constant of the prior"
        )
    return PROPER_CONSTANT + value


class Constants(NamedTuple):
    """The constant that is added to -F(u), and log C. A `log_c` that was given is kept as it is."""

    added: float
    log_c: float


def prior_constants(zero_at: float = ZERO_AT_INFINITY, log_c: float | None = None) -> Constants:
    """Compute the constant to be added to -F(u), and the logarithm of the prior's C."""
    added = additive_constant(zero_at, log_c)
    return Constants(added, added - PROPER_CONSTANT if log_c is None else float(log_c))


def shifted(result: Any, constant: float) -> Any:
    """Add the constant in place to an array of our own. An overflow gives inf without a warning."""
    if constant != 0.0:
        with np.errstate(over="ignore"):
            result += constant
    return result


def positive(neg_kl: Function, example: str, negative: Callable[[Any], Any] = neg) -> Function:
    """Make a KL function from a -KL function, for example ``kl_vector`` from ``neg_kl_vector``."""

    @wraps(neg_kl)
    def kl(*arguments: Any, **options: Any) -> Any:
        return negative(neg_kl(*arguments, **options))

    kl.__name__ = kl.__qualname__ = neg_kl.__name__.removeprefix("neg_")
    kl.__doc__ = f"""KL(q || p), to be *added to a loss*: ``-{neg_kl.__name__}(...)``.

    Parameters, results and errors are the same as for `{neg_kl.__name__}`, except for the sign.

    Examples
    --------
    {example.strip()}
    """
    return cast(Function, kl)


@lru_cache(maxsize=256)
def _vanishing_at(alpha: float) -> float:
    from ._numpy.ufuncs import kl_gap, neg_kl

    if not alpha > 0.0:
        raise ValueError(
            f"zero_at must be a positive alpha = sigma^2/mu^2, or infinity, but {alpha!r} was "
            "given: to let -KL vanish at log_alpha = x, pass math.exp(x)"
        )
    u = 0.5 / alpha
    if u < math.inf:
        return float(kl_gap(u))
    return -float(neg_kl(math.log(alpha)))
