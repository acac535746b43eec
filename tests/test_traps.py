"""The right values at points where other packages were found wrong (``docs/guide/traps.md``)."""

import math

import mpmath
import numpy as np
import pytest
from scipy import stats

import logunif_kl as lk
from logunif_kl import reference
from logunif_kl._convention import PROPER_CONSTANT
from logunif_kl.methods import monte_carlo, quadrature
from logunif_kl.posteriors import Density, neg_kl_posterior
from tests.posteriors.exact import bell, neg_kl_of
from tests.ulp import error

FRAMEWORKS = ["numpy", "torch", "jax", "tensorflow", "dask"]
frameworks = pytest.mark.parametrize("framework", FRAMEWORKS[:-1])


def worst(found, truth, points, dtype):
    """The largest error in units in the last place."""
    return max(abs(error(y, truth(x), dtype)) for x, y in zip(points, found, strict=True))


def derivatives(framework, x):
    """The first and the second derivative of -KL by the framework's own differentiation."""
    if framework == "torch":
        torch = pytest.importorskip("torch")
        x = torch.tensor(x, requires_grad=True)
        (first,) = torch.autograd.grad(lk.neg_kl(x).sum(), x, create_graph=True)
        return first.detach(), torch.autograd.grad(first.sum(), x)[0]
    if framework == "jax":
        jax = pytest.importorskip("jax")
        first = jax.grad(lk.neg_kl)
        return jax.vmap(first)(x), jax.vmap(jax.grad(first))(x)
    if framework == "tensorflow":
        tf = pytest.importorskip("tensorflow")
        x = tf.Variable(x)
        with tf.GradientTape() as outer:
            with tf.GradientTape() as inner:
                value = lk.neg_kl(x)
            first = inner.gradient(value, x)
        return first.numpy(), outer.gradient(first, x).numpy()
    return lk.neg_kl_grad(x), lk.neg_kl_hess(x)


@frameworks
def test_derivatives_for_u_from_1_to_1e8(framework):
    """JAX's hyp1f1, the gradient of TFP's Dawson function, PyTorch's polygamma."""
    dtype = "float32" if framework == "jax" else "float64"
    x = -np.log(2.0 * np.logspace(0.0, 8.0, 9)).astype(dtype)
    first, second = derivatives(framework, x)
    assert worst(map(float, first), reference.neg_kl_grad, x, dtype) <= 3
    assert worst(map(float, second), reference.neg_kl_hess, x, dtype) <= 8


def test_gradient_for_small_u():
    """SciPy's dawsn, for arguments from 0.0101 to 0.05."""
    u = np.linspace(0.0101, 0.05, 101) ** 2
    assert worst(lk.special.kl_gap_grad(u), reference.kl_gap_grad, u, "float64") < 1


def test_loss_of_digits_of_a_dropout_rate():
    """JAX's log1p, just above 1 - sqrt 2."""
    p = np.nextafter(math.sqrt(2.0) - 1.0, 0.0) * (1.0 - np.arange(50) * 1e-4)
    found = lk.log_alpha.from_dropout_rate(p)
    assert worst(found, lambda p: mpmath.log(p / (1 - mpmath.mpf(p))), p, "float64") <= 4


@pytest.mark.parametrize("mean", [3.0, 300.0, 1e6])
def test_narrow_peak_away_from_zero(mean):
    """SciPy's and mpmath's quadrature give E log|w| = 0 with an error of 0."""
    truth = float(reference.neg_kl_normal(mean, 0.0))
    x = -2.0 * math.log(mean)
    assert neg_kl_posterior(stats.norm(mean, 1.0)) == pytest.approx(truth, abs=1e-13)
    for rule in ("tanh_sinh", "gauss_legendre"):
        assert quadrature(x, rule=rule) == pytest.approx(truth, rel=1e-14)
    estimate, standard_error = monte_carlo(x, n_samples=10_000, rng=np.random.default_rng(0))
    assert abs(estimate - truth) < 4.0 * standard_error + 1e-14 * abs(truth)
    density = Density(lambda w: bell(w - mean), support=(-math.inf, math.inf))
    if mean == 1e6:
        with pytest.raises(ArithmeticError, match="with 0 of the probability: name the"):
            neg_kl_posterior(density)
    else:
        assert neg_kl_posterior(density) == pytest.approx(truth, abs=1e-11)
    found, bound = neg_kl_posterior(density, points=[mean], return_error=True)
    assert abs(found - truth) <= bound < 1e-8


