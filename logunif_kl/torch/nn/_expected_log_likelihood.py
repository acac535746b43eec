"""Expected log-likelihoods of each example, in closed form from the moments of the outputs."""

# mypy: allow-untyped-calls, no-warn-return-any
from __future__ import annotations

import math
from typing import Any

import torch
from torch.nn import functional as F

from ..._errors import type_name
from ..._layers import one_of
from ._likelihoods import (
    categorical_log_likelihood,
    check_probabilities,
    check_same_shape,
    normal_log_likelihood,
)
from ._moments import Moments
from ._posterior import single

Tensor = torch.Tensor


def expected_normal_log_likelihood(
    output: Moments, target: Tensor, log_sigma2: Tensor | float = 0.0
) -> Tensor:
    """Compute E[log p(target)] of normal distributions whose mean is random, for `ELBO`.

    ``normal_log_likelihood(mean, target, log_sigma2) - variance/(2 sigma^2)``: exact for outputs of
    any distribution with these moments (Haussmann et al. 2018, section 2.3).

    Parameters
    ----------
    output : Moments
        What `VBP` returns, of any shape whose first dimension is the minibatch.
    target, log_sigma2
        As for `normal_log_likelihood`.

    Returns
    -------
    Tensor
        Of the shape of `target`.

    Raises
    ------
    TypeError
        If `output` is not `Moments`, or `target` is not a tensor.
    ValueError
        As for `normal_log_likelihood`.

    Examples
    --------
    >>> import torch
    >>> from logunif_kl.torch import nn
    >>> output = nn.Moments(torch.zeros(2), torch.tensor([0.0, 1.0]))
    >>> nn.expected_normal_log_likelihood(output, torch.zeros(2))
    tensor([-0.9189, -1.4189])
    """
    mean, variance = _moments_of(output)
    found = normal_log_likelihood(mean, target, log_sigma2)
    log_sigma2 = torch.as_tensor(log_sigma2, dtype=mean.dtype, device=mean.device)
    return found - 0.5 * variance * (-log_sigma2).exp()


def expected_bernoulli_log_likelihood(
    output: Moments, target: Tensor, link: str = "probit"
) -> Tensor:
    """Bound E[log p(target)] of Bernoulli distributions whose margin is random, for `ELBO`.

    With Phi the standard normal distribution function and margins f of mean m and variance v::

        "probit"   E log Phi(f)     >= log Phi(m) - v/2
        "logit"    E log sigmoid(f) >= log sigmoid(m) - v/8

    For the target 0, -m replaces m. Both bounds hold for any distribution of f, because the second
    derivatives of log Phi and log sigmoid are above -1 and -1/4.

    Parameters
    ----------
    output : Moments
        Of the margins, of any shape whose first dimension is the minibatch.
    target : Tensor
        Of the same shape, 0 or 1, or probabilities.
    link : {"probit", "logit"}
        The function from margin to probability. `predict` has this argument too, with another
        default.

    Returns
    -------
    Tensor
        Of the same shape; float32 where the moments of the probit are of a half type.

    Raises
    ------
    TypeError
        If `output` is not `Moments`, or `target` is not a tensor.
    ValueError
        If the shapes differ, a target is below 0 or above 1, or `link` is not one of these.

    Notes
    -----
    Haussmann et al. (2018), section 2.4, use the bound of the probit with log sigmoid(m) instead of
    log Phi(m). For the logit, their -v/2 is also a bound, but four times as loose.

    Examples
    --------
    >>> import torch
    >>> from logunif_kl.torch import nn
    >>> output = nn.Moments(torch.zeros(2), torch.tensor([0.0, 0.4]))
    >>> nn.expected_bernoulli_log_likelihood(output, torch.tensor([0.0, 1.0]))
    tensor([-0.6931, -0.8931])
    """
    one_of("link", link, ("probit", "logit"))
    mean, variance = _moments_of(output)
    check_same_shape("output", mean, target)
    check_probabilities(target)
    target = target.to(mean.dtype)
    if link == "logit":
        at_mean = -F.binary_cross_entropy_with_logits(mean, target, reduction="none")
        return at_mean - 0.125 * variance
    # torch lacks erfc and erfcx in half types.
    mean, variance, target = single(mean), single(variance), single(target)
    return target * _log_ndtr(mean) + (1.0 - target) * _log_ndtr(-mean) - 0.5 * variance


