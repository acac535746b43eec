"""KL of posteriors to the prior C/|w|, for NumPyro and TensorFlow Probability.

For a log-normal posterior

    -KL(LogNormal(loc, scale) || C/|w|) = h(log w) + log C = 1/2 log(2 pi e) + log scale + log C

because log w is N(loc, scale^2), the entropy of w is that of log w plus E log w, and
E log p(w) = log C - E log w. For a Gaussian of several weights with the covariance S

    KL(N(loc, S) || C/|w|) = sum_i KL(N(loc_i, S_ii) || C/|w|) + 1/2 (sum_i log S_ii - log det S)

because its entropy is 1/2 log det(2 pi e S). For the others see
`logunif_kl._arithmetic.posteriors`.
"""

from __future__ import annotations

import math
from functools import partial
from typing import Any

import jax
import jax.numpy as jnp
from jax.custom_derivatives import SymbolicZero

from .._arithmetic import posteriors
from .._arithmetic.unit import marginals, power_of_two, unit
from .._convention import HALF_LOG_2_PI_E, PROPER_CONSTANT, Constants
from . import _rules
from ._arguments import arguments, finished

Array = Any

_EULER = 0.5772156649015329
_LOG_2 = math.log(2.0)


def kl_of_normal(constants: Constants, loc: Any, scale: Any) -> Any:
    """KL(N(loc, scale^2) || C/|w|), of the shape of both."""
    (loc, scale), dtype = arguments(loc=loc, scale=scale)
    detached = jax.lax.stop_gradient((loc, scale))
    factor = unit(jnp, jax.lax.rsqrt, *detached)
    result = _rules.neg_kl_normal(loc * factor, 2.0 * jnp.log(scale * factor), -1.0)
    return finished(result, -constants.added, "none", dtype)


def kl_of_triangular(constants: Constants, loc: Any, scale_tril: Any) -> Any:
    """KL(N(loc, L L^T) || C/|w|) of vectors, with L the lower triangle of scale_tril."""
    factor, dtype = _matrix(jnp.tril(scale_tril))
    diagonal = jnp.diagonal(factor, axis1=-2, axis2=-1)
    scale, excess = _marginals(diagonal, jnp.tril(factor, -1))
    return _correlated(constants, loc, scale, excess.sum(-1), dtype)


