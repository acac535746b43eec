"""KL from posteriors to the prior C/|w|, for NumPyro and TensorFlow Probability.

For a log-normal posterior

    -KL(LogNormal(loc, scale) || C/|w|) = H(log w) + log C = 1/2 log(2 pi e) + log scale + log C

because log w is N(loc, scale^2), the entropy is H(w) = H(log w) + E log w, and the prior p has
E log p(w) = log C - E log w. For a Gaussian of several weights with the covariance S

    KL(N(loc, S) || C/|w|) = sum_i KL(N(loc_i, S_ii) || C/|w|) + 1/2 (sum_i log S_ii - log det S)

because the entropy of N(loc, S) is 1/2 log det(2 pi e S). For the other posteriors see
`logunif_kl._arithmetic.posteriors`.
"""

from __future__ import annotations

import math
from collections.abc import Callable
from functools import partial
from typing import Any, NamedTuple

import jax
import jax.numpy as jnp

from .._arithmetic import posteriors
from .._arithmetic.unit import marginals, power_of_two, unit
from .._convention import HALF_LOG_2_PI_E, PROPER_CONSTANT, Constants
from . import _rules
from ._arguments import arguments, evaluate

Array = Any

_EULER = 0.5772156649015329


def kl_of_normal(constants: Constants, loc: Any, scale: Any) -> Any:
    """Return KL(N(loc, scale^2) || C/|w|) for each element of the broadcast loc and scale."""
    return evaluate(_normal, -constants.added, loc=loc, scale=scale)


def _normal(loc: Array, scale: Array) -> Array:
    loc, scale = _scaled(loc, scale)
    return _rules.neg_kl_normal(loc, 2.0 * jnp.log(scale), -1.0)


def kl_of_triangular(constants: Constants, loc: Any, scale_tril: Any) -> Any:
    """Return KL(N(loc, L L^T) || C/|w|) of vectors, with L the lower triangle of scale_tril."""
    (factor,), dtype = arguments(scale_tril=jnp.tril(scale_tril))
    diagonal = jnp.diagonal(factor, axis1=-2, axis2=-1)
    scale, excess = _marginals(diagonal, jnp.tril(factor, -1))
    return _correlated(constants, loc, scale, excess.sum(-1), dtype)


def kl_of_low_rank(constants: Constants, loc: Any, factor: Any, diagonal: Any) -> Any:
    """Return KL(N(loc, factor factor^T + diag(diagonal)) || C/|w|) of vectors.

    The matrix determinant lemma gives the determinant of the covariance from a small matrix.
    """
    (others, diagonal), dtype = arguments(factor=factor, diagonal=jnp.asarray(diagonal)[..., None])
    diagonal = jnp.sqrt(diagonal[..., 0])
    ratio = others / diagonal[..., None]
    square = jnp.matmul(ratio.mT, ratio, precision="highest")
    root = jnp.linalg.cholesky(square + jnp.eye(ratio.shape[-1], dtype=ratio.dtype))
    log_root = jnp.log(jnp.diagonal(root, axis1=-2, axis2=-1)).sum(-1)
    scale, excess = _marginals(diagonal, others)
    return _correlated(constants, loc, scale, excess.sum(-1) - log_root, dtype)


def kl_of_matrix(constants: Constants, loc: Any, scale: Any) -> Any:
    """Return KL(N(loc, A A^T) || C/|w|) of vectors, with A = scale any square matrix."""
    (factor,), dtype = arguments(scale=scale)
    deviation, _ = _marginals(jnp.zeros_like(factor[..., 0]), factor)
    excess = -jnp.linalg.slogdet(factor / deviation[..., None])[1]
    return _correlated(constants, loc, deviation, excess, dtype)


def _marginals(diagonal: Array, others: Array) -> tuple[Array, Array]:
    size = jnp.maximum(jnp.abs(diagonal), jnp.abs(others).max(-1))
    return marginals(jnp, jax.lax.stop_gradient(size), diagonal, others)


def _correlated(constants: Constants, loc: Any, scale: Array, excess: Array, dtype: Any) -> Any:
    """Return the sum of the marginals' KL, plus `excess`, the total correlation of the weights."""
    each = kl_of_normal(constants, loc, scale)
    return (each.sum(-1) + excess).astype(jnp.promote_types(jnp.asarray(loc).dtype, dtype))


def _log_normal(loc: Array, scale: Array) -> Array:
    return -jnp.log(scale)


def _laplace(loc: Array, scale: Array) -> Array:
    return _differentiable("laplace", *_scaled(loc, scale))


