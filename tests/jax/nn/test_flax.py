"""With Flax: what the documentation of the module says trains, and is written and read."""

import re
import textwrap
from dataclasses import replace
from functools import partial
from typing import Any

import numpy as np
import pytest

pytest.importorskip("jax")
pytest.importorskip("flax")
pytest.importorskip("optax")

import jax
import jax.numpy as jnp
import optax
from flax import nnx, serialization, struct

from logunif_kl.jax import nn

X = jnp.ones((5, 4))


def written(first):
    """Run the code in the docstring of the module that begins so, and return its names."""
    code = re.search(rf"^    {re.escape(first)}.*?(?=^\S|\Z)", nn.__doc__, re.S | re.M).group()
    names = {"jax": jax, "jnp": jnp, "nn": nn, "nnx": nnx, "serialization": serialization}
    exec(textwrap.dedent(code), names)
    return names


@pytest.fixture
def layer():
    return written("class Layer(nnx.Module)")["Layer"](nnx.Rngs(0))


def loss(model, key):
    return jnp.mean(model(X, key) ** 2) + 0.1 * nn.kl(model)


def test_every_parameter_is_trained(layer):
    optimizer = nnx.Optimizer(layer, optax.adam(1e-2), wrt=nnx.Param)
    before = [np.asarray(leaf) for leaf in jax.tree.leaves(layer)]
    assert [leaf.shape for leaf in before] == [(3,), (4, 3), (4, 3)]

    @nnx.jit
    def step(model, optimizer, key):
        value, gradient = nnx.value_and_grad(loss)(model, key)
        optimizer.update(model, gradient)
        return value

    values = [step(layer, optimizer, key) for key in jax.random.split(jax.random.key(0), 3)]
    assert values[-1] < values[0]
    for leaf, old in zip(jax.tree.leaves(layer), before, strict=True):
        assert (np.asarray(leaf) != old).all()


def test_the_kl_has_the_names_of_the_module(layer):
    weight = layer.weight
    plain = nn.Weight(jnp.asarray(weight.mean), jnp.asarray(weight.log_sigma2))
    assert nn.named_kl(layer) == {"weight": nn.kl(plain)}


def test_one_parameter_that_holds_a_weight():
    weight = nnx.Param(nn.Weight.from_mean(jnp.ones((4, 3))))
    sentence = (
        "weight must be a Weight that holds parameters, but a flax.nnx.Param that holds a Weight "
        r"was given: pass jax.tree.map\(nnx.Param, weight\)"
    )
    with pytest.raises(TypeError, match=f"^{sentence}$"):
        nn.dense(X, weight)
    with pytest.raises(TypeError, match=f"^{sentence}$"):
        nn.embedding(jnp.array([1]), weight)


def test_weights_are_written_and_read():
    written("from dataclasses import replace")
    made = {
        "additive": [nn.Weight(jnp.ones((2, 3)), jnp.full((2, 3), -4.0))],
        "correlated": nn.Weight.from_mean(jnp.ones((2, 3), "bfloat16"), nn.Correlated()),
    }
    state = {"params": made, "moments": optax.adam(1e-3).init(made)}
    other = jax.tree.map(jnp.zeros_like, state)
    read = serialization.from_bytes(other, serialization.to_bytes(state))
    assert jax.tree.structure(read) == jax.tree.structure(state)
    for leaf, expected in zip(jax.tree.leaves(read), jax.tree.leaves(state), strict=True):
        assert leaf.dtype == expected.dtype
        assert (leaf == expected).all()
    assert nn.kl(read["params"]) == nn.kl(made)
    other["params"]["additive"] = [nn.Weight.from_mean(jnp.ones((2, 3)), nn.Multiplicative())]
    with pytest.raises(ValueError, match="log_alpha"):
        serialization.from_bytes(other["params"], serialization.to_bytes(made))


class Tied(nnx.Module):
    """Two layers that share a weight and a bias."""

    def __init__(self, posterior):
        weight = nnx.data(jax.tree.map(nnx.Param, nn.Weight.from_mean(jnp.ones((3, 3)), posterior)))
        bias = nnx.Param(jnp.zeros(3))
        self.one, self.other = Layer(weight, bias), Layer(weight, bias)


class Layer(nnx.Module):
    def __init__(self, weight, bias):
        self.weight, self.bias = weight, bias


def variables(tree):
    return jax.tree.leaves(tree, is_leaf=lambda node: isinstance(node, nnx.Variable))


def in_one_variable(posterior):
    """A module whose variables hold whole nodes."""
    made = Tied(posterior)
    weight = nn.Weight.from_mean(jnp.ones((3, 3)), posterior)
    made.one.weight = made.other.weight = nnx.Param(weight)
    return made


