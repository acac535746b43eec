"""The composite: `logunif_kl._arithmetic` over torch operations, for tensors of every kind.

Compilers and transforms see these operations one by one. The derivative that autograd would find
of them is used nowhere, since `logunif_kl.torch._derivatives` gives it.
"""

from __future__ import annotations

import torch

from .._arithmetic import derivatives, functions, limits
from ._internals import traced_to_leave
from ._namespace import exportable, working, xp

Tensor = torch.Tensor


class Composite:
    """What every backend computes. Another backend replaces the methods that it has kernels for.

    Attributes
    ----------
    plain : bool
        Whether the tensors are plain. Outside transforms, plain tensors need a rule of
        differentiation only if a gradient is required.
    recomputes : bool
        Whether a backward computes the derivatives again, by `gradient`, instead of keeping them. A
        forward that keeps them moves 40 bytes for each float32 weight, forward and backward, and
        one that computes them again 24, which is faster where kernels are limited by memory.
    """

    plain = False
    recomputes = False

    @exportable
    def of_log_alpha(self, x: Tensor, order: int) -> Tensor:
        """-KL at log_alpha = x, or its derivative of any order, in the type of x."""
        return derivatives.neg_kl_derivative(xp, working(x), order).to(x.dtype)

    @exportable
    def sum_of_log_alpha(self, x: Tensor) -> Tensor:
        """The sum of -KL at log_alpha = x; in float32 for the half types."""
        return limits.neg_kl(xp, working(x)).sum()

    @exportable
    def value(self, mu: Tensor, log_sigma2: Tensor) -> Tensor:
        """-KL from the mean and the variance, in their type."""
        return _normal(mu, log_sigma2)[0].to(mu.dtype)

    @exportable
    def value_sum(self, mu: Tensor, log_sigma2: Tensor) -> Tensor:
        """The sum of `value`; in float32 for the half types."""
        return _normal(mu, log_sigma2)[0].sum()

    @exportable
    def with_gradients(self, mu: Tensor, log_sigma2: Tensor) -> tuple[Tensor, Tensor, Tensor]:
        """-KL and its two derivatives, of float32 or float64."""
        return _normal(mu, log_sigma2)

    @exportable
    def sum_with_gradients(self, mu: Tensor, log_sigma2: Tensor) -> tuple[Tensor, Tensor, Tensor]:
        """The sum of -KL, and the two derivatives of each element, of float32 or float64."""
        value, d_mu, d_log_sigma2 = _normal(mu, log_sigma2)
        return value.sum(), d_mu, d_log_sigma2

    def gradients(self, mu: Tensor, log_sigma2: Tensor) -> tuple[Tensor, Tensor]:
        """The two derivatives alone, of float32 or float64."""
        return self.with_gradients(mu, log_sigma2)[1:]

    def gradient(
        self, grad_output: Tensor, mu: Tensor, log_sigma2: Tensor
    ) -> tuple[Tensor, Tensor]:
        """The two derivatives times a factor, which is of their shape or of no dimensions.

        It is called only on a backend that `recomputes`.
        """
        raise NotImplementedError

    @exportable
    def higher(
        self, mu: Tensor, log_sigma2: Tensor, mu_order: int, log_sigma2_order: int
    ) -> Tensor:
        """The derivative of these orders, two or more in all, of float32 or float64."""
        arguments = _portable(mu), _portable(log_sigma2)
        found = derivatives.neg_kl_normal_derivative(xp, *arguments, mu_order, log_sigma2_order)
        return found.to(mu.dtype)


def _normal(mu: Tensor, log_sigma2: Tensor) -> tuple[Tensor, Tensor, Tensor]:
    """-KL and its two derivatives, of the half types in float32."""
    mu, log_sigma2 = working(mu), working(log_sigma2)
    value, d_mu, d_log_sigma2 = functions.neg_kl_normal(xp, _portable(mu), _portable(log_sigma2))
    return value.to(mu.dtype), d_mu.to(mu.dtype), d_log_sigma2.to(mu.dtype)


def _portable(x: Tensor) -> Tensor:
    """Convert to float64 in a program for other runtimes.

    The arithmetic of float32 reads bits, for which neither ONNX nor TorchScript has an operator.
    """
    return x.double() if traced_to_leave() and x.device.type != "mps" else x
