"""The autograd Function of this package: its derivative is a call of the same Function.

PyTorch could differentiate the operations of the arithmetic, but the results would be inaccurate.
Here each derivative, of any order and in every transform, has its own formula.
"""

# mypy: allow-untyped-calls, no-warn-return-any
from __future__ import annotations

from collections.abc import Iterable, Sequence
from typing import Any

import torch
from torch.autograd import Function

from ._internals import (
    apply,
    direct_apply,
    legacy_batched,
    transformed,
    with_primals,
    with_signature,
)
from ._namespace import working

Tensor = torch.Tensor
# Item i is how often the function is differentiated in the i-th tensor.
Orders = tuple[Any, ...]
Row = Sequence[Tensor | None]
# If a gradient has more elements than this, `_negative` checks if it is one expanded number.
_MANY = 4096


class Members(tuple[Orders, ...]):
    """The orders of the derivatives to compute. PyTorch unpacks plain tuples, but not this class.

    Attributes
    ----------
    along : list of list of Orders
        For each item, the orders after one more differentiation in each tensor.
    others : Members or None
        The items after the first, if they are the first item's first derivatives. Otherwise None.
    """

    along: list[list[Orders]]
    others: Members | None

    def __new__(cls, members: Iterable[Orders]) -> Members:
        self = super().__new__(cls, members)
        self.along = [[along(orders, i) for i in range(len(orders))] for orders in self]
        self.others = cls(self[1:]) if list(self[1:]) == self.along[0] else None
        return self


def along(orders: Orders, i: int) -> Orders:
    """Return the orders after one more differentiation in the i-th tensor."""
    return (*orders[:i], orders[i] + 1, *orders[i + 1 :])


class Family:
    """A function of some tensors, and its derivatives. `Orders` select one of these functions.

    Attributes
    ----------
    summed, negated : bool
        Whether `compute` sums the elements of its first result, and whether it negates this result.
    """

    summed = False
    negated = False

    def compute(self, members: Members, *tensors: Tensor) -> tuple[Tensor, ...]:
        """Compute the derivatives with these orders in one pass."""
        raise NotImplementedError

    def slopes(
        self, members: Members, tensors: Sequence[Tensor], needed: Sequence[bool]
    ) -> Sequence[Row]:
        """Differentiate each member once more, in each tensor for which `needed` is true."""
        found: dict[Orders, Tensor] = {}
        for orders in members.along:
            for one, needs in zip(orders, needed, strict=True):
                if needs and one not in found:
                    found[one] = self(one, *tensors)
        return [[found.get(one) for one in orders] for orders in members.along]

    def products(
        self,
        members: Members,
        grads: Sequence[Tensor | None],
        tensors: Sequence[Tensor],
        kept: Sequence[Tensor],
        needed: Sequence[bool],
    ) -> Sequence[Tensor | None]:
        """Return the gradient in each tensor: `grads` times derivatives, summed over the members.

        `kept` holds the first derivatives if the forward kept them, and is empty otherwise.
        """
        pairs: list[tuple[Tensor | None, Row]] = []
        if kept:
            first, *others = grads
            if first is not None and not transformed() and all(grad is None for grad in others):
                return [first * d if needs else None for d, needs in zip(kept, needed, strict=True)]
            members, pairs, grads = members.others or members, [(grads[0], kept)], grads[1:]
        if any(grad is not None for grad in grads):
            rows = self.slopes(members, [working(x) for x in tensors], needed)
            pairs += zip(grads, rows, strict=True)
        # Under a vmap of a compiled hessian, PyTorch raises an error for torch.mul.
        product = _PRODUCT if transformed() else torch.mul
        found = []
        for i, x in enumerate(tensors):
            total = None
            for grad, row in pairs:
                if needed[i] and grad is not None and (slope := row[i]) is not None:
                    term = product(grad, slope)
                    total = term if total is None else total + term
            found.append(total if total is None else total.to(x.dtype))
        return found

    def __call__(self, orders: Orders, *tensors: Tensor) -> Tensor:
        """Compute the derivative of these orders, which can itself be differentiated."""
        found: Tensor = apply(Derivatives, self, Members([orders]), *tensors)[0]
        return found


