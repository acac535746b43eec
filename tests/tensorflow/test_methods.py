"""Formulas of papers and fits over tensors: values, and their derivatives, eager and in graphs."""

import pytest

from tests.methods import formulas

tf = pytest.importorskip("tensorflow")
from tests.tensorflow.cases import WAYS, backward  # noqa: E402


@pytest.mark.parametrize("name", formulas.NAMES)
def test_values_and_derivatives(name):
    value, slope, x = formulas.of(name)
    at = tf.constant(x)
    for way in ("eager", "function", "xla")[: 3 if name in formulas.CLOSED else 2]:
        for function, truth in ((value, value), (backward(value, (1,)), slope)):
            formulas.check(WAYS[way](function)(at), truth(x), 8.0)
