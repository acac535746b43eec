"""The choice of a way: which code computes for the tensors that are given.

A way is the kernels of C, the kernels in Triton or the composite; DTensors are computed by the way
of their local tensors. The choice is made once for each forward and once for each backward.
"""

from __future__ import annotations

from functools import cache
from typing import Any

import torch

from . import _composite, _cpu, _cpu_float32, _operators, _traced
from ._composite import signed
from ._internals import plain, transformed
from ._namespace import working
from ._sharded import on_shards, sharded_alike

Tensor = torch.Tensor


def _gradient(
    grad_output: Tensor, mu: Tensor, log_sigma2: Tensor, sign: float = 1.0
) -> tuple[Tensor, Tensor]:
    """The two derivatives times a factor, which is of their shape or of no dimensions."""
    # A kernel may serve mu and log_sigma2 although it does not serve the factor.
    with_gradients = of(mu, log_sigma2).with_gradients
    _, d_mu, d_log_sigma2 = with_gradients(working(mu), working(log_sigma2), sign)
    return (grad_output * d_mu).to(mu.dtype), (grad_output * d_log_sigma2).to(mu.dtype)


class Way:
    """The operations of every way. The composite computes those for which a way has no kernel.

    Each takes a `sign` last: -1.0 gives KL and its derivatives in place of those of -KL.
    """

    # Whether the tensors are plain. Outside transforms, plain tensors need a rule only if a
    # gradient is required.
    plain = False
    # Whether a backward computes the derivatives again, instead of keeping them. A forward that
    # keeps them moves 40 bytes for each float32 weight, forward and backward, and one that computes
    # them again 24, which is faster where kernels are limited by memory.
    recomputes = False

    of_log_alpha = staticmethod(_composite.of_log_alpha)
    sum_of_log_alpha = staticmethod(_composite.sum_of_log_alpha)
    value = staticmethod(_composite.value)
    value_sum = staticmethod(_composite.value_sum)
    with_gradients = staticmethod(_composite.with_gradients)
    sum_with_gradients = staticmethod(_composite.sum_with_gradients)
    gradient = staticmethod(_gradient)
    higher = staticmethod(_composite.higher)


class _Plain(Way):
    """Plain tensors that no kernel serves."""

    plain = True


class _Cpu(_Plain):
    """The exact kernels of C."""

    with_gradients = staticmethod(_cpu.with_gradients)
    sum_with_gradients = staticmethod(_cpu.sum_with_gradients)
    value = staticmethod(_cpu.value)
    value_sum = staticmethod(_cpu.value_sum)
    sum_of_log_alpha = staticmethod(_cpu.sum_of_log_alpha)

    @staticmethod
    def of_log_alpha(x: Tensor, order: int, sign: float = 1.0) -> Tensor:
        return (_cpu if order < 3 else _composite).of_log_alpha(x, order, sign)


class _CpuFloat32(_Cpu):
    """The float32 kernels of C for -KL from a mean and a variance, the exact ones for the rest."""

    recomputes = True
    value = staticmethod(_cpu_float32.value)
    value_sum = staticmethod(_cpu_float32.value_sum)
    gradient = staticmethod(_cpu_float32.gradient)


class _Traced(Way):
    """The operators, in the graphs of compilers. No rule is left out: the tensors are not plain."""

    recomputes = True
    value = staticmethod(_operators.value)
    value_sum = staticmethod(_operators.value_sum)
    gradient = staticmethod(_operators.gradient)


class Triton(_Plain):
    """The kernels in Triton, of float32 and the half types on a GPU."""

    recomputes = True

    def __init__(self, launch: Any) -> None:
        self._launch = launch

    def value(self, mu: Tensor, log_sigma2: Tensor, sign: float = 1.0) -> Tensor:  # type: ignore[override]
        return signed(self._launch.value(mu, log_sigma2), sign)

    def value_sum(self, mu: Tensor, log_sigma2: Tensor, sign: float = 1.0) -> Tensor:  # type: ignore[override]
        return signed(self._launch.value_sum(mu, log_sigma2), sign)

    def gradient(  # type: ignore[override]
        self, grad_output: Tensor, mu: Tensor, log_sigma2: Tensor, sign: float = 1.0
    ) -> tuple[Tensor, Tensor]:
        found: tuple[Tensor, Tensor] = self._launch.gradient(
            signed(grad_output, sign), mu, log_sigma2
        )
        return found

    def of_log_alpha(self, x: Tensor, order: int, sign: float = 1.0) -> Tensor:  # type: ignore[override]
        if order < 3:
            return signed(self._launch.unary(order, x), sign)
        return _composite.of_log_alpha(x, order, sign)

    def sum_of_log_alpha(self, x: Tensor, sign: float = 1.0) -> Tensor:  # type: ignore[override]
        total = self._launch.unary(0, working(x)).sum(dtype=torch.float64)
        return signed(total, sign).to(torch.float32)


class _Sharded(Way):
    """The operations of another way, each on the local tensors of DTensors."""

    def __init__(self, way: Way) -> None:
        self.recomputes = way.recomputes
        for name in (
            *("of_log_alpha", "sum_of_log_alpha", "value", "value_sum"),
            *("with_gradients", "sum_with_gradients", "gradient", "higher"),
        ):
            setattr(self, name, on_shards(getattr(way, name)))


_COMPOSITE, _PLAIN, _CPU, _CPU_FLOAT32 = Way(), _Plain(), _Cpu(), _CpuFloat32()
_TRACED = _Traced()
_on_shards_by = cache(_Sharded)


def of(*tensors: Tensor) -> Way:
    """Choose the way for these tensors, all of one shape, except for numbers of no dimensions."""
    if _cpu.takes(*tensors):
        return _CPU_FLOAT32 if _cpu_float32.available(tensors[-1]) else _CPU
    if len(tensors) > 1 and _traced.takes(*tensors):
        return _TRACED
    if (triton := _triton_for(*tensors)) is not None:
        return triton
    if sharded_alike(*tensors):
        return _on_shards_by(of(*[x.to_local() for x in tensors]))  # type: ignore[attr-defined]
    return _PLAIN if plain(*tensors) else _COMPOSITE


def before_rules(*tensors: Tensor) -> Way | None:
    """Choose the way before a rule is applied; None where the forward must choose.

    Under a transform of `torch.func`, and for a tensor that has escaped from one, the rule passes
    other tensors to its forward than those given here.
    """
    if transformed():
        return None
    way = of(*tensors)
    return None if way is _COMPOSITE else way


def _triton_for(*tensors: Tensor) -> Way | None:
    """Return the way of Triton's kernels, if they serve these tensors."""
    if not all(x.is_cuda for x in tensors) or not plain(*tensors):
        return None
    from ._triton import launch

    return _by_triton() if launch.available(tensors[-1]) else None


@cache
def _by_triton() -> Way:
    from ._triton import launch

    return Triton(launch)
