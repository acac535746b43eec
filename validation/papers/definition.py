"""The divergence by its definition: the integrals that the papers start from; and quadrature."""

from typing import Any

import mpmath
import numpy as np

DIGITS = 40
NODES, WEIGHTS = np.polynomial.hermite_e.hermegauss(80)
WEIGHTS = WEIGHTS / WEIGHTS.sum()  # over N(0, 1)


def log_sigmoid(x: Any) -> Any:
    return -np.logaddexp(0.0, -x)


def mean_log(alpha: Any) -> Any:
    """Return E log|eps|, eps ~ N(1, alpha), by quadrature split at the pole and at the mean."""
    spread = mpmath.sqrt(alpha)

    def density(eps: Any) -> Any:
        return mpmath.npdf(eps, 1, spread)

    far = 14 * spread  # beyond, the density is less than 1e-42
    points = sorted({1 - far, -spread, mpmath.mpf(0), mpmath.mpf(1), 1 + spread, 1 + far})
    points = [p for p in points if 1 - far <= p <= 1 + far]
    return mpmath.quad(lambda eps: mpmath.log(abs(eps)) * density(eps) if eps else 0, points)


def gap(alpha: Any) -> Any:
    """Return KL minus its least value, E log|eps| - 1/2 (log(2 alpha) + psi(1/2))."""
    return mean_log(alpha) - (mpmath.log(2 * alpha) + mpmath.digamma(mpmath.mpf(1) / 2)) / 2


def neg_kl(alpha: Any, log_c: Any = 0) -> Any:
    """Return -KL(q || p) for q = N(theta, alpha theta^2) and p = C/|w|."""
    entropy = (mpmath.log(2 * mpmath.pi * alpha) + 1) / 2
    return log_c + entropy - mean_log(alpha)
