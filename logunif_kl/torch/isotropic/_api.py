"""The public functions for torch tensors, differentiable any number of times.

`logunif_kl.neg_kl_complex` and the others call them when they are given tensors. float32 and the
half types are computed in float64, and rounded once, except on devices without it.
"""

from __future__ import annotations

import torch

from ..._convention import ZERO_AT_INFINITY
from . import _evaluation

Tensor = torch.Tensor


def neg_kl_complex(
    log_alpha: Tensor,
    *,
    zero_at: float = ZERO_AT_INFINITY,
    log_c: float | None = None,
    reduction: str = "none",
) -> Tensor:
    """-KL(q || p) of a complex weight: `logunif_kl.neg_kl_complex` of a tensor.

    -KL = constant - Ein(u), u = exp(-log_alpha). All is as documented there.

    Parameters
    ----------
    log_alpha : Tensor
        Of any shape and type that `logunif_kl.torch.neg_kl` takes.
    zero_at, log_c : float, optional
        The constant.
    reduction : {"none", "sum", "mean"}, optional
        What to return.

    Returns
    -------
    Tensor
        Of the shape and type of `log_alpha`, or of no dimensions.

    Raises
    ------
    TypeError, ValueError
        As for `logunif_kl.torch.neg_kl`.

    Examples
    --------
    >>> import torch
    >>> from logunif_kl.torch.isotropic import neg_kl_complex
    >>> neg_kl_complex(torch.tensor([-8.0, 0.0, 2.0]))
    tensor([-8.5772, -0.7966, -0.1309])
    """
    return _evaluation.of_log_alpha(log_alpha, None, zero_at, log_c, reduction)


def neg_kl_complex_grad(log_alpha: Tensor) -> Tensor:
    """Compute 1 - exp(-u), the derivative of `neg_kl_complex` in log alpha.

    Parameters
    ----------
    log_alpha : Tensor
        As for `neg_kl_complex`.

    Returns
    -------
    Tensor
        Of the shape and type of `log_alpha`.

    Raises
    ------
    TypeError, ValueError
        As for `logunif_kl.torch.neg_kl_grad`.

    Examples
    --------
    >>> import torch
    >>> from logunif_kl.torch.isotropic import neg_kl_complex_grad
    >>> neg_kl_complex_grad(torch.tensor([-8.0, 0.0, 2.0]))
    tensor([1.0000, 0.6321, 0.1266])
    """
    return _evaluation.derivative(log_alpha, None, 1)


def neg_kl_complex_hess(log_alpha: Tensor) -> Tensor:
    """Compute -u exp(-u), the second derivative of `neg_kl_complex` in log alpha.

    Parameters
    ----------
    log_alpha : Tensor
        As for `neg_kl_complex`.

    Returns
    -------
    Tensor
        Of the shape and type of `log_alpha`.

    Raises
    ------
    TypeError, ValueError
        As for `logunif_kl.torch.neg_kl_hess`.

    Examples
    --------
    >>> import torch
    >>> from logunif_kl.torch.isotropic import neg_kl_complex_hess
    >>> neg_kl_complex_hess(torch.tensor([0.0, 2.0]))
    tensor([-0.3679, -0.1182])
    """
    return _evaluation.derivative(log_alpha, None, 2)


def neg_kl_complex_normal(
    mu: Tensor | complex,
    log_sigma2: Tensor | float,
    *,
    zero_at: float = ZERO_AT_INFINITY,
    log_c: float | None = None,
    reduction: str = "none",
) -> Tensor:
    """-KL(q || p) of CN(mu, sigma^2): `logunif_kl.neg_kl_complex_normal` of a tensor.

    -KL = constant - Ein(u), u = |mu|^2/sigma^2, sigma^2 = E|w - mu|^2. The
    derivative in a complex mu is d/d re + i d/d im, as everywhere in PyTorch.

    Parameters
    ----------
    mu : Tensor or complex
        Complex means, or their moduli.
    log_sigma2 : Tensor or float
        Logarithms of the variances of the complex weights; real. The two are broadcast.
    zero_at, log_c : float, optional
        The constant.
    reduction : {"none", "sum", "mean"}, optional
        What to return.

    Returns
    -------
    Tensor
        Real, of the broadcast shape, or of no dimensions.

    Raises
    ------
    TypeError, ValueError, RuntimeError
        As for `logunif_kl.torch.neg_kl_normal`; a complex `mu` is not refused.

    Examples
    --------
    >>> import torch
    >>> from logunif_kl.torch.isotropic import neg_kl_complex_normal
    >>> mu = torch.tensor([0.0, 0.6 + 0.8j], requires_grad=True)
    >>> neg_kl_complex_normal(mu, 0.0, reduction="sum").backward()
    >>> mu.grad
    tensor([ 0.0000+0.0000j, -0.7585-1.0114j])
    """
    return _evaluation.of_normal(mu, log_sigma2, zero_at, log_c, reduction)


