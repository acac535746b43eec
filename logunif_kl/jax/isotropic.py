"""The functions of `logunif_kl.isotropic` for arrays and tracers of JAX.

They can be differentiated any number of times in either mode. float32 and the half types are
computed in float32. Types, transforms and errors are the same as for `logunif_kl.jax.neg_kl`.
"""

from __future__ import annotations

from typing import Any, Final

from jax import Array

from .._convention import ZERO_AT_INFINITY, positive
from .._isotropic import dimensions
from ._isotropic import of_log_alpha, of_normal

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
    log_alpha: Any,
    *,
    zero_at: float = ZERO_AT_INFINITY,
    log_c: float | None = None,
    reduction: str = "none",
) -> Array:
    """Compute `logunif_kl.neg_kl_complex` of JAX arrays.

    Examples
    --------
    >>> from logunif_kl.jax.isotropic import neg_kl_complex
    >>> print(f"{neg_kl_complex(0.0):.4f}")
    -0.7966
    """
    return of_log_alpha(log_alpha, None, 0, zero_at, log_c, reduction)


def neg_kl_complex_grad(log_alpha: Any) -> Array:
    """Compute `logunif_kl.neg_kl_complex_grad` of JAX arrays.

    Examples
    --------
    >>> from logunif_kl.jax.isotropic import neg_kl_complex_grad
    >>> print(f"{neg_kl_complex_grad(0.0):.4f}")
    0.6321
    """
    return of_log_alpha(log_alpha, None, 1)


def neg_kl_complex_hess(log_alpha: Any) -> Array:
    """Compute `logunif_kl.neg_kl_complex_hess` of JAX arrays.

    Examples
    --------
    >>> from logunif_kl.jax.isotropic import neg_kl_complex_hess
    >>> print(f"{neg_kl_complex_hess(0.0):.4f}")
    -0.3679
    """
    return of_log_alpha(log_alpha, None, 2)


def neg_kl_complex_normal(
    mu: Any,
    log_sigma2: Any,
    *,
    zero_at: float = ZERO_AT_INFINITY,
    log_c: float | None = None,
    reduction: str = "none",
) -> Array:
    """Compute `logunif_kl.neg_kl_complex_normal` of JAX arrays.

    The gradient in a complex mu is d/d re - i d/d im, as everywhere in JAX.

    Examples
    --------
    >>> import jax
    >>> from logunif_kl.jax.isotropic import neg_kl_complex_normal
    >>> print(f"{jax.grad(neg_kl_complex_normal)(0.6 + 0.8j, 0.0):.4f}")
    -0.7585+1.0114j
    """
    return of_normal(mu, log_sigma2, zero_at, log_c, reduction)


def neg_kl_vector(
    log_alpha: Any,
    k: float,
    *,
    zero_at: float = ZERO_AT_INFINITY,
    log_c: float | None = None,
    reduction: str = "none",
) -> Array:
    """Compute `logunif_kl.neg_kl_vector` of JAX arrays; `k` must be static under `jax.jit`.

    Examples
    --------
    >>> from logunif_kl.jax.isotropic import neg_kl_vector
    >>> print(f"{neg_kl_vector(0.0, 9):.4f}")
    -0.4784
    """
    return of_log_alpha(log_alpha, dimensions(k), 0, zero_at, log_c, reduction)


def neg_kl_vector_grad(log_alpha: Any, k: float) -> Array:
    """Compute `logunif_kl.neg_kl_vector_grad` of JAX arrays; `k` must be static under `jax.jit`.

    Examples
    --------
    >>> from logunif_kl.jax.isotropic import neg_kl_vector_grad
    >>> print(f"{neg_kl_vector_grad(0.0, 9):.4f}")
    0.4578
    """
    return of_log_alpha(log_alpha, dimensions(k), 1)


kl_complex: Final = positive(
    neg_kl_complex,
    """
    >>> from logunif_kl.jax.isotropic import kl_complex
    >>> print(f"{kl_complex(0.0):.4f}")
    0.7966
    """,
)
kl_complex_normal: Final = positive(
    neg_kl_complex_normal,
    """
    >>> from logunif_kl.jax.isotropic import kl_complex_normal
    >>> print(f"{kl_complex_normal(1j, 0.0):.4f}")
    0.7966
    """,
)
kl_vector: Final = positive(
    neg_kl_vector,
    """
    >>> from logunif_kl.jax.isotropic import kl_vector
    >>> print(f"{kl_vector(0.0, 9):.4f}")
    0.4784
    """,
)
