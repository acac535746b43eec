"""Expected log-likelihoods of each example, in closed form from the moments of the outputs."""

# mypy: allow-untyped-calls, no-warn-return-any
from __future__ import annotations

from typing import Any

import torch
from torch.nn import functional as F

from ...._errors import type_name
from ...checks import one_of
from ...moments import FORMS, LINKS, categorical_penalty, log_ndtr
from ..moments.moments import Moments
from ..variances import single
from .likelihoods import (
    categorical_log_likelihood,
    check_probabilities,
    check_same_shape,
    normal_log_likelihood,
    of_noise,
)

Tensor = torch.Tensor


def expected_normal_log_likelihood(
    output: Moments, target: Tensor, log_sigma2: Tensor | float = 0.0
) -> Tensor:
    """Compute E[log p(target)] of each example for a normal likelihood with a random mean.

    The result ``normal_log_likelihood(mean, target, log_sigma2) - variance/(2 sigma^2)`` is exact
    for any distribution of the mean with the given moments (Haussmann et al. 2018, section 2.3).

    Parameters
    ----------
    output : Moments
        The output of a `VBP`, of any shape whose first dimension is the minibatch.
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
    return found - 0.5 * variance.to(found.dtype) * (-of_noise(log_sigma2, mean)).exp()


def expected_bernoulli_log_likelihood(
    output: Moments, target: Tensor, link: str = "probit"
) -> Tensor:
    """Compute a lower bound of E[log p(target)] for a Bernoulli likelihood, for `ELBO`.

    An output f (the margin) has mean m and variance v. P(target = 1) is sigmoid(f) or Phi(f), with
    Phi the standard normal distribution function. For the target 1 the bounds are::

        "probit"   E log Phi(f)     >= log Phi(m) - v/2
        "logit"    E log sigmoid(f) >= log sigmoid(m) - v/8

    For the target 0, -m replaces m. Both bounds hold for any distribution of f, because the second
    derivatives of log Phi and log sigmoid are above -1 and -1/4.

    Parameters
    ----------
    output : Moments
        The moments of the margins, of any shape whose first dimension is the minibatch.
    target : Tensor
        Of the same shape: 0 or 1, or probabilities of 1.
    link : {"probit", "logit"}
        The function that turns a margin into a probability. `predict` has the default ``"logit"``.

    Returns
    -------
    Tensor
        Of the same shape. For ``"probit"`` it is float32 if the moments are of a half type.

    Raises
    ------
    TypeError
        If `output` is not `Moments`, or `target` is not a tensor.
    ValueError
        If the shapes differ, a target is below 0 or above 1, or `link` is unknown.

    Notes
    -----
    Haussmann et al. (2018), section 2.4, use log sigmoid(m) - v/2. This is also a bound for
    ``"logit"``, but subtracts v/2, which is four times as much as v/8.

    Examples
    --------
    >>> import torch
    >>> from logunif_kl.torch import nn
    >>> output = nn.Moments(torch.zeros(2), torch.tensor([0.0, 0.4]))
    >>> nn.expected_bernoulli_log_likelihood(output, torch.tensor([0.0, 1.0]))
    tensor([-0.6931, -0.8931])
    """
    one_of("link", link, LINKS)
    mean, variance = _moments_of(output)
    check_same_shape("output", mean, target)
    check_probabilities(target)
    target = target.to(mean.dtype)
    if link == "logit":
        at_mean = -F.binary_cross_entropy_with_logits(mean, target, reduction="none")
        return at_mean - 0.125 * variance
    # torch lacks erfc and erfcx in half types.
    mean, variance, target = single(mean), single(variance), single(target)
    log_p, log_q = (log_ndtr(torch, torch.special, margin) for margin in (mean, -mean))
    return target * log_p + (1.0 - target) * log_q - 0.5 * variance


def expected_categorical_log_likelihood(
    output: Moments, target: Tensor, form: str = "tilted", *, class_dim: int | None = None
) -> Tensor:
    """Compute a bound or estimate of E[log p(target)] for a categorical likelihood, for `ELBO`.

    The logits f_k of K classes are independent, with means m_k and variances v_k. With
    p = softmax(m), the result for target y is log p_y minus a penalty that does not depend on y::

        "tilted"     sum_k p_k^2 v_k/2 + log sum_k p_k exp((1 - 2 p_k) v_k/2)
        "quadratic"  (K - 1)/(4 K) sum_k v_k
        "taylor"     sum_k p_k (1 - p_k) v_k/2

    ``"tilted"`` is a lower bound for normal logits (Knowles and Minka 2011, with their a_k = p_k),
    and is exact to first order in v. ``"quadratic"`` is a bound for logits of any distribution
    (Böhning 1992). For two classes it is the ``"logit"`` bound of
    `expected_bernoulli_log_likelihood`. ``"taylor"`` is the first-order expansion, not a bound.

    Parameters
    ----------
    output : Moments
        The moments of the logits, of shape (M, classes, ...).
    target, class_dim
        As for `categorical_log_likelihood`.
    form : {"tilted", "quadratic", "taylor"}
        Which penalty to subtract.

    Returns
    -------
    Tensor
        Of shape (M, ...).

    Raises
    ------
    TypeError
        If `output` is not `Moments`, or `target` is not a tensor.
    ValueError
        If `output` has no dimension for the classes, or `form` is unknown.

    Notes
    -----
    Haussmann et al. (2018), section 2.4, say that the case of several classes is similar to that of
    two, but do not derive the formula. Their published code (its last commit, f70be32) samples the
    outputs by default, with ``sample=True``; ``"taylor"`` is its other branch.

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
    one_of("form", form, FORMS)
    mean, variance = _moments_of(output)
    found = categorical_log_likelihood(mean, target, class_dim=class_dim)
    dim = 1 if class_dim is None else class_dim
    mean, variance = mean.movedim(dim, 1), variance.movedim(dim, 1)
    if target.is_floating_point():
        counted = target.sum(dim)
    else:
        counted = (target != -100).to(variance.dtype)
    log_p = F.log_softmax(mean, 1)
    return found - counted * categorical_penalty(torch, torch.special, log_p, variance, form, 1)


def _moments_of(output: Any) -> tuple[Tensor, Tensor]:
    if not isinstance(output, Moments):
        raise TypeError(
            f"output must be Moments, but {type_name(output)} was given: wrap the model in VBP"
        )
    return output.mean, output.variance
