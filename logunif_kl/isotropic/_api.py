"""The public functions for complex weights and for groups of weights."""

from __future__ import annotations

from typing import Any

from .._convention import ZERO_AT_INFINITY, positive
from .._isotropic import dimensions
from ._evaluation import of_log_alpha, of_normal


def neg_kl_complex(
    log_alpha: Any,
    *,
    zero_at: float = ZERO_AT_INFINITY,
    log_c: float | None = None,
    reduction: str = "none",
) -> Any:
    r"""-KL(q || p) of a complex weight, for p(w) = C/|w|^2: *maximise* it (ELBO sign).

    The posterior is q(w) = CN(mu, sigma^2), a circular complex Gaussian with E|w - mu|^2 =
    sigma^2. With alpha = sigma^2/|mu|^2, u = 1/alpha = exp(-log_alpha), Euler's constant gamma and
    the exponential integral E1, in nats ([1]_, [2]_ 6.2.4):

    .. math::

        -\mathrm{KL} = \mathrm{constant} - \mathrm{Ein}(u), \qquad
        \mathrm{Ein}(u) = \gamma + \log u + E_1(u)

    This is `neg_kl_vector` with k = 2. The alpha of `neg_kl_vector` uses the variance of one
    coordinate, sigma^2/2, so ``neg_kl_complex(x)`` is ``neg_kl_vector(x - log(2), 2)``.

    Parameters
    ----------
    log_alpha : array_like or array
        The logarithm of alpha, of any shape and type that `logunif_kl.neg_kl` takes: a number, an
        array of NumPy, dask, xarray, pandas or an array-API namespace, or a tensor of a framework
        other than TensorFlow.
    zero_at : float, optional
        The alpha at which -KL vanishes: ``inf`` by default, so that -KL is negative elsewhere.
    log_c : float, optional
        The logarithm of the prior's C, instead of `zero_at`. The constant is then 1 + log(pi) +
        gamma + log(C).
    reduction : {"none", "sum", "mean"}, optional
        What to return: the elements, their sum or their mean.

    Returns
    -------
    array or scalar
        With the shape, type and library of `log_alpha`. The result is the constant at
        ``log_alpha=inf``, -inf at ``log_alpha=-inf``, and NaN only where NaN was given.

    Raises
    ------
    TypeError
        As for `logunif_kl.neg_kl`, and for a tensor of TensorFlow.
    ValueError
        As for `logunif_kl.neg_kl`.

    See Also
    --------
    kl_complex : the same with the other sign, to be added to a loss.
    neg_kl_complex_normal : the same from the mean and the variance.
    neg_kl_complex_grad, neg_kl_complex_hess : the first two derivatives.

    Notes
    -----
    Nothing is clipped or sampled. Types below float64 are computed in float64 and rounded once,
    except in JAX, which computes them in float32. `logunif_kl.isotropic.ACCURACY` lists the worst
    errors found with the constant 0. For a tensor, the function can be differentiated any number of
    times.

    References
    ----------
    .. [1] Nazarov, Burnaev, "Bayesian Sparsification Methods for Deep Complex-valued Networks"
       (2020). Their penalty is KL of this posterior, and contains log(u) - Ei(-u).
    .. [2] Digital Library of Mathematical Functions, https://dlmf.nist.gov/6.2.

    Examples
    --------
    >>> import numpy as np
    >>> import logunif_kl as lk
    >>> float(lk.neg_kl_complex(0.0))
    -0.7965995992970532
    >>> lk.neg_kl_complex(np.array([-np.inf, -8.0, 2.0]))
    array([       -inf, -8.57721566, -0.13089066])
    """
    return of_log_alpha(log_alpha, None, 0, zero_at, log_c, reduction)


def neg_kl_complex_grad(log_alpha: Any) -> Any:
    r"""Compute the derivative of `neg_kl_complex` in log alpha.

    With u = exp(-log_alpha), by differentiating Ein (DLMF 6.2.3):

    .. math::

        \frac{d(-\mathrm{KL})}{d \log\alpha} = 1 - e^{-u}

    The derivative does not depend on the constant, and falls from 1 at ``log_alpha=-inf`` to 0 at
    ``inf``. Parameters, results and errors are otherwise as for `neg_kl_complex`.

    Examples
    --------
    >>> import logunif_kl as lk
    >>> float(lk.neg_kl_complex_grad(0.0))
    0.6321205588285577
    """
    return of_log_alpha(log_alpha, None, 1)


def neg_kl_complex_hess(log_alpha: Any) -> Any:
    r"""Compute the second derivative of `neg_kl_complex` in log alpha.

    With u = exp(-log_alpha):

    .. math::

        \frac{d^2(-\mathrm{KL})}{d (\log\alpha)^2} = -u e^{-u}

    The derivative is 0 at both infinities. Parameters, results and errors are otherwise as for
    `neg_kl_complex`.

    Examples
    --------
    >>> import logunif_kl as lk
    >>> float(lk.neg_kl_complex_hess(0.0))
    -0.36787944117144233
    """
    return of_log_alpha(log_alpha, None, 2)


