"""The public functions for torch tensors: check, compute, apply the convention, reduce."""

from __future__ import annotations

from typing import Any

import torch

from .._convention import ZERO_AT_INFINITY, additive_constant
from .._refusals import check_reduction
from . import _arguments, _compiling, _rules
from ._namespace import working

Tensor = torch.Tensor


def neg_kl(
    log_alpha: Tensor,
    *,
    zero_at: float = ZERO_AT_INFINITY,
    log_c: float | None = None,
    reduction: str = "none",
) -> Tensor:
    """-KL(q || p) for q(w) = N(mu, sigma^2), p(w) = C/|w|: *maximise* it (ELBO sign).

    With alpha = sigma^2/mu^2, u = 1/(2 alpha) = exp(-log_alpha)/2 and
    F(u) = u 2F2(1, 1; 3/2, 2; -u), [1]_ Eq. 1::

        -KL = constant - F(u)

    The constant is a choice, as for `logunif_kl.neg_kl`: by default -KL vanishes as alpha -> inf.
    Every derivative is exact, in every transform of `torch.func`, and under `torch.compile`.

    Parameters
    ----------
    log_alpha : Tensor
        The logarithm of alpha, a ratio of *variances*: of any shape and device; float16, bfloat16,
        float32 or float64. Integers are promoted to `torch.get_default_dtype`, as by `torch.exp`.
    zero_at : float, optional
        The alpha at which -KL is to vanish: ``inf`` by default.
    log_c : float, optional
        The logarithm of the prior's C instead.
    reduction : {"none", "sum", "mean"}, optional
        What to return: the elements, their sum or their mean. The constant counts once for each
        element.

    Returns
    -------
    Tensor
        Of the shape, type and device of `log_alpha`, or of no dimensions. The half types are
        computed in float32 and rounded at the end; under `torch.autocast` they are returned in
        float32.

    Raises
    ------
    TypeError
        If `log_alpha` is no dense tensor of real numbers (complex, boolean, sparse, a NumPy
        array, ...), or if `zero_at` or `log_c` is not a real number.
    ValueError
        If `zero_at` and `log_c` are both given, if one is out of its range, or if `reduction` is
        unknown.

    See Also
    --------
    kl : the same with the other sign, to be added to a loss.
    neg_kl_normal : from the mean and the variance.

    Notes
    -----
    `logunif_kl.accuracy` lists the worst relative error found for each type. On a plain CPU tensor
    the functions of C run on its memory, over `torch.get_num_threads` threads; a reduction then
    takes no memory of the size of the tensor, but for the gradient. The result does not depend on
    the number of threads.

    References
    ----------
    .. [1] J. Hron, A. G. de G. Matthews, Z. Ghahramani, "Variational Gaussian Dropout is not
       Bayesian" (2017).

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
    """Compute the derivative of -KL(q || p) in log alpha, itself differentiable.

    With u = exp(-log_alpha)/2 and D Dawson's function ([1]_, Eq. 3)::

        d(-KL)/d log_alpha = u F'(u) = sqrt(u) D(sqrt(u))

    No convention enters: a constant has no derivative.

    Parameters
    ----------
    log_alpha : Tensor
        As for `neg_kl`.

    Returns
    -------
    Tensor
        Of the shape, type and device of `log_alpha`.

    Raises
    ------
    TypeError
        If `log_alpha` is no dense tensor of real numbers.

    References
    ----------
    .. [1] J. Hron, A. G. de G. Matthews, Z. Ghahramani, "Variational Gaussian Dropout is not
       Bayesian" (2017).

    Examples
    --------
    >>> import torch
    >>> from logunif_kl.torch import neg_kl_grad
    >>> neg_kl_grad(torch.tensor([-8.0, 0.0, 2.0]))
    tensor([0.5002, 0.3624, 0.0647])
    """
    return _derivative(log_alpha, 1)


def neg_kl_hess(log_alpha: Tensor) -> Tensor:
    """Compute the second derivative of -KL(q || p) in log alpha, itself differentiable.

    With u = exp(-log_alpha)/2 and F as for `neg_kl`, whose F' is D(sqrt u)/sqrt u ([1]_, Eq. 3)::

        d^2(-KL)/d log_alpha^2 = -u (F'(u) + u F''(u))

    Parameters
    ----------
    log_alpha : Tensor
        As for `neg_kl`.

    Returns
    -------
    Tensor
        Of the shape, type and device of `log_alpha`.

    Raises
    ------
    TypeError
        If `log_alpha` is no dense tensor of real numbers.

    References
    ----------
    .. [1] J. Hron, A. G. de G. Matthews, Z. Ghahramani, "Variational Gaussian Dropout is not
       Bayesian" (2017).

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
    """-KL(q || p) of q(w) = N(mu, sigma^2), from its mean and the logarithm of its variance.

    It is a function of log_alpha = log_sigma2 - 2 log|mu| alone, with F as for `neg_kl` ([1]_,
    Eq. 1)::

        -KL = constant - F(u),    u = mu^2/(2 sigma^2)

    There is no epsilon and no clip: value and gradients are exact at mu = 0 and for any sigma.

    Parameters
    ----------
    mu, log_sigma2 : Tensor or float
        Means, and logarithms of variances: of shapes that broadcast, on one device, of the types
        that `neg_kl` takes. They are promoted as by `torch.result_type`. One of them may be a
        number of Python or a scalar of NumPy, which takes the type of the other.
    zero_at, log_c : float, optional
        The constant, as for `neg_kl`.
    reduction : {"none", "sum", "mean"}, optional
        What to return, as for `neg_kl`.

    Returns
    -------
    Tensor
        Of the broadcast shape and the promoted type, or of no dimensions; in float32 for half
        types under `torch.autocast`. At mu = 0 it is the constant; NaN where both limits meet (mu =
        0 with log_sigma2 = -inf, both infinite) and where NaN was given.

    Raises
    ------
    TypeError
        As for `neg_kl`, and if a tensor was given together with a NumPy array or a list.
    RuntimeError
        If the tensors are on different devices, or their shapes do not broadcast.
    ValueError
        As for `neg_kl`.

    See Also
    --------
    kl_normal : the same with the other sign, to be added to a loss.

    Notes
    -----
    As for `neg_kl`. In float64 gradients that are wanted are computed with the value and kept for
    the backward; in float32 and the half types, where kernels serve the tensors, nothing is kept
    but the arguments.

    References
    ----------
    .. [1] J. Hron, A. G. de G. Matthews, Z. Ghahramani, "Variational Gaussian Dropout is not
       Bayesian" (2017).

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
    """KL(q || p), to be *added to a loss*: ``-neg_kl(log_alpha, ...)``.

    The documentation of `neg_kl` holds for all but the sign.

    Parameters
    ----------
    log_alpha : Tensor
        The logarithm of alpha = sigma^2/mu^2, a ratio of variances.
    zero_at, log_c : float, optional
        The constant, as for `neg_kl`: KL vanishes at alpha = `zero_at`, by default as alpha -> inf.
    reduction : {"none", "sum", "mean"}, optional
        What to return, as for `neg_kl`.

    Returns
    -------
    Tensor
        Of the shape, type and device of `log_alpha`, or of no dimensions.

    Raises
    ------
    TypeError, ValueError
        As for `neg_kl`.

    Examples
    --------
    >>> import torch
    >>> from logunif_kl.torch import kl
    >>> kl(torch.tensor([0.0, 0.0]), reduction="sum")
    tensor(0.8534)
    """
    return -_of_log_alpha(log_alpha, zero_at, log_c, reduction)


def kl_normal(
    mu: Tensor | float,
    log_sigma2: Tensor | float,
    *,
    zero_at: float = ZERO_AT_INFINITY,
    log_c: float | None = None,
    reduction: str = "none",
) -> Tensor:
    """KL(q || p) of N(mu, sigma^2), to be *added to a loss*: ``-neg_kl_normal(...)``.

    The documentation of `neg_kl_normal` holds for all but the sign.

    Parameters
    ----------
    mu, log_sigma2 : Tensor or float
        Means of either sign, and logarithms of the variances.
    zero_at, log_c : float, optional
        The constant, as for `neg_kl`.
    reduction : {"none", "sum", "mean"}, optional
        What to return, as for `neg_kl`.

    Returns
    -------
    Tensor
        Of the broadcast shape, or of no dimensions.

    Raises
    ------
    TypeError, RuntimeError, ValueError
        As for `neg_kl_normal`.

    Examples
    --------
    >>> import torch
    >>> from logunif_kl.torch import kl_normal
    >>> kl_normal(torch.tensor([0.0, 1.0]), 0.0)
    tensor([0.0000, 0.4267])
    """
    return -_of_normal(mu, log_sigma2, zero_at, log_c, reduction)


def _derivative(log_alpha: Any, order: int) -> Tensor:
    x = _arguments.one(log_alpha)
    if torch.compiler.is_compiling():
        _compiling.allow()
    return _rules.of_log_alpha(x, order)


def _of_log_alpha(log_alpha: Any, zero_at: Any, log_c: Any, reduction: str) -> Tensor:
    constant = _constant(zero_at, log_c)
    added = _adds(reduction)
    x = _arguments.one(log_alpha)
    if torch.compiler.is_compiling():
        _compiling.allow()
    kind = x.dtype
    if constant != 0.0 and not added:
        x = working(x)
    result = _rules.total_of_log_alpha(x) if added else _rules.of_log_alpha(x, 0)
    return _finished(result, constant, reduction, x.numel(), kind)


def _of_normal(mu: Any, log_sigma2: Any, zero_at: Any, log_c: Any, reduction: str) -> Tensor:
    constant = _constant(zero_at, log_c)
    added = _adds(reduction)
    mu, log_sigma2 = _arguments.two(mu, log_sigma2)
    if torch.compiler.is_compiling():
        _compiling.allow()
    kind = mu.dtype
    if constant != 0.0 and not added:
        mu, log_sigma2 = working(mu), working(log_sigma2)
    result = _rules.of_normal(mu, log_sigma2, added)
    return _finished(result, constant, reduction, mu.numel(), kind)


def _constant(zero_at: Any, log_c: Any) -> float:
    if log_c is None and zero_at is not ZERO_AT_INFINITY:
        return _vanishing_at(zero_at)
    return additive_constant(zero_at, log_c)


def _vanishing_at(zero_at: Any) -> float:
    return additive_constant(zero_at)


# A compiler is to call it, not to trace it; the mark is explained in `_compiling`.
_vanishing_at._dynamo_marked_constant = True  # type: ignore[attr-defined]


def _adds(reduction: str) -> bool:
    check_reduction(reduction)
    return reduction != "none"


def _finished(
    result: Tensor, constant: float, reduction: str, size: int, dtype: torch.dtype
) -> Tensor:
    """Take the mean, add the constant, and then round what was computed for the half types."""
    if reduction == "mean":
        result = result / size
    if constant != 0.0:
        result = result + (constant * size if reduction == "sum" else constant)
    return result.to(dtype)
