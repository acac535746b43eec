"""Every function under every transform, against derivatives of mpmath.

The arithmetic is given a derivative four times too large, so that a rule that was dropped shows.
"""

from functools import partial

import numpy as np
import pytest

import logunif_kl as lk

tf = pytest.importorskip("tensorflow")
from logunif_kl.tensorflow import _rules  # noqa: E402
from tests.derivatives import LOG_ALPHA, LOG_SIGMA2, MU, check_borders  # noqa: E402
from tests.tensorflow.cases import CASES, WAYS, all_orders, backward, value_and_slopes  # noqa: E402

ORDINAL = ["value", "backward", "2nd backward", "3rd backward"]


@pytest.fixture
def wrong_arithmetic(monkeypatch):
    monkeypatch.setattr(_rules, "_cut", lambda x: x + 3.0 * (x - tf.stop_gradient(x)))


def backwards(total, way="eager"):
    def row(case):
        for orders in all_orders(case, total):
            yield orders, WAYS[way](backward(case.function, orders))(*case.tensors())

    return row


def tapes_around(total, way):
    """The gradient of a function that was traced without one."""

    def row(case):
        traced = WAYS[way](case.function)
        for orders in all_orders(case, total):
            yield orders, backward(traced, orders)(*case.tensors())

    return row


def jacobian(case):
    arguments = case.tensors()
    with tf.GradientTape(persistent=True) as tape:
        tape.watch(arguments)
        value = case.function(*arguments)
    for argument, orders in zip(arguments, case.units, strict=True):
        matrix = tape.jacobian(value, argument).numpy()
        yield orders, np.diag(matrix)
        assert np.count_nonzero(matrix - np.diag(np.diag(matrix))) == 0


def vectorized_map(total):
    def row(case):
        for orders in all_orders(case, total):
            derivative = backward(case.function, orders)
            yield orders, tf.vectorized_map(lambda a: derivative(*a), case.tensors())  # noqa: B023

    return row


def gradients_in_a_graph(case):
    """`tf.gradients`, of the first two orders."""
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
            yield from session.run(wanted).items()


def tangent(f, arguments, i):
    with tf.autodiff.ForwardAccumulator(arguments[i], tf.ones_like(arguments[i])) as accumulator:
        value = f(*arguments)
    return accumulator.jvp(value)


def forward(case):
    for i, orders in enumerate(case.units):
        yield orders, tangent(case.function, case.tensors(), i)


def forward_over_backward(case):
    for orders in all_orders(case, 2):
        i = max(range(len(orders)), key=orders.__getitem__)
        rest = tuple(order - (k == i) for k, order in enumerate(orders))
        yield orders, tangent(backward(case.function, rest), case.tensors(), i)


def forward_over_forward(case):
    orders = tuple(2 * order for order in case.units[0])
    yield orders, tangent(lambda *x: tangent(case.function, x, 0), case.tensors(), 0)


def forward_through_function(case):
    yield case.units[0], tangent(tf.function(case.function), case.tensors(), 0)


ROWS = {
    **{f"eager {ORDINAL[n]}": backwards(n) for n in range(4)},
    **{
        f"{way} {ORDINAL[n]}": backwards(n, way)
        for way in ("function", "autograph", "xla")
        for n in range(3)
    },
    **{
        f"{ORDINAL[n]} through {way}": tapes_around(n, way)
        for way in ("function", "xla")
        for n in (1, 2)
    },
    "jacobian": jacobian,
    **{f"vectorized_map of order {n}": vectorized_map(n) for n in range(3)},
    "tf.gradients": gradients_in_a_graph,
}
FORWARD = {
    "forward": forward,
    "forward over backward": forward_over_backward,
    "forward over forward": forward_over_forward,
    "forward through function": forward_through_function,
}
SLOW = [row for row in ROWS if "2nd" in row and "eager" not in row]
SLOW.append("vectorized_map of order 2")
# The functions of the other sign are the negatives of those with rules of their own.
PAIRS = [
    pytest.param(case, row, id=f"{case.name}-{row}", marks=[pytest.mark.slow] * (row in SLOW))
    for case in CASES
    for row in ROWS
    if case.sign > 0 or row in ("eager value", "eager backward")
]


@pytest.mark.parametrize(("case", "row"), PAIRS)
@pytest.mark.usefixtures("wrong_arithmetic")
def test_derivatives(case, row, capability):
    capability(case.name, row)
    for orders, got in ROWS[row](case):
        case.check(got, orders)