def _cauchy(loc: Array, scale: Array) -> Array:
    return posteriors.cauchy(jnp, *_scaled(loc, scale))


def _uniform(low: Array, high: Array) -> Array:
    size = jax.lax.stop_gradient(jnp.maximum(jnp.abs(low), jnp.abs(high)))
    factor = power_of_two(jnp, size)
    return _differentiable("uniform", low * factor, high * factor)


def _student(df: Array, loc: Array, scale: Array) -> Array:
    df_, loc_, scale_ = jax.lax.stop_gradient((df, loc, scale))
    concrete = not isinstance(loc_, jax.core.Tracer)
    if concrete and not bool(jnp.all((loc_ == 0.0) | jnp.isnan(loc_))):
        raise NotImplementedError(
            "KL of StudentT has no closed form where loc is not 0: use "
            "logunif_kl.neg_kl_posterior of scipy.stats.t, or samples of log_prob"
        )
    # x^2/2, which is 0 at loc = 0, gives KL its second derivative in loc: 1/scale^2 for every df.
    loc, scale = _scaled(loc, scale)
    x = loc / scale
    result = 0.5 * (x * x) - posteriors.student(jnp, df)
    return jnp.where((loc_ == 0.0) & (scale_ > 0.0) & (df_ > 0.0), result, jnp.nan)


def _gamma(concentration: Array, rate: Array) -> Array:
    result = _zero(rate) - posteriors.gamma_entropy(jnp, concentration)
    return jnp.where(jax.lax.stop_gradient(concentration) > 0.0, result, jnp.nan)


def _zero(scale: Array) -> Array:
    """Return 0, with derivative 0, where a scale or rate is positive, and NaN elsewhere."""
    valid = jax.lax.stop_gradient(scale) > 0.0
    return jnp.where(valid, jnp.clip(scale, 0.0, 0.0), jnp.nan)


def _scaled(loc: Array, scale: Array) -> tuple[Array, Array]:
    """Multiply loc and scale by a common factor, so that no quotient overflows."""
    factor = unit(jnp, jax.lax.rsqrt, *jax.lax.stop_gradient((loc, scale)))
    return loc * factor, scale * factor


class Family(NamedTuple):
    """A family of posteriors with a closed form: KL + log C as a function of the parameters."""

    parameters: tuple[str, ...]
    function: Callable[..., Array]
    """Called with arrays of one shape."""

    constant: float = 0.0
    """Added to the result of `function`."""

    def kl(self, constants: Constants, *values: Any) -> Any:
        """Return KL(posterior || C/|w|) for each element of the broadcast parameters."""
        given = dict(zip(self.parameters, values, strict=True))
        return evaluate(self.function, self.constant - constants.log_c, **given)


_LOC_SCALE = ("loc", "scale")
FAMILIES = {
    "LogNormal": Family(_LOC_SCALE, _log_normal, -HALF_LOG_2_PI_E),
    "Laplace": Family(_LOC_SCALE, _laplace, -1.0 - math.log(2.0)),
    "Cauchy": Family(_LOC_SCALE, _cauchy, -math.log(4.0 * math.pi)),
    "Uniform": Family(("low", "high"), _uniform),
    "StudentT": Family(("df", "loc", "scale"), _student, -PROPER_CONSTANT),
    "Gamma": Family(("concentration", "rate"), _gamma),
    "HalfNormal": Family(("scale",), _zero, math.log(2.0) - PROPER_CONSTANT),
    "Exponential": Family(("rate",), _zero, -1.0 - _EULER),
}
"""All families except Normal, by their names in NumPyro and TensorFlow Probability."""


@partial(jax.custom_jvp, nondiff_argnums=(0, 3, 4))
def _differentiable(name: str, a: Array, b: Array, i: int = 0, j: int = 0) -> Array:
    """Compute the named function; differentiate "laplace" i times in a and j times in b."""
    return _computed(name, a, b, i, j)


@partial(jax.jit, static_argnums=(0, 3, 4), inline=True)
def _computed(name: str, a: Array, b: Array, i: int, j: int) -> Array:
    orders = (i, j) if name == "laplace" else ()
    return posteriors.FUNCTIONS[name](jnp, a, b, *orders)


@partial(_differentiable.defjvp, symbolic_zeros=True)
def _rule(name: str, i: int, j: int, primals: Any, tangents: Any) -> tuple[Array, Array]:
    a, b = primals
    value = _differentiable(name, a, b, i, j)
    slopes = posteriors.slopes(_differentiable, name, a, b, i, j)
    return value, _rules.along(tangents, slopes, value)
