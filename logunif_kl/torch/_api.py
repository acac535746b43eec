"""The public functions for torch tensors."""

# mypy: allow-untyped-calls
from __future__ import annotations

from typing import Any

import torch

from .._convention import ZERO_AT_INFINITY, additive_constant
from .._errors import check_reduction
from . import _arguments, _rules
from ._internals import called_by_compiler
from ._namespace import plus, working
from ._operators import registered

Tensor = torch.Tensor


def neg_kl(
    log_alpha: Tensor,
    *,
    zero_at: float = ZERO_AT_INFINITY,
    log_c: float | None = None,
    reduction: str = "none",
) -> Tensor:
    """Compute -KL(q || p) of tensors, as `logunif_kl.neg_kl` does: *maximise* it (ELBO sign).

    float16 and bfloat16 are computed in float32, and the result is rounded. The function can be
    differentiated any number of times, in every transform of `torch.func` and under
    `torch.compile`. C code reads plain CPU tensors directly, on `torch.get_num_threads`
    threads. A reduction then allocates nothing as large as the tensor, except for the gradient.
    The result does not depend on the number of threads.

    Parameters
    ----------
    log_alpha : Tensor
        A tensor of float16, bfloat16, float32 or float64, on any device. Integers are promoted to
        `torch.get_default_dtype`, as in `torch.exp`.
    zero_at, log_c, reduction
        As for `logunif_kl.neg_kl`.

    Returns
    -------
    Tensor
        With the dtype and device of `log_alpha`. Under `torch.autocast`, float16 and bfloat16 give
        a float32 result.

    Raises
    ------
    TypeError
        If `log_alpha` is not a dense tensor of real numbers: for example, if it is a complex,
        boolean, sparse or nested tensor, a NumPy array or a number.

    Examples
    --------
    >>> import torch
    >>> from logunif_kl.torch import neg_kl
    >>> log_alpha = torch.tensor([-8.0, 0.0, 2.0], requires_grad=True)
    >>> neg_kl(log_alpha, reduction="sum").backward()
    >>> log_alpha.grad
    tensor([0.5002, 0.3624, 0.0647])
    """
    return _of_log_alpha(log_alpha, zero_at, log_c, reduction)


def neg_kl_grad(log_alpha: Tensor) -> Tensor:
    """Compute the derivative of -KL in log_alpha, as `logunif_kl.neg_kl_grad` does.

    It takes the same tensors as `neg_kl`. The result can be differentiated any number of times.

    Examples
    --------
    >>> import torch
    >>> from logunif_kl.torch import neg_kl_grad
    >>> neg_kl_grad(torch.tensor([-8.0, 0.0, 2.0]))
    tensor([0.5002, 0.3624, 0.0647])
    """
    return _derivative(log_alpha, 1)


def neg_kl_hess(log_alpha: Tensor) -> Tensor:
    """Compute the second derivative of -KL in log_alpha, as `logunif_kl.neg_kl_hess` does.

    It takes the same tensors as `neg_kl`. The result can be differentiated any number of times.

    Examples
    --------
    >>> import torch
    >>> from logunif_kl.torch import neg_kl_hess
    >>> neg_kl_hess(torch.tensor([-8.0, 0.0, 2.0]))
    tensor([ 1.6807e-04, -2.5000e-01, -6.1804e-02])
    """
    return _derivative(log_alpha, 2)


