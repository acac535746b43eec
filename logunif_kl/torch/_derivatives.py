"""The autograd Function of this package: the derivative of a call is another call.

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
    direct_apply,
    legacy_batched,
    transformed,
    with_primals,
    with_signature,
)
from ._namespace import working

Tensor = torch.Tensor
# The number of derivatives in each tensor; a name may come first.
Orders = tuple[Any, ...]
Row = Sequence[Tensor | None]
# For this many elements, finding out that they are one number is faster than negating them.
_MANY = 4096


class Members(tuple[Orders, ...]):
    """Functions and derivatives to compute. PyTorch would unpack a plain tuple, but not this class.

    Attributes
    ----------
    along : list of list of Orders
        The derivatives of each member in each tensor.
    others : Members or None
        All first derivatives, if the members are a function and its first derivatives.
    """

    along: list[list[Orders]]
    others: Members | None

    def __new__(cls, members: Iterable[Orders]) -> Members:
        self = super().__new__(cls, members)
        self.along = [[along(orders, i) for i in range(len(orders))] for orders in self]
        self.others = cls(self[1:]) if list(self[1:]) == self.along[0] else None
        return self


def along(orders: Orders, i: int) -> Orders:
    """Return the orders after differentiation in the i-th tensor."""
    return (*orders[:i], orders[i] + 1, *orders[i + 1 :])


class Family:
    """A function of some tensors and all its derivatives, which are named by their orders.

    Attributes
    ----------
    summed, negated : bool
        Whether `compute` sums the elements of the first result, and whether it negates the result.
    """

    summed = False
    negated = False

    def compute(self, members: Members, *tensors: Tensor) -> tuple[Tensor, ...]:
        """Compute these members in one pass."""
        raise NotImplementedError

    def slopes(
        self, members: Members, tensors: Sequence[Tensor], needed: Sequence[bool]
    ) -> Sequence[Row]:
        """Compute the derivatives of each member in the tensors that need one."""
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
        """Multiply the derivatives by gradients, and add up the products over the members.

        The first derivatives may have been kept. A family may override this with fewer steps.
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
        # Under a vmap of a compiled hessian, PyTorch raises for a plain product of tensors.
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
        """Compute one member, which can be differentiated again."""
        found: Tensor = Derivatives.apply(self, Members([orders]), *tensors)[0]
        return found


class _Product(Family):
    """The product of two tensors, as one step in every transform."""

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
    """A function and its derivatives, or several derivatives, computed in one pass.

    First derivatives that are computed along with their function are kept for the backward.
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
    """`Derivatives` with fewer steps for each call, if no transform is active."""

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
    """Whether the derivatives in a backward must themselves be differentiable.

    Legacy batched gradients (`is_grads_batched`) need it too, because they bypass every rule.
    """
    return torch.is_grad_enabled() or transformed() or legacy_batched(grad)


def _product_sum(tangents: Row, slopes: Row) -> Tensor | None:
    """Add up the products of those pairs in which both are given."""
    total = None
    for tangent, slope in zip(tangents, slopes, strict=True):
        if tangent is not None and slope is not None:
            total = tangent * slope if total is None else total + tangent * slope
    return total


def _negative(grad: Tensor) -> Tensor:
    """Negate a gradient. One number expanded to many elements becomes a 0-d tensor again."""
    if grad.numel() > _MANY and type(grad) is torch.Tensor and not any(grad.stride()):
        grad = grad if may_be_differentiated(grad) else grad.as_strided((), ())
    return -grad
