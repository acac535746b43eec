"""The divergence of a Gaussian posterior from Student's t, over an array namespace ``xp``.

Let Z = (lambda sigma - c)/(lambda sigma + c) with c = a - i mu and lambda = sqrt(2) L. Weideman
(1994), "Computation of the complex error function", Eq. (I), expands w(z) = exp(-z^2) erfc(-iz), at
z = i c/(sqrt(2) sigma), in powers of Z, where abs(Z) <= 1. E log(a^2 + w^2) is the real part of an
integral of w(z), so integrating the expansion term by term gives this expectation for all mu, sigma
and a. With D = lambda sigma + c and E = 1 + Z = 2 lambda sigma/D it is

    T = log |D|^2 - Re[E + k1 E^2 + kappa E^3 Q(Z)]
    kappa = 2 sqrt(pi)/L,    k1 = (1 - 1/lambda^2)/4

The polynomial Q has real coefficients. The terms in E and E^2 are exact, so the derivatives of T
keep their digits where sigma is small and E is nearly 0. With S = 3 Q + E Q',

    dT/dmu           = Im[(2 + E + 2 k1 E^2 + kappa E^3 S) / D]
    dT/dlog sigma^2  = Re[E^2/4 (1/lambda^2 + 2 k1 E - kappa E (2 - E) S)]

``xp`` is the module `torch` or `jax.numpy`.
"""

from __future__ import annotations

import math
from functools import cache
from typing import Any

import numpy as np

Array = Any
Complex = tuple[Array, Array]

_FREE = 40.0
"""Up to this log sigma, the exponential and lambda sigma are finite in float32."""


def neg_kl(xp: Any, mu: Array, log_sigma2: Array, df: float, scale: float) -> Array:
    """Return -KL(N(mu, sigma^2) || t) for Student's t with `df` degrees of freedom and a scale."""
    log_a = math.log(scale) + 0.5 * math.log(df)
    e, _, log_size, squared, (_, _, k1, kappa), q = _expanded(xp, mu, log_sigma2, log_a, 0)
    e2 = _times(e, e)
    tail = e[0] + k1 * e2[0] + kappa * _times(_times(e2, e), q)[0]
    mean = 2.0 * (log_size - log_a) + (xp.log(squared) - tail)
    constant = 0.5 * math.log(2.0 * math.pi * math.e) - log_beta(0.5 * df) - log_a
    return 0.5 * log_sigma2 + constant - 0.5 * (df + 1.0) * mean


def neg_kl_slopes(
    xp: Any, mu: Array, log_sigma2: Array, df: float, scale: float
) -> tuple[Array, Array]:
    """Return the derivatives of `neg_kl` in mu and in log sigma^2."""
    log_a = math.log(scale) + 0.5 * math.log(df)
    e, inverse, _, _, (_, level, k1, kappa), q, slope = _expanded(xp, mu, log_sigma2, log_a, 1)
    along = _times(e, slope)
    s = 3.0 * q[0] + along[0], 3.0 * q[1] + along[1]
    e2, es = _times(e, e), _times(e, s)
    inner = _times(e2, (2.0 * k1 + kappa * es[0], kappa * es[1]))
    d_mu = _times((2.0 + e[0] + inner[0], e[1] + inner[1]), inverse)[1]
    away = _times((2.0 - e[0], -e[1]), es)
    bracket = level + 2.0 * k1 * e[0] - kappa * away[0], 2.0 * k1 * e[1] - kappa * away[1]
    d_log_sigma2 = 0.25 * _times(e2, bracket)[0]
    half = 0.5 * (df + 1.0)
    return -half * d_mu, 0.5 - half * d_log_sigma2


def _times(a: Complex, b: Complex) -> Complex:
    return a[0] * b[0] - a[1] * b[1], a[0] * b[1] + a[1] * b[0]


def _expanded(xp: Any, mu: Array, log_sigma2: Array, log_a: float, orders: int) -> Any:
    """Return E, 1/D, log m, abs(D/m)^2, constants, Q and, for ``orders=1``, the derivative Q'."""
    *constants, coefficients = _coefficients(48 if str(mu.dtype).endswith("float64") else 20)
    width = constants[0]
    half = 0.5 * log_sigma2
    # Divide mu, sigma and a by e^shift, or a large sigma would overflow.
    shift = xp.where(half > _FREE, half - _FREE, 0.0 * half)
    down = xp.exp(-shift)
    spread = width * xp.exp(half - shift)
    real, imag = spread + xp.exp(log_a - shift), mu * down
    size = xp.abs(imag)
    size = xp.where(real > size, real, size)
    x, y = real / size, imag / size
    squared = x * x + y * y
    unit = x / squared, y / squared  # m/D, where m is `size`
    ratio = 2.0 * (spread / size)
    e = ratio * unit[0], ratio * unit[1]
    inverse = unit[0] / size * down, unit[1] / size * down
    z = e[0] - 1.0, e[1]
    q: Complex = (coefficients[-1] + 0.0 * z[0], 0.0 * z[1])
    slope: Complex = (0.0 * z[0], 0.0 * z[1])
    for c in coefficients[-2::-1]:
        if orders:
            slope = _times(slope, z)
            slope = slope[0] + q[0], slope[1] + q[1]
        q = _times(q, z)
        q = q[0] + c, q[1]
    found = (e, inverse, xp.log(size) + shift, squared, constants, q)
    return (*found, slope) if orders else found


@cache
def _coefficients(terms: int) -> tuple[float, float, float, float, tuple[float, ...]]:
    """Return lambda, 1/lambda^2, k1, kappa and the coefficients of Q, in ascending order."""
    length = math.sqrt(terms) / 2.0**0.25  # Weideman's L
    points = 4 * terms
    angles = np.arange(1 - points, points) * (math.pi / points)
    t = length * np.tan(0.5 * angles)
    values = np.exp(-t * t) * (length**2 + t * t)
    p = np.cos(np.outer(np.arange(1, terms + 1), angles)) @ values / (2 * points)
    kappa = 2.0 * math.sqrt(math.pi) / length
    level = 0.5 / length**2
    # Integrate p, and divide three times by 1 + Z. The remainders belong to 1, E and E^2.
    q = np.concatenate([[0.0], p / np.arange(1, terms + 1)])
    for _ in range(3):
        quotient = np.zeros(len(q) - 1)
        carried = 0.0
        for k in range(len(q) - 1, 0, -1):
            carried = q[k] - carried
            quotient[k - 1] = carried
        q = quotient
    return math.sqrt(2.0) * length, level, 0.25 * (1.0 - level), kappa, tuple(q.tolist())


def log_beta(a: float) -> float:
    """Return log B(a, 1/2), of which SciPy's betaln gives only seven digits at a = 1e6.

    For a >= 20, log Gamma(a + 1/2) - log Gamma(a) is expanded in 1/a, by DLMF 5.11.8 with h = 1/2
    and h = 0. The first omitted term is below 1e-14.
    """
    if a < 20.0:
        return math.lgamma(0.5) + math.lgamma(a) - math.lgamma(a + 0.5)
    t = 1.0 / a
    series = 0.0
    for c in (-31.0 / 18432.0, 17.0 / 14336.0, -1.0 / 640.0, 1.0 / 192.0, -1.0 / 8.0):
        series = c + t * t * series
    return 0.5 * math.log(math.pi) - (0.5 * math.log(a) + t * series)
