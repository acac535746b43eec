"""The public functions of groups of weights."""

from __future__ import annotations

from typing import Any

from .._convention import ZERO_AT_INFINITY
from . import _evaluation


def neg_kl_vector(
    log_alpha: Any,
    k: float,
    *,
    zero_at: float = ZERO_AT_INFINITY,
    log_c: float | None = None,
    reduction: str = "none",
) -> Any:
    """-KL(q || p) of a group of k weights, p(w) = C/|w|^k: *maximise* it (ELBO sign).

    The posterior is q(w) = N(mu, sigma^2 I) in k dimensions. With alpha = sigma^2/|mu|^2, sigma^2
    the variance of *one* weight, and u = 1/(2 alpha) = exp(-log_alpha)/2, in nats::

        -KL = constant - F_k(u),    F_k(u) = u 2F2(1, 1; k/2+1, 2; -u)

    E log|w| is that of a noncentral chi-squared variable [1]_. k = 1 is `logunif_kl.neg_kl`, which
    is faster and more accurate, and k = 2 is `neg_kl_complex` at twice this alpha.

    Parameters
    ----------
    log_alpha : array_like or array
        The logarithm of alpha for each group, of any shape and type that `neg_kl_complex` takes.
    k : float
        The number of weights in a group, from 0.5 to 10000; one number, an integer or not.
    zero_at : float, optional
        The alpha at which -KL is to vanish: ``inf`` by default.
    log_c : float, optional
        The logarithm of the prior's C, in place of `zero_at`. The constant is then
        k/2 (1 + log(pi) - psi(k/2)) + log(C), with the digamma function psi.
    reduction : {"none", "sum", "mean"}, optional
        What to return.

    Returns
    -------
    array or scalar
        Of the shape, type and library of `log_alpha`: one divergence for each group. NaN is
        returned only where NaN was given.

    Raises
    ------
    TypeError
        As for `neg_kl_complex`, and if `k` is not a real number.
    ValueError
        As for `neg_kl_complex`, and if `k` is outside of its range.

    Notes
    -----
    Up to u = max(45, k) the divergence is a quadrature of 64 positive terms, for k < 2 of 127;
    beyond it is a series in 1/u. An element costs as many exponentials.
    `logunif_kl.isotropic.ACCURACY` lists the worst errors found in float64. For a tensor it can be
    differentiated any number of times in log alpha, and not in k.

    References
    ----------
    .. [1] Lapidoth, Moser, "Capacity bounds via duality with applications to multiple-antenna
       systems on flat-fading channels", IEEE Trans. Inf. Theory 49(10) (2003), appendix X.

    Examples
    --------
    >>> import logunif_kl as lk
    >>> round(float(lk.neg_kl_vector(0.0, 1)), 12), round(float(lk.neg_kl_vector(0.0, 9)), 12)
    (-0.426685604296, -0.478382580186)
    """
    return _evaluation.of_vector("neg_kl_vector", k, zero_at, log_c, reduction, 0, log_alpha)


def neg_kl_vector_grad(log_alpha: Any, k: float) -> Any:
    """Compute the derivative of `neg_kl_vector` in log alpha.

    With u = exp(-log_alpha)/2 and Kummer's function M::

        d(-KL)/d log_alpha = u F_k'(u) = u M(1; k/2+1; -u)

    It does not depend on the constant, and tends to k/2 as log_alpha -> -inf.

    Parameters
    ----------
    log_alpha : array_like or array
        As for `neg_kl_vector`.
    k : float
        The number of weights in a group, as for `neg_kl_vector`.

    Returns
    -------
    array or scalar
        Of the shape, type and library of `log_alpha`. NaN is returned only where NaN was given.
        `logunif_kl.isotropic.ACCURACY` lists the worst errors found.

    Raises
    ------
    TypeError, ValueError
        As for `neg_kl_vector`.

    Examples
    --------
    >>> import logunif_kl as lk
    >>> round(float(lk.neg_kl_vector_grad(0.0, 9)), 12)
    0.457821880844
    """
    return _evaluation.of_vector("neg_kl_vector_grad", k, None, None, "none", 1, log_alpha)
