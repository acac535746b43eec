"""The KL over a pytree: its sign, its sum, the multiplicity of alpha, names, penalties."""

import math
from dataclasses import replace

import numpy as np
import pytest

pytest.importorskip("jax")

import jax
import jax.numpy as jnp

import logunif_kl as lk
from logunif_kl.jax import nn
from tests.jax.nn.layers import KINDS, POSTERIORS, weight_of
from tests.jax.test_wrappers import Variable

MU = jnp.array([[0.0, 0.5], [-3.0, 1e-3]])
LOG_SIGMA2 = jnp.array([[-1.0, -8.0], [2.0, -10.0]])


def of_alpha(log_alpha, bound=None):
    """Weights with the mean 1."""
    posterior = nn.Multiplicative(max_log_alpha=bound)
    return nn.Weight(jnp.ones_like(log_alpha), log_alpha=log_alpha, posterior=posterior)


def test_is_that_of_the_weights():
    expected = lk.neg_kl_normal(np.asarray(MU, "d"), np.asarray(LOG_SIGMA2, "d"), reduction="sum")
    assert math.isclose(nn.neg_kl(nn.Weight(MU, LOG_SIGMA2)), expected, rel_tol=1e-6)
    assert math.isclose(nn.kl(nn.Weight(MU, LOG_SIGMA2)), -expected, rel_tol=1e-6)


def test_trees_do_not_differ_by_initial_values():
    made = [nn.Weight.from_mean(jnp.ones((3, 2)), nn.Additive(initial=x)) for x in (-8.0, -2.0)]
    assert jax.tree.structure(made[0]) == jax.tree.structure(made[1])


def test_sign():
    """A step of descent on a loss with `kl` raises the variance and shrinks the mean."""
    # Where log alpha is clipped at -8, weights above 0.368 have no gradient at the start.
    start = nn.Weight.from_mean(jnp.array([0.01, 0.37, 1.0, 30.0]))
    for weight in (start, nn.Weight(jnp.ones(3), jnp.zeros(3))):
        gradient = jax.grad(nn.kl)(weight)
        assert nn.kl(weight) > 0 > nn.neg_kl(weight)
        assert (gradient.log_sigma2 < 0).all()
        assert (gradient.mean > 0).all()


def test_the_tail_is_not_lost():
    """Molchanov's form is exactly 0 in float32 at log alpha = 18, and so is its gradient."""
    weight = nn.Weight(jnp.ones(1), log_alpha=jnp.full(1, 18.0), posterior=nn.Multiplicative())
    value, gradient = jax.value_and_grad(nn.neg_kl)(weight)
    assert math.isclose(value, lk.neg_kl(18.0), rel_tol=1e-6)
    assert math.isclose(gradient.log_alpha[0], lk.neg_kl_grad(18.0), rel_tol=1e-6)


@pytest.mark.parametrize("kind", KINDS)
@pytest.mark.parametrize("name", [name for name in POSTERIORS if name != "additive"])
def test_a_shared_alpha_counts_for_each_weight_or_scale(kind, name):
    weight = weight_of(name, KINDS[kind])
    one_by_one = np.asarray(weight.log_alpha_of_weights(), "d")
    if weight.posterior.scaled:
        # One scale for each input unit, and in a convolution for each channel of each group.
        axis = weight.input_axis % one_by_one.ndim
        one_by_one = np.moveaxis(one_by_one, axis, 0).reshape(one_by_one.shape[axis], -1)[:, 0]
        one_by_one = np.tile(one_by_one, weight.groups)
    assert math.isclose(nn.kl(weight), lk.kl(one_by_one).sum(), rel_tol=1e-6)


def test_of():
    scales = nn.Weight.from_mean(MU, nn.Correlated())
    weights = nn.Weight.from_mean(MU, nn.Multiplicative())
    assert nn.kl(scales, of="scales") == nn.kl(scales)
    assert nn.kl(weights, of="weights") == nn.kl(weights)
    assert nn.kl(nn.Weight(MU, MU), of="weights") == nn.kl(nn.Weight(MU, MU))
    with pytest.raises(ValueError, match=r"infinite \(Hron et al\. 2017, section 3\)"):
        nn.kl(scales, of="weights")


