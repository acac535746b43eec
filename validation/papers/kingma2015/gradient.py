"""Statements of Kingma et al. about Monte Carlo gradients, applied to E log|eps|."""

import math

import mpmath
import numpy as np

import logunif_kl as lk
from validation.papers.statement import Found, statement


@statement(
    "kingma-reparameterised-gradient",
    "Eq. 3, applied to the expectation in Eq. 42",
    "the reparameterised estimator is differentiable and its gradient unbiased",
    stated=False,
)
def reparameterised_gradient() -> Found:
    alpha, seeds = 1.0, 1000
    sizes = (1_000, 10_000, 100_000)
    spread: dict[str, list[float]] = {"value": [], "gradient": []}
    for size in sizes:
        means = np.empty((seeds, 2))
        for seed in range(seeds):
            z = np.random.default_rng([size, seed]).standard_normal(size)
            eps = 1.0 + math.sqrt(alpha) * z
            means[seed] = np.mean(np.log(np.abs(eps))), np.mean(z / (2 * math.sqrt(alpha) * eps))
        for name, column in zip(spread, means.T, strict=True):
            low, high = np.quantile(column, [0.25, 0.75])
            spread[name].append(float(high - low))
    truncated = [_truncated(alpha, least) for least in (1e-3, 1e-6, 1e-12)]
    # Near the pole the gradient is -1/(2 alpha eps), with a Cauchy tail, so its mean has a Cauchy
    # law.
    cauchy = math.pi * math.exp(-0.5 / alpha) / math.sqrt(2 * math.pi * alpha) / alpha
    shrunk = {name: values[0] / values[-1] for name, values in spread.items()}
    principal, exact = _principal_value(alpha), float(lk.neg_kl_grad(0.0))
    # d/dalpha of -KL = 1/(2 alpha) - d/dalpha E log|eps|
    return Found(
        holds=shrunk["gradient"] > 0.5 * math.sqrt(sizes[-1] / sizes[0]),
        measured={
            "samples": sizes,
            "seeds": seeds,
            "interquartile_range_of_the_mean": spread,
            "interquartile_range_of_the_gradient_in_the_limit": cauchy,
            "mean_magnitude_without_eps_below": dict(
                zip(("1e-3", "1e-6", "1e-12"), truncated, strict=True)
            ),
            "principal_value": principal,
            "exact": 0.5 / alpha - exact / alpha,
        },
        note=f"a hundred times the samples shrink the spread of the value by {shrunk['value']:.1f} "
        f"and of the gradient by {shrunk['gradient']:.2f}: it has a pole 1/eps where the density "
        "is positive, so its mean magnitude is infinite. Its principal value is Dawson's form",
    )


def _truncated(alpha: float, least: float) -> float:
    """Return E of |d log|eps|/dalpha| over |eps| > least, which grows like -log(least)."""
    with mpmath.workdps(20):
        spread = mpmath.sqrt(alpha)

        def magnitude(log_eps: mpmath.mpf, sign: int) -> mpmath.mpf:
            eps = sign * mpmath.exp(log_eps)
            return abs(eps - 1) / (2 * alpha) * mpmath.npdf(eps, 1, spread)

        low, high = mpmath.log(least), mpmath.log(1 + 14 * spread)
        points = [low, -4, -1, 0, high] if low < -4 else [low, 0, high]
        return float(sum(mpmath.quad(lambda t, s=s: magnitude(t, s), points) for s in (1, -1)))


def _principal_value(alpha: float) -> float:
    """Return the principal value of E d log|eps|/dalpha, at the pole eps = 0."""
    with mpmath.workdps(20):
        spread = mpmath.sqrt(alpha)

        def both(eps: mpmath.mpf) -> mpmath.mpf:
            odd = (eps - 1) * mpmath.npdf(eps, 1, spread) - (-eps - 1) * mpmath.npdf(
                -eps, 1, spread
            )
            return odd / (2 * alpha * eps)

        return float(mpmath.quad(both, [mpmath.mpf(10) ** -18, 1, 2, 1 + 14 * spread]))
