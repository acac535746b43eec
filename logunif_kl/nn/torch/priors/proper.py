"""Proper priors of weights, as the `penalty` of layers."""

# mypy: allow-untyped-calls, no-warn-return-any
from __future__ import annotations

from dataclasses import dataclass, field
from typing import Any

import torch

from ...._errors import shown
from ... import priors
from ..noise.generators import check_restored
from ..noise.normal import normals
from .formulae import by_formulae

Tensor = torch.Tensor


class NormalPrior(priors.NormalPrior):
    r"""The prior N(0, variance) of each weight, as the `penalty` of a layer.

    With t = log sigma^2 - log variance, the KL of a weight N(mu, sigma^2) is:

    .. math::

        \mathrm{KL}(q \,\Vert\, p) = \tfrac12 \left[\mu^2/\mathrm{variance} + e^t - 1 - t\right]

    It is zero where mu = 0 and sigma^2 is the variance of the prior. A layer with this prior must
    have the posterior `Additive` or `Grouped`.

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

    See Also
    --------
    VariationalLinear : takes the prior as its argument `penalty`.
    StudentTPrior : a prior with heavy tails.

    Examples
    --------
    >>> import torch
    >>> from logunif_kl.torch import nn
    >>> layer = nn.VariationalLinear(2, 1, penalty=nn.NormalPrior(1.0))
    >>> _ = torch.nn.init.zeros_(layer.log_sigma2)
    >>> torch.nn.init.constant_(layer.weight, 0.5)
    Parameter containing:
    tensor([[0.5000, 0.5000]], requires_grad=True)
    >>> nn.kl(layer).item()  # 2 weights, each with 0.5^2/2
    0.25
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
        return self._neg_kl(torch, mu, log_sigma2)


class StudentTPrior(priors.StudentTPrior):
    r"""Student's t prior with center 0 of each weight, as the `penalty` of a layer.

    With a^2 = df scale^2, the prior is a proper density, and -KL has no constant to choose:

    .. math::

        p(w) &= \frac{(1 + w^2/a^2)^{-(\mathrm{df} + 1)/2}}{B(\mathrm{df}/2, 1/2)\, a} \\
        -\mathrm{KL}(q \,\Vert\, p) &= \tfrac12 \log(2 \pi e \sigma^2) + \mathrm{E} \log p(w)

    As df -> 0, -KL - log(df/2) tends to -KL from the log-uniform prior with ``log_c=0``. A layer
    with this prior must have the posterior `Additive` or `Grouped`.

    Parameters
    ----------
    df : float
        The degrees of freedom, positive and finite. 1 is the Cauchy distribution.
    scale : float
        The scale, positive and finite.

    Raises
    ------
    TypeError
        If `df` or `scale` is not a real number.
    ValueError
        If `df` or `scale` is not positive or not finite.

    See Also
    --------
    NormalPrior : the limit for large `df`.
    logunif_kl.neg_kl_posterior : -KL of other posteriors from a Student's t, by SciPy.

    Notes
    -----
    The expectation is computed without samples, for means and variances of all sizes, by
    integrating a polynomial expansion of the Faddeeva function [2]_. The errors found, in units
    of eps (2.2e-16 in float64, 1.2e-7 in float32), with m = (df + 1)/2: at most 40 m + abs(-KL) for
    the value, 20 m for the derivative in `log_sigma2`, and 20 times the derivative for that in
    `mu`. They were measured for `df` from 0.01 to 100. Second derivatives are computed by automatic
    differentiation of the first.

    Haussmann et al. [1]_ name a Student's t prior as the proper replacement of the log-uniform
    prior.

    References
    ----------
    .. [1] Haussmann, Hamprecht, Kandemir, "Sampling-Free Variational Inference of Bayesian Neural
       Networks by Variance Backpropagation" (2018), arXiv:1805.07654.
    .. [2] Weideman, "Computation of the Complex Error Function" (1994).

    Examples
    --------
    >>> import torch
    >>> from logunif_kl.torch import nn
    >>> prior = nn.StudentTPrior(df=1.0, scale=0.1)
    >>> mu = torch.tensor([0.0, 1.0], dtype=torch.float64)
    >>> prior.neg_kl(mu, torch.full_like(mu, -2.0))
    tensor([-0.3731, -2.8784], dtype=torch.float64)
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
        return by_formulae(mu, log_sigma2, "student", (self.df, self.scale))


