"""Proper priors of weights, as the `penalty` of `neg_kl` and `kl`."""

# mypy: allow-untyped-calls
from __future__ import annotations

from dataclasses import dataclass, field, replace
from functools import partial
from typing import Any

import jax
import jax.numpy as jnp

from ... import _layers
from ..._display import in_short
from ..._layers import _horseshoe, _student
from .. import neg_kl_normal
from ._noise import check_key, normals

Array = Any


class NormalPrior(_layers.NormalPrior):
    r"""The prior N(0, variance) of each weight.

    With t = log sigma^2 - log variance, the KL of a weight N(mu, sigma^2) is:

    .. math::

        \mathrm{KL}(q \,\Vert\, p) = \tfrac12 \left[\mu^2/\mathrm{variance} + e^t - 1 - t\right]

    It is zero where mu = 0 and sigma^2 is the variance of the prior. Pass it as the `penalty` of
    `neg_kl`, `kl` or `named_kl`, for weights with the posterior `Additive` or `Grouped`.

    Parameters
    ----------
    variance : float
        Positive and finite.

    Raises
    ------
    TypeError
        If `variance` is not a real number.
    ValueError
        If `variance` is not positive or not finite.

    Examples
    --------
    >>> import jax.numpy as jnp
    >>> from logunif_kl.jax import nn
    >>> weight = nn.Weight(jnp.full(2, 0.5), jnp.zeros(2))
    >>> print(nn.kl(weight, penalty=nn.NormalPrior(1.0)))  # 2 weights, each with 0.5^2/2
    0.25
    """

    def neg_kl(self, mu: Array, log_sigma2: Array) -> Array:
        """Compute -KL(q || p) of each weight, to be *maximised* (ELBO sign)."""
        return self._neg_kl(jnp, mu, log_sigma2)


class StudentTPrior(_layers.StudentTPrior):
    r"""Student's t prior with center 0 of each weight.

    With a^2 = df scale^2, the prior is a proper density, and -KL has no constant to choose:

    .. math::

        p(w) &= \frac{(1 + w^2/a^2)^{-(\mathrm{df} + 1)/2}}{B(\mathrm{df}/2, 1/2)\, a} \\
        -\mathrm{KL}(q \,\Vert\, p) &= \tfrac12 \log(2 \pi e \sigma^2) + \mathrm{E} \log p(w)

    As df -> 0, -KL - log(df/2) tends to -KL from the log-uniform prior with ``log_c=0``. The
    documentation of `logunif_kl.torch.nn.StudentTPrior` has the method and its errors, which are
    the same here.

    Parameters
    ----------
    df, scale : float
        The degrees of freedom and the scale, positive and finite.

    Raises
    ------
    TypeError
        If `df` or `scale` is not a real number.
    ValueError
        If `df` or `scale` is not positive or not finite.

    Examples
    --------
    >>> import jax.numpy as jnp
    >>> from logunif_kl.jax import nn
    >>> weight = nn.Weight(jnp.array([0.0, 1.0]), jnp.full(2, -2.0))
    >>> print(f"{nn.neg_kl(weight, penalty=nn.StudentTPrior(df=1.0, scale=0.1)):.3f}")
    -3.251
    """

    def neg_kl(self, mu: Array, log_sigma2: Array) -> Array:
        """Compute -KL(q || p) of each weight, to be *maximised* (ELBO sign)."""
        return _of_student(self.df, self.scale, mu, log_sigma2)


@partial(jax.custom_jvp, nondiff_argnums=(0, 1))
def _of_student(df: float, scale: float, mu: Array, log_sigma2: Array) -> Array:
    return _student.neg_kl(jnp, mu, log_sigma2, df, scale)


