"""-KL of complex weights and of groups of weights, of JAX arrays."""

import mpmath
import numpy as np
import pytest

jax = pytest.importorskip("jax")

import jax.numpy as jnp  # noqa: E402
from jax.test_util import check_grads  # noqa: E402

import logunif_kl as lk  # noqa: E402
from logunif_kl import reference  # noqa: E402
from logunif_kl._arithmetic.isotropic import complex_hessian  # noqa: E402
from logunif_kl.isotropic import ACCURACY  # noqa: E402
from logunif_kl.jax import _isotropic, isotropic  # noqa: E402
from tests import ulp  # noqa: E402
from tests.isotropic.exact import (  # noqa: E402
    EDGES,
    differs,
    hessian,
    scattered,
    worst_gradient,
)
from validation.accuracy import plan, worker  # noqa: E402

TRUTH = {
    "neg_kl_complex": reference.neg_kl_complex,
    "neg_kl_complex_grad": reference.neg_kl_complex_grad,
    "neg_kl_complex_hess": reference.neg_kl_complex_hess,
}


@pytest.mark.parametrize("dtype", ["float32", "float64"])
@pytest.mark.parametrize("name", TRUTH)
def test_values(name, dtype):
    x = np.concatenate([np.linspace(-4.4, 7.0, 40), [20.0, 33.27, 80.0]]).astype(dtype)
    with jax.enable_x64(dtype == "float64"):
        found = jax.jit(getattr(lk, name))(jnp.asarray(x))
    assert found.dtype == dtype
    errors = [
        abs(ulp.error(float(g), TRUTH[name](float(v), dps=30), dtype))
        for g, v in zip(found, x, strict=True)
    ]
    assert max(errors) <= 4.0


@pytest.mark.parametrize("dtype", ["float32", "float64"])
def test_gradients_from_mean_and_variance(dtype):
    rng = np.random.default_rng(2)
    re, im, s = (rng.normal(size=30).astype(dtype) * 3 for _ in range(3))
    with jax.enable_x64(dtype == "float64"):
        mu = jax.lax.complex(jnp.asarray(re), jnp.asarray(im))
        value = lk.neg_kl_complex_normal(mu, jnp.asarray(s))
        function = jax.jit(jax.grad(lambda m, s: lk.neg_kl_complex_normal(m, s).sum(), (0, 1)))
        d_mu, d_s = function(mu, jnp.asarray(s))
    assert value.dtype == dtype
    for i in range(30):
        with mpmath.workprec(200):
            a, b, c = (mpmath.mpf(float(v[i])) for v in (re, im, s))
            square = a * a + b * b
            slope = -mpmath.expm1(-square * mpmath.exp(-c))
            truth = reference.neg_kl_complex(c - mpmath.log(square), dps=30)
            wanted = (truth, -2 * a * slope / square, 2 * b * slope / square, slope)
        got = (value[i], d_mu[i].real, d_mu[i].imag, d_s[i])
        for g, w in zip(got, wanted, strict=True):
            assert abs(ulp.error(float(g), w, dtype)) <= 4.0


@pytest.mark.parametrize("dtype", ["float32", "float64"])
def test_gradients_in_a_part_far_smaller_than_the_other(dtype):
    at = scattered(dtype, 500, seed=4)

    def total(re, im, s):
        return lk.neg_kl_complex_normal(jax.lax.complex(re, im), s).sum()

    with jax.enable_x64(dtype == "float64"):
        found = jax.jit(jax.grad(total, (0, 1, 2)))(*map(jnp.asarray, at))
    assert worst_gradient([np.array(each) for each in found], at, dtype) <= 4.0


