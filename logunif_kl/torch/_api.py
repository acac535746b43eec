"""The public functions for torch tensors."""

from __future__ import annotations

import torch

from .._convention import ZERO_AT_INFINITY
from . import _evaluation

Tensor = torch.Tensor


def neg_kl(
    log_alpha: Tensor,
    *,
    zero_at: float = ZERO_AT_INFINITY,
    log_c: float | None = None,
    reduction: str = "none",
) -> Tensor:
    """As `logunif_kl.neg_kl`, for tensors of PyTorch: *maximise* it (ELBO sign).

    The half types are computed in float32 and rounded at the end. The function can be
    differentiated any number of times, in every transform of `torch.func` and under
    `torch.compile`. A plain CPU tensor is computed by C code in place, on `torch.get_num_threads`
    threads. A reduction then takes no memory of the size of the tensor, except for the gradient.
    The result does not depend on the number of threads.

    Parameters
    ----------
    log_alpha : Tensor
        Of float16, bfloat16, float32 or float64, on any device. Integers are promoted to
        `torch.get_default_dtype`, as by `torch.exp`.
    zero_at, log_c, reduction
        As for `logunif_kl.neg_kl`.

    Returns
    -------
    Tensor
        Of the dtype and device of `log_alpha`. Under `torch.autocast` half types are returned in
        float32.

    Raises
    ------
    TypeError
        If `log_alpha` is not a dense tensor of real numbers (complex, boolean, sparse, nested, a
        NumPy array, a number, ...).

    Examples
    --------
    >>> import torch
    >>> from logunif_kl.torch import neg_kl
    >>> log_alpha = torch.tensor([-8.0, 0.0, 2.0], requires_grad=True)
    >>> neg_kl(log_alpha, reduction="sum").backward()
    >>> log_alpha.grad
    tensor([0.5002, 0.3624, 0.0647])
    """
    return _evaluation.of_log_alpha(log_alpha, zero_at, log_c, reduction)


def neg_kl_grad(log_alpha: Tensor) -> Tensor:
    """As `logunif_kl.neg_kl_grad`, for tensors that `neg_kl` takes.

    The result can be differentiated any number of times.

    Examples
    --------
    >>> import torch
    >>> from logunif_kl.torch import neg_kl_grad
    >>> neg_kl_grad(torch.tensor([-8.0, 0.0, 2.0]))
    tensor([0.5002, 0.3624, 0.0647])
    """
    return _evaluation.derivative(log_alpha, 1)


def neg_kl_hess(log_alpha: Tensor) -> Tensor:
    """As `logunif_kl.neg_kl_hess`, for tensors that `neg_kl` takes.

    The result can be differentiated any number of times.

    Examples
    --------
    >>> import torch
    >>> from logunif_kl.torch import neg_kl_hess
    >>> neg_kl_hess(torch.tensor([-8.0, 0.0, 2.0]))
    tensor([ 1.6807e-04, -2.5000e-01, -6.1804e-02])
    """
    return _evaluation.derivative(log_alpha, 2)


def neg_kl_normal(
    mu: Tensor | float,
    log_sigma2: Tensor | float,
    *,
    zero_at: float = ZERO_AT_INFINITY,
    log_c: float | None = None,
    reduction: str = "none",
) -> Tensor:
    """As `logunif_kl.neg_kl_normal`, for tensors of PyTorch: *maximise* it (ELBO sign).

    The function is differentiable as `neg_kl` is. In float64, the forward pass computes the
    gradients that are needed and keeps them for the backward pass. In float32 and the half types,
    on devices with kernels, only the arguments are kept.

    Parameters
    ----------
    mu, log_sigma2 : Tensor or float
        Of the dtypes that `neg_kl` takes, promoted as by `torch.result_type`. One of them may be a
        number of Python or NumPy, which takes the dtype of the other.
    zero_at, log_c, reduction
        As for `logunif_kl.neg_kl`.

    Returns
    -------
    Tensor
        Of the broadcast shape and the promoted dtype. Under `torch.autocast` half types are
        returned in float32.

    Raises
    ------
    TypeError
        As for `neg_kl`, if neither argument is a tensor, if a tensor is given with a list or with
        an array of another library, and if a DTensor is given with a plain tensor.
    RuntimeError
        If the tensors are on different devices (a CPU tensor of no dimensions works with any), or
        if their shapes do not broadcast.

    Examples
    --------
    >>> import torch
    >>> from logunif_kl.torch import neg_kl_normal
    >>> mu = torch.tensor([0.0, 1.0, -1.0], requires_grad=True)
    >>> neg_kl_normal(mu, 0.0, reduction="sum").backward()
    >>> mu.grad
    tensor([-0.0000, -0.7248,  0.7248])
    """
    return _evaluation.of_normal(mu, log_sigma2, zero_at, log_c, reduction)


def kl(
    log_alpha: Tensor,
    *,
    zero_at: float = ZERO_AT_INFINITY,
    log_c: float | None = None,
    reduction: str = "none",
) -> Tensor:
    """As `neg_kl` with the other sign, to be *added to a loss*.

    Examples
    --------
    >>> import torch
    >>> from logunif_kl.torch import kl
    >>> kl(torch.tensor([0.0, 0.0]), reduction="sum")
    tensor(0.8534)
    """
    return _evaluation.of_log_alpha(log_alpha, zero_at, log_c, reduction, negated=True)


def kl_normal(
    mu: Tensor | float,
    log_sigma2: Tensor | float,
    *,
    zero_at: float = ZERO_AT_INFINITY,
    log_c: float | None = None,
    reduction: str = "none",
) -> Tensor:
    """As `neg_kl_normal` with the other sign, to be *added to a loss*.

    Examples
    --------
    >>> import torch
    >>> from logunif_kl.torch import kl_normal
    >>> kl_normal(torch.tensor([0.0, 1.0]), 0.0)
    tensor([0.0000, 0.4267])
    """
    return _evaluation.of_normal(mu, log_sigma2, zero_at, log_c, reduction, negated=True)
