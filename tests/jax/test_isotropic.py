"""-KL of complex weights and of groups of weights, of JAX arrays."""

import functools

import numpy as np
import pytest

jax = pytest.importorskip("jax")

import jax.numpy as jnp  # noqa: E402
from jax.test_util import check_grads  # noqa: E402

import logunif_kl as lk  # noqa: E402
from logunif_kl._arithmetic.isotropic import complex_hessian  # noqa: E402
from logunif_kl.jax import _isotropic, isotropic  # noqa: E402
from tests.isotropic.frameworks import Framework  # noqa: E402


def test_types_and_options():
    x = jnp.array([-1.0, 0.5])
    assert lk.neg_kl_complex(x.astype(jnp.bfloat16)).dtype == jnp.bfloat16
    assert isotropic.neg_kl_complex(0.5).weak_type == jnp.exp(0.5).weak_type
    assert lk.neg_kl_complex_normal(1j, x).shape == (2,)
    assert lk.neg_kl_complex_normal(jnp.array([[1j], [2.0]]), x).shape == (2, 2)
    mu = jnp.array([0.6 + 0.8j])
    of_size, of_mu = (lk.neg_kl_complex_normal(each, x) for each in (jnp.abs(mu), mu))
    np.testing.assert_allclose(of_size, of_mu, rtol=1e-6)
    for options in ({"zero_at": 2.0}, {"log_c": 0.5}):
        for reduction in ("none", "sum", "mean"):
            for function in (lambda x, **how: lk.neg_kl_vector(x, 3, **how), lk.kl_complex):
                found = function(x, reduction=reduction, **options)
                expected = function(np.asarray(x), reduction=reduction, **options)
                np.testing.assert_allclose(found, expected, rtol=1e-5)


def test_derivatives():
    rng = np.random.default_rng(0)
    with jax.enable_x64(True):
        x, mu, s = (jnp.asarray(rng.normal(size=5) * 2) for _ in range(3))
        for function in (isotropic.neg_kl_complex, lambda x: isotropic.neg_kl_vector(x, 3.5)):
            check_grads(function, (x,), order=2, rtol=1e-4)
        check_grads(isotropic.neg_kl_complex_normal, (mu, s), order=2, rtol=1e-3)
        first = jax.vmap(jax.grad(lk.neg_kl_complex))(x)
        assert jnp.array_equal(first, lk.neg_kl_complex_grad(x))
        second = jax.vmap(jax.grad(jax.grad(lk.neg_kl_complex)))(x)
        assert jnp.array_equal(second, lk.neg_kl_complex_hess(x))
        slope = jax.vmap(jax.grad(lambda x: lk.neg_kl_vector(x, 3)))(x)
        np.testing.assert_allclose(slope, lk.neg_kl_vector_grad(np.asarray(x), 3), rtol=1e-14)


@jax.jit
@functools.partial(jax.value_and_grad, argnums=(0, 1, 2), has_aux=True)
def summed(re, im, s):
    value = lk.neg_kl_complex_normal(jax.lax.complex(re, im), s)
    return value.sum(), value


@jax.jit
def hessians(point):
    def value(point):
        return isotropic.neg_kl_complex_normal(jax.lax.complex(point[0], point[1]), point[2])

    by_formula = complex_hessian.normal_hessian(jnp, _isotropic._ein, *point)
    return by_formula, jax.hessian(value)(point)


class TestFramework(Framework):
    kernel = "jax"
    array = staticmethod(jnp.asarray)

    def most_ulps(self, dtype):
        return 4.0

    def derivatives(self, *parts):
        with jax.enable_x64(parts[0].dtype == "float64"):
            (_, value), found = summed(*map(jnp.asarray, parts))
        return [np.array(each) for each in (value, *found)]

    def hessians(self, point):
        with jax.enable_x64(point.dtype == "float64"):
            by_formula, by_jax = map(np.array, hessians(jnp.asarray(point)))
        yield by_formula
        if not np.isinf(by_formula).any():
            yield by_jax
