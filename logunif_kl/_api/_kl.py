"""The public functions that compute KL of real weights, to be added to a loss."""

from __future__ import annotations

from typing import Any

from .. import _dispatch
from .._convention import ZERO_AT_INFINITY


def kl(
    log_alpha: Any,
    *,
    zero_at: float = ZERO_AT_INFINITY,
    log_c: float | None = None,
    reduction: str = "none",
) -> Any:
    r"""KL(q || p) for q(w) = N(mu, sigma^2), p(w) = C/|w|, to be *added to a loss*.

    With alpha = sigma^2/mu^2 and u = 1/(2 alpha) = exp(-log_alpha)/2, in nats (Hron et al. 2017,
    Eq. 1):

    .. math::

        \mathrm{KL} = F(u) - \mathrm{constant}, \qquad
        F(u) = u\, {}_2F_2\left(1, 1; \tfrac32, 2; -u\right)

    The log-uniform prior p is improper, so the constant is a choice. This is ``-neg_kl(...)``.

    Parameters
    ----------
    log_alpha : array_like or array
        The logarithm of alpha, a ratio of *variances*, of any shape: a Python number,
        an array of NumPy, dask, xarray, pandas, polars or an array-API namespace,
        or a tensor of PyTorch, JAX, TensorFlow, Keras, MLX, autograd, PaddlePaddle, PyTensor or
        tinygrad, of float16, float32, float64 or (tensors) bfloat16. The result for a tensor can be
        differentiated any number of times.
    zero_at : float, optional
        The alpha at which KL is zero. By default KL tends to 0 as alpha -> inf, and is positive
        elsewhere.
    log_c : float, optional
        The logarithm of the prior's C, instead of `zero_at`.
    reduction : {"none", "sum", "mean"}, optional
        What to return: the elements, their sum or their mean.

    Returns
    -------
    array or scalar
        An array of the shape, type and library of `log_alpha`, on its device. A sum or a mean has
        no dimensions. KL is inf at ``log_alpha=-inf``, and NaN only where `log_alpha` is NaN.

    Raises
    ------
    TypeError
        If `log_alpha` does not hold real numbers of at most 64 bits, or if `zero_at` or `log_c` is
        not a real number.
    ValueError
        If `zero_at` is not positive, if `log_c` is not finite, if both are given, or if `reduction`
        is not one of the three.

    See Also
    --------
    kl_normal : KL from the mean and the variance.
    neg_kl : -KL, to be maximised; its page has details of types and accuracy.

    Examples
    --------
    >>> import logunif_kl as lk
    >>> round(float(lk.kl(0.0)), 13)
    0.426685604296

    Add the sum over all weights to the loss of a minibatch, as `kl_normal` shows for PyTorch.
    """
    return _dispatch.value("kl", zero_at, log_c, reduction, log_alpha=log_alpha)


def kl_normal(
    mu: Any,
    log_sigma2: Any,
    *,
    zero_at: float = ZERO_AT_INFINITY,
    log_c: float | None = None,
    reduction: str = "none",
) -> Any:
    r"""KL(q || p) for q(w) = N(mu, sigma^2), p(w) = C/|w|, to be *added to a loss*.

    In nats (Hron et al. 2017, Eq. 1):

    .. math::

        \mathrm{KL} = F(u) - \mathrm{constant}, \qquad
        F(u) = u\, {}_2F_2\left(1, 1; \tfrac32, 2; -u\right), \qquad
        u = \frac{\mu^2}{2 \sigma^2}

    The log-uniform prior p is improper, so the constant is a choice. No epsilon and no clipping is
    needed: value and derivatives are exact at mu = 0. This is ``-neg_kl_normal(...)``.

    Parameters
    ----------
    mu, log_sigma2 : array_like or array
        Means, of either sign, and logarithms of the variances: a Python number,
        an array of NumPy, dask, xarray, pandas, polars or an array-API namespace,
        or a tensor of PyTorch, JAX, TensorFlow, Keras, MLX, autograd, PaddlePaddle, PyTensor or
        tinygrad, of float16, float32, float64 or (tensors) bfloat16. They are broadcast against
        each other. Both must come from one library and be on one device, unless one is a number.
    zero_at : float, optional
        The alpha at which KL is zero. By default KL tends to 0 as alpha -> inf, and is positive
        elsewhere.
    log_c : float, optional
        The logarithm of the prior's C, instead of `zero_at`.
    reduction : {"none", "sum", "mean"}, optional
        What to return: the elements, their sum or their mean.

    Returns
    -------
    array or scalar
        An array of the broadcast shape, and of the type and library of the arguments. A sum or a
        mean has no dimensions. A result for tensors can be differentiated any number of times.

    Raises
    ------
    TypeError
        If an argument does not hold real numbers of at most 64 bits, if the arguments are tensors
        of two frameworks, or a tensor and a NumPy array, or if `zero_at` or `log_c` is not a real
        number.
    ValueError
        If `zero_at` is not positive, if `log_c` is not finite, if both are given, if `reduction` is
        not one of the three, or if shapes do not broadcast.
    RuntimeError
        If PyTorch tensors are on different devices, or if their shapes do not broadcast.

    See Also
    --------
    kl : KL from log alpha.
    neg_kl : -KL, to be maximised; its page has details of types and accuracy.

    Examples
    --------
    >>> import logunif_kl as lk
    >>> round(float(lk.kl_normal(1.0, 0.0)), 13)
    0.426685604296

    In PyTorch, add the sum over all weights, divided by the size of the data set, to the mean loss
    of a minibatch::

        import torch

        mu = torch.randn(10, 784, requires_grad=True)
        log_sigma2 = torch.full((10, 784), -8.0, requires_grad=True)
        x, y = torch.randn(32, 784), torch.randint(10, (32,))
        deviation = torch.exp(0.5 * log_sigma2)
        logits = x @ (mu + deviation * torch.randn_like(mu)).T
        loss = torch.nn.functional.cross_entropy(logits, y)
        loss = loss + lk.kl_normal(mu, log_sigma2, reduction="sum") / 60_000
        loss.backward()
    """
    arguments = {"mu": mu, "log_sigma2": log_sigma2}
    return _dispatch.value("kl_normal", zero_at, log_c, reduction, **arguments)