@dataclass(frozen=True)
class ScaleMixturePrior(priors.ScaleMixturePrior):
    r"""A scale mixture of two normal priors, by Monte Carlo, as the `penalty` of a layer.

    The prior of each weight is that of Blundell et al. (2015), Eq. 7:

    .. math::

        p(w) = \mathrm{probability}\; \mathcal N(w; 0, \mathrm{sigma1}^2)
        + (1 - \mathrm{probability})\; \mathcal N(w; 0, \mathrm{sigma2}^2)

    -KL(q || p) = 1/2 log(2 pi e sigma^2) + E log p(w), where the mean over samples
    w = mu + sigma eps estimates the expectation without bias. Gradients pass through the samples. A
    layer with this prior must have the posterior `Additive` or `Grouped`.

    Parameters
    ----------
    probability : float
        The probability of the first component, between 0 and 1.
    sigma1, sigma2 : float
        The standard deviations of the components, positive and finite.
    samples : int
        The number of samples of each weight. `estimate` needs at least 2.
    generator : torch.Generator
        Draws the samples, in evaluation mode too. It must be on the device of the weights. The
        global generator is not used.

    Raises
    ------
    TypeError
        If a parameter is of a wrong type.
    ValueError
        If a parameter is out of its range.
    RuntimeError
        If the generator is on another device than the weights, or if a checkpoint draws other
        samples in its second run (see `checkpoint_contexts`).

    See Also
    --------
    NormalPrior, StudentTPrior : priors without samples.

    Notes
    -----
    The memory is that of `samples` copies of the weights. The KL of two layers uses different
    samples, so the variances of their estimates add up. A copy of the object has its own generator
    in the same state.

    References
    ----------
    Blundell, Cornebise, Kavukcuoglu, Wierstra, "Weight Uncertainty in Neural Networks" (2015).

    Examples
    --------
    >>> import torch
    >>> from logunif_kl.torch import nn
    >>> prior = nn.ScaleMixturePrior(
    ...     0.5, 1.0, 0.01, samples=1000, generator=torch.Generator().manual_seed(0)
    ... )
    >>> value, error = prior.estimate(torch.zeros(2), torch.full((2,), -2.0))
    >>> value.shape, bool((error < 0.05).all())
    (torch.Size([2]), True)
    >>> nn.VariationalLinear(3, 2, penalty=prior).kl().backward()
    """

    generator: Any = field(default=None, kw_only=True, compare=False)

    def __post_init__(self) -> None:
        """Check the parameters."""
        super().__post_init__()
        if not isinstance(self.generator, torch.Generator):
            raise TypeError(
                f"generator must be a torch.Generator, but {shown(self.generator)} was given: pass "
                "torch.Generator().manual_seed(...)"
            )

    def neg_kl(self, mu: Tensor, log_sigma2: Tensor) -> Tensor:
        """Estimate -KL(q || p) of each weight, to be *maximised* (ELBO sign).

        Parameters
        ----------
        mu, log_sigma2 : Tensor
            The means of the weights, and the logarithms of their variances.

        Returns
        -------
        Tensor
            The mean of `samples` independent estimates.
        """
        return self._estimates(mu, log_sigma2).mean(0)

    def estimate(self, mu: Tensor, log_sigma2: Tensor) -> tuple[Tensor, Tensor]:
        """Estimate -KL(q || p) of each weight, with the standard error of the estimate.

        Parameters
        ----------
        mu, log_sigma2 : Tensor
            The means of the weights, and the logarithms of their variances.

        Returns
        -------
        value, standard_error : Tensor
            The standard error of a sum over weights is the root of the sum of squares.

        Raises
        ------
        ValueError
            If `samples` is 1.
        """
        self._several()
        found = self._estimates(mu, log_sigma2)
        return found.mean(0), found.std(0) / self.samples**0.5

    def _estimates(self, mu: Tensor, log_sigma2: Tensor) -> Tensor:
        mu, log_sigma2 = torch.broadcast_tensors(mu, log_sigma2)
        check_restored(self.generator, mu)
        noise = normals((self.samples, *mu.shape), mu, self.generator)
        return self._draws(torch, mu, log_sigma2, noise)
