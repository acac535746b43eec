"""Dropout posteriors: the distribution of w = theta eps for a number theta and noise eps."""

from __future__ import annotations

import math
from typing import Any

from scipy import stats

from .._errors import real_number
from ._density import Density, scaled
from ._distribution import standardised
from ._new_style import is_new_style


def dropout_posterior(noise: Any, theta: float) -> Any:
    """Make the distribution of w = theta eps, eps ~ `noise`: a dropout posterior.

    This is [1]_, Eq. 39. -KL of such a posterior to the log-uniform prior does not depend on theta
    ([1]_, Eq. 42): H(theta eps) = H(eps) + log|theta| and E log|theta eps| = E log|eps| +
    log|theta|.

    Parameters
    ----------
    noise : frozen distribution, gaussian_kde or Density
        The distribution of eps: any that `neg_kl_posterior` accepts, such as
        ``stats.norm(1.0, alpha**0.5)`` for Gaussian dropout. The mean need not be 1.
    theta : float
        The weight that multiplies the noise; finite and not 0.

    Returns
    -------
    frozen distribution, gaussian_kde or Density
        The same kind of object as `noise`. For theta < 0, a frozen `noise` gives another family.

    Raises
    ------
    TypeError
        If `noise` is not one of these, or if `theta` is not a real number.
    ValueError
        If `theta` is 0 or not finite, or if SciPy does not accept the parameters of `noise`.

    References
    ----------
    .. [1] D. P. Kingma, T. Salimans, M. Welling, "Variational Dropout and the Local
       Reparameterization Trick" (2015), appendix C.

    Examples
    --------
    >>> from scipy import stats
    >>> from logunif_kl.posteriors import dropout_posterior, neg_kl_posterior
    >>> noise = stats.norm(1.0, 0.5)
    >>> posterior = dropout_posterior(noise, -0.03)
    >>> round(float(posterior.mean()), 12), round(float(posterior.std()), 12)
    (-0.03, 0.015)
    >>> abs(neg_kl_posterior(posterior) - neg_kl_posterior(noise)) < 1e-11
    True
    """
    if not isinstance(noise, Density):
        read = standardised(noise)
    theta = real_number("theta", theta)
    if not 0.0 < abs(theta) < math.inf:
        raise ValueError(
            f"theta must be finite and not 0 (0 makes an atom), but {theta!r} was given: pass "
            "another number"
        )
    if isinstance(noise, Density):
        return scaled(noise, theta)
    if isinstance(noise, stats.gaussian_kde):
        return stats.gaussian_kde(theta * noise.dataset, noise.factor, noise.weights)
    if is_new_style(noise):
        try:
            return theta * noise
        except TypeError:
            raise TypeError(
                f"SciPy cannot scale a {type(noise).__name__}: pass noise of another kind, or "
                "scale the distributions that it is made of"
            ) from None
    if isinstance(noise, stats.rv_histogram):
        noise = noise()
    loc, scale = theta * read.loc, abs(theta) * read.scale
    if theta > 0:
        return noise.dist(*read.shapes, loc=loc, scale=scale)
    return Mirrored(noise.dist(*read.shapes))(loc=loc, scale=scale)


class Mirrored(stats.rv_continuous):  # type: ignore[misc]
    """The family of the distributions of -z, where z has a given frozen distribution.

    Parameters
    ----------
    of : frozen distribution
        The distribution of z.
    **constructor
        Arguments of `scipy.stats.rv_continuous`. SciPy passes them when it copies the family.
    """

    def __init__(self, of: Any, **constructor: Any) -> None:
        self._of = of
        low, high = of.support()
        constructor |= {"a": -high, "b": -low, "name": f"mirrored_{of.dist.name}"}
        super().__init__(**constructor)

    def _updated_ctor_param(self) -> dict[str, Any]:
        return {**super()._updated_ctor_param(), "of": self._of}

    def _pdf(self, x: Any) -> Any:
        return self._of.pdf(-x)

    def _logpdf(self, x: Any) -> Any:
        return self._of.logpdf(-x)

    def _cdf(self, x: Any) -> Any:
        return self._of.sf(-x)

    def _sf(self, x: Any) -> Any:
        return self._of.cdf(-x)

    def _ppf(self, q: Any) -> Any:
        return -self._of.isf(q)

    def _isf(self, q: Any) -> Any:
        return -self._of.ppf(q)

    def _entropy(self) -> Any:
        return self._of.entropy()

    def _stats(self) -> Any:
        mean, variance, skewness, kurtosis = self._of.stats(moments="mvsk")
        return -mean, variance, -skewness, kurtosis

    def _munp(self, n: int) -> Any:
        return (-1) ** n * self._of.moment(n)

    def _rvs(self, size: Any = None, random_state: Any = None) -> Any:
        return -self._of.rvs(size=size, random_state=random_state)
