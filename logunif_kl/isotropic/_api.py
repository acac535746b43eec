"""The public functions of complex weights."""

from __future__ import annotations

from typing import Any

from .._convention import ZERO_AT_INFINITY
from . import _evaluation


def neg_kl_complex(
    log_alpha: Any,
    *,
    zero_at: float = ZERO_AT_INFINITY,
    log_c: float | None = None,
    reduction: str = "none",
) -> Any:
    """-KL(q || p) of a complex weight, p(w) = C/|w|^2: *maximise* it (ELBO sign).

    The posterior is q(w) = CN(mu, sigma^2), a circular complex Gaussian with E|w - mu|^2 =
    sigma^2. With alpha = sigma^2/|mu|^2, u = 1/alpha = exp(-log_alpha), Euler's constant gamma and
    the exponential integral E1, in nats ([1]_, [2]_ 6.2.4)::

        -KL = constant - Ein(u),    Ein(u) = gamma + log(u) + E1(u)

    It is the case k = 2 of `neg_kl_vector`, whose alpha has the variance of one coordinate,
    sigma^2/2, so that ``neg_kl_complex(x)`` is ``neg_kl_vector(x - log(2), 2)``.

    Parameters
    ----------
    log_alpha : array_like or array
        The logarithm of alpha, of any shape and type that `logunif_kl.neg_kl` takes: a number, an
        array of NumPy, dask, xarray, pandas or an array-API namespace, or a tensor of PyTorch or
        JAX.
    zero_at : float, optional
        The alpha at which -KL is to vanish: ``inf`` by default, and -KL is negative elsewhere.
    log_c : float, optional
        The logarithm of the prior's C, in place of `zero_at`. The constant is then
        1 + log(pi) + gamma + log(C).
    reduction : {"none", "sum", "mean"}, optional
        What to return: the elements, their sum or their mean.

    Returns
    -------
    array or scalar
        Of the shape, type and library of `log_alpha`. It is the constant at ``log_alpha=inf`` and
        -inf at ``log_alpha=-inf``. NaN is returned only where NaN was given.

    Raises
    ------
    TypeError
        As for `logunif_kl.neg_kl`, and for a tensor of TensorFlow.
    ValueError
        As for `logunif_kl.neg_kl`.

    See Also
    --------
    kl_complex : the same with the other sign, to be added to a loss.
    neg_kl_complex_normal : from the mean and the variance.
    neg_kl_complex_grad, neg_kl_complex_hess : the first two derivatives.

    Notes
    -----
    Nothing is clipped or sampled. Types below float64 are computed in float64 and rounded once,
    except in JAX, which computes them in float32. `logunif_kl.isotropic.ACCURACY` lists the worst
    errors found, without a constant. For a tensor the function can be differentiated any number of
    times.

    References
    ----------
    .. [1] Nazarov, Burnaev, "Bayesian Sparsification Methods for Deep Complex-valued Networks"
       (2020). Their penalty is KL of this posterior; it has log(u) - Ei(-u).
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
    return _evaluation.of_log_alpha(zero_at, log_c, reduction, log_alpha)


def neg_kl_complex_grad(log_alpha: Any) -> Any:
    """Compute the derivative of `neg_kl_complex` in log alpha.

    With u = exp(-log_alpha), by differentiating Ein (DLMF 6.2.3)::

        d(-KL)/d log_alpha = 1 - exp(-u)

    It does not depend on the constant. It falls from 1 at ``log_alpha=-inf`` to 0 at ``inf``.

    Parameters
    ----------
    log_alpha : array_like or array
        Of any shape and type that `neg_kl_complex` takes.

    Returns
    -------
    array or scalar
        Of the shape, type and library of `log_alpha`. NaN is returned only where NaN was given.
        `logunif_kl.isotropic.ACCURACY` lists the worst errors found.

    Raises
    ------
    TypeError, ValueError
        As for `neg_kl_complex`.

    Examples
    --------
    >>> import logunif_kl as lk
    >>> float(lk.neg_kl_complex_grad(0.0))
    0.6321205588285577
    """
    return _evaluation.derivative("neg_kl_complex_grad", log_alpha)


def neg_kl_complex_hess(log_alpha: Any) -> Any:
    """Compute the second derivative of `neg_kl_complex` in log alpha.

    With u = exp(-log_alpha)::

        d^2(-KL)/d log_alpha^2 = -u exp(-u)

    u is computed in two words, because its relative error counts u times here.

    Parameters
    ----------
    log_alpha : array_like or array
        Of any shape and type that `neg_kl_complex` takes.

    Returns
    -------
    array or scalar
        Of the shape, type and library of `log_alpha`; 0 at both infinities. NaN is returned only
        where NaN was given. `logunif_kl.isotropic.ACCURACY` lists the worst errors found.

    Raises
    ------
    TypeError, ValueError
        As for `neg_kl_complex`.

    Examples
    --------
    >>> import logunif_kl as lk
    >>> float(lk.neg_kl_complex_hess(0.0))
    -0.36787944117144233
    """
    return _evaluation.derivative("neg_kl_complex_hess", log_alpha)


def neg_kl_complex_normal(
    mu: Any,
    log_sigma2: Any,
    *,
    zero_at: float = ZERO_AT_INFINITY,
    log_c: float | None = None,
    reduction: str = "none",
) -> Any:
    """-KL(q || p) of CN(mu, sigma^2), from mu and log sigma^2: *maximise* it (ELBO sign).

    With Ein and the constant as for `neg_kl_complex`::

        -KL = constant - Ein(u),    u = |mu|^2/sigma^2,    sigma^2 = E|w - mu|^2

    |mu|^2 is formed from the two parts, in two words; it is exact at mu = 0, and neither overflows
    nor underflows before u does.

    Parameters
    ----------
    mu : array_like or array
        Complex means, or their moduli. Complex ones may be Python or NumPy numbers, NumPy arrays or
        tensors of PyTorch or JAX; means of other libraries must be real.
    log_sigma2 : array_like or array
        Logarithms of the variances of the complex weights; real. The two are broadcast.
    zero_at, log_c : float, optional
        The constant, as for `neg_kl_complex`.
    reduction : {"none", "sum", "mean"}, optional
        What to return.

    Returns
    -------
    array or scalar
        Real, of the broadcast shape, and of the real type that NumPy or the framework promotes both
        to. NaN is returned where mu = 0 meets log_sigma2 = -inf or an infinite mu log_sigma2 = inf,
        and where NaN was given.

    Raises
    ------
    TypeError
        If `log_sigma2` is complex, if complex means are of a library not named above, and as for
        `logunif_kl.neg_kl_normal`.
    ValueError
        As for `logunif_kl.neg_kl_normal`.

    Notes
    -----
    In PyTorch the derivative in a complex mu is d/d re + i d/d im, as everywhere in PyTorch. In JAX
    it is the conjugate, as everywhere in JAX.
    `logunif_kl.isotropic.ACCURACY` lists the worst errors found.

    Examples
    --------
    >>> import logunif_kl as lk
    >>> float(lk.neg_kl_complex_normal(0.6 + 0.8j, 0.0))
    -0.7965995992970532
    >>> float(lk.neg_kl_complex_normal(1.0, 0.0))
    -0.7965995992970532
    """
    return _evaluation.of_normal(zero_at, log_c, reduction, mu, log_sigma2)


def kl_complex(
    log_alpha: Any,
    *,
    zero_at: float = ZERO_AT_INFINITY,
    log_c: float | None = None,
    reduction: str = "none",
) -> Any:
    """KL(q || p) of a complex weight, to be *added to a loss*: ``-neg_kl_complex(...)``.

    KL = Ein(u) - constant, u = exp(-log_alpha). All but the sign is as for `neg_kl_complex`.

    Parameters
    ----------
    log_alpha : array_like or array
        As for `neg_kl_complex`.
    zero_at, log_c : float, optional
        The constant, as for `neg_kl_complex`.
    reduction : {"none", "sum", "mean"}, optional
        What to return.

    Returns
    -------
    array or scalar
        As of `neg_kl_complex`.

    Raises
    ------
    TypeError, ValueError
        As for `neg_kl_complex`.

    Examples
    --------
    >>> import logunif_kl as lk
    >>> float(lk.kl_complex(0.0))
    0.7965995992970532
    """
    return -neg_kl_complex(log_alpha, zero_at=zero_at, log_c=log_c, reduction=reduction)


def kl_complex_normal(
    mu: Any,
    log_sigma2: Any,
    *,
    zero_at: float = ZERO_AT_INFINITY,
    log_c: float | None = None,
    reduction: str = "none",
) -> Any:
    """KL(q || p) of CN(mu, sigma^2), to be *added to a loss*: ``-neg_kl_complex_normal(...)``.

    KL = Ein(u) - constant, u = |mu|^2/sigma^2. All but the sign is as for `neg_kl_complex_normal`.

    Parameters
    ----------
    mu, log_sigma2 : array_like or array
        As for `neg_kl_complex_normal`.
    zero_at, log_c : float, optional
        The constant, as for `neg_kl_complex`.
    reduction : {"none", "sum", "mean"}, optional
        What to return.

    Returns
    -------
    array or scalar
        As of `neg_kl_complex_normal`.

    Raises
    ------
    TypeError, ValueError
        As for `neg_kl_complex_normal`.

    Examples
    --------
    >>> import logunif_kl as lk
    >>> float(lk.kl_complex_normal(1j, 0.0))
    0.7965995992970532
    """
    return -neg_kl_complex_normal(mu, log_sigma2, zero_at=zero_at, log_c=log_c, reduction=reduction)
