"""The cases of `tests.derivatives` as functions of TensorFlow, and how to differentiate them."""

from functools import partial
from typing import Any

import numpy as np
import tensorflow as tf

import logunif_kl as lk
from tests import derivatives

WAYS = {
    "eager": lambda function: function,
    "function": partial(tf.function, autograph=False),
    "autograph": tf.function,
    "xla": partial(tf.function, jit_compile=True),
}
RTOL = [1e-15, 2e-15, 5e-15, 1e-14, 1e-12, 1e-12]


class Case(derivatives.Case):
    """A function of `logunif_kl`, of tensors."""

    @property
    def function(self) -> Any:
        return getattr(lk, self.name)

    def tensors(self, dtype: str = "float64") -> list[Any]:
        return [tf.constant(p, dtype) for p in self.points]

    def check(self, got: Any, orders: tuple[int, ...]) -> None:
        total = sum(orders) + self.order
        np.testing.assert_allclose(np.asarray(got), self.truth(orders), rtol=RTOL[total])


CASES = derivatives.cases(Case)


def value_and_slopes(*arguments, of=lk.neg_kl_normal):
    with tf.GradientTape() as tape:
        tape.watch(arguments)
        value = of(*arguments)
    return value, *tape.gradient(value, arguments)


def backward(function, orders):
    """A derivative by nested tapes: one order after the other."""
    if not any(orders):
        return function
    index = next(i for i, order in enumerate(orders) if order)
    rest = tuple(order - (i == index) for i, order in enumerate(orders))

    def derivative(*arguments):
        with tf.GradientTape() as tape:
            tape.watch(arguments)
            value = backward(function, rest)(*arguments)
        return tape.gradient(value, arguments[index])

    return derivative


def all_orders(case, total):
    if not case.both:
        return [(total,)]
    return [(i, total - i) for i in range(total + 1)]