def test_a_shared_variable_is_chosen_by_any_of_its_paths():
    model = Tied(nn.Additive())
    model.one.weight = model.other.weight = nnx.Param(jnp.ones((3, 3)))
    found = nn.to_variational(model, lambda path, leaf: path.startswith("other.weight"))
    assert len(nn.named_kl(found)) == 1
    assert found.one.weight is found.other.weight


@struct.dataclass
class State:
    params: Any
    batch_stats: Any
    cache: Any


def test_only_parameters_are_chosen():
    """Not caches, statistics and intermediate values, unless the user chooses them."""
    attention = nnx.MultiHeadAttention(2, 8, decode=True, rngs=nnx.Rngs(0))
    attention.init_cache((2, 5, 8))
    attention.seen = nnx.Intermediate(jnp.ones((3, 4)))
    found = nn.to_variational(attention)
    parameters = nn.to_variational(nnx.state(attention, nnx.Param))
    assert nn.sparsity(found).weights == nn.sparsity(parameters).weights == 256
    assert not jnp.any(nn.sample(found, jax.random.key(0)).cached_key.get_value())
    chosen = nn.to_variational(attention, lambda path, leaf: path.startswith("seen"))
    assert nn.sparsity(chosen).weights == 12
    collections = {name: {"w": jnp.ones((2, 3))} for name in ("params", "batch_stats", "cache")}
    several = {"first": collections, "others": [collections, collections]}
    for tree, weights in (collections, 6), (several, 18), (State(**collections), 6):
        assert nn.sparsity(nn.to_variational(tree)).weights == weights
    named = {"params": jnp.ones((2, 3)), "head": jnp.ones((3, 1))}
    assert nn.sparsity(nn.to_variational(named)).weights == 9
    state = {name: nnx.Param(jnp.ones((2, 3))) for name in ("params", "cache")}
    assert nn.sparsity(nn.to_variational(state)).weights == 12


@pytest.mark.parametrize("kind", [nn.Additive, nn.Multiplicative, nn.Scaled])
def test_a_state_has_no_weights(kind):
    """Flax makes dicts of them, so that the KL would be that of the other weights."""
    module = Tied(kind())
    module.converted = nnx.Linear(3, 2, rngs=nnx.Rngs(0))
    module = nn.to_variational(module)
    graph, state = nnx.split(module)
    for function in nn.kl, nn.sparsity, nn.to_variational, partial(nn.prune, threshold=3.0):
        with pytest.raises(TypeError, match=r"^a State of a Flax NNX module was given"):
            function(state)
    assert nn.kl(nnx.merge(graph, state)) == nn.kl(module)
    with pytest.raises(ValueError, match=r"^'.*log_.*' is beside a mean"):
        nn.to_variational(nnx.to_pure_dict(state))


