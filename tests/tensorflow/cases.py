"""Each function at a few points, with derivatives of mpmath, and the ways to differentiate it."""

from functools import cache
from typing import Any, NamedTuple

import mpmath
import numpy as np
import tensorflow as tf

import logunif_kl as lk

LOG_ALPHA = np.array([-6.25, -3.0, -1.625, -1.25, 0.0, 0.75, 4.0])
MU = np.array([0.125, -0.25, 1.0, 1.0, -1.75, 3.0, -2.5])
LOG_SIGMA2 = np.array([-1.0, 2.0, 0.0, -1.0, -0.5, -2.0, -4.0])


@cache
def _derivative(arguments: tuple[float, ...], orders: tuple[int, ...]) -> float:
    def function(*at: Any) -> Any:
        u = mpmath.exp(-at[0]) / 2 if len(at) == 1 else at[0] ** 2 / mpmath.exp(at[1]) / 2
        return -u * mpmath.hyp2f2(1, 1, mpmath.mpf(3) / 2, 2, -u)

    with mpmath.workdps(80):
        point = tuple(mpmath.mpf(a) for a in arguments)
        if not any(orders):
            return float(function(*point))
        # An error of the order of the step: 18 digits of those of the fifth order.
        return float(mpmath.diff(function, point, orders, h=mpmath.mpf(10) ** -20, relative=False))


class Case(NamedTuple):
    """One function: ``sign`` times the derivative of order ``order`` of -KL."""

    name: str
    sign: int = 1
    order: int = 0
    both: bool = False

    @property
    def points(self) -> tuple[np.ndarray, ...]:
        return (MU, LOG_SIGMA2) if self.both else (LOG_ALPHA,)

    @property
    def units(self) -> list[tuple[int, ...]]:
        """The orders of the first derivatives."""
        return [(1, 0), (0, 1)] if self.both else [(1,)]

    def tensors(self, dtype: str = "float64") -> list[Any]:
        return [tf.constant(p, dtype) for p in self.points]

    @property
    def function(self) -> Any:
        return getattr(lk, self.name)

    def truth(self, orders: tuple[int, ...]) -> np.ndarray:
        orders = (orders[0] + self.order, *orders[1:])
        points = zip(*map(np.ndarray.tolist, self.points), strict=True)
        return self.sign * np.array([_derivative(point, orders) for point in points])

    def check(self, got: Any, orders: tuple[int, ...]) -> None:
        total = sum(orders) + self.order
        np.testing.assert_allclose(np.asarray(got), self.truth(orders), rtol=RTOL[total])


RTOL = [1e-15, 2e-15, 5e-15, 1e-14, 1e-12, 1e-12]
CASES = [
    Case("neg_kl"),
    Case("neg_kl_grad", order=1),
    Case("neg_kl_hess", order=2),
    Case("kl", sign=-1),
    Case("neg_kl_normal", both=True),
    Case("kl_normal", sign=-1, both=True),
]


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
