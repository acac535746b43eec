"""Coordinates of a Gaussian posterior, and gradient flow in each."""

import math
from collections.abc import Callable
from typing import NamedTuple

import numpy as np
import numpy.typing as npt
from scipy.integrate import solve_ivp

import logunif_kl as lk

Array = npt.NDArray[np.float64]
PRUNED = 3.0  # log alpha; Molchanov et al. 2017, section 5


class Way(NamedTuple):
    """Two coordinates of q: its mean, and a function of log sigma^2 (additive) or of log alpha.

    ``into`` is that function, ``back`` its inverse, and ``slope`` the derivative of the inverse.
    """

    title: str
    additive: bool
    into: Callable[[float], float]
    back: Callable[[float], float]
    slope: Callable[[float], float]

    def start(self, mu: float, rho: float) -> tuple[float, float]:
        return mu, self.into(rho if self.additive else rho - 2.0 * math.log(abs(mu)))

    def normal(self, state: Array) -> tuple[float, float]:
        second = self.back(state[1])
        return state[0], second if self.additive else second + 2.0 * math.log(abs(state[0]))

    def gradient(self, state: Array, mu: float, rho: float) -> Array:
        """Return the gradient in the coordinates from the gradient in the mean and log sigma^2."""
        first = mu if self.additive else mu + 2.0 * rho / state[0]
        return np.array([first, rho * self.slope(state[1])])


WAYS = {
    "log_sigma2": Way("additive (μ, log σ²)", True, float, float, lambda s: 1.0),
    "log_sigma": Way(
        "additive (μ, log σ)", True, lambda rho: 0.5 * rho, lambda s: 2.0 * s, lambda s: 2.0
    ),
    "sigma": Way(
        "additive (μ, σ)",
        True,
        lambda rho: math.exp(0.5 * rho),
        lambda s: 2.0 * math.log(s),
        lambda s: 2.0 / s,
    ),
    "log_alpha": Way("multiplicative (θ, log α)", False, float, float, lambda s: 1.0),
    "alpha": Way("multiplicative (θ, α)", False, math.exp, math.log, lambda s: 1.0 / s),
}


def divergence_gradient(way: Way, state: Array) -> Array:
    if way.additive:
        _, of_mu, of_rho = lk.special.neg_kl_normal_and_grad(*way.normal(state))
        return way.gradient(state, -float(of_mu), -float(of_rho))
    mu, rho = way.normal(state)
    # In theta the gradient is 0, because KL depends only on alpha.
    of_log_alpha = -float(lk.neg_kl_grad(rho - 2.0 * math.log(abs(mu))))
    (_, own) = way.gradient(state, 0.0, of_log_alpha)
    return np.array([0.0, own])


def flow(
    way: Way, start: tuple[float, float], times: Array, kappa: float, tolerance: float
) -> tuple[Array, float | None]:
    """Follow the gradient down from (mu, log sigma^2); find when log alpha stays above 3."""

    def down(_: float, state: Array) -> Array:
        mu, rho = way.normal(state)
        of_data = way.gradient(state, kappa * (mu - 1.0), 0.5 * kappa * math.exp(rho))
        return -(of_data + divergence_gradient(way, state))

    def crosses(_: float, state: Array) -> float:
        return log_alpha(*way.normal(state)) - PRUNED

    crosses.direction = 1.0  # type: ignore[attr-defined]
    found = solve_ivp(
        down,
        (0.0, times[-1]),
        way.start(*start),
        "Radau",
        times,
        events=crosses,
        rtol=tolerance,
        atol=1e-2 * tolerance,
    )
    if not found.success:
        raise ArithmeticError(f"the flow in {way.title} ended early: {found.message}")
    normal = np.array([way.normal(state) for state in found.y.T])
    crossings = found.t_events[0]
    pruned = log_alpha(*normal[-1]) > PRUNED and len(crossings) > 0
    return normal, float(crossings[-1]) if pruned else None


def log_alpha(mu: float, rho: float) -> float:
    return float(lk.log_alpha.from_normal(mu, rho))
