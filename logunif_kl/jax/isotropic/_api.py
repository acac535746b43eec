"""The public functions for JAX arrays, differentiable any number of times.

`logunif_kl.neg_kl_complex` and the others call them when they are given arrays or tracers of JAX.
"""

from __future__ import annotations

from typing import Any

from ..._convention import ZERO_AT_INFINITY
from . import _evaluation


def neg_kl_complex(
    log_alpha: Any,
    *,
    zero_at: float = ZERO_AT_INFINITY,
    log_c: float | None = None,
    reduction: str = "none",
) -> Any:
    """-KL(q || p) of a complex weight: `logunif_kl.neg_kl_complex` of a JAX array.

    -KL = constant - Ein(u), u = exp(-log_alpha). All is as documented there.

    Parameters
    ----------
    log_alpha : array_like
        Of any shape and type that `logunif_kl.jax.neg_kl` takes.
    zero_at, log_c : float, optional
        The constant.
    reduction : {"none", "sum", "mean"}, optional
        What to return.

    Returns
    -------
    jax.Array
        Of the shape and type of `log_alpha`, or of no dimensions.

    Raises
    ------
    TypeError, ValueError
        As for `logunif_kl.jax.neg_kl`.

    Examples
    --------
    >>> from logunif_kl.jax.isotropic import neg_kl_complex
    >>> print(f"{neg_kl_complex(0.0):.4f}")
    -0.7966
    """
    return _evaluation.of_log_alpha(log_alpha, None, zero_at, log_c, reduction)


def neg_kl_complex_grad(log_alpha: Any) -> Any:
    """Compute 1 - exp(-u), the derivative of `neg_kl_complex` in log alpha.

    Parameters
    ----------
    log_alpha : array_like
        As for `neg_kl_complex`.

    Returns
    -------
    jax.Array
        Of the shape and type of `log_alpha`.

    Raises
    ------
    TypeError, ValueError
        As for `logunif_kl.jax.neg_kl_grad`.

    Examples
    --------
    >>> from logunif_kl.jax.isotropic import neg_kl_complex_grad
    >>> print(f"{neg_kl_complex_grad(0.0):.4f}")
    0.6321
    """
    return _evaluation.derivative(log_alpha, None, 1)


def neg_kl_complex_hess(log_alpha: Any) -> Any:
    """Compute -u exp(-u), the second derivative of `neg_kl_complex` in log alpha.

    Parameters
    ----------
    log_alpha : array_like
        As for `neg_kl_complex`.

    Returns
    -------
    jax.Array
        Of the shape and type of `log_alpha`.

    Raises
    ------
    TypeError, ValueError
        As for `logunif_kl.jax.neg_kl_hess`.

    Examples
    --------
    >>> from logunif_kl.jax.isotropic import neg_kl_complex_hess
    >>> print(f"{neg_kl_complex_hess(0.0):.4f}")
    -0.3679
    """
    return _evaluation.derivative(log_alpha, None, 2)


def neg_kl_complex_normal(
    mu: Any,
    log_sigma2: Any,
    *,
    zero_at: float = ZERO_AT_INFINITY,
    log_c: float | None = None,
    reduction: str = "none",
) -> Any:
    """-KL(q || p) of CN(mu, sigma^2): `logunif_kl.neg_kl_complex_normal` of a JAX array.

    -KL = constant - Ein(u), u = |mu|^2/sigma^2, sigma^2 = E|w - mu|^2. The
    gradient in a complex mu is d/d re - i d/d im, as everywhere in JAX.

    Parameters
    ----------
    mu : array_like
        Complex means, or their moduli.
    log_sigma2 : array_like
        Logarithms of the variances of the complex weights; real. The two are broadcast.
    zero_at, log_c : float, optional
        The constant.
    reduction : {"none", "sum", "mean"}, optional
        What to return.

    Returns
    -------
    jax.Array
        Real, of the broadcast shape, or of no dimensions.

    Raises
    ------
    TypeError, ValueError
        As for `logunif_kl.jax.neg_kl_normal`; a complex `mu` is not refused.

    Examples
    --------
    >>> import jax
    >>> from logunif_kl.jax.isotropic import neg_kl_complex_normal
    >>> print(f"{jax.grad(neg_kl_complex_normal)(0.6 + 0.8j, 0.0):.4f}")
    -0.7585+1.0114j
    """
    return _evaluation.of_normal(mu, log_sigma2, zero_at, log_c, reduction)


