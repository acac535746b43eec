"""The public functions at a few points, with the true derivatives of any order.

The tests of PyTorch, JAX and TensorFlow each derive a class from `Case`.
"""

from collections.abc import Callable
from functools import cache
from typing import Any, NamedTuple

import mpmath
import numpy as np

LOG_ALPHA = np.array([-6.25, -3.0, -1.625, -1.25, 0.0, 0.75, 4.0])
MU = np.array([0.125, -0.25, 1.0, 1.0, -1.75, 3.0, -2.5])
LOG_SIGMA2 = np.array([-1.0, 2.0, 0.0, -1.0, -0.5, -2.0, -4.0])
"""All exact in every type, bfloat16 included."""
ORDERS = [(j, total - j) for total in (2, 3, 4) for j in range(total + 1)]
# By order: errors of float64 and float32 derivatives, in units in the last place of the derivative,
# or of half the next one in log_sigma2 if that is larger, as near a zero. There half a unit in the
# argument changes the result by as much. The fourth derivative differentiates fits of the second
# twice.
ALLOWED = {2: 4.0, 3: 6.0, 4: 64.0}


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


@cache
def polynomials(n: int) -> tuple[dict, dict]:
    """Polynomials a, b with D^(n+1)(-KL) = a(u) G + b(u), G = u F'(u) = D(-KL).

    F' = dawson(sqrt u)/sqrt u, so that u dG/du = (G + u - 2 u G)/2; and D = -u d/du.
    """
    if n == 0:
        return {0: mpmath.mpf(1)}, {}
    before, found = polynomials(n - 1), ({}, {})

    def add(which, power, value):
        found[which][power] = found[which].get(power, 0) - value

    for which in (0, 1):
        for power, c in before[which].items():
            add(which, power, power * c)
    for power, c in before[0].items():
        add(0, power, c / 2)
        add(0, power + 1, -c)
        add(1, power + 1, c / 2)
    return found


def in_log_alpha(u: Any, n: int) -> Any:
    """D^n(-KL) at u, for n >= 1."""
    g = u * mpmath.hyp1f1(1, mpmath.mpf(3) / 2, -u)
    a, b = (sum(c * u**k for k, c in p.items()) for p in polynomials(n - 1))
    return a * g + b


def truth(mu: Any, log_sigma2: Any, orders: tuple[int, int]) -> Any:
    """By d^(j+k) = mu^-j (-2D) (-2D - 1) ... (-2D - j + 1) D^k."""
    j, k = orders
    operator = {k: 1}
    for i in range(j):
        longer = {}
        for n, c in operator.items():
            longer[n + 1] = longer.get(n + 1, 0) - 2 * c
            longer[n] = longer.get(n, 0) - i * c
        operator = longer
    with mpmath.workdps(160):
        mu, log_sigma2 = mpmath.mpf(float(mu)), mpmath.mpf(float(log_sigma2))
        u = mu**2 * mpmath.exp(-log_sigma2) / 2
        return sum(c * in_log_alpha(u, n) for n, c in operator.items() if c) / mu**j


def ulps(found: float, true: Any, following: Any, eps: float) -> float:
    """Return the error in the unit of `ALLOWED`, for a type in which 1 + eps follows 1."""
    exponent = mpmath.floor(mpmath.log(max(abs(true), abs(following) / 2), 2))
    return float(abs(mpmath.mpf(float(found)) - true) / eps * mpmath.mpf(2) ** -exponent)


def check_ulps(
    found: Any, mu: np.ndarray, log_sigma2: np.ndarray, orders: tuple[int, int], eps: float
) -> None:
    for each, *point in zip(found, mu, log_sigma2, strict=True):
        true, following = (truth(*point, (orders[0], orders[1] + more)) for more in (0, 1))
        assert ulps(each, true, following, eps) <= ALLOWED[sum(orders)], (orders, point)


def check_borders(derivative: Callable[[tuple[int, int], np.ndarray, np.ndarray], Any]) -> None:
    """Check derivatives in float64 across u = 4 and 32, where tables of `logunif_kl` end or ended.

    ``derivative`` takes the orders, mu and log_sigma2.
    """
    rng = np.random.default_rng(20261128)
    near = rng.uniform(-1.0, 1.0, 60) * np.repeat([0.25, 1e-4], 30)
    u = np.concatenate([4.0 * (1.0 + near), 32.0 * (1.0 + near)])
    mu = np.append(np.exp(rng.uniform(-2.0, 2.0, u.size)), [1.0, 1.0, 0.07070779594237164])
    log_sigma2 = np.log(0.5 * mu[:-3] ** 2 / u)
    log_sigma2 = np.append(log_sigma2, [-4.158959199797317, -4.15890724607479, -5.207586160619337])
    for orders in ((2, 0), (2, 1), (0, 3), (0, 4)):
        found = np.asarray(derivative(orders, mu, log_sigma2))
        check_ulps(found, mu, log_sigma2, orders, 2.0**-52)


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
