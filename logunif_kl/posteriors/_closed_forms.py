"""-KL in closed form, for the distributions of scipy.stats that have one.

J = H(q) - E log|w| is the joint entropy of log|w| and the sign of w. It does not depend on the
scale, so it is a function of the shape parameters and of k = loc/scale. Most rows of the tables
below follow from three facts:

- w -> w^k adds log|k| to J, and w -> 1/w does not change J. The entropy of a Gamma distribution
  therefore gives J for chi, Weibull, inverse gamma, Nakagami, ..., and the entropy of a beta prime
  gives J for F, t, Burr and log-logistic.
- If the posterior is symmetric about 0, w -> |w| lowers J by log 2, the entropy of the sign.
- If log w has a known density (log-normal, log-uniform, Pareto, log-Laplace), J is its entropy.
"""

from __future__ import annotations

import math
from collections.abc import Callable

from scipy import stats

from .._convention import PROPER_CONSTANT
from .._numpy import ufuncs
from ._distribution import Standardised
from ._entropies import (
    EULER,
    beta_entropy,
    beta_prime_entropy,
    gamma_entropy,
    mean_log_exponential,
    mean_log_laplace,
    mean_log_uniform,
)

_LOG_2 = math.log(2.0)
_LOG_2_PI_E = math.log(2.0 * math.pi) + 1.0
_EXPONENTIAL = 1.0 + EULER  # the entropy of log X for X ~ Exp(1)


def _loguniform(a: float, b: float) -> float:
    if b < 2.0 * a:
        return math.log(math.log1p((b - a) / a))
    return math.log(math.log(b / a) if b / a < math.inf else math.log(b) - math.log(a))


# J at loc = 0 as a function of the shape parameters, in SciPy's order.
_CENTRED: dict[str, Callable[..., float]] = {
    # Gamma and its powers
    "gamma": gamma_entropy,
    "erlang": gamma_entropy,
    "chi2": lambda df: gamma_entropy(df / 2.0),
    "invgamma": gamma_entropy,
    "levy": lambda: gamma_entropy(0.5),
    "chi": lambda df: gamma_entropy(df / 2.0) - _LOG_2,
    "rayleigh": lambda: gamma_entropy(1.0) - _LOG_2,
    "maxwell": lambda: gamma_entropy(1.5) - _LOG_2,
    "nakagami": lambda nu: gamma_entropy(nu) - _LOG_2,
    "gengamma": lambda a, c: gamma_entropy(a) - math.log(abs(c)),
    "dgamma": lambda a: gamma_entropy(a) + _LOG_2,
    "gennorm": lambda beta: gamma_entropy(1.0 / beta) - math.log(beta) + _LOG_2,
    "halfgennorm": lambda beta: gamma_entropy(1.0 / beta) - math.log(beta),
    "weibull_min": lambda c: _EXPONENTIAL - math.log(c),
    "weibull_max": lambda c: _EXPONENTIAL - math.log(c),
    "invweibull": lambda c: _EXPONENTIAL - math.log(c),
    "dweibull": lambda c: _EXPONENTIAL - math.log(c) + _LOG_2,
    # ratios of Gammas and their powers
    "betaprime": beta_prime_entropy,
    "f": lambda dfn, dfd: beta_prime_entropy(dfn / 2.0, dfd / 2.0),
    "t": lambda df: beta_prime_entropy(0.5, df / 2.0),
    "burr": lambda c, d: beta_prime_entropy(d, 1.0) - math.log(c),
    "burr12": lambda c, d: beta_prime_entropy(1.0, d) - math.log(c),
    "fisk": lambda c: 2.0 - math.log(c),
    "halfcauchy": lambda: math.log(2.0 * math.pi),
    "beta": beta_entropy,
    "arcsine": lambda: beta_entropy(0.5, 0.5),
    "semicircular": lambda: beta_entropy(0.5, 1.5),
    # log w has a known density
    "lognorm": lambda s: 0.5 * _LOG_2_PI_E + math.log(s),
    "loguniform": _loguniform,
    "pareto": lambda b: 1.0 - math.log(b),
    "powerlaw": lambda a: 1.0 - math.log(a),
    "loglaplace": lambda c: 1.0 + _LOG_2 - math.log(c),
    # for the logistic, E log|w| = log(pi/2) - gamma
    "logistic": lambda: 2.0 + EULER - math.log(0.5 * math.pi),
    "halflogistic": lambda: 2.0 + EULER - math.log(math.pi),
}

# J for any k = loc/scale.
_SHIFTED: dict[str, Callable[[float], float]] = {
    "uniform": lambda k: -mean_log_uniform(k),
    "expon": lambda k: 1.0 - mean_log_exponential(k),
    "laplace": lambda k: 1.0 + _LOG_2 - mean_log_laplace(abs(k)),
    "cauchy": lambda k: math.log(4.0 * math.pi) - math.log(math.hypot(1.0, k)),
}


def closed_form(dist: Standardised) -> tuple[float, float] | None:
    """Return -KL for ``zero_at=inf`` and a bound on its error, or None without a closed form.

    The bound is 64 units, where a unit is 2^-53 times the largest term. In the tests, the functions
    of `_entropies` are off by less than 30 units.
    """
    family = dist.family
    k = dist.loc / dist.scale

    def is_(name: str) -> bool:
        return type(family) is type(getattr(stats, name))

    if is_("norm"):
        value = float(ufuncs.neg_kl_normal_value(dist.loc, 2.0 * math.log(dist.scale)))
        # Rounding log sigma^2 to a double changes u = mu^2/(2 sigma^2): include that error.
        return value, 2.0**-52 * (4.0 * abs(value) + 2.0 * abs(math.log(dist.scale)) + 1.0)
    if is_("halfnorm") and k == 0.0:
        return -_LOG_2, 2.0**-53
    name = family.name
    if name in _SHIFTED and is_(name):
        entropy = _SHIFTED[name](k)
    elif k == 0.0 and name in _CENTRED and is_(name):
        entropy = _CENTRED[name](*dist.shapes)
    elif k == 0.0 and is_("loguniform"):
        entropy = _loguniform(*dist.shapes)
    else:
        return None
    if not math.isfinite(entropy):
        return None
    terms = max(1.0, abs(entropy), *(abs(math.log(abs(s))) for s in dist.shapes if s))
    return entropy - PROPER_CONSTANT, 2.0**-47 * terms