def neg_kl_complex_normal(
    mu: Any,
    log_sigma2: Any,
    *,
    zero_at: float = ZERO_AT_INFINITY,
    log_c: float | None = None,
    reduction: str = "none",
) -> Any:
    r"""-KL(q || p) of CN(mu, sigma^2), from mu and log sigma^2: *maximise* it (ELBO sign).

    With Ein and the constant as for `neg_kl_complex`:

    .. math::

        -\mathrm{KL} = \mathrm{constant} - \mathrm{Ein}(u), \qquad
        u = \frac{\lvert\mu\rvert^2}{\sigma^2}, \qquad \sigma^2 = \mathrm{E} \lvert w - \mu \rvert^2

    No intermediate value overflows or underflows unless u does, and the result is exact at mu = 0.

    Parameters
    ----------
    mu : array_like or array
        Complex means, or the moduli of means. Complex means may be Python or NumPy numbers, NumPy
        arrays or tensors of PyTorch or JAX. Arrays of array-API namespaces must be real. Tensors of
        other frameworks raise TypeError.
    log_sigma2 : array_like or array
        The real logarithms of the weights' variances. The two arguments are broadcast.
    zero_at, log_c, reduction
        As for `neg_kl_complex`.

    Returns
    -------
    array or scalar
        Real, with the broadcast shape, in the real type to which NumPy or the framework promotes
        both arguments. NaN where mu = 0 and log_sigma2 = -inf, where mu is infinite and log_sigma2
        = inf, and where NaN was given.

    Raises
    ------
    TypeError
        As for `logunif_kl.neg_kl_normal`. Also if `log_sigma2` is complex, or if complex means are
        of a library not named above.
    ValueError
        As for `logunif_kl.neg_kl_normal`.

    Notes
    -----
    PyTorch returns the derivative in a complex mu as d/d re + i d/d im, and JAX returns the
    conjugate. Each framework uses this convention for all functions of a complex argument.

    Examples
    --------
    >>> import logunif_kl as lk
    >>> float(lk.neg_kl_complex_normal(0.6 + 0.8j, 0.0))
    -0.7965995992970532
    >>> float(lk.neg_kl_complex_normal(1.0, 0.0))
    -0.7965995992970532
    """
    return of_normal(mu, log_sigma2, zero_at, log_c, reduction)


def neg_kl_vector(
    log_alpha: Any,
    k: float,
    *,
    zero_at: float = ZERO_AT_INFINITY,
    log_c: float | None = None,
    reduction: str = "none",
) -> Any:
    r"""-KL(q || p) of a group of k weights, for p(w) = C/|w|^k: *maximise* it (ELBO sign).

    The posterior is q(w) = N(mu, sigma^2 I) in k dimensions, so sigma^2 is the variance of *one*
    weight. With alpha = sigma^2/|mu|^2 and u = 1/(2 alpha) = exp(-log_alpha)/2, in nats:

    .. math::

        -\mathrm{KL} = \mathrm{constant} - F_k(u), \qquad
        F_k(u) = u\, {}_2F_2\left(1, 1; \tfrac k2 + 1, 2; -u\right)

    |w|^2/sigma^2 is a noncentral chi-squared variable, and [1]_ gives the expectation of its
    logarithm. For k = 1 use `logunif_kl.neg_kl`, which is faster and more accurate. For k = 2 the
    result is `neg_kl_complex` at twice this alpha.

    Parameters
    ----------
    log_alpha : array_like or array
        The logarithm of alpha for each group, of any shape and type that `neg_kl_complex` takes.
    k : float
        The number of weights in a group: one number from 0.5 to 10000, integer or not.
    zero_at, reduction
        As for `neg_kl_complex`.
    log_c : float, optional
        The logarithm of the prior's C, instead of `zero_at`. The constant is then k/2 (1 + log(pi)
        - psi(k/2)) + log(C), with the digamma function psi.

    Returns
    -------
    array or scalar
        With the shape, type and library of `log_alpha`: one divergence for each group. NaN is
        returned only where NaN was given.

    Raises
    ------
    TypeError
        As for `neg_kl_complex`, and if `k` is not a real number.
    ValueError
        As for `neg_kl_complex`, and if `k` is out of range.

    Notes
    -----
    Up to u = max(45, k), the divergence is computed by a quadrature with 64 positive terms, or 127
    for k < 2. Each term needs an exponential. For larger u, a series in 1/u is used.
    `logunif_kl.isotropic.ACCURACY` lists the worst errors found in float64. For a tensor the
    function can be differentiated any number of times in log alpha, but not in k.

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
    return of_log_alpha(log_alpha, dimensions(k), 0, zero_at, log_c, reduction)


def neg_kl_vector_grad(log_alpha: Any, k: float) -> Any:
    r"""Compute the derivative of `neg_kl_vector` in log alpha.

    With u = exp(-log_alpha)/2 and Kummer's function M:

    .. math::

        \frac{d(-\mathrm{KL})}{d \log\alpha} = u F_k'(u) = u\, M\left(1; \tfrac k2 + 1; -u\right)

    The derivative does not depend on the constant, and tends to k/2 as log_alpha -> -inf.
    Parameters, results and errors are otherwise as for `neg_kl_vector`.

    Examples
    --------
    >>> import logunif_kl as lk
    >>> round(float(lk.neg_kl_vector_grad(0.0, 9)), 12)
    0.457821880844
    """
    return of_log_alpha(log_alpha, dimensions(k), 1)


kl_complex = positive(
    neg_kl_complex,
    """
    >>> import logunif_kl as lk
    >>> float(lk.kl_complex(0.0))
    0.7965995992970532
    """,
)
kl_complex_normal = positive(
    neg_kl_complex_normal,
    """
    >>> import logunif_kl as lk
    >>> float(lk.kl_complex_normal(1j, 0.0))
    0.7965995992970532
    """,
)
kl_vector = positive(
    neg_kl_vector,
    """
    >>> import logunif_kl as lk
    >>> round(float(lk.kl_vector(0.0, 9)), 12)
    0.478382580186
    """,
)
