"""-KL as a differentiable function of log_alpha, or of mu and log_sigma2.

torch.compile puts calls of `of_log_alpha` and `of_normal` into its graph (`_api._allow`). If Dynamo
traced into them, it would lose the differentiation rule inside a transform of `torch.func`.
"""

# mypy: allow-untyped-calls, no-warn-return-any
from __future__ import annotations

from collections.abc import Callable, Sequence
from functools import cache, partial
from typing import Any

import torch

from . import _backends, _operators
from ._composite import Composite
from ._derivatives import Derivatives, Family, Members, Orders, Row, eager, may_be_differentiated
from ._internals import apply, pushed_forward, transformed
from ._namespace import working

Tensor = torch.Tensor

VALUE = Members([(0, 0)])
SLOPES = Members([(1, 0), (0, 1)])
VALUE_AND_SLOPES = Members([*VALUE, *SLOPES])


def of_log_alpha(x: Tensor, order: int = 0, summed: bool = False, negated: bool = False) -> Tensor:
    """Compute -KL or a derivative at log_alpha = x, in x's dtype. A sum is float32 or float64."""
    backend = _backends.choose_early(x)
    if backend is None or not backend.plain:
        function: Callable[..., Any] = partial(apply, Derivatives)
    elif x.requires_grad and torch.is_grad_enabled():
        function = eager
    else:
        return _value_of_log_alpha(backend, x, order, summed, negated)
    return function(_of_log_alpha(backend, summed, negated), _of_order(order), x)[0]


def of_normal(
    mu: Tensor, log_sigma2: Tensor, summed: bool = False, negated: bool = False
) -> Tensor:
    """Compute -KL from mu and log_sigma2, in their dtype. A sum of half types is in float32."""
    backend = _backends.choose_early(mu, log_sigma2)
    if backend is None or not backend.plain:
        function: Callable[..., Any] = partial(apply, Derivatives)
    elif (mu.requires_grad or log_sigma2.requires_grad) and torch.is_grad_enabled():
        function = eager
    else:
        return _value_of_normal(backend, mu, log_sigma2, summed, negated)
    family = _of_normal(backend, summed, negated)
    # `function` can return -KL with its derivatives, to keep them for the backward. Forward mode
    # would differentiate those too, so under forward mode compute only -KL.
    if pushed_forward() if backend is None else backend.recomputes:
        return function(family, VALUE, mu, log_sigma2)[0]
    found = function(family, VALUE_AND_SLOPES, working(mu), working(log_sigma2))[0]
    return found if summed else found.to(mu.dtype)


def gradient(factor: Tensor, *tensors: Tensor) -> Sequence[Tensor | None]:
    """Return a 0-d factor times the derivatives of -KL in log_alpha, or in mu and log_sigma2."""
    if len(tensors) == 1:
        return [factor * of_log_alpha(*tensors, 1)]
    return _of_normal().products(VALUE, (factor,), tensors, (), (True, True))


def _value_of_log_alpha(
    backend: Composite, x: Tensor, order: int, summed: bool, negated: bool
) -> Tensor:
    found = backend.sum_of_log_alpha(x) if summed else backend.of_log_alpha(x, order)
    return found.neg_() if negated else found


def _value_of_normal(
    backend: Composite, mu: Tensor, log_sigma2: Tensor, summed: bool, negated: bool
) -> Tensor:
    found = (backend.value_sum if summed else backend.value)(mu, log_sigma2)
    return found.neg_() if negated else found


class _Computed(Family):
    """A family that a backend computes. If `backend` is None, each forward chooses a backend."""

    def __init__(
        self, backend: Composite | None = None, summed: bool = False, negated: bool = False
    ) -> None:
        self._backend, self.summed, self.negated = backend, summed, negated


class _OfLogAlpha(_Computed):
    """The family of -KL as a function of log_alpha, and its derivatives."""

    def compute(self, members: Members, *tensors: Tensor) -> tuple[Tensor]:
        (x,), ((order,),) = tensors, members
        backend = self._backend or _backends.choose(x)
        return (_value_of_log_alpha(backend, x, order, self.summed, self.negated),)

    def products(
        self, members: Members, grads: Any, tensors: Any, kept: Any, needed: Any
    ) -> Sequence[Tensor | None]:
        if transformed() or grads[0] is None:
            return super().products(members, grads, tensors, kept, needed)
        (grad,), (x,), ((order,),) = grads, tensors, members
        if order == 0 and not may_be_differentiated(grad) and _operators.takes(grad, x):
            return (_operators.gradient_of_log_alpha(grad, x),)
        return ((grad * of_log_alpha(working(x), order + 1)).to(x.dtype),)

    def __call__(self, orders: Orders, *tensors: Tensor) -> Tensor:
        (x,), (order,) = tensors, orders
        return of_log_alpha(x, order)


class _OfNormal(_Computed):
    """The family of -KL as a function of mu and log_sigma2, and its derivatives."""

    def compute(self, members: Members, *tensors: Tensor) -> tuple[Tensor, ...]:
        backend = self._backend or _backends.choose(*tensors)
        if members == VALUE:
            mu, log_sigma2 = tensors
            return (_value_of_normal(backend, mu, log_sigma2, self.summed, self.negated),)
        if members == SLOPES:
            return backend.gradients(*tensors)
        if members != VALUE_AND_SLOPES:
            return (backend.higher(*tensors, *members[0]),)
        every = backend.sum_with_gradients if self.summed else backend.with_gradients
        value, *slopes = every(*tensors)
        return value.neg_() if self.negated else value, *slopes

    def slopes(self, members: Members, tensors: Any, needed: Any) -> Sequence[Row]:
        if members == VALUE:
            return [Derivatives.apply(_of_normal(), SLOPES, *tensors)]
        return super().slopes(members, tensors, needed)

    def products(
        self, members: Members, grads: Any, tensors: Any, kept: Any, needed: Any
    ) -> Sequence[Tensor | None]:
        if members == VALUE and grads[0] is not None and not may_be_differentiated(grads[0]):
            backend = self._backend
            if backend is None or not backend.plain or _backends.choose(*grads) is not backend:
                backend = _backends.choose(*grads, *tensors)
            if backend.recomputes:
                return backend.gradient(*grads, *tensors)
        return super().products(members, grads, tensors, kept, needed)

    def __call__(self, orders: Orders, *tensors: Tensor) -> Tensor:
        return apply(Derivatives, _of_normal(), Members([orders]), *tensors)[0]  # type: ignore[no-any-return]


_of_log_alpha, _of_normal = cache(_OfLogAlpha), cache(_OfNormal)


@cache
def _of_order(order: int) -> Members:
    return Members([(order,)])
