"""The composite backend: it computes `logunif_kl._arithmetic` in torch operations, for any tensor.

Compilers and transforms see these operations one by one. Autograd never differentiates them,
because `logunif_kl.torch._derivatives` has a formula for each derivative.
"""

from __future__ import annotations

import torch

from .._arithmetic import derivatives, functions, limits, normal_float32
from ._internals import computed_again, traced_to_leave
from ._namespace import exportable, working, xp

Tensor = torch.Tensor


class Composite:
    """The base class of the backends, which override the methods that they have kernels for.

    Attributes
    ----------
    plain : bool
        Whether all tensors of this backend are plain (see `_internals.plain`). Outside transforms,
        plain tensors need a differentiation rule only if a gradient is required.
    recomputes : bool
        Whether the backward computes the derivatives with `gradient`. Otherwise the forward
        computes and keeps them. For each float32 weight, both passes together move 24 bytes of
        memory if the backward computes the derivatives, and 32 bytes if the forward keeps them.
        Kernels that are limited by the memory bandwidth are faster if they move fewer bytes.
    """

    plain = False
    recomputes = False

    @exportable
    def of_log_alpha(self, x: Tensor, order: int) -> Tensor:
        """Return -KL at log_alpha = x, or its derivative of this order, in the dtype of x."""
        return derivatives.neg_kl_derivative(xp, working(x), order).to(x.dtype)

    @exportable
    def sum_of_log_alpha(self, x: Tensor) -> Tensor:
        """Return the sum of -KL at log_alpha = x, in float32 if x is of a half type."""
        return limits.neg_kl(xp, working(x)).sum()

    @exportable
    def value(self, mu: Tensor, log_sigma2: Tensor) -> Tensor:
        """Return -KL from mu and log_sigma2, in the dtype of these arguments."""
        return _normal(mu, log_sigma2)[0].to(mu.dtype)

    @exportable
    def value_sum(self, mu: Tensor, log_sigma2: Tensor) -> Tensor:
        """Return the sum of `value`, in float32 if the arguments are of a half type."""
        return _normal(mu, log_sigma2)[0].sum()

    @exportable
    def with_gradients(self, mu: Tensor, log_sigma2: Tensor) -> tuple[Tensor, Tensor, Tensor]:
        """Return -KL and its derivatives in mu and log_sigma2, in float32 or float64."""
        return _normal(mu, log_sigma2)

    @exportable
    def sum_with_gradients(self, mu: Tensor, log_sigma2: Tensor) -> tuple[Tensor, Tensor, Tensor]:
        """Return the sum of -KL, and the derivatives of each element, in float32 or float64."""
        value, d_mu, d_log_sigma2 = _normal(mu, log_sigma2)
        return value.sum(), d_mu, d_log_sigma2

    def gradients(self, mu: Tensor, log_sigma2: Tensor) -> tuple[Tensor, Tensor]:
        """Return the derivatives of -KL in mu and log_sigma2 alone, in float32 or float64."""
        return self.with_gradients(mu, log_sigma2)[1:]

    def gradient(
        self, grad_output: Tensor, mu: Tensor, log_sigma2: Tensor
    ) -> tuple[Tensor, Tensor]:
        """Return the derivatives of -KL times `grad_output`, which is 0-d or has the shape of mu.

        The backward calls this method only if the backend sets `recomputes`.
        """
        raise NotImplementedError

    @exportable
    def higher(
        self, mu: Tensor, log_sigma2: Tensor, mu_order: int, log_sigma2_order: int
    ) -> Tensor:
        """Return the derivative of these orders (sum at least 2), in float32 or float64."""
        orders = mu_order, log_sigma2_order
        return derivatives.neg_kl_normal_derivative(xp, mu, log_sigma2, *orders)


class Recomputed(Composite):
    """The composite in a compiled graph, which keeps the arguments alone for the backward.

    Without it, the compiler computes the derivatives in the forward and keeps them.
    """

    recomputes = True

    def of_log_alpha(self, x: Tensor, order: int) -> Tensor:
        with computed_again():
            return super().of_log_alpha(x, order)

    def sum_of_log_alpha(self, x: Tensor) -> Tensor:
        return self.of_log_alpha(working(x), 0).sum()

    def value(self, mu: Tensor, log_sigma2: Tensor) -> Tensor:
        with computed_again():
            return super().value(mu, log_sigma2)

    def value_sum(self, mu: Tensor, log_sigma2: Tensor) -> Tensor:
        return self.value(working(mu), working(log_sigma2)).sum()

    def gradient(
        self, grad_output: Tensor, mu: Tensor, log_sigma2: Tensor
    ) -> tuple[Tensor, Tensor]:
        with computed_again():
            d_mu, d_log_sigma2 = self.gradients(mu, log_sigma2)
        return (grad_output * d_mu).to(mu.dtype), (grad_output * d_log_sigma2).to(mu.dtype)


def _normal(mu: Tensor, log_sigma2: Tensor) -> tuple[Tensor, Tensor, Tensor]:
    """Return -KL and its derivatives in mu and log_sigma2, in float32 for the half types."""
    mu, log_sigma2 = working(mu), working(log_sigma2)
    if traced_to_leave() and mu.dtype is torch.float32:
        # No operator of ONNX or TorchScript reads the bits of float32 numbers.
        return normal_float32.portable(xp, mu, log_sigma2)
    return functions.neg_kl_normal(xp, mu, log_sigma2)
