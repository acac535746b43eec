"""`logunif_kl.log_alpha` on arrays of JAX."""

import numpy as np
import pytest

import logunif_kl as lk
from tests.conversions import CASES, Conversions, function

jax = pytest.importorskip("jax")
jnp = jax.numpy
la = lk.log_alpha


class TestConversions(Conversions):
    def evaluate(self, f, x):
        with jax.enable_x64(x.dtype == "float64"):
            both = jax.jit(jax.vmap(jax.value_and_grad(f)))
            return tuple(np.asarray(found) for found in both(jnp.asarray(x)))

    def cast(self, x, dtype):
        return jnp.asarray(x).astype(dtype)

    @pytest.mark.parametrize("name", CASES)
    def test_second_derivatives(self, name):
        f = function(name)
        with jax.enable_x64(True):
            x, step = jnp.array([0.1, 0.3, 0.7]), 1e-6
            slope = jax.vmap(jax.grad(f))
            wanted = (slope(x + step) - slope(x - step)) / (2.0 * step)
            np.testing.assert_allclose(jax.vmap(jax.hessian(f))(x), wanted, rtol=1e-7)


def test_weak_types_remain():
    assert la.to_alpha(jnp.asarray(1.0)).weak_type
    assert la.to_u(jnp.zeros(3, jnp.bfloat16)).dtype == jnp.bfloat16


def test_arguments_are_named():
    with pytest.raises(TypeError, match=r"^p must hold real numbers of at most 64 bits, but "):
        la.from_dropout_rate(jnp.array([True]))
    with pytest.raises(ValueError, match=r"^log_alpha of shape \(2,\) and mu of shape \(3,\)"):
        la.to_log_sigma2(jnp.zeros(2), jnp.zeros(3))
