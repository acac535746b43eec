"""Rules that keep nothing but the arguments.

For kernels that compute faster than memory delivers: a forward that stores the derivatives moves 40
bytes for a float32 weight, forward and backward, and one that computes them again moves 24. And for
the forward mode, which would push its tangents through whatever else a forward returns.
"""

# mypy: allow-untyped-calls, no-warn-return-any
from __future__ import annotations

from typing import Any

import torch
from torch.autograd import Function

from . import _rules
from ._cpu import batched
from ._namespace import working
from ._sharded import on_shards

Tensor = torch.Tensor


class Recomputing(Function):
    """-KL from the mean and the variance, or its sum."""

    generate_vmap_rule = True

    @staticmethod
    @_rules.with_signature
    def forward(mu: Tensor, log_sigma2: Tensor, added: bool) -> Tensor:
        return _rules.value_of_normal(mu, log_sigma2, added)

    @staticmethod
    def setup_context(ctx: Any, inputs: Any, output: Tensor) -> None:
        mu, log_sigma2, ctx.added = inputs
        ctx.save_for_backward(mu, log_sigma2)
        ctx.save_for_forward(mu, log_sigma2)
        ctx.set_materialize_grads(False)

    @staticmethod
    def backward(ctx: Any, grad: Tensor | None) -> tuple[Tensor | None, Tensor | None, None]:
        if grad is None:
            return None, None, None
        if batched(grad):
            # Of which a rule is not told: what is recorded are the operations, one by one.
            mu, log_sigma2 = ctx.saved_tensors
            _, d_mu, d_log_sigma2 = _rules.gradients(mu, log_sigma2)
            return (grad * d_mu).to(mu.dtype), (grad * d_log_sigma2).to(mu.dtype), None
        if not (torch.is_grad_enabled() or _rules.transformed()):
            return *gradient(grad, *ctx.saved_tensors), None
        return *Gradient.apply(grad, *ctx.saved_tensors), None

    @staticmethod
    @_rules.with_primals
    def jvp(
        ctx: Any,
        mu: Tensor,
        log_sigma2: Tensor,
        t_mu: Tensor | None,
        t_log_sigma2: Tensor | None,
        *_: None,
    ) -> Tensor | None:
        __, d_mu, d_log_sigma2 = _rules.gradients(mu, log_sigma2)
        found = _rules.product_sum((t_mu, lambda: d_mu), (t_log_sigma2, lambda: d_log_sigma2))
        if found is None:
            return None
        return found.sum() if ctx.added else found.to(mu.dtype)


# What `Function.apply` comes to where no transform of torch.func is at work. On the way there it
# binds the arguments to a signature, which takes longer than everything else.
apply = super(Function, Recomputing).apply


@on_shards
def gradient(grad: Tensor, mu: Tensor, log_sigma2: Tensor) -> tuple[Tensor, Tensor]:
    """The two derivatives times a factor, of their shape or of no dimensions."""
    found = _rules.kernels(grad, mu, log_sigma2)
    if found is not None:
        return found.gradient(grad, mu, log_sigma2)
    _, d_mu, d_log_sigma2 = _rules.value_and_gradients(working(mu), working(log_sigma2), False)
    return (grad * d_mu).to(mu.dtype), (grad * d_log_sigma2).to(mu.dtype)


class Gradient(Function):
    """The two derivatives times a factor, of their shape or of no dimensions."""

    generate_vmap_rule = True

    @staticmethod
    @_rules.with_signature
    def forward(grad: Tensor, mu: Tensor, log_sigma2: Tensor) -> tuple[Tensor, Tensor]:
        return gradient(grad, mu, log_sigma2)

    @staticmethod
    def setup_context(ctx: Any, inputs: Any, output: Any) -> None:
        ctx.save_for_backward(*inputs)
        ctx.save_for_forward(*inputs)
        ctx.set_materialize_grads(False)

    @staticmethod
    def backward(
        ctx: Any, a: Tensor | None, b: Tensor | None
    ) -> tuple[Tensor | None, Tensor | None, Tensor | None]:
        grad, mu, log_sigma2 = ctx.saved_tensors
        in_grad, in_mu, in_log_sigma2 = ctx.needs_input_grad
        second = _rules.second
        found: list[Tensor | None] = [None, None, None]
        if in_grad:
            _, d_mu, d_log_sigma2 = _rules.gradients(mu, log_sigma2)
            product = _rules.product_sum((a, lambda: d_mu), (b, lambda: d_log_sigma2))
            if product is not None:
                found[0] = product.sum_to_size(grad.shape).to(grad.dtype)
        for i, needed in enumerate((in_mu, in_log_sigma2)):
            if needed:
                product = _rules.product_sum(
                    (a, lambda i=i: second(mu, log_sigma2, 2 - i, i)),
                    (b, lambda i=i: second(mu, log_sigma2, 1 - i, 1 + i)),
                )
                found[i + 1] = None if product is None else (grad * product).to(mu.dtype)
        return found[0], found[1], found[2]

    @staticmethod
    @_rules.with_primals
    def jvp(
        ctx: Any,
        grad: Tensor,
        mu: Tensor,
        log_sigma2: Tensor,
        t: Tensor | None,
        t_mu: Tensor | None,
        t_log_sigma2: Tensor | None,
    ) -> tuple[Tensor | None, Tensor | None]:
        second = _rules.second
        _, d_mu, d_log_sigma2 = _rules.gradients(mu, log_sigma2)
        found = []
        for i, d in enumerate((d_mu, d_log_sigma2)):
            change = _rules.product_sum(
                (t_mu, lambda i=i: second(mu, log_sigma2, 2 - i, i)),
                (t_log_sigma2, lambda i=i: second(mu, log_sigma2, 1 - i, 1 + i)),
            )
            product = _rules.product_sum((t, lambda d=d: d), (change, lambda: grad))
            found.append(None if product is None else product.to(mu.dtype))
        return found[0], found[1]
