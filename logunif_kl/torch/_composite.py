"""The composite: `logunif_kl._arithmetic` over torch operations, for tensors of every kind.

Compilers and transforms see these operations one by one. The derivative that autograd would find
of them is used nowhere: the rules of differentiation give it. A `sign` of -1.0 gives KL and its
derivatives in place of those of -KL.
"""

from __future__ import annotations

import torch

from .._arithmetic import derivatives, functions, limits
from ._internals import traced_to_leave
from ._namespace import exportable, working, xp

Tensor = torch.Tensor


def signed(x: Tensor, sign: float) -> Tensor:
    """Negate the tensor if the sign is -1.0."""
    return x if sign > 0.0 else -x


@exportable
def of_log_alpha(x: Tensor, order: int, sign: float = 1.0) -> Tensor:
    """-KL at log_alpha = x, or its derivative of any order, in the type of x."""
    return signed(derivatives.neg_kl_derivative(xp, working(x), order), sign).to(x.dtype)


@exportable
def sum_of_log_alpha(x: Tensor, sign: float = 1.0) -> Tensor:
    """The sum of -KL at log_alpha = x; in float32 for the half types."""
    return signed(limits.neg_kl(xp, working(x)).sum(), sign)


@exportable
def value(mu: Tensor, log_sigma2: Tensor, sign: float = 1.0) -> Tensor:
    """-KL from the mean and the variance, in their type."""
    found = _normal(mu, log_sigma2)[0]
    return signed(found, sign).to(mu.dtype)


@exportable
def value_sum(mu: Tensor, log_sigma2: Tensor, sign: float = 1.0) -> Tensor:
    """The sum of `value`; in float32 for the half types."""
    return signed(_normal(mu, log_sigma2)[0].sum(), sign)


@exportable
def with_gradients(
    mu: Tensor, log_sigma2: Tensor, sign: float = 1.0
) -> tuple[Tensor, Tensor, Tensor]:
    """-KL and its two derivatives, of float32 or float64."""
    found, d_mu, d_log_sigma2 = _normal(mu, log_sigma2)
    return signed(found, sign), signed(d_mu, sign), signed(d_log_sigma2, sign)


@exportable
def sum_with_gradients(
    mu: Tensor, log_sigma2: Tensor, sign: float = 1.0
) -> tuple[Tensor, Tensor, Tensor]:
    """The sum of -KL, and the two derivatives of each element, of float32 or float64."""
    found, d_mu, d_log_sigma2 = _normal(mu, log_sigma2)
    return signed(found.sum(), sign), signed(d_mu, sign), signed(d_log_sigma2, sign)


@exportable
def higher(
    mu: Tensor, log_sigma2: Tensor, mu_order: int, log_sigma2_order: int, sign: float = 1.0
) -> Tensor:
    """The derivative of these orders, two or more in all, of float32 or float64."""
    arguments = _portable(mu), _portable(log_sigma2)
    found = derivatives.neg_kl_normal_derivative(xp, *arguments, mu_order, log_sigma2_order)
    return signed(found, sign).to(mu.dtype)


def _normal(mu: Tensor, log_sigma2: Tensor) -> tuple[Tensor, ...]:
    """-KL and its two derivatives, of the half types in float32."""
    mu, log_sigma2 = working(mu), working(log_sigma2)
    found = functions.neg_kl_normal(xp, _portable(mu), _portable(log_sigma2))
    return tuple(x.to(mu.dtype) for x in found)


def _portable(x: Tensor) -> Tensor:
    """Convert to float64 in a program for other runtimes.

    The arithmetic of float32 reads bits, for which neither ONNX nor TorchScript has an operator.
    """
    return x.double() if traced_to_leave() and x.device.type != "mps" else x