@_of_student.defjvp
def _of_student_rule(df: float, scale: float, primals: Any, tangents: Any) -> Any:
    mu, log_sigma2 = primals
    d_mu, d_log_sigma2 = _student.neg_kl_slopes(jnp, mu, log_sigma2, df, scale)
    tangent = d_mu * tangents[0] + d_log_sigma2 * tangents[1]
    return _of_student(df, scale, mu, log_sigma2), tangent


class HorseshoePrior(_layers.HorseshoePrior):
    r"""The horseshoe prior of each weight.

    The prior is N(0, scale^2 lambda^2), where lambda has a half-Cauchy distribution. With
    x = w^2/(2 scale^2) and the exponential integral E1,

    .. math::

        p(w) = \frac{e^x E_1(x)}{\mathrm{scale} \sqrt{2 \pi^3}}, \qquad
        -\mathrm{KL}(q \,\Vert\, p) = \tfrac12 \log(2 \pi e \sigma^2) + \mathrm{E} \log p(w)

    It is a proper density, and -KL has no constant to choose. The documentation of
    `logunif_kl.torch.nn.HorseshoePrior` has the method and its errors, which are the same here.

    Parameters
    ----------
    scale : float
        The scale, positive and finite.

    Raises
    ------
    TypeError
        If `scale` is not a real number.
    ValueError
        If `scale` is not positive or not finite.

    Examples
    --------
    >>> import jax.numpy as jnp
    >>> from logunif_kl.jax import nn
    >>> weight = nn.Weight(jnp.array([0.0, 1.0]), jnp.full(2, -2.0))
    >>> print(f"{nn.neg_kl(weight, penalty=nn.HorseshoePrior(scale=0.1)):.3f}")
    -3.705
    """

    def neg_kl(self, mu: Array, log_sigma2: Array) -> Array:
        """Compute -KL(q || p) of each weight, to be *maximised* (ELBO sign)."""
        return _of_horseshoe(self.scale, mu, log_sigma2)


@partial(jax.custom_jvp, nondiff_argnums=(0,))
def _of_horseshoe(scale: float, mu: Array, log_sigma2: Array) -> Array:
    mu, log_sigma2 = jnp.broadcast_arrays(mu, log_sigma2)
    return _horseshoe.neg_kl(jnp, mu, log_sigma2, scale)


@_of_horseshoe.defjvp
def _of_horseshoe_rule(scale: float, primals: Any, tangents: Any) -> Any:
    mu, log_sigma2 = jnp.broadcast_arrays(*primals)
    d_mu, d_log_sigma2 = _horseshoe.neg_kl_slopes(jnp, mu, log_sigma2, scale)
    tangent = d_mu * tangents[0] + d_log_sigma2 * tangents[1]
    return _of_horseshoe(scale, *primals), tangent


class PowerPrior(_layers.PowerPrior):
    r"""The improper prior p(w) = abs(w)^-c of each weight.

    With the log-uniform prior's -KL for ``log_c=0`` and the entropy H of N(mu, sigma^2),

    .. math::

        -\mathrm{KL}(q \,\Vert\, p) = c\, [-\mathrm{KL}(q \,\Vert\, 1/|w|)] + (1 - c)\, H

    ``c=1`` is the log-uniform prior, and ``c=0`` the uniform one. The documentation of
    `logunif_kl.torch.nn.PowerPrior` says more.

    Parameters
    ----------
    c : float
        The power, 0 <= c <= 1.

    Raises
    ------
    TypeError
        If `c` is not a real number.
    ValueError
        If `c` is not between 0 and 1.

    Examples
    --------
    >>> import jax.numpy as jnp
    >>> from logunif_kl.jax import nn
    >>> weight = nn.Weight(jnp.array([0.0, 1.0]), jnp.full(2, -2.0))
    >>> print(f"{nn.neg_kl(weight, penalty=nn.PowerPrior(0.5)):.3f}")
    1.701
    """

    def neg_kl(self, mu: Array, log_sigma2: Array) -> Array:
        """Compute -KL(q || p) of each weight, to be *maximised* (ELBO sign)."""
        return self._neg_kl(neg_kl_normal(mu, log_sigma2, log_c=0.0), log_sigma2)


