"""Every function under every transform, against derivatives of mpmath.

The arithmetic is given a derivative four times too large, so that a rule that was dropped shows.
"""

import numpy as np
import pytest

import logunif_kl as lk

tf = pytest.importorskip("tensorflow")
from logunif_kl.tensorflow import _rules  # noqa: E402
from tests.derivatives import LOG_ALPHA, LOG_SIGMA2, MU  # noqa: E402
from tests.tensorflow.cases import CASES, all_orders, backward  # noqa: E402

RULES = [case for case in CASES if case.sign > 0]
"""The functions with a rule of their own: the others are their negatives."""
UP_TO_2 = [0, 1, pytest.param(2, marks=pytest.mark.slow)]
WAYS = {
    "eager": lambda function: function,
    "function": lambda function: tf.function(function, autograph=False),
    "autograph": lambda function: tf.function(function),
    "xla": lambda function: tf.function(function, jit_compile=True),
}


@pytest.fixture(params=RULES, ids=lambda case: case.name)
def case(request):
    return request.param


@pytest.fixture(autouse=True)
def wrong_derivative_of_the_arithmetic(monkeypatch):
    monkeypatch.setattr(_rules, "_cut", lambda x: x + 3.0 * (x - tf.stop_gradient(x)))


ORDINAL = ["value", "backward", "2nd backward", "3rd backward"]


@pytest.mark.parametrize("total", [0, 1, 2, 3])
def test_backward(case, total, capability):
    capability(case.name, f"eager {ORDINAL[total]}")
    for orders in all_orders(case, total):
        case.check(backward(case.function, orders)(*case.tensors()), orders)


@pytest.mark.parametrize("total", [0, 1])
@pytest.mark.parametrize("case", [c for c in CASES if c.sign < 0], ids=lambda case: case.name)
def test_backward_of_negatives(case, total, capability):
    capability(case.name, f"eager {ORDINAL[total]}")
    for orders in all_orders(case, total):
        case.check(backward(case.function, orders)(*case.tensors()), orders)


@pytest.mark.parametrize("way", ["function", "autograph", "xla"])
@pytest.mark.parametrize("total", UP_TO_2)
def test_backward_in_a_graph(case, way, total, capability):
    capability(case.name, f"{way} {ORDINAL[total]}")
    for orders in all_orders(case, total):
        case.check(WAYS[way](backward(case.function, orders))(*case.tensors()), orders)


@pytest.mark.parametrize("way", ["function", "xla"])
@pytest.mark.parametrize("total", UP_TO_2[1:])
def test_tapes_around_a_function(case, way, total, capability):
    """The gradient of a function that was traced without one."""
    capability(case.name, f"{ORDINAL[total]} through {way}")
    traced = WAYS[way](case.function)
    for orders in all_orders(case, total):
        case.check(backward(traced, orders)(*case.tensors()), orders)


def test_jacobian(case, capability):
    capability(case.name, "jacobian")
    arguments = case.tensors()
    with tf.GradientTape(persistent=True) as tape:
        tape.watch(arguments)
        value = case.function(*arguments)
    for argument, orders in zip(arguments, case.units, strict=True):
        jacobian = tape.jacobian(value, argument).numpy()
        case.check(np.diag(jacobian), orders)
        assert np.count_nonzero(jacobian - np.diag(np.diag(jacobian))) == 0


@pytest.mark.parametrize("total", UP_TO_2)
def test_vectorized_map(case, total, capability):
    capability(case.name, f"vectorized_map of order {total}")
    for orders in all_orders(case, total):
        derivative = backward(case.function, orders)
        case.check(tf.vectorized_map(lambda a: derivative(*a), case.tensors()), orders)  # noqa: B023


def test_gradients_in_a_graph(case, capability):
    """`tf.gradients`, of the first two orders."""
    capability(case.name, "tf.gradients")
    with tf.Graph().as_default():
        arguments = case.tensors()
        value = case.function(*arguments)
        wanted = {}
        for i, orders in enumerate(case.units):
            (first,) = tf.gradients(value, arguments[i])
            (second,) = tf.gradients(first, arguments[i])
            wanted[orders] = first
            wanted[tuple(2 * order for order in orders)] = second
        with tf.compat.v1.Session() as session:
            for orders, got in session.run(wanted).items():
                case.check(got, orders)


