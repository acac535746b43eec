"""Hron's series: -KL as an expectation under a Poisson law with mean u = 1/(2 alpha).

    F(u) = 1/2 [e^-u sum_k u^k/k! psi(1/2 + k) - psi(1/2)]                          (Eq. 1)

The sum is the mean of psi(1/2 + K), K ~ Poisson(u). It equals E log(eps^2/(2 alpha)),
eps ~ N(1, alpha), because a non-central chi-squared variable is a Poisson mixture of central ones.
For small u the bracket loses digits, because it is the difference of two numbers near -1.96. But
d_k := psi(1/2 + k) - psi(1/2) = sum_(j=1..k) 2/(2j - 1) has no negative term, and d_0 = 0, so a
factor u can be taken out:

    F(u)  = u E[d_(K+1)/(2K + 2)],      u F'(u) = u E[1/(2K + 1)],      K ~ Poisson(u).

Both expectations are means of positive numbers and equal 1 at u = 0, so their relative error is
small for every u. `_poisson` sums them over the k whose probability is not negligible. These are
about 19 sqrt(u) values of k: 10^218 at log_alpha = -1000. Above u = 2^17 (log_alpha = -12.48) an
expansion of the same expectation in 1/u replaces the sum. Three terms of the expansion give double
precision there.
"""

from __future__ import annotations

from functools import lru_cache
from typing import Any

import numpy as np

from .._convention import ZERO_AT_INFINITY
from .._dispatch import formula
from . import _asymptotic, _poisson
from ._method import EVERYWHERE, Declared, Method
from ._operation import method, value

_EXPANSION = _asymptotic.Expansion(_poisson.LARGEST)


@lru_cache(maxsize=1)
def _table() -> np.ndarray:
    """Tabulate d_(k+1)/(2k + 2) for every k up to `_poisson.LAST` (1 MiB)."""
    from scipy.special import psi

    k = np.arange(_poisson.LAST + 1)
    sums = psi(k + 1.5) - psi(0.5)
    sums[:64] = np.cumsum(2.0 / (2 * k[:64] + 1))
    return np.asarray(sums / (2 * k + 2))


def _gap_term(k: np.ndarray) -> np.ndarray:
    return np.asarray(_table()[k])


def _slope_term(k: np.ndarray) -> np.ndarray:
    return 1.0 / (2 * k + 1)


def _expectation(x: np.ndarray, result: np.ndarray, term: _poisson.Weighted) -> np.ndarray:
    """Overwrite `result` by u E[term(K)] where u is at most `_poisson.LARGEST`; return it."""
    u = 0.5 * np.exp(-x)
    within = u <= _poisson.LARGEST
    result[within] = _poisson.mean_times_u(u[within], term)
    return result


def _value(xp: Any, x: Any) -> Any:
    return -_expectation(x, _EXPANSION.gap(xp, x), _gap_term)


def _slope(xp: Any, x: Any) -> Any:
    return _expectation(x, _EXPANSION.slope(xp, x), _slope_term)


_VALUE, _SLOPE = method(_value, _slope, on_host=True)