def neg_kl_normal(
    mu: Tensor | float,
    log_sigma2: Tensor | float,
    *,
    zero_at: float = ZERO_AT_INFINITY,
    log_c: float | None = None,
    reduction: str = "none",
) -> Tensor:
    """Compute -KL(q || p) as `logunif_kl.neg_kl_normal` does: *maximise* it (ELBO sign).

    Like `neg_kl`, it can be differentiated any number of times. In float64, the forward pass
    computes the gradients and keeps them for the backward pass. In the other dtypes, if the device
    has a kernel, the backward pass computes the gradients, and only the arguments are kept.

    Parameters
    ----------
    mu, log_sigma2 : Tensor or float
        Tensors of the dtypes that `neg_kl` takes, promoted as in `torch.result_type`. One argument
        may be a Python or NumPy number, which gets the dtype of the other argument.
    zero_at, log_c, reduction
        As for `logunif_kl.neg_kl`.

    Returns
    -------
    Tensor
        With the broadcast shape and the promoted dtype. Under `torch.autocast`, float16 and
        bfloat16 give a float32 result.

    Raises
    ------
    TypeError
        As for `neg_kl`. Also if neither argument is a tensor, if a DTensor and a plain tensor are
        given together, or if a tensor is given with a list or with another library's array.
    RuntimeError
        If the tensors are on different devices (a 0-d CPU tensor works with any device), or
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
    return _of_normal(mu, log_sigma2, zero_at, log_c, reduction)


def kl(
    log_alpha: Tensor,
    *,
    zero_at: float = ZERO_AT_INFINITY,
    log_c: float | None = None,
    reduction: str = "none",
) -> Tensor:
    """Compute KL(q || p), the negative of `neg_kl`, to be *added to a loss*.

    Examples
    --------
    >>> import torch
    >>> from logunif_kl.torch import kl
    >>> kl(torch.tensor([0.0, 0.0]), reduction="sum")
    tensor(0.8534)
    """
    return _of_log_alpha(log_alpha, zero_at, log_c, reduction, negated=True)


def kl_normal(
    mu: Tensor | float,
    log_sigma2: Tensor | float,
    *,
    zero_at: float = ZERO_AT_INFINITY,
    log_c: float | None = None,
    reduction: str = "none",
) -> Tensor:
    """Compute KL(q || p), the negative of `neg_kl_normal`, to be *added to a loss*.

    Examples
    --------
    >>> import torch
    >>> from logunif_kl.torch import kl_normal
    >>> kl_normal(torch.tensor([0.0, 1.0]), 0.0)
    tensor([0.0000, 0.4267])
    """
    return _of_normal(mu, log_sigma2, zero_at, log_c, reduction, negated=True)


def _derivative(log_alpha: Any, order: int) -> Tensor:
    x = _arguments.one(log_alpha)
    if torch.compiler.is_compiling():
        _allow()
    return _rules.of_log_alpha(x, order)


def _of_log_alpha(
    log_alpha: Any, zero_at: Any, log_c: Any, reduction: str, negated: bool = False
) -> Tensor:
    """Compute -KL, or KL if `negated`, from log_alpha. Add the constant, and reduce."""
    x = _arguments.one(log_alpha)
    constant, kind = _constant(zero_at, log_c, negated), x.dtype
    check_reduction(reduction)
    summed = reduction != "none"
    if torch.compiler.is_compiling():
        _allow()
    if constant != 0.0 and not summed:
        x = working(x)
    result = _rules.of_log_alpha(x, 0, summed, negated)
    return _finished(result, constant, reduction, x, kind)


def _of_normal(
    mu: Any, log_sigma2: Any, zero_at: Any, log_c: Any, reduction: str, negated: bool = False
) -> Tensor:
    """Compute -KL, or KL if `negated`, from mu and log_sigma2. Add the constant, and reduce."""
    mu, log_sigma2 = _arguments.two(mu, log_sigma2)
    constant, kind = _constant(zero_at, log_c, negated), mu.dtype
    check_reduction(reduction)
    summed = reduction != "none"
    if torch.compiler.is_compiling():
        _allow()
    if constant != 0.0 and not summed:
        mu, log_sigma2 = working(mu), working(log_sigma2)
    result = _rules.of_normal(mu, log_sigma2, summed, negated)
    return _finished(result, constant, reduction, mu, kind)


@called_by_compiler
def _allow() -> bool:
    """Let torch.compile put calls of the functions with differentiation rules into its graph.

    `torch.compiler.allow_in_graph` imports the compiler, which takes as long as importing torch. So
    `_allow` runs only while the compiler traces a caller. It also registers the operators, because
    code from the compiler's cache may call the operators without tracing the rules.
    """
    registered()
    for function in (_rules.of_log_alpha, _rules.of_normal):
        torch.compiler.allow_in_graph(function)
    return True


def _constant(zero_at: Any, log_c: Any, negated: bool) -> float:
    if log_c is None and zero_at is ZERO_AT_INFINITY:
        return 0.0
    found = _vanishing_at(zero_at) if log_c is None else additive_constant(zero_at, log_c)
    return -found if negated else found


# This evaluates a NumPy ufunc, which torch.compile cannot trace.
@called_by_compiler
def _vanishing_at(zero_at: Any) -> float:
    return additive_constant(zero_at)


def _finished(
    result: Tensor, constant: float, reduction: str, argument: Tensor, dtype: torch.dtype
) -> Tensor:
    """Divide the sum by the count if the mean is wanted, add the constant, and round to `dtype`."""
    if reduction == "mean":
        result = result / argument.numel()
    if constant != 0.0:
        result = plus(result, constant * argument.numel() if reduction == "sum" else constant)
    return result if result.dtype == dtype else result.to(dtype)
