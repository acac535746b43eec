"""The public functions at a few points, with the true derivatives of any order.

The tests of PyTorch, JAX and TensorFlow each derive a class from `Case`.
"""

from functools import cache
from typing import Any, NamedTuple

import mpmath
import numpy as np

LOG_ALPHA = np.array([-6.25, -3.0, -1.625, -1.25, 0.0, 0.75, 4.0])
MU = np.array([0.125, -0.25, 1.0, 1.0, -1.75, 3.0, -2.5])
LOG_SIGMA2 = np.array([-1.0, 2.0, 0.0, -1.0, -0.5, -2.0, -4.0])
"""All exact in every type, bfloat16 included."""


def neg_kl(log_alpha: Any) -> Any:
    u = mpmath.exp(-log_alpha) / 2
    return -u * mpmath.hyp2f2(1, 1, mpmath.mpf(3) / 2, 2, -u)


def neg_kl_normal(mu: Any, log_sigma2: Any) -> Any:
    return neg_kl(log_sigma2 - 2 * mpmath.log(abs(mu)))


@cache
def derivative(arguments: tuple[float, ...], orders: tuple[int, ...]) -> float:
    """The derivative of -KL by finite differences in 60 digits."""
    function = neg_kl if len(arguments) == 1 else neg_kl_normal
    with mpmath.workdps(60):
        point = tuple(mpmath.mpf(a) for a in arguments)
        if not any(orders):
            return float(function(*point))
        step = mpmath.mpf(10) ** -20
        return float(mpmath.diff(function, point, orders, h=step, relative=False))


class Case(NamedTuple):
    """One function: ``sign`` times the derivative of order ``order`` of -KL, at the points."""

    name: str
    sign: int = 1
    order: int = 0
    both: bool = False

    @property
    def points(self) -> tuple[np.ndarray, ...]:
        return (MU, LOG_SIGMA2) if self.both else (LOG_ALPHA,)

    @property
    def units(self) -> tuple[tuple[int, ...], ...]:
        """The orders of the first derivatives."""
        return ((1, 0), (0, 1)) if self.both else ((1,),)

    def truth(self, orders: tuple[int, ...]) -> np.ndarray:
        """A derivative of this function at the points, in float64."""
        orders = (orders[0] + self.order, *orders[1:])
        points = zip(*map(np.ndarray.tolist, self.points), strict=True)
        return self.sign * np.array([derivative(point, orders) for point in points])


def cases(kind: Any) -> list[Any]:
    """One of each public function; `kind` is a class derived from `Case`."""
    return [
        kind("neg_kl"),
        kind("neg_kl_grad", order=1),
        kind("neg_kl_hess", order=2),
        kind("kl", sign=-1),
        kind("neg_kl_normal", both=True),
        kind("kl_normal", sign=-1, both=True),
    ]
