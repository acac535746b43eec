"""The public functions at a few points, with the truth about their derivatives of any order."""

from functools import cache
from typing import Any, NamedTuple

import mpmath
import numpy as np
import torch

import logunif_kl.torch as lt

LOG_ALPHA = (-6.25, -3.0, -1.625, -1.25, 0.0, 0.75, 4.0)
MU = (0.125, -0.25, 1.0, 1.0, -1.75, 3.0, -2.5)
LOG_SIGMA2 = (-1.0, 2.0, 0.0, -1.0, -0.5, -2.0, -4.0)
"""All exact in every type, bfloat16 included."""


def _neg_kl(log_alpha: Any) -> Any:
    u = mpmath.exp(-log_alpha) / 2
    return -u * mpmath.hyp2f2(1, 1, mpmath.mpf(3) / 2, 2, -u)


def _neg_kl_normal(mu: Any, log_sigma2: Any) -> Any:
    return _neg_kl(log_sigma2 - 2 * mpmath.log(abs(mu)))


@cache
def derivative(arguments: tuple[float, ...], orders: tuple[int, ...]) -> float:
    """The derivative of -KL by a quotient of differences in 60 digits, right to 20."""
    function = _neg_kl if len(arguments) == 1 else _neg_kl_normal
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
    def function(self) -> Any:
        return getattr(lt, self.name)

    @property
    def points(self) -> tuple[tuple[float, ...], ...]:
        return (MU, LOG_SIGMA2) if self.both else (LOG_ALPHA,)

    def arguments(self, dtype: torch.dtype = torch.float64, grad: bool = False) -> list:
        return [torch.tensor(p, dtype=dtype, requires_grad=grad) for p in self.points]

    def truth(self, orders: tuple[int, ...]) -> np.ndarray:
        """Of a derivative of this function, in float64."""
        orders = (orders[0] + self.order, *orders[1:])
        found = [derivative(point, orders) for point in zip(*self.points, strict=True)]
        return self.sign * np.array(found)


CASES = [
    Case("neg_kl"),
    Case("neg_kl_grad", order=1),
    Case("neg_kl_hess", order=2),
    Case("kl", sign=-1),
    Case("neg_kl_normal", both=True),
    Case("kl_normal", sign=-1, both=True),
]
MAIN = [case for case in CASES if case.name in ("neg_kl", "neg_kl_normal")]
