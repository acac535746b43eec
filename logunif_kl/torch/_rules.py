"""Rules of differentiation: the derivative of each function is the function of the next order.

The forward of each is the C ufunc or Triton's kernel where one serves the tensors, else plain
arithmetic over torch, which compilers and transforms see. Its own derivative is used nowhere.

The functions of this module that are no classes are put into the graph of a compiler as they are
(`logunif_kl.torch._compiling`): traced through by dynamo, the rules are lost where a transform of
`torch.func` is in the region.
"""

# mypy: allow-untyped-calls, no-warn-return-any
from __future__ import annotations

from collections.abc import Callable
from functools import wraps
from inspect import signature
from typing import Any

import torch
from torch.autograd import Function, forward_ad

from .._arithmetic import derivatives, functions
from . import _cpu, _cpu_float32
from ._namespace import working, xp
from ._sharded import local, on_shards

Tensor = torch.Tensor


def of_log_alpha(x: Tensor, order: int) -> Tensor:
    """-KL at log_alpha = x, or its derivative of any order, in the type of x."""
    if _only_the_value(x):
        return _of_log_alpha(x, order)
    return _OfLogAlpha.apply(x, order)


def total_of_log_alpha(x: Tensor) -> Tensor:
    """The sum of -KL at log_alpha = x; in float32 for the half types."""
    if _only_the_value(x):
        return _total_of_log_alpha(x)
    return _TotalOfLogAlpha.apply(x)


def of_normal(mu: Tensor, log_sigma2: Tensor, added: bool) -> Tensor:
    """-KL from the mean and the variance, in their type; or the sum, as above."""
    if _only_the_value(mu, log_sigma2):
        return value_of_normal(mu, log_sigma2, added)
    from . import _recomputing

    if not transformed() and kernels(*local(mu, log_sigma2)) is not None:
        return _recomputing.apply(mu, log_sigma2, added)
    if _pushed_forward():
        return _recomputing.Recomputing.apply(mu, log_sigma2, added)
    result = _OfNormal.apply(working(mu), working(log_sigma2), added)[0]
    return result if added else result.to(mu.dtype)


def _only_the_value(*tensors: Tensor) -> bool:
    """Tell whether nobody can ask for a derivative."""
    return (
        not (torch.is_grad_enabled() and any(x.requires_grad for x in tensors))
        and not transformed()
        and _cpu.plain(*tensors)
    )


def transformed() -> bool:
    """Tell whether a transform of torch.func or the forward mode is at work."""
    return bool(torch._C._are_functorch_transforms_active() or forward_ad._current_level >= 0)


def _pushed_forward() -> bool:
    """Tell whether the forward mode is at work, which would want derivatives of all outputs."""
    if forward_ad._current_level >= 0:
        return True
    levels = torch._C._functorch.get_interpreter_stack() or ()
    return any(level.key() == torch._C._functorch.TransformType.Jvp for level in levels)


def kernels(*tensors: Tensor) -> Any:
    """Return what computes value and gradient apart for these tensors; None if nothing does."""
    if _cpu.takes(*tensors):
        return _cpu_float32 if _cpu_float32.available(tensors[-1]) else None
    return _triton_for(*tensors)


def _triton_for(*tensors: Tensor) -> Any:
    """Return the module of Triton's kernels, if they serve these tensors."""
    if not all(x.is_cuda for x in tensors) or not _cpu.plain(*tensors):
        return None
    from ._triton import launch

    return launch if launch.available(tensors[-1]) else None


# The forwards.


@on_shards
def _of_log_alpha(x: Tensor, order: int) -> Tensor:
    if order < 3 and _cpu.takes(x):
        return _cpu.derivative(x, order)
    if order < 3 and (found := _triton_for(x)) is not None:
        return found.unary(order, x)
    return derivatives.neg_kl_derivative(xp, working(x), order).to(x.dtype)


@on_shards
def _total_of_log_alpha(x: Tensor) -> Tensor:
    if _cpu.takes(x):
        return _cpu.total(x)
    if (found := _triton_for(x)) is not None:
        return found.unary(0, working(x)).sum(dtype=torch.float64).to(torch.float32)
    return functions.neg_kl(xp, working(x)).sum()


