"""The composite: `logunif_kl._arithmetic` over torch operations, for tensors of every kind.

Compilers and transforms see these operations one by one. The derivative that autograd would find
of them is used nowhere: the rules of differentiation give it.
"""

from __future__ import annotations

import torch

from .._arithmetic import derivatives, functions, limits
from ._namespace import working, xp

Tensor = torch.Tensor


def of_log_alpha(x: Tensor, order: int) -> Tensor:
    """-KL at log_alpha = x, or its derivative of any order, in the type of x."""
    return derivatives.neg_kl_derivative(xp, working(x), order).to(x.dtype)


def sum_of_log_alpha(x: Tensor) -> Tensor:
    """The sum of -KL at log_alpha = x; in float32 for the half types."""
    return limits.neg_kl(xp, working(x)).sum()


def value(mu: Tensor, log_sigma2: Tensor) -> Tensor:
    """-KL from the mean and the variance, in their type."""
    return functions.neg_kl_normal(xp, working(mu), working(log_sigma2))[0].to(mu.dtype)


def value_sum(mu: Tensor, log_sigma2: Tensor) -> Tensor:
    """The sum of `value`; in float32 for the half types."""
    return functions.neg_kl_normal(xp, working(mu), working(log_sigma2))[0].sum()


def with_gradients(mu: Tensor, log_sigma2: Tensor) -> tuple[Tensor, Tensor, Tensor]:
    """-KL and its two derivatives, of float32 or float64."""
    found, d_mu, d_log_sigma2 = functions.neg_kl_normal(xp, mu, log_sigma2)
    return found, d_mu, d_log_sigma2


def sum_with_gradients(mu: Tensor, log_sigma2: Tensor) -> tuple[Tensor, Tensor, Tensor]:
    """The sum of -KL, and the two derivatives of each element, of float32 or float64."""
    found, d_mu, d_log_sigma2 = functions.neg_kl_normal(xp, mu, log_sigma2)
    return found.sum(), d_mu, d_log_sigma2


def higher(mu: Tensor, log_sigma2: Tensor, mu_order: int, log_sigma2_order: int) -> Tensor:
    """The derivative of these orders, two or more in all, of float32 or float64."""
    return derivatives.neg_kl_normal_derivative(xp, mu, log_sigma2, mu_order, log_sigma2_order)