@pytest.mark.parametrize("row", FORWARD)
@pytest.mark.parametrize("case", CASES, ids=lambda case: case.name)
def test_forward_mode(case, row, capability):
    """Forward accumulators keep what they find first, which the rules see to.

    With nothing to be found in the arithmetic, a rule that was dropped would leave no derivative.
    """
    capability(case.name, row)
    for orders, got in FORWARD[row](case):
        case.check(got, orders)


def test_forward_inside_a_function_is_refused():
    """It would pass over the rules there, for a zero that nobody notices."""
    inside = tf.function(lambda x: tangent(lk.neg_kl, [x], 0), autograph=False)
    with pytest.raises(
        LookupError,
        match=r"ForwardAccumulator does not follow the rules of tf.custom_gradient inside a "
        r"tf.function: use it outside, or tf.GradientTape",
    ):
        inside(tf.constant(LOG_ALPHA))


@pytest.mark.usefixtures("wrong_arithmetic")
def test_while_loop_over_what_a_graph_captures(capability):
    """Gradient ascent, all in one graph, with a tensor and a variable from outside."""
    capability("neg_kl_normal", "while loop")
    capability("neg_kl_normal", "captured tensors and variables")
    outside, variable = tf.constant(MU), tf.Variable(LOG_SIGMA2)

    @tf.function
    def climb():
        for _ in tf.range(5):
            with tf.GradientTape() as tape:
                value = lk.neg_kl_normal(outside, variable)
            variable.assign_add(0.1 * tape.gradient(value, variable))

    climb()
    log_sigma2 = LOG_SIGMA2.copy()
    for _ in range(5):
        log_sigma2 += 0.1 * lk.special.neg_kl_normal_and_grad(MU, log_sigma2)[2]
    np.testing.assert_allclose(variable, log_sigma2, rtol=1e-14)


@pytest.mark.parametrize("way", WAYS)
@pytest.mark.usefixtures("wrong_arithmetic")
def test_broadcasting(way, capability):
    capability("kl_normal", f"{way} broadcasting")
    mu, log_sigma2 = tf.constant(MU[:, None]), tf.constant(LOG_SIGMA2[:4])

    program = WAYS[way](partial(value_and_slopes, of=lk.kl_normal))
    value, d_mu, d_log_sigma2 = program(mu, log_sigma2)
    truths = lk.special.neg_kl_normal_and_grad(mu.numpy(), log_sigma2.numpy())
    np.testing.assert_allclose(value, -truths[0], rtol=1e-14)
    np.testing.assert_allclose(d_mu, -truths[1].sum(1, keepdims=True), rtol=1e-13)
    np.testing.assert_allclose(d_log_sigma2, -truths[2].sum(0), rtol=1e-13)


@pytest.mark.usefixtures("wrong_arithmetic")
def test_dynamic_shapes(capability):
    capability("neg_kl_normal", "dynamic shapes")
    traces = []

    @tf.function(
        input_signature=[tf.TensorSpec([None, None], tf.float64), tf.TensorSpec(None, tf.float64)]
    )
    def gradient(mu, log_sigma2):
        traces.append(None)
        return value_and_slopes(mu, log_sigma2)

    for rows, shape in ((7, ()), (7, (4,)), (2, (4,)), (0, (1, 4)), (3, (3, 1))):
        mu, log_sigma2 = np.full((rows, 4), 0.5), np.full(shape, -1.0)
        value, d_mu, d_log_sigma2 = gradient(mu, log_sigma2)
        assert d_log_sigma2.shape == shape
        truths = lk.special.neg_kl_normal_and_grad(mu, log_sigma2)
        np.testing.assert_allclose(value, truths[0], rtol=1e-14)
        np.testing.assert_allclose(d_mu, truths[1], rtol=1e-14)
        np.testing.assert_allclose(tf.reduce_sum(d_log_sigma2), truths[2].sum(), rtol=1e-14)
    assert len(traces) == 1


@pytest.mark.usefixtures("wrong_arithmetic")
def test_recompute(capability):
    capability("neg_kl", "recompute_grad")
    again = tf.recompute_grad(lambda x: lk.neg_kl(2.0 * x))
    _, slope = value_and_slopes(tf.constant(LOG_ALPHA), of=again)
    np.testing.assert_allclose(slope, 2 * lk.neg_kl_grad(2.0 * LOG_ALPHA), rtol=1e-14)


def test_where_tables_end():
    check_borders(
        lambda orders, *arguments: backward(lk.neg_kl_normal, orders)(*map(tf.constant, arguments))
    )
