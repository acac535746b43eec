r"""The integrand of `monte_carlo`: -log|z + r| minus control variates with known means.

With r = alpha^(-1/2), z ~ N(0, 1) and phi the normal density,

    E log|eps| = log(alpha)/2 + E log|z + r|,     F(u) = E log|z + r| - E log|z|,

and E log|z| = -(gamma + log 2)/2. These control variates are subtracted from log|z + r|:

- h_r, which has the singularity of log|z + r|. With t = z + r, d = min(1, 1/r) and q = (t/d)^2,
  h_r = 1/2 (log q + (1 - q) + (1 - q)^2/2) exp(t^2/2 - t r) for q < 1, and 0 elsewhere. It has two
  continuous derivatives at q = 1, and log|t| - h_r is bounded. The exponential cancels the
  variation of the density of z near -r, so the mean of h_r is -16/15 d phi(r). In a window wider
  than q < 1, the exponential would magnify rare samples.
- log|z| - h_0, which has no singularity. Where r is small, this variate is strongly correlated with
  the integrand.
- The Hermite polynomials He_0 to He_4 of z. A regression over 256 quantiles of N(0, 4) gives the
  coefficients of these polynomials and of log|z| - h_0. The coefficients depend on r but not on the
  sample, so the estimate is unbiased and its standard error is the usual one.
- For r > 6, the Taylor polynomial of degree 4 of log|1 + z/r| replaces all these control variates.
  Its mean is -1/(2 r^2) - 3/(4 r^4). For such r, z is near -r with a probability below 1e-8.

The remainder after this subtraction is averaged over z ~ N(0, 4), with the weight 2 exp(-3 z^2/8):
the density of N(0, 1) divided by that of N(0, 4). Sampling N(0, 4) raises the variance a little
where r is near 1, but makes the standard error reliable: samples of N(0, 1) rarely reach the tails,
where the remainder is largest. Sampling N(0, 4) also makes the integrand vanish at 0 and 1, the
ends of the range of Sobol points.

``validation/results/monte_carlo/monte_carlo.json`` records the variances.
"""

from __future__ import annotations

import math
from collections.abc import Iterator
from typing import NamedTuple

import numpy as np
from scipy.special import ndtri

from .._convention import HALF_GAMMA_LOG_2
from .._numpy.memory import check_for_linear_algebra

#: E log|z| for z ~ N(0, 1): (log 2 + psi(1/2))/2 = -(gamma + log 2)/2.
MEAN_LOG = -HALF_GAMMA_LOG_2
#: The standard deviation of the sampled z when control variates are used.
SPREAD = 2.0
#: Smaller log alpha are replaced by this, where 1 + alpha^(1/2) is 1 and alpha^(-1/2) is finite.
LEAST_LOG_ALPHA = -1400.0

_FAR = 6.0  # above this r, only the Taylor polynomial is subtracted
_PHI_0 = 1.0 / math.sqrt(2.0 * math.pi)
_SINGULAR = 16.0 / 15.0  # -E h_r / (d phi(r))
_EPS, _TINY = np.finfo(np.float64).eps, np.finfo(np.float64).tiny
_CHUNK = 256  # the number of values of log alpha in one regression


class Controls(NamedTuple):
    """The values of the control variates that do not depend on log alpha, at given z."""

    variates: np.ndarray
    """Shape (6, m): 1, He_1 to He_4, and log|z| - h_0 minus its mean. All but the first have mean
    0."""

    weight: np.ndarray
    """Shape (m,): the density of N(0, 1) divided by the density of N(0, SPREAD^2)."""


def controls(z: np.ndarray) -> Controls:
    """Evaluate the control variates at z of shape (m,)."""
    square = z * z
    variates = (
        np.ones_like(z),
        z,
        square - 1.0,
        z * (square - 3.0),
        square * (square - 6.0) + 3.0,
        _smooth_log(z, 0.0) - (MEAN_LOG + _SINGULAR * _PHI_0),
    )
    weight = SPREAD * np.exp((0.5 / SPREAD**2 - 0.5) * square)
    return Controls(np.stack(variates), weight)


