"""Forward mode: where it follows the rules, and where it says that it cannot.

Forward accumulators keep what they find first, which `logunif_kl.tensorflow._rules` sees to: with
nothing to be found in the arithmetic, a rule that was dropped would leave no derivative.
"""

import pytest

import logunif_kl as lk

tf = pytest.importorskip("tensorflow")
from tests.derivatives import LOG_ALPHA  # noqa: E402
from tests.tensorflow.cases import CASES, all_orders, backward  # noqa: E402


@pytest.fixture(params=CASES, ids=lambda case: case.name)
def case(request):
    return request.param


def test_forward(case, capability):
    capability(case.name, "forward")
    for index, orders in enumerate(case.units):
        arguments = case.tensors()
        one = tf.ones_like(arguments[index])
        with tf.autodiff.ForwardAccumulator(arguments[index], one) as accumulator:
            value = case.function(*arguments)
        case.check(accumulator.jvp(value), orders)


def test_forward_over_backward(case, capability):
    capability(case.name, "forward over backward")
    for orders in all_orders(case, 2):
        first = max(range(len(orders)), key=orders.__getitem__)
        rest = tuple(order - (i == first) for i, order in enumerate(orders))
        arguments = case.tensors()
        one = tf.ones_like(arguments[first])
        with tf.autodiff.ForwardAccumulator(arguments[first], one) as accumulator:
            value = backward(case.function, rest)(*arguments)
        case.check(accumulator.jvp(value), orders)


def test_forward_over_forward(case, capability):
    capability(case.name, "forward over forward")
    x, one = case.tensors()[0], tf.ones_like(case.tensors()[0])
    rest = case.tensors()[1:]
    orders = (2, 0) if case.both else (2,)
    with tf.autodiff.ForwardAccumulator(x, one) as outer:
        with tf.autodiff.ForwardAccumulator(x, one) as inner:
            value = case.function(x, *rest)
        first = inner.jvp(value)
    case.check(outer.jvp(first), orders)


def test_forward_through_a_function(case, capability):
    capability(case.name, "forward through function")
    arguments = case.tensors()
    traced = tf.function(case.function)
    with tf.autodiff.ForwardAccumulator(arguments[0], tf.ones_like(arguments[0])) as accumulator:
        value = traced(*arguments)
    case.check(accumulator.jvp(value), case.units[0])


def test_forward_inside_a_function_is_refused():
    """It would pass over the rules there, for a zero that nobody notices."""

    @tf.function(autograph=False)
    def tangent(x):
        with tf.autodiff.ForwardAccumulator(x, tf.ones_like(x)) as accumulator:
            value = lk.neg_kl(x)
        return accumulator.jvp(value)

    with pytest.raises(
        LookupError,
        match=r"ForwardAccumulator does not follow the rules of tf.custom_gradient inside a "
        r"tf.function: use it outside, or tf.GradientTape",
    ):
        tangent(tf.constant(LOG_ALPHA))
