"""Each error of the bound, its schedule and the log-likelihoods is one sentence."""

import pytest

pytest.importorskip("jax")

import jax
import jax.numpy as jnp
import numpy as np

from logunif_kl.jax import nn
from tests.jax.nn.layers import check_refused

LABELS = np.array([-100])

CASES = {
    "log_likelihood": (
        lambda: nn.elbo(jnp.array(-3.0), jnp.array(-1.0), 10),
        ValueError,
        "log_likelihood has shape (), but its first axis must be the minibatch: do not sum or "
        "average it",
    ),
    "neg_kl": (
        lambda: nn.elbo(jnp.ones(3), jnp.ones(3), 10),
        ValueError,
        "neg_kl has shape (3,), but one number is needed: pass logunif_kl.jax.nn.neg_kl(tree)",
    ),
    "dataset_size": (
        lambda: nn.elbo(jnp.ones(3), jnp.array(-1.0), -10),
        ValueError,
        "dataset_size must be positive, but -10 was given: pass the number of examples",
    ),
    "dataset_size, a list": (
        lambda: nn.elbo(jnp.ones(3), jnp.array(-1.0), [10]),
        TypeError,
        "dataset_size must be one real number, but list [10] was given: pass a float",
    ),
    "kl_weight": (
        lambda: nn.elbo(jnp.ones(3), jnp.array(-1.0), 10, kl_weight=-1.0),
        ValueError,
        "kl_weight must be finite and not negative, but -1.0 was given: pass 1.0 for the bound",
    ),
    "kl_weight, text": (
        lambda: nn.elbo(jnp.ones(3), jnp.array(-1.0), 10, kl_weight="1"),
        TypeError,
        "kl_weight must be one real number, but str '1' was given: pass a float",
    ),
    "kl_weight of two": (
        lambda: nn.elbo(jnp.ones(3), jnp.array(-1.0), 10, kl_weight=jnp.ones(2)),
        ValueError,
        "kl_weight has shape (2,), but one number is needed: pass 1.0 for the bound",
    ),
    "kl_weight, complex": (
        lambda: nn.elbo(jnp.ones(3), jnp.array(-1.0), 10, kl_weight=jnp.array(1j)),
        TypeError,
        "kl_weight must hold real numbers, but complex64 was given: pass float32",
    ),
    "step": (
        lambda: nn.linear_warm_up("a", 0, 1),
        TypeError,
        "step must hold real numbers, but str 'a' was given: pass an array of them",
    ),
    "step, none": (
        lambda: nn.linear_warm_up(None, 0, 1),
        TypeError,
        "step must hold real numbers, but NoneType None was given: pass an array of them",
    ),
    "warm-up": (
        lambda: nn.linear_warm_up(3, 10, 10),
        ValueError,
        "end must be above begin, but begin=10 and end=10 were given: exchange them",
    ),
    "labels": (
        lambda: nn.categorical_log_likelihood(jnp.ones((3, 2)), jnp.ones(3)),
        TypeError,
        "labels must hold integers, but float32 was given: pass int32",
    ),
    "one class": (
        lambda: nn.categorical_log_likelihood(jnp.ones((3, 1)), jnp.zeros(3, int)),
        ValueError,
        "logits of shape (3, 1) were given, and one class is always right: use "
        "bernoulli_log_likelihood for a single logit",
    ),
    "labels, none": (
        lambda: nn.categorical_log_likelihood(jnp.ones((3, 2)), None),
        TypeError,
        "labels must hold real numbers, but NoneType None was given: pass an array of them",
    ),
    "targets, text": (
        lambda: nn.bernoulli_log_likelihood(jnp.ones(3), "abc"),
        TypeError,
        "targets must hold real numbers, but str 'abc' was given: pass an array of them",
    ),
    "targets, complex": (
        lambda: nn.normal_log_likelihood(jnp.ones(3), jnp.ones(3) * 1j),
        TypeError,
        "targets must hold real numbers, but complex64 was given: pass float32",
    ),
    "log_sigma2, text": (
        lambda: nn.normal_log_likelihood(jnp.ones(3), jnp.ones(3), "a"),
        TypeError,
        "log_sigma2 must hold real numbers, but str 'a' was given: pass an array of them",
    ),
    "shape of labels": (
        lambda: nn.categorical_log_likelihood(jnp.ones((3, 2)), jnp.ones((3, 1), int)),
        ValueError,
        "labels has shape (3, 1), but (3,) is needed: reshape it",
    ),
    "shape of targets": (
        lambda: nn.normal_log_likelihood(jnp.ones((3, 1)), jnp.ones(3)),
        ValueError,
        "targets has shape (3,), but (3, 1) is needed: reshape it",
    ),
    "log_sigma2 of the examples": (
        lambda: nn.normal_log_likelihood(jnp.zeros((4, 1)), jnp.zeros((4, 1)), jnp.zeros(4)),
        ValueError,
        "log_sigma2 of shape (4,) does not broadcast to mean's (4, 1): pass one number, or the "
        "shape of mean",
    ),
    "log_sigma2 with more axes": (
        lambda: nn.normal_log_likelihood(jnp.zeros(4), jnp.zeros(4), jnp.zeros((1, 4))),
        ValueError,
        "log_sigma2 of shape (1, 4) does not broadcast to mean's (4,): pass one number, or the "
        "shape of mean",
    ),
    "targets of both signs": (
        lambda: nn.bernoulli_log_likelihood(jnp.zeros((2, 1)), jnp.array([[-1.0], [1.0]])),
        ValueError,
        "targets hold numbers from -1 to 1, not from 0 to 1: pass (targets + 1)/2 for labels of "
        "-1 and 1",
    ),
    "a target that is NaN": (
        lambda: nn.bernoulli_log_likelihood(jnp.zeros(2), jnp.array([1.0, jnp.nan])),
        ValueError,
        "targets hold NaN: leave out the examples without one",
    ),
    "targets without a minibatch": (
        lambda: nn.bernoulli_log_likelihood(jnp.array(0.0), jnp.array(0.0)),
        ValueError,
        "targets has shape (), but (minibatch,) is needed: reshape it",
    ),
    "more examples than data": (
        lambda: nn.elbo(jnp.ones(11), jnp.array(-1.0), 10),
        ValueError,
        "the minibatch has 11 examples, more than dataset_size=10: pass the size of the whole data "
        "set",
    ),
    "a label that is no class": (
        lambda: nn.categorical_log_likelihood(jnp.ones((3, 2)), jnp.array([0, 2, 1])),
        ValueError,
        "labels must be from 0 to 1, but 2 was given: pass the numbers of classes",
    ),
    "a label below 0": (
        lambda: nn.categorical_log_likelihood(jnp.ones((3, 1, 2)), jnp.array([[0], [-1], [1]])),
        ValueError,
        "labels must be from 0 to 1, but -1 was given: pass the numbers of classes",
    ),
    "labels that are not traced": (
        lambda: jax.jit(lambda x: nn.categorical_log_likelihood(x, LABELS))(jnp.ones((1, 2))),
        ValueError,
        "labels must be from 0 to 1, but -100 was given: pass the numbers of classes",
    ),
}


@pytest.mark.parametrize("name", CASES)
def test_sentence(name):
    check_refused(*CASES[name])