def kl_complex(
    log_alpha: Any,
    *,
    zero_at: float = ZERO_AT_INFINITY,
    log_c: float | None = None,
    reduction: str = "none",
) -> Any:
    """KL(q || p) of a complex weight, to be *added to a loss*: ``-neg_kl_complex(...)``.

    Parameters
    ----------
    log_alpha : array_like
        As for `neg_kl_complex`.
    zero_at, log_c : float, optional
        The constant.
    reduction : {"none", "sum", "mean"}, optional
        What to return.

    Returns
    -------
    jax.Array
        As of `neg_kl_complex`.

    Raises
    ------
    TypeError, ValueError
        As for `neg_kl_complex`.

    Examples
    --------
    >>> from logunif_kl.jax.isotropic import kl_complex
    >>> print(f"{kl_complex(0.0):.4f}")
    0.7966
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

    Parameters
    ----------
    mu, log_sigma2 : array_like
        As for `neg_kl_complex_normal`.
    zero_at, log_c : float, optional
        The constant.
    reduction : {"none", "sum", "mean"}, optional
        What to return.

    Returns
    -------
    jax.Array
        As of `neg_kl_complex_normal`.

    Raises
    ------
    TypeError, ValueError
        As for `neg_kl_complex_normal`.

    Examples
    --------
    >>> from logunif_kl.jax.isotropic import kl_complex_normal
    >>> print(f"{kl_complex_normal(1j, 0.0):.4f}")
    0.7966
    """
    return -neg_kl_complex_normal(mu, log_sigma2, zero_at=zero_at, log_c=log_c, reduction=reduction)


def neg_kl_vector(
    log_alpha: Any,
    k: float,
    *,
    zero_at: float = ZERO_AT_INFINITY,
    log_c: float | None = None,
    reduction: str = "none",
) -> Any:
    """-KL(q || p) of a group of k weights: `logunif_kl.neg_kl_vector` of a JAX array.

    -KL = constant - F_k(u), u = exp(-log_alpha)/2. All is as documented there.

    Parameters
    ----------
    log_alpha : array_like
        As for `neg_kl_complex`.
    k : float
        The number of weights in a group, from 0.5 to 10000; no derivative is taken in it.
    zero_at, log_c : float, optional
        The constant.
    reduction : {"none", "sum", "mean"}, optional
        What to return.

    Returns
    -------
    jax.Array
        Of the shape and type of `log_alpha`, or of no dimensions.

    Raises
    ------
    TypeError, ValueError
        As for `logunif_kl.neg_kl_vector`.

    Examples
    --------
    >>> from logunif_kl.jax.isotropic import neg_kl_vector
    >>> print(f"{neg_kl_vector(0.0, 9):.4f}")
    -0.4784
    """
    return _evaluation.of_log_alpha(log_alpha, k, zero_at, log_c, reduction)


def neg_kl_vector_grad(log_alpha: Any, k: float) -> Any:
    """Compute u M(1; k/2+1; -u), the derivative of `neg_kl_vector` in log alpha.

    Parameters
    ----------
    log_alpha : array_like
        As for `neg_kl_vector`.
    k : float
        The number of weights in a group, as for `neg_kl_vector`.

    Returns
    -------
    jax.Array
        Of the shape and type of `log_alpha`.

    Raises
    ------
    TypeError, ValueError
        As for `neg_kl_vector`.

    Examples
    --------
    >>> from logunif_kl.jax.isotropic import neg_kl_vector_grad
    >>> print(f"{neg_kl_vector_grad(0.0, 9):.4f}")
    0.4578
    """
    return _evaluation.derivative(log_alpha, k, 1)
