"""Compute -KL exactly, by a published approximation, by a fit, or from another prior.

Each approximation has its own gradient function, because automatic differentiation of its value
would overflow where the gradient function does not.
"""

# mypy: allow-untyped-calls
from __future__ import annotations

from collections.abc import Callable
from functools import lru_cache, partial
from typing import Any

import jax
import jax.numpy as jnp
import numpy as np

from ..._errors import shown
from ..._layers import is_prior, refused, returned
from .. import neg_kl, neg_kl_normal
from ..isotropic import neg_kl_vector
from ._noise import widened

Array = Any
Function = Callable[[Array], Array]

_MOST = 700.0
"""The largest log alpha passed to a NumPy function. Up to this limit alpha is finite."""


def of_alpha(penalty: Any) -> Function:
    """Return -KL as a function of log alpha."""
    if _is_exact(penalty):
        return neg_kl
    if _is_other_prior(penalty):
        raise ValueError(f"penalty={shown(penalty)} was given with a Dropout posterior: use Normal")
    value, slope = _parts(penalty)
    return partial(_approximate, value, slope)


def of_normal(penalty: Any) -> Callable[[Array, Array], Array]:
    """Return -KL as a function of mu and log sigma^2."""
    if _is_exact(penalty):
        return neg_kl_normal
    if _is_other_prior(penalty):
        return lambda mu, log_sigma2: returned(penalty, mu, penalty.neg_kl(mu, log_sigma2))
    value, slope = _parts(penalty)
    return partial(_approximate_normal, value, slope)


def of_groups(penalty: Any, log_alpha: Array, size: int) -> Array | None:
    """Return -KL of each group of `size` weights, or None for a prior of single weights."""
    if _is_exact(penalty):
        return neg_kl_vector(widened(log_alpha), size)
    if _is_other_prior(penalty):
        return None
    raise ValueError(
        f"penalty={shown(penalty)} approximates the KL of single weights, but a posterior has "
        "groups: pass 'exact' or a prior"
    )


def _is_exact(penalty: Any) -> bool:
    return isinstance(penalty, str) and penalty == "exact"


def _is_other_prior(penalty: Any) -> bool:
    from ...fitting import Fit

    return is_prior(penalty) and not isinstance(penalty, Fit)


def _parts(penalty: Any) -> tuple[Function, Function]:
    """Return the value and the derivative in log alpha of an approximation."""
    if isinstance(penalty, str):
        return _of_method(penalty)
    from ...fitting import Fit

    if isinstance(penalty, Fit):
        return _of_fit(penalty)
    raise refused(penalty, "'exact'")


@lru_cache(maxsize=64)
def _of_fit(fit: Any) -> tuple[Function, Function]:
    return fit.neg_kl, fit.neg_kl_grad


@lru_cache(maxsize=64)
def _of_method(name: str) -> tuple[Function, Function]:
    """Return a closed form in JAX, or a callback to a method that NumPy computes."""
    from ...methods import METHODS, _kingma, _lower_bound, _molchanov

    if name not in METHODS:
        raise ValueError(
            f"penalty={shown(name)} is not known: pass 'exact', a Fit or one of "
            f"{', '.join(name for name, method in METHODS.items() if method.gradient)}"
        )
    gradient = METHODS[name].gradient
    if gradient is None:
        raise ValueError(f"penalty={name!r} has no gradient to train with: pass 'exact'")
    for module in (_kingma, _lower_bound, _molchanov):
        if METHODS[name].function.__module__ == module.__name__:
            return partial(module._value, jnp), partial(module._slope, jnp)
    return partial(_outside, METHODS[name].function), partial(_outside, gradient)


def _outside(function: Callable[[np.ndarray], Any], x: Array) -> Array:
    """Call a function of NumPy arrays from a JAX program."""

    def called(x: Any) -> np.ndarray:
        given = np.asarray(x)
        # Clip x: for larger x some methods give NaN, as XLA's threads flush subnormals to zero.
        with np.errstate(all="ignore"):
            return np.asarray(function(np.minimum(given, _MOST)), given.dtype)

    like = jax.ShapeDtypeStruct(x.shape, x.dtype)
    return jax.pure_callback(called, like, x, vmap_method="expand_dims")


@partial(jax.custom_jvp, nondiff_argnums=(0, 1))
def _approximate(value: Function, slope: Function, x: Array) -> Array:
    return value(x)


@_approximate.defjvp
def _approximate_rule(value: Function, slope: Function, primals: Any, tangents: Any) -> Any:
    (x,), (tangent,) = primals, tangents
    return _approximate(value, slope, x), slope(x) * tangent


@partial(jax.custom_jvp, nondiff_argnums=(0, 1))
def _approximate_normal(value: Function, slope: Function, mu: Array, log_sigma2: Array) -> Array:
    return value(_log_alpha(mu, log_sigma2))


@_approximate_normal.defjvp
def _approximate_normal_rule(value: Function, slope: Function, primals: Any, tangents: Any) -> Any:
    (mu, log_sigma2), (along_mu, along_log_sigma2) = primals, tangents
    # At mu = 0 log alpha is inf. Both derivatives are 0: -KL is even in mu, and constant in sigma.
    at_zero = mu == 0.0
    nonzero = jnp.where(at_zero, 1.0, mu)
    found = jnp.where(at_zero, 0.0, slope(_log_alpha(nonzero, log_sigma2)))
    along = along_log_sigma2 - 2.0 * along_mu / nonzero
    return _approximate_normal(value, slope, mu, log_sigma2), found * along


def _log_alpha(mu: Array, log_sigma2: Array) -> Array:
    return log_sigma2 - 2.0 * jnp.log(jnp.abs(mu))