@pytest.mark.skipif(not hasattr(stats, "Mixture"), reason="an older SciPy")
def test_mixture_of_narrow_parts():
    """SciPy's Mixture.entropy; the parts of this one do not overlap."""
    parts = [stats.Normal(mu=mu, sigma=1e-3) for mu in (-1.0, 2.0)]
    truth = sum(reference.neg_kl_normal(mu, 2.0 * math.log(1e-3)) for mu in (1.0, 2.0)) / 2.0
    found, bound = neg_kl_posterior(stats.Mixture(parts, weights=[0.5, 0.5]), return_error=True)
    assert abs(found - float(truth) - math.log(2.0)) <= bound < 1e-11


def test_tail_of_a_truncated_gaussian():
    """SciPy's truncnorm has negative variances there."""
    with mpmath.workdps(30):
        share = mpmath.ncdf(-30)
    truth = neg_kl_of(lambda w: mpmath.npdf(w) / share, [30, 30.05, 30.2, 30.6, 31.5, 34])
    found, bound = neg_kl_posterior(stats.truncnorm(30.0, math.inf), return_error=True)
    assert abs(found - truth) <= bound < 1e-10


@pytest.mark.parametrize("a", [1e6, 1e10, 1e14])
def test_concentrated_posterior(a):
    """PyTorch's Beta in float32, and SciPy's Dirichlet, whose entropy cancels."""
    with mpmath.workdps(50):
        one, two = mpmath.psi(0, a), mpmath.psi(0, 2 * a)
        entropy = mpmath.log(mpmath.beta(a, a)) - 2 * (a - 1) * (one - two)
        truth = float(entropy - (one - two)) - PROPER_CONSTANT
    assert neg_kl_posterior(stats.beta(a, a)) == pytest.approx(truth, rel=1e-14)


def test_refit_whose_best_error_is_below_1e_7():
    """HiGHS solves to an absolute 1e-7; the exchange finds degree + 2 equal extremes."""
    fit = lk.fit_polynomial(degree=7, alpha_range=(0.5, 1.0))
    x = np.log(np.linspace(0.5, 1.0, 20_001))
    off = fit.neg_kl(x) - lk.neg_kl(x)
    off = np.asarray(off - (off.max() + off.min()) / 2.0)
    ends = np.flatnonzero(np.diff(np.sign(off))) + 1
    extremes = [np.abs(part).max() for part in np.split(off, ends)]
    assert 1e-12 < fit.max_error < 1e-7
    assert len(extremes) == 9
    np.testing.assert_allclose(extremes, fit.max_error, rtol=1e-3)


@pytest.mark.parametrize("b", [1.0, math.nextafter(0.999, 1.0)])
def test_narrow_log_uniform_posterior(b):
    """SciPy's variance and kurtosis of such a `loguniform` subtract moments about 0."""
    a = 0.999
    truth = mpmath.log(mpmath.log1p((mpmath.mpf(b) - a) / a)) - PROPER_CONSTANT
    found = neg_kl_posterior(stats.loguniform(a, b))
    assert found == pytest.approx(float(truth), rel=1e-15)


def mean(framework, x, n, dtype, reduction="mean"):
    """Reduce KL over n equal elements."""
    if framework == "torch":
        torch = pytest.importorskip("torch")
        return float(lk.kl(torch.full((n,), x, dtype=getattr(torch, dtype)), reduction=reduction))
    if framework == "jax":
        jnp = pytest.importorskip("jax.numpy")
        return float(lk.kl(jnp.full(n, x, dtype), reduction=reduction))
    if framework == "tensorflow":
        tf = pytest.importorskip("tensorflow")
        return float(lk.kl(tf.cast(tf.fill([n], x), dtype), reduction=reduction))
    if dtype == "bfloat16":
        dtype = pytest.importorskip("ml_dtypes").bfloat16
    array = np.full(n, x, dtype)
    if framework == "dask":
        array = pytest.importorskip("dask.array").from_array(array, chunks=10_000)
    return float(lk.kl(array, reduction=reduction))


@pytest.mark.parametrize("framework", FRAMEWORKS)
@pytest.mark.parametrize("dtype", ["float16", "bfloat16"])
def test_mean_in_a_half_type(framework, dtype):
    """A sum in the type itself ends at 65,504 in float16, and at 256 times a number in bfloat16."""
    truth = -reference.neg_kl(-2.0)
    assert abs(error(mean(framework, -2.0, 100_000, dtype), truth, dtype)) <= 0.51


@pytest.mark.slow
@frameworks
def test_sum_of_1e8_elements(framework):
    """A sum in float32, one element after the other, ends at 2**24 times a number."""
    truth = -reference.neg_kl(-2.0) * 10**8
    assert mean(framework, -2.0, 10**8, "float32", "sum") == pytest.approx(float(truth), rel=1e-6)
