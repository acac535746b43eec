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
    """Two coordinates of q; ``gradient`` takes them, dJ/dmu and dJ/dlog sigma^2 to their own."""

    title: str
    additive: bool
    start: Callable[[float, float], tuple[float, float]]
    normal: Callable[[Array], tuple[float, float]]
    gradient: Callable[[Array, float, float], Array]


def _in_log_alpha(state: Array, mu: float, log_sigma2: float) -> Array:
    return np.array([mu + 2.0 * log_sigma2 / state[0], log_sigma2])


WAYS = {
    "log_sigma2": Way(
        "additive (μ, log σ²)",
        True,
        lambda mu, rho: (mu, rho),
        lambda s: (s[0], s[1]),
        lambda s, mu, rho: np.array([mu, rho]),
    ),
    "log_sigma": Way(
        "additive (μ, log σ)",
        True,
        lambda mu, rho: (mu, 0.5 * rho),
        lambda s: (s[0], 2.0 * s[1]),
        lambda s, mu, rho: np.array([mu, 2.0 * rho]),
    ),
    "sigma": Way(
        "additive (μ, σ)",
        True,
        lambda mu, rho: (mu, math.exp(0.5 * rho)),
        lambda s: (s[0], 2.0 * math.log(s[1])),
        lambda s, mu, rho: np.array([mu, 2.0 * rho / s[1]]),
    ),
    "log_alpha": Way(
        "multiplicative (θ, log α)",
        False,
        lambda mu, rho: (mu, rho - 2.0 * math.log(abs(mu))),
        lambda s: (s[0], s[1] + 2.0 * math.log(abs(s[0]))),
        _in_log_alpha,
    ),
    "alpha": Way(
        "multiplicative (θ, α)",
        False,
        lambda mu, rho: (mu, math.exp(rho) / mu**2),
        lambda s: (s[0], math.log(s[1]) + 2.0 * math.log(abs(s[0]))),
        lambda s, mu, rho: _in_log_alpha(s, mu, rho) / np.array([1.0, s[1]]),
    ),
}


def divergence_gradient(way: Way, state: Array) -> Array:
    """Compute the gradient of KL in the way's own coordinates, by the library."""
    if way.additive:
        _, of_mu, of_rho = lk.special.neg_kl_normal_and_grad(*way.normal(state))
        return way.gradient(state, -float(of_mu), -float(of_rho))
    mu, rho = way.normal(state)
    # In theta it is 0: KL depends on alpha alone.
    of_log_alpha = -float(lk.neg_kl_grad(rho - 2.0 * math.log(abs(mu))))
    (_, own) = way.gradient(state, 0.0, of_log_alpha)
    return np.array([0.0, own])


def flow(
    way: Way, start: tuple[float, float], times: Array, kappa: float, tolerance: float
) -> tuple[Array, float | None]:
    """Follow the gradient down from (mu, log sigma^2); also when log alpha is above 3 for good."""

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
    """Compute log alpha, infinite at mu = 0."""
    return float(lk.log_alpha.from_normal(mu, rho))
