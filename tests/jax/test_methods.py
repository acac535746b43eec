"""Formulas of papers and fits over JAX arrays: values, and derivatives, jitted and vmapped."""

import numpy as np
import pytest

import logunif_kl as lk
from tests.methods import formulas

jax = pytest.importorskip("jax")


@pytest.mark.parametrize("name", formulas.NAMES)
def test_values_and_derivatives(name):
    value, slope, x = formulas.of(name)
    with jax.enable_x64(True):
        at = jax.numpy.asarray(x)
        gradient = jax.vmap(jax.grad(value))
        # XLA fuses products and sums, and flushes subnormal numbers.
        for function, truth in (
            (value, value),
            (jax.jit(value), value),
            (gradient, slope),
            (jax.jit(gradient), slope),
            (lambda x: jax.jvp(value, (x,), (jax.numpy.ones_like(x),))[1], slope),
        ):
            formulas.check(function(at), truth(x), 8.0)
    assert value(jax.numpy.float32(-1.0)).dtype == "float32"


@pytest.mark.parametrize("name", formulas.CLOSED)
def test_second_derivatives(name):
    value, slope, _ = formulas.of(name)
    x, h = np.array([-3.0, -1.0]), 1e-5
    with jax.enable_x64(True):
        got = jax.jit(jax.vmap(jax.hessian(value)))(x)
    np.testing.assert_allclose(got, (slope(x + h) - slope(x - h)) / (2 * h), atol=1e-8)


def test_those_on_the_host_have_one_derivative():
    with pytest.raises(
        NotImplementedError, match=r"^this method computes on the CPU with NumPy, and"
    ):
        jax.hessian(lk.methods.series)(0.0)