def series(
    log_alpha: Any,
    *,
    zero_at: float = ZERO_AT_INFINITY,
    log_c: float | None = None,
    dps: int | None = None,
) -> Any:
    r"""-KL(q || p) by Hron's series.

    .. math:: -\mathrm{KL} = \text{constant} - \tfrac12 \Bigl[ e^{-u} \sum_{k=0}^\infty
              \frac{u^k}{k!} \psi(\tfrac12 + k) - \psi(\tfrac12) \Bigr],
              \qquad u = \tfrac12 e^{-\log\alpha}

    for every alpha. The sum runs over the k whose Poisson probability is not negligible.

    Parameters
    ----------
    log_alpha : array_like
        log(sigma^2/mu^2); real, of any shape. With `dps`: a float, an int, an mpf, or a list or
        NumPy array of them, each taken exactly.
    zero_at, log_c : float, optional
        The constant, as in `logunif_kl.neg_kl`.
    dps : int, optional
        The number of decimal digits, 1 to 10,000, for mpmath. Double precision by default.

    Returns
    -------
    array or scalar
        The value, of the shape and floating type of ``log_alpha``. With `dps`, an ``mpmath.mpf``,
        or a NumPy array of such objects, with an error below 10**-dps times the larger of the
        constant and F. The value is NaN for NaN, the constant at inf, and -inf at -inf.

    Raises
    ------
    TypeError
        If ``log_alpha`` does not hold real numbers, or ``dps`` is not an int.
    ValueError
        If ``dps`` is out of range, or if `logunif_kl.neg_kl` would reject `zero_at` or `log_c`.
    OverflowError
        With `dps`, if an mpf larger than 2**4096 is given.

    Notes
    -----
    The sum has about 19 sqrt(u) + 30 terms for u from 0 to 2^17, at most 6,886 at
    log_alpha = -12.48. Below that log_alpha the expansion of the expectation in 1/u replaces the
    sum. It is exact to double precision there, even for u beyond the range of a double. With `dps`
    the sum ends where a term falls below the last digit.

    Worst error 1.0e-15 relative to max(1, abs(-KL)). As alpha -> inf, with the default
    constant, this bound also holds relative to -KL itself. Arrays of other namespaces are converted
    to NumPy on the host.

    References
    ----------
    J. Hron, A. G. de G. Matthews, Z. Ghahramani, "Variational Gaussian Dropout is not Bayesian",
    2017, arXiv:1711.02989, Eq. 1. (Its section 4 writes u = 1/alpha; it is 1/(2 alpha).)

    Examples
    --------
    >>> import mpmath
    >>> import logunif_kl as lk
    >>> print(f"{lk.methods.series(0.0):.14f}")
    -0.42668560429604
    >>> print(mpmath.nstr(lk.methods.series(0.0, dps=30), 30))
    -0.426685604296044805793729568939
    """
    if dps is not None:
        from .arbitrary_precision import precision, series

        return precision.neg_kl(series.gap, log_alpha, zero_at, log_c, dps)
    return value(_VALUE, log_alpha, zero_at, log_c)


def series_grad(log_alpha: Any, *, dps: int | None = None) -> Any:
    r"""Differentiate `series` in log alpha, term by term.

    .. math:: \frac{d(-\mathrm{KL})}{d \log\alpha} = u e^{-u} \sum_{k=0}^\infty
              \frac{u^k}{k!} \frac{1}{2k + 1}

    To derive it, use psi(3/2 + k) - psi(1/2 + k) = 1/(k + 1/2); see the proof of Eq. 3 in [1]_.

    Parameters
    ----------
    log_alpha, dps
        The same as for `series`, which raises the same errors.

    Returns
    -------
    array or scalar
        1/2 at -inf and 0 at inf; see `series`. Worst relative error: 1.0e-15, or 10**-dps.

    References
    ----------
    .. [1] J. Hron, A. G. de G. Matthews, Z. Ghahramani, "Variational Gaussian Dropout is not
       Bayesian", 2017, arXiv:1711.02989, appendix A.

    Examples
    --------
    >>> import logunif_kl as lk
    >>> print(f"{lk.methods.series_grad(0.0):.14f}, exactly {lk.neg_kl_grad(0.0):.14f}")
    0.36238922950354, exactly 0.36238922950354
    """
    if dps is not None:
        from .arbitrary_precision import precision, series

        return precision.neg_kl_grad(series.slope, log_alpha, dps)
    return formula(_SLOPE, log_alpha=log_alpha)


SERIES = Method(
    name="series",
    function=series,
    gradient=series_grad,
    formula="constant - 0.5 (exp(-u) sum_k u^k/k! psi(1/2 + k) - psi(1/2)), u = 1/(2 alpha)",
    equation="Eq. 1",
    citation="Hron, Matthews and Ghahramani 2017, arXiv:1711.02989",
    claims=(Declared(EVERYWHERE, 1e-15, gradient=1e-15),),
    constant="that of the exact value",
    outside="it has no outside; below log_alpha = -12.48 its expansion in 1/u takes over",
    kind="numerical",
)
