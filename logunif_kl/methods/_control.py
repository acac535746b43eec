r"""What Monte Carlo averages: -log|z + r|, with all that has a known mean taken away.

With r = alpha^(-1/2), z ~ N(0, 1) and phi the normal density,

    E log|eps| = log(alpha)/2 + E log|z + r|,     F(u) = E log|z + r| - E log|z|,

and E log|z| = -(gamma + log 2)/2. From log|z + r| are taken away, each with its mean,

- the singularity. With t = z + r, d = min(1, 1/r), q = (t/d)^2 and
  h_r = 1/2 (log q + (1 - q) + (1 - q)^2/2) exp(t^2/2 - t r) for q < 1 and 0 elsewhere, h_r has two
  continuous derivatives at q = 1, and the mean -16/15 d phi(r), for the exponential undoes the
  variation of the density about -r; log|t| - h_r is bounded. (A wider window would have the
  exponential magnify what is rare; a kink would be missed by most samples where r is small);
- log|z| less its own singularity h_0, which has nearly the same fluctuations where r is small;
- Hermite's polynomials He_0 to He_4 of z. Their coefficients, and that of log|z|, are those of a
  regression over 256 equally probable z: numbers that depend on r and never on the sample, so that
  the estimate is unbiased and its standard error the usual one;
- or, above r = 6, where the singularity has a probability below 1e-8, the Taylor polynomial of
  degree 4 of log|1 + z/r|, whose mean is -1/(2 r^2) - 3/(4 r^4).

The rest is averaged over z ~ N(0, 4) with the weight 2 exp(-3 z^2/8), the ratio of the densities.
That costs a little where r is near 1, and makes the standard error honest: what a good fit leaves
over lives in the tails, which a sample of N(0, 1) more often than not has nothing of. It also lets
the integrand vanish where Sobol's points end.

The catch: nothing here fails when a coefficient is poor, but the variance grows. It is measured in
``validation/results/monte_carlo/monte_carlo.json``.
"""

from __future__ import annotations

import math
from collections.abc import Iterator
from typing import NamedTuple

import numpy as np
from scipy.special import ndtri

#: E log|z| for z ~ N(0, 1): (log 2 + psi(1/2))/2 = -(gamma + log 2)/2.
MEAN_LOG = -0.6351814227307391
#: The standard deviation of the z at which controlled integrands are evaluated.
SPREAD = 2.0

_FAR = 6.0  # r above which the Taylor polynomial takes over
_PHI_0 = 1.0 / math.sqrt(2.0 * math.pi)
_SINGULAR = 16.0 / 15.0  # -E h_r / (d phi(r))
_EPS, _TINY = np.finfo(np.float64).eps, np.finfo(np.float64).tiny
_LEAST = -1400.0  # log alpha below which alpha^(1/2) is 0 to any double, and its inverse not yet
_CHUNK = 256  # elements of log alpha whose coefficients are found at once


class Controls(NamedTuple):
    """What the integrands of all log alpha share at the same z."""

    variates: np.ndarray
    """Shape (6, m): 1, He_1 to He_4, and log|z| less h_0 and its mean. All but the first have
    mean 0."""

    weight: np.ndarray
    """Shape (m,): the density of N(0, 1) over that of N(0, SPREAD^2)."""


def controls(z: np.ndarray) -> Controls:
    """Evaluate them at z, shape (m,)."""
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
    """A function of z for each of k values of log alpha, from whose mean -F(u) follows.

    Parameters
    ----------
    log_alpha : ndarray, shape (k,)
        Finite.
    controlled : bool
        Whether all of the above is done, or what a paper would sample: -log|z + r| alone.
    gradient : bool
        Whether the mean is to give d(-F)/d log alpha instead, by the score function:
        d(-F)/d log alpha = (r/2) E[z log|z + r|].

    Attributes
    ----------
    shift : ndarray, shape (k,)
        What is to be added to the mean.
    rounding : ndarray, shape (k,)
        About the rounding error of `shift` and of the mean together.
    """

    def __init__(self, log_alpha: np.ndarray, controlled: bool, gradient: bool) -> None:
        x = np.maximum(log_alpha, _LEAST)
        self._gradient = gradient
        self._r = r = np.exp(-0.5 * x)
        self._s = s = np.exp(0.5 * np.minimum(x, 0.0))
        near = r <= _FAR
        self._near, self._far = np.flatnonzero(near), np.flatnonzero(~near)
        self._coefficients = _coefficients(r, self._near, gradient and controlled)
        singular = _SINGULAR * _PHI_0 * np.exp(-0.5 * np.minimum(r, _FAR) ** 2)
        singular /= np.maximum(1.0, r)
        # The mean of what was taken away, with the sign that it has here.
        if gradient:
            # z h_r has the mean 16/15 d r phi(r), z He_1 has 1, and z times the others 0
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
        """Yield the indices of the elements, at most `size` at once, each group of one form."""
        for rows in (self._near, self._far):
            for start in range(0, rows.size, size):
                yield rows[start : start + size]

    def evaluate(self, rows: np.ndarray, z: np.ndarray, of_z: Controls | None) -> np.ndarray:
        """Return the integrand at z, shape (m,), for one of the groups: shape (rows.size, m).

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
    """Regress log|z + r| less h_r on the control variates: shape (k, 6), of 0 but at `rows`."""
    z, (variates, weight) = _NODES, _AT_NODES
    if gradient:
        weight = weight * z
    solve = np.linalg.pinv((variates * weight).T)
    found = np.zeros((r.size, len(variates)))
    for start in range(0, rows.size, _CHUNK):
        some = rows[start : start + _CHUNK]
        target = _smooth_log(z + r[some, np.newaxis], r[some, np.newaxis]) * weight
        for j, row in enumerate(solve):
            # not a matrix product, whose rounding depends on the other elements
            found[some, j] = (target * row).sum(axis=1)
    return found


def _far(t: np.ndarray, controlled: bool) -> np.ndarray:
    """Return log|1 + t| to relative precision, less its Taylor polynomial where `controlled`."""
    # the first is not used below -1/2; held there, it has no singularity
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
    # at |t| = d, where larger t are held, the first factor of h_r vanishes
    near = np.clip(t, -d, d)
    p = 1.0 - (near / d) ** 2
    singular = np.minimum(logarithm - np.log(d), 0.0) + p * (0.5 + 0.25 * p)
    return np.asarray(logarithm - singular * np.exp(near * (0.5 * near - r)))


_NODES = SPREAD * ndtri((np.arange(256) + 0.5) / 256.0)
_AT_NODES = controls(_NODES)
