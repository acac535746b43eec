"""Choose the backend for the given tensors: the code that computes their -KL and its derivatives.

Each forward pass and each backward pass chooses a backend once.
"""

from __future__ import annotations

from functools import cache

import torch

from . import _cpu, _cpu_float32, _operators
from ._composite import Composite, Recomputed
from ._cpu import Cpu
from ._cpu_float32 import CpuFloat32
from ._internals import being_compiled, plain, pushed
from ._namespace import working
from ._operators import Operators
from ._sharded import distributed, on_shards
from ._triton import launch

Tensor = torch.Tensor


class _Plain(Composite):
    """The composite backend for plain tensors (see `_internals.plain`) that no kernel takes."""

    plain = True


class Triton(_Plain):
    """The backend that calls the Triton kernels, for float32 and the half types on a GPU."""

    recomputes = True

    def value(self, mu: Tensor, log_sigma2: Tensor) -> Tensor:
        return launch.value(mu, log_sigma2)

    def value_sum(self, mu: Tensor, log_sigma2: Tensor) -> Tensor:
        return launch.value_sum(mu, log_sigma2)

    def gradients(self, mu: Tensor, log_sigma2: Tensor) -> tuple[Tensor, Tensor]:
        return launch.gradient(mu.new_ones(()), mu, log_sigma2)

    def gradient(
        self, grad_output: Tensor, mu: Tensor, log_sigma2: Tensor
    ) -> tuple[Tensor, Tensor]:
        return launch.gradient(grad_output, mu, log_sigma2)

    def of_log_alpha(self, x: Tensor, order: int) -> Tensor:
        return launch.unary(order, x) if order < 3 else super().of_log_alpha(x, order)

    def sum_of_log_alpha(self, x: Tensor) -> Tensor:
        return launch.unary(0, working(x)).sum(dtype=torch.float64).to(torch.float32)


class _Sharded(Composite):
    """A backend for DTensors, which calls another backend on their local tensors."""

    def __init__(self, backend: Composite) -> None:
        self.recomputes = backend.recomputes
        for name in (
            *("of_log_alpha", "sum_of_log_alpha", "value", "value_sum", "with_gradients"),
            *("sum_with_gradients", "gradients", "gradient", "higher"),
        ):
            setattr(self, name, on_shards(getattr(backend, name)))


_COMPOSITE, _PLAIN, _CPU, _CPU_FLOAT32 = Composite(), _Plain(), Cpu(), CpuFloat32()
_OPERATORS, _TRITON, _RECOMPUTED = Operators(), Triton(), Recomputed()
_sharded = cache(_Sharded)


def choose(*tensors: Tensor) -> Composite:
    """Choose the backend for these tensors, which are 0-d or have one common shape."""
    if _cpu.takes(*tensors):
        return _CPU_FLOAT32 if _cpu_float32.available(tensors[-1]) else _CPU
    if _operators.takes(*tensors):
        return _OPERATORS
    if being_compiled(*tensors) and _limited_by_bandwidth(*tensors):
        return _RECOMPUTED
    if all(x.is_cuda for x in tensors) and plain(*tensors) and launch.available(tensors[-1]):
        return _TRITON
    if distributed(*tensors):
        return _sharded(choose(*[x.to_local() for x in tensors]))  # type: ignore[attr-defined]
    return _PLAIN if plain(*tensors) else _COMPOSITE


def _limited_by_bandwidth(*tensors: Tensor) -> bool:
    """Whether memory takes longer than arithmetic: not for float64, which few GPUs compute fast."""
    return all(x.is_cuda and x.dtype is not torch.float64 for x in tensors)


def choose_early(*tensors: Tensor) -> Composite | None:
    """Choose the backend before the autograd Function runs, or return None to let forward choose.

    Under a transform of `torch.func`, and for a tensor that has escaped from one, return None,
    because forward gets other tensors than its caller has.
    """
    if pushed(*tensors):
        return None
    backend = choose(*tensors)
    return None if backend is _COMPOSITE else backend