def kl_of_low_rank(constants: Constants, loc: Any, factor: Any, diagonal: Any) -> Any:
    """KL(N(loc, factor factor^T + diag(diagonal)) || C/|w|) of vectors.

    The determinant is that of a small matrix, by the matrix determinant lemma.
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
    """KL(N(loc, A A^T) || C/|w|) of vectors, with A = scale any square matrix."""
    factor, dtype = _matrix(scale)
    deviation, _ = _marginals(jnp.zeros_like(factor[..., 0]), factor)
    excess = -jnp.linalg.slogdet(factor / deviation[..., None])[1]
    return _correlated(constants, loc, deviation, excess, dtype)


def _matrix(factor: Any) -> tuple[Array, Any]:
    (factor,), dtype = arguments(scale=factor)
    return factor, dtype


def _marginals(diagonal: Array, others: Array) -> tuple[Array, Array]:
    size = jnp.maximum(jnp.abs(diagonal), jnp.abs(others).max(-1))
    return marginals(jnp, jax.lax.stop_gradient(size), diagonal, others)


def _correlated(constants: Constants, loc: Any, scale: Array, excess: Array, dtype: Any) -> Any:
    """Add what the marginals give, and the information between the weights."""
    each = kl_of_normal(constants, loc, scale)
    return (each.sum(-1) + excess).astype(jnp.promote_types(jnp.asarray(loc).dtype, dtype))


def kl_of_log_normal(constants: Constants, loc: Any, scale: Any) -> Any:
    """KL(LogNormal(loc, scale) || C/|w|), of the shape of both."""
    result = -(jnp.log(scale) + (HALF_LOG_2_PI_E + constants.log_c))
    return jnp.broadcast_to(result, jnp.broadcast_shapes(jnp.shape(loc), jnp.shape(scale)))


def kl_of_laplace(constants: Constants, loc: Any, scale: Any) -> Any:
    """KL(Laplace(loc, scale) || C/|w|), of the shape of both."""
    (loc, scale), dtype = arguments(loc=loc, scale=scale)
    result = _ruled("laplace", *_scaled(loc, scale))
    return finished(result, (-1.0 - _LOG_2) - constants.log_c, "none", dtype)


def kl_of_cauchy(constants: Constants, loc: Any, scale: Any) -> Any:
    """KL(Cauchy(loc, scale) || C/|w|), of the shape of both."""
    (loc, scale), dtype = arguments(loc=loc, scale=scale)
    result = posteriors.cauchy(jnp, *_scaled(loc, scale))
    return finished(result, -math.log(4.0 * math.pi) - constants.log_c, "none", dtype)


def kl_of_uniform(constants: Constants, low: Any, high: Any) -> Any:
    """KL(Uniform(low, high) || C/|w|), of the shape of both."""
    (low, high), dtype = arguments(low=low, high=high)
    size = jax.lax.stop_gradient(jnp.maximum(jnp.abs(low), jnp.abs(high)))
    factor = power_of_two(jnp, size)
    result = _ruled("uniform", low * factor, high * factor)
    return finished(result, -constants.log_c, "none", dtype)


def kl_of_student(constants: Constants, df: Any, loc: Any, scale: Any) -> Any:
    """KL(StudentT(df, loc, scale) || C/|w|) for loc = 0, of the shape of all three.

    Where loc is another number it is NaN if loc is traced.

    Raises
    ------
    NotImplementedError
        If loc is not traced and holds another number than 0.
    """
    (df, loc, scale), dtype = _three(df, loc, scale)
    df_, loc_, scale_ = jax.lax.stop_gradient((df, loc, scale))
    concrete = not isinstance(loc_, jax.core.Tracer)
    if concrete and not bool(jnp.all((loc_ == 0.0) | jnp.isnan(loc_))):
        raise NotImplementedError(
            "KL of StudentT has no closed form where loc is not 0: use "
            "logunif_kl.neg_kl_posterior of scipy.stats.t, or samples of log_prob"
        )
    # For every df the second derivative of E log|w| in loc is 1/scale^2 at 0.
    loc, scale = _scaled(loc, scale)
    x = loc / scale
    result = 0.5 * (x * x) - posteriors.student(jnp, df)
    result = jnp.where((loc_ == 0.0) & (scale_ > 0.0) & (df_ > 0.0), result, jnp.nan)
    return finished(result, -PROPER_CONSTANT - constants.log_c, "none", dtype)


def kl_of_gamma(constants: Constants, concentration: Any, rate: Any) -> Any:
    """KL(Gamma(concentration, rate) || C/|w|), of the shape of both; rate may be a scale."""
    (a, rate), dtype = arguments(concentration=concentration, rate=rate)
    result = _nothing(rate) - posteriors.gamma_entropy(jnp, a)
    result = jnp.where(jax.lax.stop_gradient(a) > 0.0, result, jnp.nan)
    return finished(result, -constants.log_c, "none", dtype)


def kl_of_half_normal(constants: Constants, scale: Any) -> Any:
    """KL(HalfNormal(scale) || C/|w|): the same for every scale."""
    (scale,), dtype = arguments(scale=scale)
    constant = (_LOG_2 - PROPER_CONSTANT) - constants.log_c
    return finished(_nothing(scale), constant, "none", dtype)


def kl_of_exponential(constants: Constants, rate: Any) -> Any:
    """KL(Exponential(rate) || C/|w|): the same for every rate."""
    (rate,), dtype = arguments(rate=rate)
    return finished(_nothing(rate), (-1.0 - _EULER) - constants.log_c, "none", dtype)


@partial(jax.custom_jvp, nondiff_argnums=(0, 3, 4))
def _ruled(name: str, a: Array, b: Array, i: int = 0, j: int = 0) -> Array:
    """Compute a function of two arrays; or, of laplace, its derivative."""
    return _computed(name, a, b, i, j)


@partial(jax.jit, static_argnums=(0, 3, 4), inline=True)
def _computed(name: str, a: Array, b: Array, i: int, j: int) -> Array:
    orders = (i, j) if name == "laplace" else ()
    return posteriors.FUNCTIONS[name](jnp, a, b, *orders)


@partial(_ruled.defjvp, symbolic_zeros=True)
def _rule(name: str, i: int, j: int, primals: Any, tangents: Any) -> tuple[Array, Array]:
    a, b = primals
    value = _ruled(name, a, b, i, j)
    slopes = posteriors.slopes(_ruled, name, a, b, i, j)
    terms = [
        tangent * slope
        for tangent, slope in zip(tangents, slopes, strict=True)
        if type(tangent) is not SymbolicZero
    ]
    return value, sum(terms[1:], terms[0]) if terms else jnp.zeros_like(value)


def _scaled(loc: Array, scale: Array) -> tuple[Array, Array]:
    """Take a unit in which no quotient overflows."""
    factor = unit(jnp, jax.lax.rsqrt, *jax.lax.stop_gradient((loc, scale)))
    return loc * factor, scale * factor


def _three(df: Any, loc: Any, scale: Any) -> tuple[list[Array], Any]:
    """Promote and broadcast, as `arguments` does with two."""
    dtype = jax.eval_shape(lambda *v: jnp.exp(sum(v)), df, loc, scale).dtype
    working = dtype if dtype in (jnp.float32, jnp.float64) else jnp.dtype(jnp.float32)
    values = [jnp.asarray(value).astype(working) for value in (df, loc, scale)]
    return list(jnp.broadcast_arrays(*values)), dtype


def _nothing(scale: Array) -> Array:
    """Return 0 as a function of a scale or rate, on which KL does not depend."""
    valid = jax.lax.stop_gradient(scale) > 0.0
    return jnp.where(valid, jnp.clip(scale, 0.0, 0.0), jnp.nan)
