"""With Flax: what the documentation of the module says trains, and is written and read."""

import re
import textwrap

import numpy as np
import pytest

pytest.importorskip("jax")
pytest.importorskip("flax")
pytest.importorskip("optax")

import jax
import jax.numpy as jnp
import optax
from flax import nnx, serialization

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
    plain = nn.Normal(jnp.asarray(weight.mu), jnp.asarray(weight.log_sigma2))
    assert nn.named_kl(layer) == {"weight": nn.kl(plain)}


@pytest.mark.parametrize("kind", [nn.Normal, nn.Dropout])
def test_one_parameter_that_holds_a_posterior(kind):
    weight = nnx.Param(kind.from_mean(jnp.ones((4, 3))))
    sentence = (
        "weight must be a posterior that holds parameters, but a flax.Param that holds a "
        rf"{kind.__name__} was given: pass jax.tree.map\(nnx.Param, posterior\)"
    )
    with pytest.raises(TypeError, match=f"^{sentence}$"):
        nn.dense(X, weight)
    with pytest.raises(TypeError, match=f"^{sentence}$"):
        nn.embedding(jnp.array([1]), weight)


def test_posteriors_are_written_and_read():
    written("for kind in (nn.Normal, nn.Dropout)")
    made = {
        "normal": [nn.Normal(jnp.ones((2, 3)), jnp.full((2, 3), -4.0))],
        "dropout": nn.Dropout.from_mean(
            jnp.ones((2, 3), "bfloat16"), -2.0, sharing="input", noise="correlated"
        ),
    }
    state = {"params": made, "moments": optax.adam(1e-3).init(made)}
    other = jax.tree.map(jnp.zeros_like, state)
    read = serialization.from_bytes(other, serialization.to_bytes(state))
    assert jax.tree.structure(read) == jax.tree.structure(state)
    for leaf, expected in zip(jax.tree.leaves(read), jax.tree.leaves(state), strict=True):
        assert leaf.dtype == expected.dtype
        assert (leaf == expected).all()
    assert nn.kl(read["params"]) == nn.kl(made)