@pytest.mark.parametrize("dtype", ["float16", "bfloat16"])
def test_half_types_are_summed_in_float32(dtype):
    """The KL of a million weights is above the largest float16."""
    weight = nn.Weight.from_mean(jnp.ones(1_000_000, dtype))
    alpha = nn.Weight.from_mean(
        jnp.ones(1_000_000, dtype), nn.Multiplicative("layer", initial=-10.0)
    )
    expected = 1e6 * lk.kl(-10.0)
    for each in (weight, alpha):
        got = nn.kl(each)
        assert got.dtype == "float32"
        assert math.isclose(got, expected, rel_tol=1e-5)
        assert {leaf.dtype for leaf in jax.tree.leaves(jax.grad(nn.kl)(each))} == {jnp.dtype(dtype)}


class TestTree:
    def test_sum_and_names(self):
        """Leaves elsewhere do not count."""
        one, two = nn.Weight(MU, LOG_SIGMA2), nn.Weight.from_mean(MU, nn.Multiplicative("layer"))
        tree = {"a": [one, jnp.ones(5), None], "b": "text", "c": (jnp.inf, {"w": two}, two)}
        found = nn.named_kl(tree)
        assert found == {"a.0": nn.kl(one), "c.1.w": nn.kl(two), "c.2": nn.kl(two)}
        assert math.isclose(nn.kl(tree), sum(found.values()), rel_tol=1e-6)
        assert list(nn.named_kl(two)) == [""]

    def test_parameters_that_become_arrays(self):
        """As those of Flax NNX do."""
        weight = nn.Weight(Variable(MU), Variable(LOG_SIGMA2))
        assert nn.kl(weight) == nn.kl(nn.Weight(MU, LOG_SIGMA2))
        assert nn.dense(jnp.ones(2), weight, key=jax.random.key(0)).shape == (2,)

    def test_an_ensemble(self):
        """Outside of `jax.vmap` the KL of an ensemble is that of all its members."""
        for name in ("additive", "output", "correlated, input"):
            one = weight_of(name, KINDS["dense"])
            stacked = jax.tree.map(lambda leaf: jnp.stack([leaf, leaf, leaf]), one)
            np.testing.assert_allclose(jax.vmap(nn.kl)(stacked), [nn.kl(one)] * 3, rtol=1e-6)
            if name != "correlated, input":
                assert math.isclose(nn.kl(stacked), 3 * nn.kl(one), rel_tol=1e-6)

    @pytest.mark.parametrize(
        "posterior", [*POSTERIORS.values(), nn.Grouped(), nn.Scaled(), nn.Correlated("layer", 0.0)]
    )
    def test_the_node(self, posterior):
        """Its leaves have names, and its structure does not depend on initial values."""
        weight = nn.Weight.from_mean(MU, replace(posterior, initial=1.0), groups=2)
        assert (weight.posterior, weight.groups) == (posterior, 2)
        paths, structure = jax.tree_util.tree_flatten_with_path(weight)
        assert [path[-1].name for path, _ in paths] == ["mean", *posterior.parameters]
        assert structure == jax.tree.structure(nn.Weight.from_mean(MU, posterior, groups=2))

        def step(weight, _):
            return jax.tree.map(lambda leaf: leaf + 1.0, weight), nn.kl(weight)

        scanned = jax.jit(lambda weight: jax.lax.scan(step, weight, length=2), donate_argnums=0)
        found, kls = scanned(jax.tree.map(jnp.copy, weight))
        assert jax.tree.structure(found) == structure
        assert math.isclose(kls[0], nn.kl(weight), rel_tol=1e-6)
        for name in posterior.parameters:
            assert (getattr(found, name) == getattr(weight, name) + 2.0).all()