def kl_complex(
    log_alpha: Tensor,
    *,
    zero_at: float = ZERO_AT_INFINITY,
    log_c: float | None = None,
    reduction: str = "none",
) -> Tensor:
    """KL(q || p) of a complex weight, to be *added to a loss*: ``-neg_kl_complex(...)``.

    Parameters
    ----------
    log_alpha : Tensor
        As for `neg_kl_complex`.
    zero_at, log_c : float, optional
        The constant.
    reduction : {"none", "sum", "mean"}, optional
        What to return.

    Returns
    -------
    Tensor
        As of `neg_kl_complex`.

    Raises
    ------
    TypeError, ValueError
        As for `neg_kl_complex`.

    Examples
    --------
    >>> import torch
    >>> from logunif_kl.torch.isotropic import kl_complex
    >>> kl_complex(torch.tensor(0.0))
    tensor(0.7966)
    """
    return -neg_kl_complex(log_alpha, zero_at=zero_at, log_c=log_c, reduction=reduction)


def kl_complex_normal(
    mu: Tensor | complex,
    log_sigma2: Tensor | float,
    *,
    zero_at: float = ZERO_AT_INFINITY,
    log_c: float | None = None,
    reduction: str = "none",
) -> Tensor:
    """KL(q || p) of CN(mu, sigma^2), to be *added to a loss*: ``-neg_kl_complex_normal(...)``.

    Parameters
    ----------
    mu, log_sigma2 : Tensor or float
        As for `neg_kl_complex_normal`.
    zero_at, log_c : float, optional
        The constant.
    reduction : {"none", "sum", "mean"}, optional
        What to return.

    Returns
    -------
    Tensor
        As of `neg_kl_complex_normal`.

    Raises
    ------
    TypeError, ValueError, RuntimeError
        As for `neg_kl_complex_normal`.

    Examples
    --------
    >>> import torch
    >>> from logunif_kl.torch.isotropic import kl_complex_normal
    >>> kl_complex_normal(torch.tensor(1j), 0.0)
    tensor(0.7966)
    """
    return -neg_kl_complex_normal(mu, log_sigma2, zero_at=zero_at, log_c=log_c, reduction=reduction)


def neg_kl_vector(
    log_alpha: Tensor,
    k: float,
    *,
    zero_at: float = ZERO_AT_INFINITY,
    log_c: float | None = None,
    reduction: str = "none",
) -> Tensor:
    """-KL(q || p) of a group of k weights: `logunif_kl.neg_kl_vector` of a tensor.

    -KL = constant - F_k(u), u = exp(-log_alpha)/2. All is as documented there.

    Parameters
    ----------
    log_alpha : Tensor
        As for `neg_kl_complex`.
    k : float
        The number of weights in a group, from 0.5 to 10000; no derivative is taken in it.
    zero_at, log_c : float, optional
        The constant.
    reduction : {"none", "sum", "mean"}, optional
        What to return.

    Returns
    -------
    Tensor
        Of the shape and type of `log_alpha`, or of no dimensions.

    Raises
    ------
    TypeError, ValueError
        As for `logunif_kl.neg_kl_vector`.

    Examples
    --------
    >>> import torch
    >>> from logunif_kl.torch.isotropic import neg_kl_vector
    >>> neg_kl_vector(torch.tensor([0.0, 2.0]), 9)
    tensor([-0.4784, -0.0673])
    """
    return _evaluation.of_log_alpha(log_alpha, k, zero_at, log_c, reduction)


def neg_kl_vector_grad(log_alpha: Tensor, k: float) -> Tensor:
    """Compute u M(1; k/2+1; -u), the derivative of `neg_kl_vector` in log alpha.

    Parameters
    ----------
    log_alpha : Tensor
        As for `neg_kl_vector`.
    k : float
        The number of weights in a group, as for `neg_kl_vector`.

    Returns
    -------
    Tensor
        Of the shape and type of `log_alpha`.

    Raises
    ------
    TypeError, ValueError
        As for `neg_kl_vector`.

    Examples
    --------
    >>> import torch
    >>> from logunif_kl.torch.isotropic import neg_kl_vector_grad
    >>> neg_kl_vector_grad(torch.tensor([0.0, 2.0]), 9)
    tensor([0.4578, 0.0668])
    """
    return _evaluation.derivative(log_alpha, k, 1)
