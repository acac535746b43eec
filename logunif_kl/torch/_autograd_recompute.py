"""Rules of differentiation in the mean and the variance that keep nothing but the arguments.

The backward computes the derivatives again. These rules serve kernels that are faster than memory
(`logunif_kl.torch._backends`), and the forward mode, which would push tangents through every output
that a forward keeps.
"""

# mypy: allow-untyped-calls, no-warn-return-any
from __future__ import annotations

from typing import Any

import torch
from torch.autograd import Function

from . import _backends
from ._autograd_saved import gradients, higher, product_sum
from ._internals import direct_apply, legacy_batched, transformed, with_primals, with_signature

Tensor = torch.Tensor


def recomputing(
    mu: Tensor, log_sigma2: Tensor, added: bool, sign: float, way: _backends.Way | None
) -> Tensor:
    """-KL from the mean and the variance, in their type; or the sum, in float32 for half types."""
    apply = Recomputing.apply if way is None else _apply
    return apply(mu, log_sigma2, added, sign, way)


class Recomputing(Function):
    """-KL from the mean and the variance, or its sum."""

    generate_vmap_rule = True

    @staticmethod
    @with_signature
    def forward(
        mu: Tensor, log_sigma2: Tensor, added: bool, sign: float, way: _backends.Way | None
    ) -> Tensor:
        way = way or _backends.of(mu, log_sigma2)
        return (way.value_sum if added else way.value)(mu, log_sigma2, sign)

    @staticmethod
    def setup_context(ctx: Any, inputs: Any, output: Tensor) -> None:
        mu, log_sigma2, ctx.added, ctx.sign, _ = inputs
        ctx.save_for_backward(mu, log_sigma2)
        ctx.save_for_forward(mu, log_sigma2)
        ctx.set_materialize_grads(False)

    @staticmethod
    def backward(
        ctx: Any, grad: Tensor | None
    ) -> tuple[Tensor | None, Tensor | None, None, None, None]:
        if grad is None:
            return None, None, None, None, None
        mu, log_sigma2 = ctx.saved_tensors
        if legacy_batched(grad):
            # Legacy batched gradients bypass the rule of `Gradient`, so plain operations are used.
            _, d_mu, d_log_sigma2 = gradients(mu, log_sigma2, ctx.sign)
            d_mu, d_log_sigma2 = (grad * d_mu).to(mu.dtype), (grad * d_log_sigma2).to(mu.dtype)
            return d_mu, d_log_sigma2, None, None, None
        if torch.is_grad_enabled() or transformed():
            return *Gradient.apply(grad, mu, log_sigma2, ctx.sign), None, None, None
        way = _backends.of(grad, mu, log_sigma2)
        return *way.gradient(grad, mu, log_sigma2, ctx.sign), None, None, None

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
        __, d_mu, d_log_sigma2 = gradients(mu, log_sigma2, ctx.sign)
        found = product_sum((t_mu, lambda: d_mu), (t_log_sigma2, lambda: d_log_sigma2))
        if found is None:
            return None
        return found.sum() if ctx.added else found.to(mu.dtype)


class Gradient(Function):
    """The two derivatives times a factor, of their shape or of no dimensions."""

    generate_vmap_rule = True

    @staticmethod
    @with_signature
    def forward(grad: Tensor, mu: Tensor, log_sigma2: Tensor, sign: float) -> tuple[Tensor, Tensor]:
        return _backends.of(grad, mu, log_sigma2).gradient(grad, mu, log_sigma2, sign)

    @staticmethod
    def setup_context(ctx: Any, inputs: Any, output: Any) -> None:
        *saved, ctx.sign = inputs
        ctx.save_for_backward(*saved)
        ctx.save_for_forward(*saved)
        ctx.set_materialize_grads(False)

    @staticmethod
    def backward(
        ctx: Any, a: Tensor | None, b: Tensor | None
    ) -> tuple[Tensor | None, Tensor | None, Tensor | None, None]:
        grad, mu, log_sigma2 = ctx.saved_tensors
        in_grad, in_mu, in_log_sigma2, _ = ctx.needs_input_grad
        found: list[Tensor | None] = [None, None, None]
        if in_grad:
            _, d_mu, d_log_sigma2 = gradients(mu, log_sigma2, ctx.sign)
            product = product_sum((a, lambda: d_mu), (b, lambda: d_log_sigma2))
            if product is not None:
                found[0] = product.sum_to_size(grad.shape).to(grad.dtype)
        for i, needed in enumerate((in_mu, in_log_sigma2)):
            if needed:
                product = product_sum(
                    (a, lambda i=i: higher(mu, log_sigma2, 2 - i, i, ctx.sign)),
                    (b, lambda i=i: higher(mu, log_sigma2, 1 - i, 1 + i, ctx.sign)),
                )
                found[i + 1] = None if product is None else (grad * product).to(mu.dtype)
        return found[0], found[1], found[2], None

    @staticmethod
    @with_primals
    def jvp(
        ctx: Any,
        grad: Tensor,
        mu: Tensor,
        log_sigma2: Tensor,
        t: Tensor | None,
        t_mu: Tensor | None,
        t_log_sigma2: Tensor | None,
        *_: None,
    ) -> tuple[Tensor | None, Tensor | None]:
        __, d_mu, d_log_sigma2 = gradients(mu, log_sigma2, ctx.sign)
        found = []
        for i, d in enumerate((d_mu, d_log_sigma2)):
            change = product_sum(
                (t_mu, lambda i=i: higher(mu, log_sigma2, 2 - i, i, ctx.sign)),
                (t_log_sigma2, lambda i=i: higher(mu, log_sigma2, 1 - i, 1 + i, ctx.sign)),
            )
            product = product_sum((t, lambda d=d: d), (change, lambda: grad))
            found.append(None if product is None else product.to(mu.dtype))
        return found[0], found[1]


class _Direct(Function):
    """`Recomputing` where no transform is active, with fewer calls for each forward."""

    @staticmethod
    def forward(  # type: ignore[override]
        ctx: Any, mu: Tensor, log_sigma2: Tensor, added: bool, sign: float, way: _backends.Way
    ) -> Tensor:
        ctx.save_for_backward(mu, log_sigma2)
        ctx.set_materialize_grads(False)
        ctx.sign = sign
        return (way.value_sum if added else way.value)(mu, log_sigma2, sign)

    backward = Recomputing.backward


_apply = direct_apply(_Direct)