def test_types_and_options():
    x = jnp.array([-1.0, 0.5])
    assert lk.neg_kl_complex(x.astype(jnp.bfloat16)).dtype == jnp.bfloat16
    assert isotropic.neg_kl_complex(0.5).weak_type == jnp.exp(0.5).weak_type
    assert lk.neg_kl_complex_normal(1j, x).shape == (2,)
    assert lk.neg_kl_complex_normal(jnp.array([[1j], [2.0]]), x).shape == (2, 2)
    np.testing.assert_allclose(
        lk.neg_kl_complex_normal(jnp.abs(jnp.array([0.6 + 0.8j])), x),
        lk.neg_kl_complex_normal(jnp.array([0.6 + 0.8j]), x),
        rtol=1e-6,
    )
    for options in ({"zero_at": 2.0}, {"log_c": 0.5}):
        for reduction in ("none", "sum", "mean"):
            found = lk.neg_kl_vector(x, 3, reduction=reduction, **options)
            expected = lk.neg_kl_vector(np.asarray(x), 3, reduction=reduction, **options)
            np.testing.assert_allclose(found, expected, rtol=1e-5)
            found = lk.kl_complex(x, reduction=reduction, **options)
            expected = lk.kl_complex(np.asarray(x), reduction=reduction, **options)
            np.testing.assert_allclose(found, expected, rtol=1e-5)


def test_zero_means():
    mu = jnp.zeros(2, jnp.complex64)
    s = jnp.array([0.0, 1.0])
    assert not jnp.any(jax.grad(lambda m: lk.neg_kl_complex_normal(m, s).sum())(mu))
    hessian = jax.hessian(lambda m: isotropic.neg_kl_complex_normal(m, s).sum())(jnp.zeros(2))
    np.testing.assert_allclose(jnp.diag(hessian), -2.0 * jnp.exp(-s), rtol=1e-6)


@pytest.mark.parametrize("dtype", EDGES)
def test_second_derivatives(dtype):
    def of_complex_mean(point):
        return isotropic.neg_kl_complex_normal(jax.lax.complex(point[0], point[1]), point[2])

    @jax.jit
    def both(x):
        by_formula = complex_hessian.normal_hessian(jnp, _isotropic._ein, *x)
        return by_formula, jax.hessian(of_complex_mean)(x)

    with jax.enable_x64(dtype == "float64"):
        for point in EDGES[dtype]:
            arguments = jnp.array(point, dtype)
            expected = hessian(*map(float, arguments))
            by_formula, by_jax = map(np.array, both(arguments))
            assert not differs(by_formula, expected, dtype), point
            if not np.isinf(by_formula).any():
                assert not differs(by_jax, expected, dtype), point


def test_derivatives():
    rng = np.random.default_rng(0)
    with jax.enable_x64(True):
        x, re, im, s = (jnp.asarray(rng.normal(size=5) * 2) for _ in range(4))
        for function in (isotropic.neg_kl_complex, lambda x: isotropic.neg_kl_vector(x, 3.5)):
            check_grads(function, (x,), order=2, rtol=1e-4)
        check_grads(
            lambda re, im, s: isotropic.neg_kl_complex_normal(jax.lax.complex(re, im), s),
            (re, im, s),
            order=2,
            rtol=1e-3,
        )
        first = jax.vmap(jax.grad(lk.neg_kl_complex))(x)
        assert jnp.array_equal(first, lk.neg_kl_complex_grad(x))
        second = jax.vmap(jax.grad(jax.grad(lk.neg_kl_complex)))(x)
        assert jnp.array_equal(second, lk.neg_kl_complex_hess(x))
        slope = jax.vmap(jax.grad(lambda x: lk.neg_kl_vector(x, 3)))(x)
        np.testing.assert_allclose(slope, lk.neg_kl_vector_grad(np.asarray(x), 3), rtol=1e-14)


CLAIMS = [c for c in ACCURACY if c.kernel == "jax" and "vector" not in c.function]


@pytest.mark.parametrize("claim", CLAIMS, ids=lambda c: f"{c.function}-{c.dtype}")
def test_claims_hold_at_other_points(claim):
    wanted = {"functions": [claim.function], "dtypes": [claim.dtype], "count": 300, "rounds": 0}
    [job] = plan.jobs("isotropic", [claim.kernel], **wanted, seed=78)
    assert worker.measured(job)["ulp"] <= claim.ulp


def test_refusals():
    x = jnp.ones(2)
    with pytest.raises(TypeError, match="log_alpha must hold real numbers"):
        lk.neg_kl_complex(x + 1j)
    with pytest.raises(TypeError, match="log_sigma2 must hold real numbers"):
        lk.neg_kl_complex_normal(x, x + 1j)
    with pytest.raises(ValueError, match="k must be a number of dimensions"):
        lk.neg_kl_vector(x, -1)
