"""The functions of `logunif_kl.isotropic` for PyTorch tensors.

They can be differentiated any number of times, in every transform of `torch.func` and under
`torch.compile`. All dtypes are computed in float64, and the result is rounded once. A device
without float64 computes in float32. The dtypes, the transforms and the errors are otherwise the
same as for `logunif_kl.torch.neg_kl`.
"""

from __future__ import annotations

from typing import Final

import torch

from .._convention import ZERO_AT_INFINITY, positive
from .._isotropic import dimensions
from ._isotropic import of_log_alpha, of_normal

Tensor = torch.Tensor

__all__ = [
    "kl_complex",
    "kl_complex_normal",
    "kl_vector",
    "neg_kl_complex",
    "neg_kl_complex_grad",
    "neg_kl_complex_hess",
    "neg_kl_complex_normal",
    "neg_kl_vector",
    "neg_kl_vector_grad",
]


def neg_kl_complex(
    log_alpha: Tensor,
    *,
    zero_at: float = ZERO_AT_INFINITY,
    log_c: float | None = None,
    reduction: str = "none",
) -> Tensor:
    """Compute -KL of complex weights from log_alpha, as `logunif_kl.neg_kl_complex` does.

    Examples
    --------
    >>> import torch
    >>> from logunif_kl.torch.isotropic import neg_kl_complex
    >>> neg_kl_complex(torch.tensor(0.0))
    tensor(-0.7966)
    """
    return of_log_alpha(log_alpha, None, 0, zero_at, log_c, reduction)


def neg_kl_complex_grad(log_alpha: Tensor) -> Tensor:
    """Compute the derivative in log_alpha, as `logunif_kl.neg_kl_complex_grad` does.

    Examples
    --------
    >>> import torch
    >>> from logunif_kl.torch.isotropic import neg_kl_complex_grad
    >>> neg_kl_complex_grad(torch.tensor(0.0))
    tensor(0.6321)
    """
    return of_log_alpha(log_alpha, None, 1)


def neg_kl_complex_hess(log_alpha: Tensor) -> Tensor:
    """Compute the second derivative in log_alpha, as `logunif_kl.neg_kl_complex_hess` does.

    Examples
    --------
    >>> import torch
    >>> from logunif_kl.torch.isotropic import neg_kl_complex_hess
    >>> neg_kl_complex_hess(torch.tensor(0.0))
    tensor(-0.3679)
    """
    return of_log_alpha(log_alpha, None, 2)


def neg_kl_complex_normal(
    mu: Tensor | complex,
    log_sigma2: Tensor | float,
    *,
    zero_at: float = ZERO_AT_INFINITY,
    log_c: float | None = None,
    reduction: str = "none",
) -> Tensor:
    """Compute -KL from mu and log_sigma2, as `logunif_kl.neg_kl_complex_normal` does.

    The gradient in a complex mu is d/d re + i d/d im, which is PyTorch's convention.

    Examples
    --------
    >>> import torch
    >>> from logunif_kl.torch.isotropic import neg_kl_complex_normal
    >>> mu = torch.tensor([0.0, 0.6 + 0.8j], requires_grad=True)
    >>> neg_kl_complex_normal(mu, 0.0, reduction="sum").backward()
    >>> mu.grad
    tensor([ 0.0000+0.0000j, -0.7585-1.0114j])
    """
    return of_normal(mu, log_sigma2, zero_at, log_c, reduction)


def neg_kl_vector(
    log_alpha: Tensor,
    k: float,
    *,
    zero_at: float = ZERO_AT_INFINITY,
    log_c: float | None = None,
    reduction: str = "none",
) -> Tensor:
    """Compute -KL of groups of k weights for a number k, as `logunif_kl.neg_kl_vector` does.

    Examples
    --------
    >>> import torch
    >>> from logunif_kl.torch.isotropic import neg_kl_vector
    >>> neg_kl_vector(torch.tensor(0.0), 9)
    tensor(-0.4784)
    """
    return of_log_alpha(log_alpha, dimensions(k), 0, zero_at, log_c, reduction)


def neg_kl_vector_grad(log_alpha: Tensor, k: float) -> Tensor:
    """Compute the derivative in log_alpha for a number k, as `logunif_kl.neg_kl_vector_grad` does.

    Examples
    --------
    >>> import torch
    >>> from logunif_kl.torch.isotropic import neg_kl_vector_grad
    >>> neg_kl_vector_grad(torch.tensor(0.0), 9)
    tensor(0.4578)
    """
    return of_log_alpha(log_alpha, dimensions(k), 1)


kl_complex: Final = positive(
    neg_kl_complex,
    """
    >>> import torch
    >>> from logunif_kl.torch.isotropic import kl_complex
    >>> kl_complex(torch.tensor(0.0))
    tensor(0.7966)
    """,
)
kl_complex_normal: Final = positive(
    neg_kl_complex_normal,
    """
    >>> import torch
    >>> from logunif_kl.torch.isotropic import kl_complex_normal
    >>> kl_complex_normal(torch.tensor(1j), 0.0)
    tensor(0.7966)
    """,
)
kl_vector: Final = positive(
    neg_kl_vector,
    """
    >>> import torch
    >>> from logunif_kl.torch.isotropic import kl_vector
    >>> kl_vector(torch.tensor(0.0), 9)
    tensor(0.4784)
    """,
)
