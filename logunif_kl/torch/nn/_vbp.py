"""Variance back-propagation: the moments of a network's outputs, and a module that returns them."""

# mypy: allow-untyped-calls, no-warn-return-any
from __future__ import annotations

import math
from typing import Any

import torch

from ..._errors import type_name
from ._arguments import check_module, shown_name
from ._moments import Moments, check_steepness, check_tensor
from ._sampled import SampledModule

Tensor = torch.Tensor


def moments(
    model: torch.nn.Module,
    x: Tensor | Moments,
    variance: Tensor | None = None,
    *,
    steepness: float = math.inf,
) -> Moments:
    r"""Compute the mean and the variance of a network's outputs without samples.

    This is variance back-propagation ([1]_, section 2.3). A layer with weights N(mu, sigma^2) has
    outputs h with these moments, if its inputs a are independent (Eqs. 3 and 4):

    .. math::

        \mathrm{E}[h_j] &= \sum_i \mathrm{E}[a_i] \mu_{ij} + \mathrm{bias}_j \\
        \mathrm{var}[h_j] &= \sum_i \mathrm{E}[a_i]^2 \sigma_{ij}^2
        + \mathrm{var}[a_i] (\mu_{ij}^2 + \sigma_{ij}^2)

    A rectifier max(h, 0) is written as z h, where the step z has a posterior of its own (the
    identity-delta decomposition). By default z is 1 where E[h] > 0, and 0 elsewhere. Hence
    E[z h] = max(E[h], 0), and var[z h] is var[h] where z = 1, and 0 elsewhere.

    Parameters
    ----------
    model : torch.nn.Module
        A module that takes a tensor. It may use the linear layers and convolutions of this library
        and of torch, ReLU, average and maximum pooling, padding, and functions that rearrange
        elements, as modules or in its ``forward``. Training and evaluation mode give the same
        result.
    x : Tensor or Moments
        The input. `Moments` hold its variance too; their steepness has no effect.
    variance : Tensor, optional
        The variance of the input, of the shape of `x`; zero by default.
    steepness : float
        The number C in P(z = 1) = sigmoid(C E[h]); otherwise z is 0. For the default, infinity, z
        is the step above.

    Returns
    -------
    Moments
        The `mean` and `variance` of the outputs. For infinite steepness the mean is the output of
        ``model.eval()``.

    Raises
    ------
    TypeError
        If `model` is not a module, or has an operation without a rule for moments (an activation
        other than ReLU, batch normalisation, dropout layers of this package).
    ValueError
        If a layer has scales, shapes do not fit, `steepness` is not positive, or dropout is in
        training mode.

    See Also
    --------
    VBP : a module that calls this function, for `ELBO`.

    Notes
    -----
    The moments are exact through one layer. Without input variance they are also exact through two
    `VariationalLinear` layers without a rectifier between them. Otherwise there are two
    approximations, which `validation/papers/haussmann2018` measures. First, the rectifier ignores
    that z depends on h. This is accurate where E[h] is several standard deviations from 0. Second,
    elements are assumed to be independent. But outputs of a convolution that read the same random
    inputs are dependent, as are elements that ``"reflect"`` or ``"replicate"`` padding copies. In
    three networks of a convolution and average pooling, the variance was 0.41 to 0.78 of the exact
    one, because the places of a convolution share weights.

    In average pooling of n elements, the variance is the sum of their variances divided by n^2. In
    maximum pooling, the element with the greatest mean is taken ([1]_, section 2.3.3).

    Training that prunes whole units makes many numbers subnormal, which is slow on a CPU. Call
    ``torch.set_flush_denormal(True)`` before.

    References
    ----------
    .. [1] Haussmann, Hamprecht, Kandemir, "Sampling-Free Variational Inference of Bayesian Neural
       Networks by Variance Backpropagation" (2018), arXiv:1805.07654.

    Examples
    --------
    >>> import torch
    >>> from logunif_kl.torch import nn
    >>> model = torch.nn.Sequential(
    ...     nn.VariationalLinear(4, 8), torch.nn.ReLU(), nn.VariationalLinear(8, 2)
    ... )
    >>> mean, variance = nn.moments(model, torch.ones(3, 4))
    >>> mean.shape, bool((variance > 0).all())
    (torch.Size([3, 2]), True)
    >>> mean.equal(model.eval()(torch.ones(3, 4)))
    True
    """
    check_module(model)
    mean: Any = x
    if variance is None and isinstance(x, Moments):
        mean, variance = x.mean, x._variance
    check_tensor("x", mean, "convert it with .float(), or pass the output of the embedding")
    for name, module in model.named_modules():
        if isinstance(module, SampledModule):
            raise TypeError(
                f"{shown_name(name)} is a {type(module).__name__}, whose outputs have no rule for "
                "moments: leave it plain, with modules= of to_variational"
            )
    found = model(Moments(mean, variance, steepness=steepness))
    if not isinstance(found, Moments):
        raise TypeError(
            f"the model returned {type_name(found)} for moments: have it return one tensor"
        )
    return found


class VBP(torch.nn.Module):
    """A network that returns the moments of its outputs instead of a sample.

    ``VBP(model)(x)`` is ``moments(model, x)``. For a noisy input pass `Moments`. With the expected
    log-likelihoods, `ELBO` computes a bound without noise (Haussmann et al. 2018). The `penalty` of
    the layers still sets the KL in this bound. The wrapped model keeps its parameters, so it can be
    sampled, pruned, converted and saved as before.

    Parameters
    ----------
    model : torch.nn.Module
        As for `moments`.
    steepness : float
        As for `moments`.

    Raises
    ------
    TypeError
        If `model` is not a module, or `steepness` is not a number.
    ValueError
        If `steepness` is not positive.

    See Also
    --------
    expected_categorical_log_likelihood, expected_bernoulli_log_likelihood
    expected_normal_log_likelihood

    Examples
    --------
    >>> import torch
    >>> from logunif_kl.torch import nn
    >>> model = torch.nn.Sequential(
    ...     nn.VariationalLinear(4, 8), torch.nn.ReLU(), nn.VariationalLinear(8, 3)
    ... )
    >>> elbo = nn.ELBO(nn.VBP(model), nn.expected_categorical_log_likelihood, dataset_size=1000)
    >>> x, target = torch.randn(10, 4), torch.arange(10) % 3
    >>> elbo(x, target).loss.backward()
    >>> bool(elbo(x, target).loss == elbo(x, target).loss)
    True
    """

    def __init__(self, model: torch.nn.Module, steepness: float = math.inf) -> None:
        super().__init__()
        self.model: torch.nn.Module = check_module(model)
        self.steepness: float = check_steepness(steepness)

    def forward(self, x: Tensor | Moments, variance: Tensor | None = None) -> Moments:
        """Compute the moments of the outputs."""
        return moments(self.model, x, variance, steepness=self.steepness)

    def extra_repr(self) -> str:
        """Show the steepness, if it is finite."""
        return "" if self.steepness == math.inf else f"steepness={self.steepness}"
