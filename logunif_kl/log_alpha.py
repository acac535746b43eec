"""Conversions between log alpha and other parametrisations.

alpha = sigma^2/mu^2 is a ratio of *variances*; its square root is sigma/|mu|. The other
parametrisations are:

===============  ======================================  =====================================
dropout rate p   p = alpha/(1 + alpha)                   Bernoulli noise of the same variance
u                u = mu^2/(2 sigma^2) = 1/(2 alpha)      the argument of `logunif_kl.special`
mu, log sigma^2  log alpha = log sigma^2 - 2 log|mu|     the additive parametrisation
===============  ======================================  =====================================

Every function is elementwise and broadcasts. A function takes what `logunif_kl.neg_kl` takes,
tensors of frameworks included, and returns arrays of the same library and type.
The result for a tensor is on the same device and can be differentiated. NumPy computes float16 and
float32 in float64; the frameworks compute the half types in float32. At the ends of its domain a
function returns its limits; outside the domain it returns NaN. No floating-point warning is raised.
Arguments of a wrong type raise `TypeError`, as for `logunif_kl.neg_kl`.

``neg_kl_normal(mu, log_sigma2)`` is more accurate than ``neg_kl(from_normal(mu, log_sigma2))``,
because it needs no logarithm of mu.
"""

from __future__ import annotations

from typing import Any

from . import _conversions as _c
from ._dispatch import converted as _converted

__all__ = [
    "from_alpha",
    "from_dropout_rate",
    "from_normal",
    "from_u",
    "to_alpha",
    "to_dropout_rate",
    "to_log_sigma2",
    "to_u",
]


def from_dropout_rate(p: Any) -> Any:
    """Log alpha of a dropout rate: log(p/(1 - p)).

    Gaussian dropout with this alpha has the mean and the variance of binary dropout that drops
    with probability `p` and rescales (Kingma et al. 2015, section 3; Wang and Manning 2013).

    Parameters
    ----------
    p : array_like or array
        Dropout rates in [0, 1].

    Returns
    -------
    array or scalar
        -inf at 0, 0 at 1/2, inf at 1; NaN outside [0, 1]. Accurate to a few units in the last
        place, even near 1/2, where the result is close to 0.

    Examples
    --------
    >>> import logunif_kl as lk
    >>> lk.log_alpha.from_dropout_rate([0.0, 0.5, 1.0])
    array([-inf,   0.,  inf])
    >>> float(lk.neg_kl(lk.log_alpha.from_dropout_rate(0.5)))
    -0.4266856042960448
    """
    return _converted(_c.FROM_DROPOUT_RATE, p=p)


def to_dropout_rate(log_alpha: Any) -> Any:
    """Dropout rate of a log alpha: alpha/(1 + alpha), the inverse of `from_dropout_rate`.

    Parameters
    ----------
    log_alpha : array_like or array
        Any real numbers, infinities included.

    Returns
    -------
    array or scalar
        In [0, 1], accurate to a few units in the last place at both ends.

    Examples
    --------
    >>> import logunif_kl as lk
    >>> float(lk.log_alpha.to_dropout_rate(0.0))
    0.5
    """
    return _converted(_c.TO_DROPOUT_RATE, log_alpha=log_alpha)


def from_alpha(alpha: Any) -> Any:
    """Log alpha of alpha = sigma^2/mu^2, a ratio of variances.

    Parameters
    ----------
    alpha : array_like or array
        In [0, inf].

    Returns
    -------
    array or scalar
        -inf at 0, inf at inf, NaN for alpha < 0.

    Examples
    --------
    >>> import logunif_kl as lk
    >>> float(lk.log_alpha.from_alpha(1.0))
    0.0
    """
    return _converted(_c.FROM_ALPHA, alpha=alpha)


def to_alpha(log_alpha: Any) -> Any:
    """Alpha = sigma^2/mu^2 from its logarithm.

    Parameters
    ----------
    log_alpha : array_like or array
        Any real numbers, infinities included.

    Returns
    -------
    array or scalar
        In [0, inf].

    Examples
    --------
    >>> import logunif_kl as lk
    >>> float(lk.log_alpha.to_alpha(0.0))
    1.0
    """
    return _converted(_c.TO_ALPHA, log_alpha=log_alpha)


def from_u(u: Any) -> Any:
    """Log alpha of u = mu^2/(2 sigma^2): -log(2 u).

    Section 4 of Hron et al. (2017) says u = 1/alpha, but the correct value is 1/(2 alpha).

    Parameters
    ----------
    u : array_like or array
        In [0, inf].

    Returns
    -------
    array or scalar
        inf at 0, 0 at 1/2, -inf at inf, NaN for u < 0.

    Examples
    --------
    >>> import logunif_kl as lk
    >>> lk.log_alpha.from_u([0.0, 0.5])
    array([inf,  0.])
    """
    return _converted(_c.FROM_U, u=u)


def to_u(log_alpha: Any) -> Any:
    """Compute the argument u = exp(-log_alpha)/2 of `logunif_kl.special`, the inverse of `from_u`.

    Parameters
    ----------
    log_alpha : array_like or array
        Any real numbers, infinities included.

    Returns
    -------
    array or scalar
        In [0, inf]. If exp(-log_alpha) overflows but exp(-log_alpha)/2 does not, u is finite.

    Examples
    --------
    >>> import logunif_kl as lk
    >>> float(lk.log_alpha.to_u(0.0))
    0.5
    """
    return _converted(_c.TO_U, log_alpha=log_alpha)


def from_normal(mu: Any, log_sigma2: Any) -> Any:
    """Log alpha of N(mu, sigma^2): log_sigma2 - 2 log|mu|.

    Parameters
    ----------
    mu : array_like or array
        Means, of either sign.
    log_sigma2 : array_like or array
        Logarithms of the variances; broadcast against `mu`.

    Returns
    -------
    array or scalar
        NaN for mu = 0 with log_sigma2 = -inf, and for infinite mu with log_sigma2 = inf. Otherwise
        inf at mu = 0 or log_sigma2 = inf, and -inf at infinite mu or log_sigma2 = -inf. The error
        is a few units in the last place of the larger of log_sigma2 and 2 log|mu|.

    Examples
    --------
    >>> import logunif_kl as lk
    >>> lk.log_alpha.from_normal([1.0, -1.0, 0.0], -3.0)
    array([-3., -3., inf])
    """
    return _converted(_c.FROM_NORMAL, mu=mu, log_sigma2=log_sigma2)


def to_log_sigma2(log_alpha: Any, mu: Any) -> Any:
    """Log sigma^2 of N(mu, sigma^2) with this alpha: log_alpha + 2 log|mu|.

    Parameters
    ----------
    log_alpha : array_like or array
        Any real numbers, infinities included.
    mu : array_like or array
        Means, of either sign; broadcast against `log_alpha`.

    Returns
    -------
    array or scalar
        -inf at mu = 0 for every finite log_alpha; NaN where two limits meet, such as mu = 0 with
        log_alpha = inf.

    Examples
    --------
    >>> import logunif_kl as lk
    >>> float(lk.log_alpha.to_log_sigma2(-3.0, 1.0))
    -3.0
    """
    return _converted(_c.TO_LOG_SIGMA2, log_alpha=log_alpha, mu=mu)