@partial(
    jax.tree_util.register_dataclass,
    data_fields=["key"],
    meta_fields=["probability", "sigma1", "sigma2", "samples"],
)
@dataclass(frozen=True, repr=False)
class ScaleMixturePrior(_layers.ScaleMixturePrior):
    r"""A scale mixture of two normal priors, by Monte Carlo.

    The prior of each weight is that of Blundell et al. (2015), Eq. 7:

    .. math::

        p(w) = \mathrm{probability}\; \mathcal N(w; 0, \mathrm{sigma1}^2)
        + (1 - \mathrm{probability})\; \mathcal N(w; 0, \mathrm{sigma2}^2)

    -KL(q || p) = 1/2 log(2 pi e sigma^2) + E log p(w), where the mean over samples
    w = mu + sigma eps estimates the expectation without bias. Gradients pass through the samples.
    A node of a pytree whose only leaf is `key`.

    Parameters
    ----------
    probability : float
        The probability of the first component, between 0 and 1.
    sigma1, sigma2 : float
        The standard deviations of the components, positive and finite.
    samples : int
        The number of samples of each weight. `estimate` needs at least 2.
    key : key of jax.random
        Draws the samples. Make an object with a new key in each step. `neg_kl` derives a key for
        each posterior of a tree.

    Raises
    ------
    TypeError
        If a parameter is of a wrong type.
    ValueError
        If a parameter is out of its range.

    References
    ----------
    Blundell, Cornebise, Kavukcuoglu, Wierstra, "Weight Uncertainty in Neural Networks" (2015).

    Examples
    --------
    >>> import jax
    >>> import jax.numpy as jnp
    >>> from logunif_kl.jax import nn
    >>> prior = nn.ScaleMixturePrior(0.5, 1.0, 0.01, samples=1000, key=jax.random.key(0))
    >>> value, error = prior.estimate(jnp.zeros(2), jnp.full(2, -2.0))
    >>> value.shape, bool((error < 0.05).all())
    ((2,), True)
    """

    # Checked in use, because JAX also makes objects whose fields are not arrays.
    key: Any = field(default=None, kw_only=True)

    def __repr__(self) -> str:
        return in_short(self)

    def neg_kl(self, mu: Array, log_sigma2: Array) -> Array:
        """Estimate -KL(q || p) of each weight, to be *maximised* (ELBO sign)."""
        return self._estimates(mu, log_sigma2).mean(0).astype(jnp.result_type(mu, log_sigma2))

    def estimate(self, mu: Array, log_sigma2: Array) -> tuple[Array, Array]:
        """Estimate -KL(q || p) of each weight, with the standard error of the estimate.

        Parameters
        ----------
        mu, log_sigma2 : array
            The means of the weights, and the logarithms of their variances.

        Returns
        -------
        value, standard_error : array
            The standard error of a sum over weights is the root of the sum of squares.

        Raises
        ------
        ValueError
            If `samples` is 1.
        """
        self._several()
        found = self._estimates(mu, log_sigma2)
        dtype = jnp.result_type(mu, log_sigma2)
        error = found.std(0, ddof=1) / self.samples**0.5
        return found.mean(0).astype(dtype), error.astype(dtype)

    def _estimates(self, mu: Array, log_sigma2: Array) -> Array:
        check_key(self.key)
        mu, log_sigma2 = jnp.broadcast_arrays(mu, log_sigma2)
        noise = normals(self.key, (self.samples, *mu.shape), mu.dtype)
        return self._draws(jnp, mu, log_sigma2, noise)

    def _of_posterior(self, number: int) -> ScaleMixturePrior:
        """Return the prior with a key for the posterior of this number in a tree."""
        check_key(self.key)
        return replace(self, key=jax.random.fold_in(self.key, number))