class _Product(Family):
    """The product of two tensors, which every transform sees as one operation."""

    def compute(self, members: Members, *tensors: Tensor) -> tuple[Tensor]:
        return (torch.mul(*tensors),)

    def slopes(self, members: Members, tensors: Any, needed: Any) -> Sequence[Row]:
        return [tensors[::-1]]

    def products(
        self, members: Members, grads: Any, tensors: Any, kept: Any, needed: Any
    ) -> Sequence[Tensor | None]:
        found = super().products(members, grads, tensors, kept, needed)
        return [
            None if product is None else product.sum_to_size(x.shape)
            for product, x in zip(found, tensors, strict=True)
        ]

    def __call__(self, *tensors: Tensor) -> Tensor:  # type: ignore[override]
        return super().__call__((0, 0), *tensors)


_PRODUCT = _Product()


class Derivatives(Function):
    """The autograd Function that computes members of a family in one pass.

    If the members are a function and its first derivatives, `backward` reuses the derivatives.
    """

    generate_vmap_rule = True

    @staticmethod
    @with_signature
    def forward(family: Family, members: Members, *tensors: Tensor) -> tuple[Tensor, ...]:
        return family.compute(members, *tensors)

    @staticmethod
    def setup_context(ctx: Any, inputs: Any, output: Any) -> None:
        ctx.family, ctx.members, *saved = inputs
        ctx.count = len(saved)
        if ctx.members.others:
            saved += output[1:]
        ctx.save_for_backward(*saved)
        ctx.save_for_forward(*saved)
        ctx.set_materialize_grads(False)

    @staticmethod
    def backward(ctx: Any, *grads: Tensor | None) -> tuple[Any, ...]:
        family, members, tensors, kept = ctx.family, ctx.members, ctx.saved_tensors, ()
        if members.others:
            tensors, kept = tensors[: ctx.count], tensors[ctx.count :]
        if family.negated and grads[0] is not None:
            grads = _negative(grads[0]), *grads[1:]
        needed = ctx.needs_input_grad[2:]
        return None, None, *family.products(members, grads, tensors, kept, needed)

    @staticmethod
    @with_primals
    def jvp(ctx: Any, *saved_and_tangents: Any) -> tuple[Tensor | None, ...]:
        family, members, count = ctx.family, ctx.members, ctx.count
        tensors, kept = saved_and_tangents[:count], saved_and_tangents[count : -count - 2]
        tangents = saved_and_tangents[-count:]
        needed = [tangent is not None for tangent in tangents]
        rows: list[Row] = [kept] if kept else []
        rows += family.slopes(members.others or members, [working(x) for x in tensors], needed)
        first, *others = [_product_sum(tangents, row) for row in rows]
        if first is not None:
            first = first.sum() if family.summed else first.to(tensors[0].dtype)
            first = -first if family.negated else first
        return first, *others


class _Eager(Function):
    """The same Function as `Derivatives`, but faster to call. It does not support transforms."""

    @staticmethod
    def forward(  # type: ignore[override]
        ctx: Any, family: Family, members: Members, *tensors: Tensor
    ) -> tuple[Tensor, ...]:
        found = family.compute(members, *tensors)
        ctx.family, ctx.members, ctx.count = family, members, len(tensors)
        ctx.save_for_backward(*tensors, *(found[1:] if members.others else ()))
        ctx.set_materialize_grads(False)
        return found

    backward = Derivatives.backward


eager = direct_apply(_Eager)


def may_be_differentiated(grad: Tensor) -> bool:
    """Whether the derivatives that a backward computes must be differentiable.

    True also for batched gradients (`is_grads_batched`), which bypass differentiation rules.
    """
    return torch.is_grad_enabled() or transformed() or legacy_batched(grad)


def _product_sum(tangents: Row, slopes: Row) -> Tensor | None:
    """Add up tangent times slope over all pairs in which neither is None."""
    total = None
    for tangent, slope in zip(tangents, slopes, strict=True):
        if tangent is not None and slope is not None:
            total = tangent * slope if total is None else total + tangent * slope
    return total


def _negative(grad: Tensor) -> Tensor:
    """Negate a gradient. If it is one expanded number, negate only that number if possible."""
    if grad.numel() > _MANY and type(grad) is torch.Tensor and not any(grad.stride()):
        grad = grad if may_be_differentiated(grad) else grad.as_strided((), ())
    return -grad
