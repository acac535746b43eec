"""Rules of differentiation in the mean and the variance that keep the first derivatives.

The derivatives are computed with the value, in one pass, and kept for the backward. A `sign` of
-1.0 gives KL and its derivatives in place of those of -KL.
"""

# mypy: allow-untyped-calls, no-warn-return-any
from __future__ import annotations

from typing import Any

import torch
from torch.autograd import Function

from . import _backends
from ._internals import direct_apply, with_primals, with_signature
from ._namespace import working

Tensor = torch.Tensor


def keeping(
    mu: Tensor, log_sigma2: Tensor, added: bool, sign: float, way: _backends.Way | None
) -> Tensor:
    """-KL from the mean and the variance, in their type; or the sum, in float32 for half types."""
    apply = _apply if way is not None and way.plain else Keeping.apply
    result = apply(working(mu), working(log_sigma2), added, sign, way)[0]
    return result if added else result.to(mu.dtype)


def gradients(mu: Tensor, log_sigma2: Tensor, sign: float) -> tuple[Tensor, Tensor, Tensor]:
    """-KL and its two derivatives, each differentiable; of the half types in float32."""
    found: tuple[Tensor, Tensor, Tensor] = Keeping.apply(
        working(mu), working(log_sigma2), False, sign, None
    )
    return found


def higher(mu: Tensor, log_sigma2: Tensor, j: int, k: int, sign: float) -> Tensor:
    """The derivative of these orders, two or more in all; of the half types in float32."""
    return _Higher.apply(working(mu), working(log_sigma2), j, k, sign)


def product_sum(*terms: Any) -> Tensor | None:
    """Add up first * second() over the terms whose first factor is not None."""
    total = None
    for factor, other in terms:
        if factor is not None:
            product = factor * other()
            total = product if total is None else total + product
    return total


class Keeping(Function):
    """-KL or its sum, with the two derivatives of each element, in one pass.

    The derivatives are differentiable outputs. The first backward multiplies by them, and the
    second one differentiates them by `higher`. The half types are given in float32, so that
    products with a derivative are rounded, and their factors are not.
    """

    generate_vmap_rule = True

    @staticmethod
    @with_signature
    def forward(
        mu: Tensor, log_sigma2: Tensor, added: bool, sign: float, way: _backends.Way | None
    ) -> tuple[Tensor, Tensor, Tensor]:
        way = way or _backends.of(mu, log_sigma2)
        return (way.sum_with_gradients if added else way.with_gradients)(mu, log_sigma2, sign)

    @staticmethod
    def setup_context(ctx: Any, inputs: Any, output: Any) -> None:
        mu, log_sigma2, ctx.added, ctx.sign, _ = inputs
        saved = mu, log_sigma2, *output[1:]
        ctx.save_for_backward(*saved)
        ctx.save_for_forward(*saved)
        ctx.set_materialize_grads(False)

    @staticmethod
    def backward(
        ctx: Any, grad: Tensor | None, grad_d_mu: Tensor | None, grad_d_log_sigma2: Tensor | None
    ) -> tuple[Tensor | None, Tensor | None, None, None, None]:
        mu, log_sigma2, d_mu, d_log_sigma2 = ctx.saved_tensors
        found: list[Tensor | None] = [None, None]
        for i, d in enumerate((d_mu, d_log_sigma2)):
            if ctx.needs_input_grad[i]:
                found[i] = product_sum(
                    (grad, lambda d=d: d),
                    (grad_d_mu, lambda i=i: higher(mu, log_sigma2, 2 - i, i, ctx.sign)),
                    (grad_d_log_sigma2, lambda i=i: higher(mu, log_sigma2, 1 - i, 1 + i, ctx.sign)),
                )
        return found[0], found[1], None, None, None

    @staticmethod
    @with_primals
    def jvp(
        ctx: Any,
        mu: Tensor,
        log_sigma2: Tensor,
        d_mu: Tensor,
        d_log_sigma2: Tensor,
        t_mu: Tensor | None,
        t_log_sigma2: Tensor | None,
        *_: None,
    ) -> tuple[Tensor | None, Tensor | None, Tensor | None]:
        value = product_sum((t_mu, lambda: d_mu), (t_log_sigma2, lambda: d_log_sigma2))
        mixed = higher(mu, log_sigma2, 1, 1, ctx.sign)
        return (
            value.sum() if ctx.added and value is not None else value,
            product_sum(
                (t_mu, lambda: higher(mu, log_sigma2, 2, 0, ctx.sign)),
                (t_log_sigma2, lambda: mixed),
            ),
            product_sum(
                (t_mu, lambda: mixed),
                (t_log_sigma2, lambda: higher(mu, log_sigma2, 0, 2, ctx.sign)),
            ),
        )


class _Higher(Function):
    """The derivative of -KL in mu and log_sigma2 of the given orders, two or more in all."""

    generate_vmap_rule = True

    @staticmethod
    @with_signature
    def forward(
        mu: Tensor, log_sigma2: Tensor, mu_order: int, log_sigma2_order: int, sign: float
    ) -> Tensor:
        return _backends.of(mu, log_sigma2).higher(mu, log_sigma2, mu_order, log_sigma2_order, sign)

    @staticmethod
    def setup_context(ctx: Any, inputs: Any, output: Tensor) -> None:
        mu, log_sigma2, *ctx.orders, ctx.sign = inputs
        ctx.save_for_backward(mu, log_sigma2)
        ctx.save_for_forward(mu, log_sigma2)
        ctx.set_materialize_grads(False)

    @staticmethod
    def backward(
        ctx: Any, grad: Tensor | None
    ) -> tuple[Tensor | None, Tensor | None, None, None, None]:
        mu, log_sigma2 = ctx.saved_tensors
        j, k = ctx.orders
        needed = ctx.needs_input_grad
        return (
            grad * higher(mu, log_sigma2, j + 1, k, ctx.sign)
            if needed[0] and grad is not None
            else None,
            grad * higher(mu, log_sigma2, j, k + 1, ctx.sign)
            if needed[1] and grad is not None
            else None,
            None,
            None,
            None,
        )

    @staticmethod
    @with_primals
    def jvp(
        ctx: Any,
        mu: Tensor,
        log_sigma2: Tensor,
        t_mu: Tensor | None,
        t_log_sigma2: Tensor | None,
        *_: None,
    ) -> Tensor | None:
        j, k = ctx.orders
        return product_sum(
            (t_mu, lambda: higher(mu, log_sigma2, j + 1, k, ctx.sign)),
            (t_log_sigma2, lambda: higher(mu, log_sigma2, j, k + 1, ctx.sign)),
        )


_apply = direct_apply(Keeping)