class TestSharedWeights:
    KINDS = nn.Additive, nn.Multiplicative, nn.Grouped, nn.Scaled

    @pytest.mark.parametrize("made", [Tied, in_one_variable])
    @pytest.mark.parametrize("kind", KINDS)
    def test_counts_once(self, kind, made):
        posterior = kind(initial=0.5)
        module, alone = made(posterior), nn.Weight.from_mean(jnp.ones((3, 3)), posterior)
        assert len(nn.named_kl(module)) == len(nn.log_alpha(module)) == 1
        assert nn.kl(module) == nnx.jit(nn.kl)(module) == nn.kl(alone)
        assert nn.sparsity(module).weights == 9
        assert nn.density_threshold(module, 1.0) == nn.density_threshold(alone, 1.0)
        prior = nn.ScaleMixturePrior(0.5, 1.0, 0.1, samples=2, key=jax.random.key(0))
        if kind is nn.Additive:
            assert nn.kl(module, penalty=prior) == nn.kl([alone], penalty=prior)

    def test_counts_once_with_fixed_variances(self):
        module = Tied(nn.Multiplicative(initial=0.5))
        weight = replace(module.one.weight, log_alpha=jnp.full((3, 3), 4.0))
        module.one.weight = nnx.data(weight)
        module.other = module.one
        alone = nn.Weight(jnp.ones((3, 3)), log_alpha=weight.log_alpha, posterior=weight.posterior)
        assert nn.kl(module) == nnx.jit(nn.kl)(module) == nn.kl(alone)
        assert nn.sparsity(module).weights == 9
        found = nnx.grad(lambda module: nn.neg_kl(module))(module)
        assert len(jax.tree.leaves(found)) == 2  # with the bias
        for function in (nn.prune, lambda tree: nn.sample(tree, jax.random.key(0))):
            drawn = function(module)
            assert jax.tree.leaves(drawn.one.weight)[0] is jax.tree.leaves(drawn.other.weight)[0]
        module.other = Layer(
            nnx.data(module.one.weight), None
        )  # nnx.jit gives it an array of its own
        for function in (nnx.jit(nn.kl), nnx.jit(nn.prune)):
            with pytest.raises(ValueError, match=r"the Weight 'other.weight' shares its variables"):
                function(module)

    def test_variables_that_are_no_trees(self):
        weight = jax.tree.map(lambda x: nnx.Param(x, hijax=True), nn.Weight.from_mean(jnp.ones(3)))
        with pytest.raises(TypeError, match="a variable of Flax NNX with hijax=True was given"):
            nn.kl({"weight": weight})

    @pytest.mark.parametrize("kind", KINDS)
    def test_the_gradient_is_that_of_one(self, kind):
        alone = nn.Weight.from_mean(jnp.ones((3, 3)), kind(initial=0.5))
        found = nnx.grad(lambda module: nn.kl(module))(Tied(kind(initial=0.5)))["one"]["weight"]
        wanted = vars(jax.grad(nn.kl)(alone))
        assert {*found} == {"mean", *alone.posterior.parameters}
        for name, got in found.items():
            np.testing.assert_array_equal(got.get_value(), wanted[name])

    @pytest.mark.parametrize(
        "function",
        [
            nn.to_deterministic,
            nn.prune,
            nn.zero_means,
            lambda tree: nn.sample(tree, jax.random.key(0)),
        ],
    )
    @pytest.mark.parametrize("made", [Tied, in_one_variable])
    def test_stays_shared(self, made, function):
        module = made(nn.Additive())
        found = function(module)
        one, other = found.one, found.other
        assert jax.tree.leaves(one.weight)[0] is jax.tree.leaves(other.weight)[0]
        assert one.bias is other.bias
        assert one.bias is not module.one.bias

    @pytest.mark.parametrize("name", ["a", "z"])
    def test_means_that_a_module_reads_without_noise(self, name):
        """It may come before or after the weight."""
        module = Tied(nn.Additive())
        mean = module.one.weight.mean
        mean[...] = jnp.diag(jnp.array([9.0, 9.0, 1e-9]))
        setattr(module, name, Layer(mean, None))
        for found in (nn.zero_means(module), nn.prune(module)):
            assert getattr(found, name).weight is found.one.weight.mean
            assert found.other.weight is found.one.weight
            np.testing.assert_array_equal(found.one.weight.mean[...], np.diag([9.0, 9.0, 0.0]))
        assert mean[2, 2] == 1e-9

    @pytest.mark.parametrize("kind", [*KINDS, nn.Correlated])
    def test_results_hold_no_variable_of_the_module(self, kind):
        module = Tied(kind())
        module.other = Layer(nnx.Param(jnp.ones((3, 3))), module.one.bias)
        module.last = Layer(module.one.weight.mean, None)
        before = {*map(id, variables(module))}
        for function in (nn.prune, nn.zero_means, nn.to_variational):
            found = function(module)
            assert not before & {*map(id, variables(found))}
            assert found.last.weight is found.one.weight.mean
            assert isinstance(found.other.weight.get_value(), nn.Weight) == (
                function is nn.to_variational
            )

    def test_variances_of_two_weights(self):
        module = Tied(nn.Additive())
        means = nnx.Param(jnp.eye(3))
        module.other.weight = nnx.data(replace(module.one.weight, mean=means))
        found = nn.zero_means(module, 100.0)
        assert found.one.weight.log_sigma2 is found.other.weight.log_sigma2
        np.testing.assert_array_equal(found.other.weight.mean[...], np.eye(3))

    def test_means_of_two_weights(self):
        module = Tied(nn.Additive())
        variances = nnx.Param(jnp.ones((3, 3)))
        module.other.weight = nnx.data(replace(module.one.weight, log_sigma2=variances))
        for function in (nn.zero_means, nn.prune):
            with pytest.raises(ValueError, match=r"two Weight nodes share a variable of shape \(3"):
                function(module)

    def test_an_array_is_converted_once(self):
        weight, bias = nnx.Param(jnp.ones((3, 3))), nnx.Param(jnp.zeros(3))
        module = Tied(nn.Additive())
        module.one, module.other = Layer(weight, bias), Layer(weight, bias)
        found = nn.to_variational(module)
        assert found.one.weight is found.other.weight
        assert found.one.bias is found.other.bias
        assert len(nn.named_kl(found)) == 1
        assert isinstance(weight.get_value(), jax.Array)

    def test_shared_variables_have_one_posterior(self):
        module = Tied(nn.Multiplicative())
        bounded = replace(module.one.weight, posterior=nn.Multiplicative(max_log_alpha=0.0))
        module.other.weight = nnx.data(bounded)
        for function in (nn.kl, nn.sparsity):
            with pytest.raises(ValueError, match="not its arrays or its posterior"):
                function(module)

    def test_arrays_count_at_every_place(self):
        weight = nn.Weight.from_mean(jnp.ones(2))
        twice = pytest.approx(2.0 * float(nn.kl(weight)), rel=1e-6)
        assert nn.kl([weight, weight]) == twice
        assert jax.jit(nn.kl)([weight, weight]) == twice
