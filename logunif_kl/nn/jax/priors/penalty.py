"""Compute -KL exactly, by a published approximation, by a fit, or from another prior.

Each approximation has its own gradient function, because automatic differentiation of its value
would overflow where the gradient function does not.
"""

# mypy: allow-untyped-calls
from __future__ import annotations

from collections.abc import Callable, Sequence
from functools import lru_cache, partial
from typing import Any

import jax
import jax.numpy as jnp
import numpy as np

from ....jax import neg_kl, neg_kl_normal
from ....jax.isotropic import neg_kl_vector
from ...penalty import is_exact, is_other_prior
from ...priors import returned
from ...sparsity import SILENT
from ...terms import Term, of_groups
from ..noise import widened
from .proper import NormalPrior

Array = Any
Function = Callable[[Array], Array]

_STANDARD = NormalPrior(1.0)
_MOST = 700.0
"""The largest log alpha passed to a NumPy function. Up to this limit alpha is finite."""


def total(penalty: Any, terms: Sequence[Term]) -> Array:
    """Return the sum of -KL over the terms of a posterior that can have this penalty."""
    sums = [_of_term(penalty, term) for term in terms]
    return sum(sums[1:], sums[0])


def _of_term(penalty: Any, term: Term) -> Array:
    arrays = [widened(array) for array in term.arrays]
    if term.grouped:
        return neg_kl_vector(*of_groups(jnp, *arrays)).sum()
    if len(arrays) == 1:
        return term.count * _of_alpha(penalty)(*arrays).sum()
    mu, log_sigma2 = arrays
    # A pruned weight adds 0 to -KL, even if an approximation is infinite there.
    pruned = (mu == 0) & (log_sigma2 <= SILENT)
    mu, log_sigma2 = jnp.where(pruned, 1, mu), jnp.where(pruned, 0, log_sigma2)
    function = _of_normal(_STANDARD if term.standard else penalty)
    return term.count * jnp.where(pruned, 0, function(mu, log_sigma2)).sum()


def _of_alpha(penalty: Any) -> Function:
    """Return -KL as a function of log alpha."""
    if is_exact(penalty):
        return neg_kl
    return partial(_approximate, *_parts(penalty))


def _of_normal(penalty: Any) -> Callable[[Array, Array], Array]:
    """Return -KL as a function of mu and log sigma^2."""
    if is_exact(penalty):
        return neg_kl_normal
    if is_other_prior(penalty):
        return lambda mu, log_sigma2: returned(penalty, mu, penalty.neg_kl(mu, log_sigma2))
    return partial(_approximate_normal, *_parts(penalty))


def _parts(penalty: Any) -> tuple[Function, Function]:
    """Return the value and the derivative in log alpha of an approximation."""
    return _of_method(penalty) if isinstance(penalty, str) else _of_fit(penalty)


@lru_cache(maxsize=64)
def _of_fit(fit: Any) -> tuple[Function, Function]:
    return fit.neg_kl, fit.neg_kl_grad


@lru_cache(maxsize=64)
def _of_method(name: str) -> tuple[Function, Function]:
    """Return a closed form in JAX, or a callback to a method that NumPy computes."""
    from ....methods import METHODS, _kingma, _lower_bound, _molchanov

    gradient: Any = METHODS[name].gradient
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
