"""Priors of weights whose densities have a pole at 0, as the `penalty` of layers."""

from __future__ import annotations

import torch

from .... import _priors
from ....torch import neg_kl_normal
from .formulae import by_formulae

Tensor = torch.Tensor


class HorseshoePrior(_priors.HorseshoePrior):
    r"""The horseshoe prior of each weight, as the `penalty` of a layer.

    The prior is N(0, scale^2 lambda^2), where lambda has a half-Cauchy distribution. The density of
    a weight has a logarithmic pole at 0 and the tails of a Cauchy distribution [1]_. With
    x = w^2/(2 scale^2) and the exponential integral E1,

    .. math::

        p(w) &= \frac{e^x E_1(x)}{\mathrm{scale} \sqrt{2 \pi^3}} \\
        -\mathrm{KL}(q \,\Vert\, p) &= \tfrac12 \log(2 \pi e \sigma^2) + \mathrm{E} \log p(w)

    It is proper, and -KL has no constant to choose. The scale is fixed, and lambda is integrated
    out, so each weight is N(mu, sigma^2) as with any other prior. Louizos et al. [2]_ give lambda a
    posterior of its own and share it by the weights of a unit: for that, use
    the posterior `Scaled`. A layer with this prior must have the posterior `Additive` or `Grouped`.

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

    See Also
    --------
    StudentTPrior : with ``df=1`` it has the same tails, without the pole.
    PowerPrior : improper priors with a pole of any power.

    Notes
    -----
    The expectation is integrated by a trapezoidal rule, of 61 nodes in float32 and 225 in float64.
    It takes about 40 times as long as that of Student's t and, on a GPU, memory for each node of
    each weight. The errors found against quadrature in 50 digits are at most (20 + 2 abs(-KL)) eps
    for the value, 10 eps for the derivative in `log_sigma2`, and 20 eps times the derivative for
    that in `mu`, unless abs(mu) is below 1e-30 and `log_sigma2` below -150. Second derivatives are
    computed by automatic differentiation of the first.

    References
    ----------
    .. [1] Carvalho, Polson, Scott, "The horseshoe estimator for sparse signals" (2010).
    .. [2] Louizos, Ullrich, Welling, "Bayesian Compression for Deep Learning" (2017).

    Examples
    --------
    >>> import torch
    >>> from logunif_kl.torch import nn
    >>> prior = nn.HorseshoePrior(scale=0.1)
    >>> mu = torch.tensor([0.0, 1.0], dtype=torch.float64)
    >>> prior.neg_kl(mu, torch.full_like(mu, -2.0))
    tensor([-0.5881, -3.1172], dtype=torch.float64)
    >>> nn.VariationalLinear(3, 2, penalty=prior).kl().backward()
    """

    def neg_kl(self, mu: Tensor, log_sigma2: Tensor) -> Tensor:
        """Compute -KL(q || p) of each weight, to be *maximised* (ELBO sign).

        Parameters
        ----------
        mu, log_sigma2 : Tensor
            The means of the weights, and the logarithms of their variances, in float32 or float64.

        Returns
        -------
        Tensor
        """
        return by_formulae(mu, log_sigma2, "horseshoe", (self.scale,))


class PowerPrior(_priors.PowerPrior):
    r"""The improper prior p(w) = abs(w)^-c of each weight, as the `penalty` of a layer.

    With the log-uniform prior's -KL for ``log_c=0`` and the entropy H of N(mu, sigma^2),

    .. math::

        -\mathrm{KL}(q \,\Vert\, p) = H - c\, \mathrm{E} \log |w|
        = c\, [-\mathrm{KL}(q \,\Vert\, 1/|w|)] + (1 - c)\, H

    ``c=1`` is the log-uniform prior, and ``c=0`` the uniform one. The prior is improper for every
    c: around 0 it can be normalised if c < 1, and in the tails if c > 1. So the posterior is proper
    if c < 1 and the likelihood decays in the tails. A layer with this prior must have
    the posterior `Additive` or `Grouped`.

    Parameters
    ----------
    c : float
        The power, 0 <= c <= 1. If c > 1, -KL grows without limit as mu and sigma go to 0.

    Raises
    ------
    TypeError
        If `c` is not a real number.
    ValueError
        If `c` is not between 0 and 1.

    See Also
    --------
    HorseshoePrior, StudentTPrior : proper priors that have many weights near 0.

    Examples
    --------
    >>> import torch
    >>> from logunif_kl.torch import nn
    >>> mu, log_sigma2 = torch.tensor(1.0), torch.tensor(-2.0)
    >>> [round(nn.PowerPrior(c).neg_kl(mu, log_sigma2).item(), 4) for c in (0.0, 0.5, 1.0)]
    [0.4189, 0.4645, 0.51]
    >>> nn.VariationalLinear(3, 2, penalty=nn.PowerPrior(0.9)).kl().backward()
    """

    def neg_kl(self, mu: Tensor, log_sigma2: Tensor) -> Tensor:
        """Compute -KL(q || p) of each weight, to be *maximised* (ELBO sign).

        Parameters
        ----------
        mu, log_sigma2 : Tensor
            The means of the weights, and the logarithms of their variances.

        Returns
        -------
        Tensor
        """
        return self._neg_kl(neg_kl_normal(mu, log_sigma2, log_c=0.0), log_sigma2)