def test_while_loop(capability):
    """A training by gradient ascent, all in one graph."""

    capability("neg_kl_normal", "while loop")

    @tf.function
    def climb(mu):
        for _ in tf.range(5):
            with tf.GradientTape() as tape:
                tape.watch(mu)
                value = lk.neg_kl_normal(mu, -1.0)
            mu += 0.1 * tape.gradient(value, mu)
        return mu

    mu = MU.copy()
    for _ in range(5):
        mu += 0.1 * lk.special.neg_kl_normal_and_grad(mu, -1.0)[1]
    np.testing.assert_allclose(climb(tf.constant(MU)), mu, rtol=1e-13)


@pytest.mark.parametrize("way", WAYS)
def test_broadcasting(way, capability):
    capability("kl_normal", f"{way} broadcasting")
    mu, log_sigma2 = tf.constant(MU[:, None]), tf.constant(LOG_SIGMA2[:4])

    def total(mu, log_sigma2):
        with tf.GradientTape() as tape:
            tape.watch([mu, log_sigma2])
            value = lk.kl_normal(mu, log_sigma2)
        return value, tape.gradient(value, [mu, log_sigma2])

    value, (d_mu, d_log_sigma2) = WAYS[way](total)(mu, log_sigma2)
    truths = lk.special.neg_kl_normal_and_grad(mu.numpy(), log_sigma2.numpy())
    np.testing.assert_allclose(value, -truths[0], rtol=1e-14)
    np.testing.assert_allclose(d_mu, -truths[1].sum(1, keepdims=True), rtol=1e-13)
    np.testing.assert_allclose(d_log_sigma2, -truths[2].sum(0), rtol=1e-13)


def test_dynamic_shapes(capability):
    capability("neg_kl_normal", "dynamic shapes")
    traces = []

    @tf.function(
        input_signature=[tf.TensorSpec([None, None], tf.float64), tf.TensorSpec(None, tf.float64)]
    )
    def gradient(mu, log_sigma2):
        traces.append(None)
        with tf.GradientTape() as tape:
            tape.watch([mu, log_sigma2])
            value = lk.neg_kl_normal(mu, log_sigma2)
        return value, *tape.gradient(value, [mu, log_sigma2])

    for rows, shape in ((7, ()), (7, (4,)), (2, (4,)), (0, (1, 4)), (3, (3, 1))):
        mu, log_sigma2 = np.full((rows, 4), 0.5), np.full(shape, -1.0)
        value, d_mu, d_log_sigma2 = gradient(mu, log_sigma2)
        assert d_log_sigma2.shape == shape
        truths = lk.special.neg_kl_normal_and_grad(mu, log_sigma2)
        np.testing.assert_allclose(value, truths[0], rtol=1e-14)
        np.testing.assert_allclose(d_mu, truths[1], rtol=1e-14)
        np.testing.assert_allclose(tf.reduce_sum(d_log_sigma2), truths[2].sum(), rtol=1e-14)
    assert len(traces) == 1


def test_what_a_graph_captures(capability):
    """A tensor and a variable from outside."""
    capability("neg_kl_normal", "captured tensors and variables")
    outside, variable = tf.constant(MU), tf.Variable(LOG_SIGMA2)

    @tf.function
    def gradient():
        with tf.GradientTape() as tape:
            value = lk.neg_kl_normal(outside, variable)
        return tape.gradient(value, variable)

    np.testing.assert_allclose(
        gradient(), lk.special.neg_kl_normal_and_grad(MU, LOG_SIGMA2)[2], rtol=1e-14
    )


def test_recompute(capability):
    capability("neg_kl", "recompute_grad")
    x = tf.constant(LOG_ALPHA)
    again = tf.recompute_grad(lambda x: lk.neg_kl(2.0 * x))
    with tf.GradientTape() as tape:
        tape.watch(x)
        value = again(x)
    np.testing.assert_allclose(
        tape.gradient(value, x), 2 * lk.neg_kl_grad(2.0 * LOG_ALPHA), rtol=1e-14
    )