@on_shards
def value_of_normal(mu: Tensor, log_sigma2: Tensor, added: bool) -> Tensor:
    """Compute -KL or its sum, by the fastest way for these tensors."""
    found = kernels(mu, log_sigma2)
    if found is not None:
        return (found.value_sum if added else found.value)(mu, log_sigma2)
    if _cpu.takes(mu, log_sigma2):
        return (_cpu.normal_total if added else _cpu.normal_value)(mu, log_sigma2)
    value = functions.neg_kl_normal(xp, working(mu), working(log_sigma2))[0]
    return value.sum() if added else value.to(mu.dtype)


@on_shards
def value_and_gradients(
    mu: Tensor, log_sigma2: Tensor, added: bool
) -> tuple[Tensor, Tensor, Tensor]:
    """Compute -KL or its sum, and the two derivatives, of float32 or float64."""
    if _cpu.takes(mu, log_sigma2):
        if added:
            return _cpu.normal_total_and_gradients(mu, log_sigma2)
        return _cpu.normal(mu, log_sigma2)
    value, d_mu, d_log_sigma2 = functions.neg_kl_normal(xp, mu, log_sigma2)
    return value.sum() if added else value, d_mu, d_log_sigma2


@on_shards
def _second_of_normal(
    mu: Tensor, log_sigma2: Tensor, mu_order: int, log_sigma2_order: int
) -> Tensor:
    return derivatives.neg_kl_normal_derivative(xp, mu, log_sigma2, mu_order, log_sigma2_order)


# The rules.


def with_signature(forward: Any) -> Any:
    """Keep the signature, which `Function.apply` looks up at every call at some cost."""
    forward.__signature__ = signature(forward)
    return forward


def with_primals(jvp: Callable[..., Any]) -> Callable[..., Any]:
    """Make a ``jvp`` of one that takes the saved tensors too; it can itself be pushed through.

    PyTorch runs it with the forward mode switched off, for every level of a nest of `torch.func`:
    the tangents of the outer ones would be zero without a word (pytorch issue 197867). With that
    on, the saved tensors must leave their own tangents behind.
    """

    @wraps(jvp)
    def rule(ctx: Any, *tangents: Tensor | None) -> Any:
        with forward_ad._set_fwd_grad_enabled(True):
            return jvp(ctx, *map(_primal, ctx.saved_tensors), *tangents)

    return rule


def _primal(x: Tensor) -> Tensor:
    """Leave the tangent of the innermost level behind, under the dimensions of any vmap."""
    functorch = torch._C._functorch
    if functorch.is_batchedtensor(x):
        inner = _primal(functorch.get_unwrapped(x))
        return functorch._add_batch_dim(
            inner, functorch.maybe_get_bdim(x), functorch.maybe_get_level(x)
        )
    # There is no level but 0, and in a compiler's graph nobody says that it was entered.
    return forward_ad.unpack_dual(x, level=0).primal


class _OfLogAlpha(Function):
    """The derivative of -KL in log_alpha of the given order."""

    generate_vmap_rule = True

    @staticmethod
    @with_signature
    def forward(x: Tensor, order: int) -> Tensor:
        return _of_log_alpha(x, order)

    @staticmethod
    def setup_context(ctx: Any, inputs: tuple[Tensor, int], output: Tensor) -> None:
        x, ctx.order = inputs
        ctx.save_for_backward(x)
        ctx.save_for_forward(x)

    @staticmethod
    def backward(ctx: Any, grad: Tensor) -> tuple[Tensor, None]:
        (x,) = ctx.saved_tensors
        return (grad * of_log_alpha(working(x), ctx.order + 1)).to(x.dtype), None

    @staticmethod
    @with_primals
    def jvp(ctx: Any, x: Tensor, tangent: Tensor, _: None) -> Tensor:
        return (tangent * of_log_alpha(working(x), ctx.order + 1)).to(x.dtype)


class _TotalOfLogAlpha(Function):
    """The sum of -KL, which keeps no value of an element."""

    generate_vmap_rule = True

    @staticmethod
    @with_signature
    def forward(x: Tensor) -> Tensor:
        return _total_of_log_alpha(x)

    @staticmethod
    def setup_context(ctx: Any, inputs: tuple[Tensor], output: Tensor) -> None:
        ctx.save_for_backward(*inputs)
        ctx.save_for_forward(*inputs)

    @staticmethod
    def backward(ctx: Any, grad: Tensor) -> Tensor:
        (x,) = ctx.saved_tensors
        return (grad * of_log_alpha(working(x), 1)).to(x.dtype)

    @staticmethod
    @with_primals
    def jvp(ctx: Any, x: Tensor, tangent: Tensor) -> Tensor:
        return (tangent * of_log_alpha(working(x), 1)).sum()


