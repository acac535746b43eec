"""The noise that all weights of a model keep within one context."""

# mypy: allow-untyped-calls
from __future__ import annotations

from collections.abc import Sequence
from contextlib import nullcontext
from typing import Any

import torch

from ....torch._sharded import distributed_as
from .normal import StochasticModule, normals
from .recomputation import in_checkpoint, watch

Tensor = torch.Tensor


class KeptNoise:
    """The noise of a model's weights within one `sampled` context.

    `keys` has the same key for weights that are one parameter, so that they share their noise.
    """

    def __init__(
        self,
        keys: dict[tuple[StochasticModule, str], tuple[int, ...]],
        generator: torch.Generator | None,
    ) -> None:
        self._keys, self._generator = keys, generator
        self.in_checkpoint = in_checkpoint()
        self._found: dict[tuple[tuple[int, ...], tuple[int, ...]], Tensor] = {}
        self._numbers: tuple[float, ...] | None = None
        self.drawn = False
        """Whether the context has drawn all noise."""

    def numbers(self) -> tuple[float, ...]:
        """Return numbers that another draw would change."""
        if self._numbers is None:
            kept: Any = (getattr(x, "_local_tensor", x) for x in self._found.values())
            self._numbers = tuple([float(x.flatten()[0]) for x in kept if x.numel()])
        return self._numbers

    def of(self, module: StochasticModule, name: str, shape: Sequence[int], like: Tensor) -> Tensor:
        # In a trace of torch.jit, the sizes are tensors, which are equal to no others.
        traced = torch.jit.is_tracing()  # type: ignore[attr-defined]
        sizes = map(int, shape) if traced else shape
        key = self._keys[module, name], tuple(sizes)
        if key not in self._found:
            # A tensor that is made in inference mode cannot be used in training later.
            normal = nullcontext() if torch.compiler.is_compiling() else torch.inference_mode(False)
            with normal:
                drawn = normals(shape, like, self._generator or module._lk_generator)
            self._found.setdefault(key, drawn)  # Another thread may have drawn it meanwhile.
        found = self._found[key]
        if torch.compiler.is_compiling() and not self.in_checkpoint:
            watch(found)
        return distributed_as(found, like).to(like.dtype)