def _log_ndtr(x: Tensor) -> Tensor:
    """Compute log Phi(x). In float32 torch's slope is wrong below -1e3, because of cancellation."""
    below = (x < 0.0) * x * -math.sqrt(0.5)
    above = (x >= 0.0) * x * math.sqrt(0.5)
    return torch.where(
        x < 0.0,
        (0.5 * torch.special.erfcx(below)).log() - below * below,
        (-0.5 * torch.special.erfc(above)).log1p(),
    )


def expected_categorical_log_likelihood(
    output: Moments, target: Tensor, form: str = "tilted"
) -> Tensor:
    """Bound E[log p(target)] of a categorical distribution whose logits are random, for `ELBO`.

    The logits f have means m and variances v, and are independent. With p = softmax(m) and K
    classes, E[f_y - logsumexp f] is log p_y minus a penalty, which does not depend on the target::

        "tilted"     sum_k p_k^2 v_k/2 + log sum_k p_k exp((1 - 2 p_k) v_k/2)
        "quadratic"  (K - 1)/(4 K) sum_k v_k
        "taylor"     sum_k p_k (1 - p_k) v_k/2

    The first is a bound for normal logits (Knowles and Minka 2011, with their a_k = p_k), and is
    exact to first order in v. The second is a bound for logits of any distribution (Böhning 1992);
    for two classes it is the bound of ``"logit"``. The third is the first-order expansion, not a
    bound.

    Parameters
    ----------
    output : Moments
        Of the logits, of shape (M, classes, ...).
    target : Tensor
        As for `categorical_log_likelihood`.
    form : {"tilted", "quadratic", "taylor"}
        The penalty.

    Returns
    -------
    Tensor
        Of shape (M, ...).

    Raises
    ------
    TypeError
        If `output` is not `Moments`, or `target` is not a tensor.
    ValueError
        If `output` has no dimension for the classes, or `form` is not one of these.

    Notes
    -----
    Haussmann et al. (2018), section 2.4, do not derive the case of several classes, which they call
    similar to two. Their published code uses the third form.

    Examples
    --------
    >>> import torch
    >>> from logunif_kl.torch import nn
    >>> output = nn.Moments(torch.zeros(1, 2), torch.full((1, 2), 0.4))
    >>> forms = "tilted", "quadratic", "taylor"
    >>> target = torch.tensor([0])
    >>> [nn.expected_categorical_log_likelihood(output, target, form) for form in forms]
    [tensor([-0.7931]), tensor([-0.7931]), tensor([-0.7931])]
    """
    one_of("form", form, ("tilted", "quadratic", "taylor"))
    mean, variance = _moments_of(output)
    found = categorical_log_likelihood(mean, target)
    if target.is_floating_point():
        counted = target.sum(1)
    else:
        counted = (target != -100).to(variance.dtype)
    return found - counted * _penalty(mean, variance, form)


def _penalty(mean: Tensor, variance: Tensor, form: str) -> Tensor:
    if form == "quadratic":
        classes = mean.shape[1]
        return (classes - 1) / (4 * classes) * variance.sum(1)
    log_p = F.log_softmax(mean, 1)
    p = log_p.exp()
    if form == "taylor":
        return 0.5 * (p * (1.0 - p) * variance).sum(1)
    # Use log p, because the logits would give a difference of large numbers.
    tilted = torch.logsumexp(log_p + (0.5 - p) * variance, 1)
    return 0.5 * (p * p * variance).sum(1) + tilted


def _moments_of(output: Any) -> tuple[Tensor, Tensor]:
    if not isinstance(output, Moments):
        raise TypeError(
            f"output must be Moments, but {type_name(output)} was given: wrap the model in VBP"
        )
    return output.mean, output.variance