class _OfNormal(Function):
    """-KL or its sum, with the two derivatives of each element, in one pass.

    The derivatives are outputs in their own right: the first backward multiplies by them, and a
    second one goes on from them to the functions of order 2. The half types come here in float32:
    what is rounded is a product with a derivative, not its factors.
    """

    generate_vmap_rule = True

    @staticmethod
    @with_signature
    def forward(mu: Tensor, log_sigma2: Tensor, added: bool) -> tuple[Tensor, Tensor, Tensor]:
        return value_and_gradients(mu, log_sigma2, added)

    @staticmethod
    def setup_context(ctx: Any, inputs: Any, output: Any) -> None:
        mu, log_sigma2, ctx.added = inputs
        saved = mu, log_sigma2, *output[1:]
        ctx.save_for_backward(*saved)
        ctx.save_for_forward(*saved)
        ctx.set_materialize_grads(False)

    @staticmethod
    def backward(
        ctx: Any, grad: Tensor | None, grad_d_mu: Tensor | None, grad_d_log_sigma2: Tensor | None
    ) -> tuple[Tensor | None, Tensor | None, None]:
        mu, log_sigma2, d_mu, d_log_sigma2 = ctx.saved_tensors
        found: list[Tensor | None] = [None, None]
        for i, d in enumerate((d_mu, d_log_sigma2)):
            if ctx.needs_input_grad[i]:
                found[i] = product_sum(
                    (grad, lambda d=d: d),
                    (grad_d_mu, lambda i=i: second(mu, log_sigma2, 2 - i, i)),
                    (grad_d_log_sigma2, lambda i=i: second(mu, log_sigma2, 1 - i, 1 + i)),
                )
        return found[0], found[1], None

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
        _: None,
    ) -> tuple[Tensor | None, Tensor | None, Tensor | None]:
        value = product_sum((t_mu, lambda: d_mu), (t_log_sigma2, lambda: d_log_sigma2))
        mixed = second(mu, log_sigma2, 1, 1)
        return (
            value.sum() if ctx.added and value is not None else value,
            product_sum(
                (t_mu, lambda: second(mu, log_sigma2, 2, 0)), (t_log_sigma2, lambda: mixed)
            ),
            product_sum(
                (t_mu, lambda: mixed), (t_log_sigma2, lambda: second(mu, log_sigma2, 0, 2))
            ),
        )


class _Second(Function):
    """The derivative of -KL in mu and log_sigma2 of the given orders, two or more in all."""

    generate_vmap_rule = True

    @staticmethod
    @with_signature
    def forward(mu: Tensor, log_sigma2: Tensor, mu_order: int, log_sigma2_order: int) -> Tensor:
        return _second_of_normal(mu, log_sigma2, mu_order, log_sigma2_order)

    @staticmethod
    def setup_context(ctx: Any, inputs: Any, output: Tensor) -> None:
        mu, log_sigma2, *ctx.orders = inputs
        ctx.save_for_backward(mu, log_sigma2)
        ctx.save_for_forward(mu, log_sigma2)
        ctx.set_materialize_grads(False)

    @staticmethod
    def backward(ctx: Any, grad: Tensor | None) -> tuple[Tensor | None, Tensor | None, None, None]:
        mu, log_sigma2 = ctx.saved_tensors
        j, k = ctx.orders
        needed = ctx.needs_input_grad
        return (
            grad * second(mu, log_sigma2, j + 1, k) if needed[0] and grad is not None else None,
            grad * second(mu, log_sigma2, j, k + 1) if needed[1] and grad is not None else None,
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
            (t_mu, lambda: second(mu, log_sigma2, j + 1, k)),
            (t_log_sigma2, lambda: second(mu, log_sigma2, j, k + 1)),
        )


def second(mu: Tensor, log_sigma2: Tensor, j: int, k: int) -> Tensor:
    """The derivative of these orders, two or more in all; of the half types in float32."""
    return _Second.apply(working(mu), working(log_sigma2), j, k)


def gradients(mu: Tensor, log_sigma2: Tensor) -> tuple[Tensor, Tensor, Tensor]:
    """-KL and its two derivatives, each differentiable; of the half types in float32."""
    found: tuple[Tensor, Tensor, Tensor] = _OfNormal.apply(working(mu), working(log_sigma2), False)
    return found


def product_sum(*terms: Any) -> Tensor | None:
    """Add the products of those terms whose first factor is there; the second is a thunk."""
    total = None
    for factor, other in terms:
        if factor is not None:
            product = factor * other()
            total = product if total is None else total + product
    return total