class Integrand:
    """The integrand at k values of log alpha: its mean over z, plus `shift`, is -F(u).

    Parameters
    ----------
    log_alpha : ndarray, shape (k,)
        Finite values.
    controlled : bool
        Whether to subtract the control variates; otherwise the integrand is -log|z + r|.
    gradient : bool
        Whether the mean is to be d(-F)/d log alpha instead of -F. By the score function, d(-F)/d
        log alpha = (r/2) E[z log|z + r|].

    Attributes
    ----------
    shift : ndarray, shape (k,)
        The number to add to the mean.
    rounding : ndarray, shape (k,)
        The estimated rounding error of `shift` and of the mean together.
    """

    def __init__(self, log_alpha: np.ndarray, controlled: bool, gradient: bool) -> None:
        x = np.maximum(log_alpha, LEAST_LOG_ALPHA)
        self._gradient = gradient
        self._r = r = np.exp(-0.5 * x)
        self._s = s = np.exp(0.5 * np.minimum(x, 0.0))
        near = r <= _FAR
        self._near, self._far = np.flatnonzero(near), np.flatnonzero(~near)
        self._coefficients = _coefficients(r, self._near, gradient and controlled)
        singular = _SINGULAR * _PHI_0 * np.exp(-0.5 * np.minimum(r, _FAR) ** 2)
        singular /= np.maximum(1.0, r)
        # `taken` is the part of the mean that the control variates remove, so `shift` restores it.
        if gradient:
            # E[z h_r] = 16/15 d r phi(r), E[z He_1] = 1, and E[z g] = 0 for other variates g
            taken = np.where(near, self._coefficients[:, 1] + r * singular, s + s**3)
            self.shift = 0.5 * r * taken if controlled else np.zeros_like(r)
            self.rounding = 4.0 * _EPS * np.where(near, 1.0 + r, 1.0)
        else:
            taken = np.where(
                near, singular - self._coefficients[:, 0], 0.5 * s * s * (1.0 + 1.5 * s * s)
            )
            self.shift = np.where(near, 0.0, 0.5 * log_alpha) + MEAN_LOG
            self.shift += taken if controlled else 0.0
            self.rounding = _EPS * (4.0 + np.maximum(-log_alpha, 0.0))

    def groups(self, size: int) -> Iterator[np.ndarray]:
        """Yield groups of at most `size` indices that use the same formula."""
        for rows in (self._near, self._far):
            for start in range(0, rows.size, size):
                yield rows[start : start + size]

    def evaluate(self, rows: np.ndarray, z: np.ndarray, of_z: Controls | None) -> np.ndarray:
        """Return the integrand for the indices `rows` and for m values z, of shape (rows.size, m).

        `of_z` is ``controls(z)``, or None for the integrand without control variates.
        """
        r, s = self._r[rows, np.newaxis], self._s[rows, np.newaxis]
        if r[0] > _FAR:
            values = _far(s * z, of_z is not None)
        elif of_z is None:
            values = _log(z + r)
        else:
            values = _smooth_log(z + r, r)
            for j, variate in enumerate(of_z.variates):
                values -= self._coefficients[rows, j, np.newaxis] * variate
        if of_z is not None:
            values *= of_z.weight
        if self._gradient:
            values *= z
            values *= 0.5 * r
        else:
            np.negative(values, out=values)
        return values


def _coefficients(r: np.ndarray, rows: np.ndarray, gradient: bool) -> np.ndarray:
    """Regress log|z + r| - h_r on the control variates. Outside `rows` the coefficients are 0."""
    z, (variates, weight) = _NODES, _AT_NODES
    if gradient:
        weight = weight * z
    check_for_linear_algebra()
    solve = np.linalg.pinv((variates * weight).T)
    found = np.zeros((r.size, len(variates)))
    for start in range(0, rows.size, _CHUNK):
        some = rows[start : start + _CHUNK]
        target = _smooth_log(z + r[some, np.newaxis], r[some, np.newaxis]) * weight
        for j, row in enumerate(solve):
            # Sum each row by itself. In a matrix product, a row's rounding depends on other rows.
            found[some, j] = (target * row).sum(axis=1)
    return found


def _far(t: np.ndarray, controlled: bool) -> np.ndarray:
    """Return log|1 + t|, accurate even near t = 0, minus its Taylor polynomial if `controlled`."""
    # `np.where` computes both logarithms everywhere, so clip t to avoid log1p's singularity at -1
    out = np.where(t > -0.5, np.log1p(np.maximum(t, -0.5)), _log(1.0 + t))
    if controlled:
        out -= t * (1.0 - t * (1 / 2 - t * (1 / 3 - t / 4)))
    return out


def _log(t: np.ndarray) -> np.ndarray:
    return np.asarray(np.log(np.maximum(np.abs(t), _TINY)))


def _smooth_log(t: np.ndarray, r: np.ndarray | float) -> np.ndarray:
    """Return log|t| - h_r, which is bounded at t = 0."""
    d = 1.0 / np.maximum(1.0, r)
    logarithm = _log(t)
    # clip larger |t| to d, where the first factor of h_r is 0, so that h_r is 0 outside [-d, d]
    near = np.clip(t, -d, d)
    p = 1.0 - (near / d) ** 2
    singular = np.minimum(logarithm - np.log(d), 0.0) + p * (0.5 + 0.25 * p)
    return np.asarray(logarithm - singular * np.exp(near * (0.5 * near - r)))


_NODES = SPREAD * ndtri((np.arange(256) + 0.5) / 256.0)
_AT_NODES = controls(_NODES)
