"""Models of one weight under the log-uniform prior with C = 1, cut off at 0 and in the tails.

With t = log|w| the prior is flat, so that the normaliser between the cut-offs a < b is

    Z(a, b) = integral_{log a}^{log b} [L(e^t) + L(-e^t)] dt

for the likelihood L. The integrand is smooth, whatever the cut-offs.
"""

import math
from collections.abc import Callable, Sequence
from typing import Any, NamedTuple

import numpy as np
import numpy.typing as npt

Array = npt.NDArray[np.float64]

STEP, NODES = 0.25, 16  # panels in log|w|, and Gauss-Legendre points in each


class Model(NamedTuple):
    """A likelihood of one weight: observations (x, y), and their noise in a regression.

    A logistic regression has labels y of -1 and 1, and no noise; a linear one has Gaussian noise of
    this standard deviation.
    """

    title: str
    x: tuple[float, ...]
    y: tuple[float, ...]
    noise: float | None = None

    def log_likelihood(self, w: Any, xp: Any = np) -> Any:
        """Compute log p(y | x, w) for weights of any shape, in NumPy or in `jax.numpy`."""
        x, y = xp.asarray(self.x), xp.asarray(self.y)
        w = xp.asarray(w)[..., None]
        if self.noise is None:
            return -xp.logaddexp(0.0, -x * y * w).sum(-1)
        log_scale = 0.5 * math.log(2.0 * math.pi * self.noise**2)
        return -(0.5 * ((y - x * w) / self.noise) ** 2 + log_scale).sum(-1)

    def of_log_magnitude(self, t: Any, xp: Any = np) -> Any:
        """Compute log(L(e^t) + L(-e^t)), the log density of t = log|w| up to a constant."""
        w = xp.exp(t)
        return xp.logaddexp(self.log_likelihood(w, xp), self.log_likelihood(-w, xp))

    @property
    def at_zero(self) -> float:
        """L(0), which must be positive for Proposition 1."""
        return math.exp(float(self.log_likelihood(0.0)))


LOGISTIC = Model("logistic, one observation (1, 1)", (1.0,), (1.0,))
LINEAR = Model("linear, Gaussian noise, two observations", (1.0, 2.0), (1.5, 1.0), 1.0)
_X = (0.5, 1.0, 2.0)
MODELS = {
    "logistic": LOGISTIC,
    "separable": Model("logistic, three observations, separable", _X, (1.0, 1.0, 1.0)),
    "overlapping": Model("logistic, three observations, not separable", _X, (1, -1, 1)),
    "linear": LINEAR,
}


def integral(density: Callable[[Array], Array], low: float, high: float) -> float:
    """Integrate a density of t = log|w| by panels of Gauss-Legendre quadrature."""
    if high <= low:
        return 0.0
    panels = max(1, math.ceil((high - low) / STEP))
    edges = np.linspace(low, high, panels + 1)
    points, weights = np.polynomial.legendre.leggauss(NODES)
    half = np.diff(edges)[:, None] / 2.0
    t = (edges[:-1, None] + half) + half * points
    return float((half * weights * density(t)).sum())


def normaliser(model: Model, a: float, b: float, signs: Sequence[int] = (1, -1)) -> float:
    """Compute the posterior's mass times the evidence, over a < |w| < b of these signs."""

    def density(t: Array) -> Array:
        values = [np.exp(model.log_likelihood(sign * np.exp(t))) for sign in signs]
        return np.sum(values, axis=0)

    with np.errstate(over="ignore"):
        return integral(density, math.log(a), math.log(b))


def finite_part() -> float:
    """Return lim_{a -> 0} of the left side's mass of `LOGISTIC` minus log(1/a)/2.

    The left side is the integral of 1/(w (1 + e^w)) over w > a, a Mellin transform at s = 0:
    Gamma(s) eta(s) = 1/(2 s) + eta'(0) - gamma/2 + O(s), with Dirichlet's eta(0) = 1/2 and
    eta'(0) = log(pi/2)/2.
    """
    return 0.5 * (math.log(math.pi / 2.0) - np.euler_gamma)