class TestPenalty:
    X = np.linspace(-6.0, 3.0, 19).astype("float32")
    NAMES = tuple(name for name, method in lk.methods.METHODS.items() if method.gradient)

    @staticmethod
    def loss(penalty):
        return lambda x: nn.neg_kl(of_alpha(x), penalty=penalty)

    @pytest.mark.parametrize("penalty", [*NAMES, lk.fit_sigmoid(1)], ids=str)
    def test_values_and_gradients(self, penalty):
        """Those of the method or the fit, in both parametrisations."""
        if isinstance(penalty, str):
            method = lk.methods.METHODS[penalty]
            function, gradient = method.function, method.gradient
        else:
            function, gradient = penalty.neg_kl, penalty.neg_kl_grad
        x = self.X.astype("d")
        value, slope = jax.jit(jax.value_and_grad(self.loss(penalty)))(jnp.asarray(self.X))
        assert math.isclose(value, function(x).sum(), rel_tol=3e-6)
        np.testing.assert_allclose(slope, gradient(x), rtol=3e-5, atol=1e-6)
        mu = jnp.full(x.shape, -2.0)
        weight = nn.Weight(mu, jnp.asarray(self.X) + 2 * math.log(2))
        of_weight = jax.grad(lambda w: nn.neg_kl(w, penalty=penalty))(weight)
        for found in (of_weight.log_sigma2, of_weight.mean):
            np.testing.assert_allclose(found, slope, rtol=3e-5, atol=1e-6)
        batched = jax.vmap(lambda x: self.loss(penalty)(x[None]))(jnp.asarray(self.X))
        np.testing.assert_allclose(batched, function(x), rtol=3e-5, atol=1e-6)

    @pytest.mark.parametrize("name", ["kingma", "molchanov", "lower_bound"])
    def test_closed_forms_have_second_derivatives(self, name):
        x, h = 0.3, 1e-4
        grad = lk.methods.METHODS[name].gradient
        expected = (grad(x + h) - grad(x - h)) / (2 * h)
        got = jax.grad(jax.grad(self.loss(name)))(jnp.float32(x))
        assert math.isclose(got, expected, rel_tol=1e-4, abs_tol=1e-6)

    @pytest.mark.parametrize("name", ["exact", *NAMES])
    def test_a_mean_of_zero(self, name):
        """Where log alpha is inf: the gradient is 0, and the value the limit of the method."""
        weight = nn.Weight(jnp.zeros(2), jnp.zeros(2))
        value, gradient = jax.value_and_grad(lambda w: nn.neg_kl(w, penalty=name))(weight)
        with np.errstate(all="ignore"):
            limit = 0.0 if name == "exact" else 2 * lk.methods.METHODS[name].function(math.inf)
        assert value == limit
        assert all((leaf == 0).all() for leaf in jax.tree.leaves(gradient))

    def test_the_tail_of_molchanov(self):
        """Where its exponentials overflow in float32 the gradient is finite."""
        for x in (60.0, 90.0, 300.0):
            got = float(jax.grad(self.loss("molchanov"))(jnp.full(1, x))[0])
            wanted = lk.methods.molchanov_grad(x)
            assert math.isclose(got, wanted, rel_tol=1e-5, abs_tol=2.0**-126)


class TestBound:
    """`max_log_alpha` as a constraint: the gradient of a projected descent."""

    X = jnp.array([-1.0, 0.0, 0.5])

    @staticmethod
    def value(x, slope):
        bounded = of_alpha(x, 0.0).log_alpha_of_weights()
        return (slope * bounded).sum()

    @pytest.mark.parametrize("wrapped", [lambda f: f, jax.jit, jax.checkpoint, "vmap"])
    def test_reverse_mode(self, wrapped):
        """A step of descent may go down from the bound, and not up."""
        for slope, expected in ((1.0, [1.0, 1.0, 1.0]), (-1.0, [-1.0, 0.0, 0.0])):
            if wrapped == "vmap":
                got = jax.vmap(jax.grad(self.value), (0, None))(self.X, slope)
            else:
                got = jax.grad(wrapped(self.value))(self.X, slope)
            assert got.tolist() == expected

    def test_forward_mode(self):
        factors = jnp.array([1.0, 2.0, 4.0])
        _, tangent = jax.jvp(lambda x: self.value(x, factors), (self.X,), (jnp.ones(3),))
        assert tangent == 3.0
        slopes = jnp.array([1.0, -1.0])
        rows = jax.vmap(lambda s: jax.jacfwd(lambda x: self.value(x, s))(self.X))(slopes)
        assert rows.tolist() == [[1.0, 1.0, 0.0], [-1.0, -1.0, 0.0]]
        hessian = jax.hessian(lambda x: (jnp.exp(x) * self.value(x, 1.0)).sum())(self.X)
        assert jnp.isfinite(hessian).all()

    def test_value(self):
        assert self.value(self.X, 1.0) == -1.0
        weight = of_alpha(self.X, 0.0)
        assert nn.kl(weight) == nn.kl(of_alpha(jnp.minimum(self.X, 0.0)))
        assert of_alpha(jnp.full(2, 3.0)).log_alpha_of_weights().tolist() == [3.0, 3.0]

    def test_layers_use_it(self):
        bounded, at_bound = of_alpha(jnp.full((4, 2), 5.0), 0.0), of_alpha(jnp.zeros((4, 2)))
        key, x, ids = jax.random.key(0), jnp.ones((3, 4)), jnp.arange(4)
        for estimator in ("local", "per_example", "per_batch"):
            one, two = (nn.dense(x, w, key=key, estimator=estimator) for w in (bounded, at_bound))
            assert (one == two).all()
        assert (nn.embedding(ids, bounded, key=key) == nn.embedding(ids, at_bound, key=key)).all()
