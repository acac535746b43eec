"""Draw normal noise on any device, with or without a generator, for DTensors and compilers."""

# mypy: allow-untyped-calls, no-warn-return-any
from __future__ import annotations

import copy
import sys
from collections.abc import Sequence
from functools import cache
from itertools import count
from threading import get_ident
from typing import Any, NoReturn
from weakref import WeakValueDictionary

import torch
from torch.nn.utils import parametrize

from ....torch._internals import batched, called_by_compiler, concrete, transformed
from ..hooks import own_parameter
from .generators import check_restored
from .mask import Mask
from .recomputation import (
    OPENED,
    as_before,
    may_be_checkpointed,
    may_run_again,
    watch,
)

Tensor = torch.Tensor


_CONTEXTS = ("_lk_sampling", "_lk_kept", "_lk_masks")


COMPUTED = "_lk_computed"
"""The attribute for a weight that hooks compute, which others would read without noise in `weight`.
"""


class StochasticModule(torch.nn.Module):
    """A module that draws noise in training mode, and in evaluation mode within `sampling`."""

    _lk_sampling: int = 0
    """The number of open `sampling` contexts of this module, in all threads."""
    _lk_kept: Any = None
    """The `KeptNoise` of the weights within `sampled`, or None."""
    _lk_masks: tuple[Mask, ...] = ()
    """The masks of the runs of `ELBO(mask_from=)`, in all threads."""
    _lk_plain: type[torch.nn.Module]
    """The class of torch that computes the same without noise. Subclasses of users have none."""
    _lk_own: tuple[str, ...] = ("generator",)
    """The attributes that a plain module does not have."""
    generator: torch.Generator | None

    def _lk_become_plain(self) -> None:
        """Make the module one of its plain class."""
        for name in (*self._lk_own, *_CONTEXTS):
            self.__dict__.pop(name, None)
        self.__class__ = self._lk_plain  # type: ignore[assignment]

    @property
    def _lk_generator(self) -> torch.Generator | None:
        return self.generator

    def __getstate__(self) -> Any:
        """Return the state without contexts, which other threads may change meanwhile."""
        state = super().__getstate__()
        if not isinstance(state, dict):
            return state  # of a user's class
        return {k: x for k, x in state.items() if k not in _CONTEXTS}

    def __setstate__(self, state: dict[str, Any]) -> None:
        """Restore the module, but not its contexts, which do not hold for a copy."""
        super().__setstate__({k: x for k, x in state.items() if k not in _CONTEXTS})

    def __deepcopy__(self, memo: dict[int, Any]) -> Any:
        """Copy the module without its contexts, also one with parametrizations.

        PyTorch gives these a `__deepcopy__` that keeps them, unless there is one.
        """
        theirs = getattr(super(), "__deepcopy__", None)  # of a user's class
        if theirs is not None:
            return theirs(memo)
        if parametrize.is_parametrized(self):
            copied, state = self.__new__(type(self)), self.__dict__.copy()
            memo[id(self)] = copied
            kept = {k: x for k, x in state.items() if k not in _CONTEXTS}
            copied.__dict__.update(copy.deepcopy(kept, memo))
            return copied
        made: Any = self.__reduce_ex__(4)
        copied = made[0](*made[1])
        memo[id(self)] = copied
        copied.__setstate__(copy.deepcopy(made[2], memo))
        return copied

    def __prepare_scriptable__(self) -> NoReturn:
        """Raise for `torch.jit.script`, which calls this before it reads the code."""
        raise RuntimeError(
            f"torch.jit.script cannot compile {type(self).__name__}: use torch.export, "
            "torch.compile or torch.jit.trace"
        )

    def _lk_initial_values(self) -> dict[str, float]:
        """Return the values that the parameters of the noise have at first, by their names."""
        return {}

    def _lk_reset_variances(self, unless_loaded: bool = False) -> None:
        with torch.no_grad():
            for name, value in self._lk_initial_values().items():
                own = own_parameter(self, name)
                if own is None or (unless_loaded and getattr(own, "_is_hf_initialized", False)):
                    continue
                own.fill_(value)

    @property
    def _is_hf_initialized(self) -> bool:
        """Whether Hugging Face has initialised the parameters that `from_pretrained` did not load.

        It initialises those of torch's layers, and then sets this attribute. If only the parameters
        of the noise are missing, initialise them here: the user's `_init_weights` might write into
        the means that were loaded.
        """
        found = bool(self.__dict__.get("_is_hf_initialized", False))
        if found or sys._getframe(1).f_code.co_name != "_initialize_weights":
            return found
        own = self._lk_initial_values()
        others = [p for k, p in self._parameters.items() if k not in own and p is not None]
        found = bool(own) and all(getattr(p, "_is_hf_initialized", False) for p in others)
        self._is_hf_initialized = found
        return found

    @_is_hf_initialized.setter
    def _is_hf_initialized(self, value: bool) -> None:
        self.__dict__["_is_hf_initialized"] = value
        frame: Any = sys._getframe(1)
        while frame is not None and frame.f_code.co_name in ("__setattr__", "_is_hf_initialized"):
            frame = frame.f_back
        if value and frame is not None and frame.f_code.co_name == "_initialize_weights":
            self._lk_reset_variances(unless_loaded=True)

    @property
    def _lk_stored(self) -> Tensor:
        """`weight`, for this package: `VariationalLayer` watches who reads the attribute."""
        own: Any = self
        found: Any = self._parameters.get("weight")
        found = self.__dict__.get(COMPUTED) if found is None else found
        return own.weight if found is None else found

    def _lk_mask(self) -> Mask | None:
        """Return the mask of this call. Raise if the call repeats another one with other noise."""
        if not OPENED:
            return None
        masks = self._lk_masks
        if torch.compiler.is_compiling():
            kept: Any = self._lk_kept
            if masks or (self._lk_sampling and kept is None):
                watch(None)
            return masks[-1] if masks else None
        if not masks and not (may_be_checkpointed() if self._lk_sampling else may_run_again()):
            return None
        mask = next((m for m in masks[::-1] if m.thread in (0, get_ident())), None)
        if may_be_checkpointed():
            kept = self._lk_kept
            if kept is not None and kept.in_checkpoint:
                if not kept.drawn:
                    return mask
                kept = kept.numbers()  # The second run opens another context.
            return as_before(self, (self._lk_sampling > 0 and not self.training, kept), mask)
        if masks and mask is None:
            raise RuntimeError(
                f"a {type(self).__name__} was called while ELBO(mask_from=...) runs it in another "
                "thread: call the model in the same thread, or copy it for the other thread"
            )
        return mask

    @property
    def _lk_draws(self) -> bool:
        return self.training or self._lk_sampling > 0

    def _lk_normals(self, shape: Sequence[int], like: Tensor, name: str = "weight") -> Tensor:
        """Draw noise for a weight, or return the noise that is kept for it."""
        if self._lk_kept is None:
            return self._lk_own_normals(like, shape)
        return self._lk_kept.of(self, name, shape, like)

    def _lk_own_normals(self, like: Tensor, shape: Sequence[int] | None = None) -> Tensor:
        """Draw noise that no context keeps."""
        check_restored(self._lk_generator, like)
        return normals(like.shape if shape is None else shape, like, self._lk_generator)


def own_generator(module: torch.nn.Module) -> Any:
    """Return the generator of a module of this library, or of a user's module that has one."""
    if isinstance(module, StochasticModule):
        return module._lk_generator
    return getattr(module, "generator", None)


def normals(shape: Sequence[int], like: Tensor, generator: torch.Generator | None) -> Tensor:
    """Draw standard normal noise of a shape, with the dtype and device of the tensor `like`.

    The result is a new tensor, which the caller may change in place.
    """
    device = like.device
    if device.type == "meta":
        # Tensors on this device have shapes but no values, so there is nothing to draw.
        generator = None
    if generator is not None:
        _check(generator, device)
        if _batched():
            raise RuntimeError(
                "a layer with a generator was called under torch.func.vmap, whose randomness= does "
                "not hold for a torch.Generator: set the layer's generator to None and call "
                "torch.manual_seed"
            )
    if type(like) is not Tensor and hasattr(like, "placements"):
        return _distributed(shape, like, generator)
    if generator is not None and torch.compiler.is_exporting():
        raise ValueError(
            "generator= was given to a layer, but an exported program cannot hold a "
            "torch.Generator: export the model in evaluation mode, or set the layer's generator "
            "to None"
        )
    if generator is not None and torch.compiler.is_compiling():
        # A compiled graph cannot hold a generator, but it can hold a number that identifies one.
        number, call = _number(generator)
        return torch.ops.logunif_kl_nn.normals(like.detach(), shape, number, call)
    if torch.compiler.is_compiling() and _by_the_operator(like):
        # Call PyTorch's normal_, because the compiler's own randn is ten times as slow. Each draw
        # gets its own empty tensor, because the compiler merges equal constants.
        return torch.empty(shape, dtype=like.dtype, device=device).normal_()
    # Do not pass generator=None: overloads with a generator argument refuse symbolic sizes.
    drawn_by: dict[str, Any] = {} if generator is None else {"generator": generator}
    if tuple(shape) == tuple(like.shape):
        # Keep the memory format of `like`, such as channels_last.
        if _drawn_one_by_one(like):
            noise = torch.randn(like.numel(), dtype=like.dtype, device=device, **drawn_by)
            return noise.as_strided(like.shape, torch.empty_like(like).stride())
        return torch.randn_like(like, **drawn_by)
    return torch.randn(shape, dtype=like.dtype, device=device, **drawn_by)


def _drawn_one_by_one(like: Tensor) -> bool:
    """Whether PyTorch would draw one number at a time, which takes several times as long.

    PyTorch does so on a CPU for a tensor that is not contiguous.
    """
    return (
        like.device.type == "cpu"
        and not like.is_contiguous()
        and not torch.compiler.is_compiling()
        and not transformed()
        and concrete(like)
    )


def _check(generator: torch.Generator, device: torch.device) -> None:
    if generator.device.type != device.type:
        raise RuntimeError(
            f"generator is on {generator.device.type} and the layer on {device.type}: pass "
            f"torch.Generator({device.type!r})"
        )


def _distributed(shape: Sequence[int], like: Any, generator: torch.Generator | None) -> Tensor:
    """Draw the same noise as a single process would, as a DTensor.

    On a GPU and without a generator, PyTorch does so itself. Otherwise, processes with equal seeds
    would draw the same noise for different shards, so each draws all noise and keeps its shard.
    Replicated noise is that of the first process, because another one may have another seed, or may
    have drawn more numbers.
    """
    from torch.distributed import _functional_collectives as functional
    from torch.distributed.tensor import Replicate, distribute_tensor

    alike = tuple(shape) == tuple(like.shape)
    placements = [p if alike and not p.is_partial() else Replicate() for p in like.placements]
    if alike and generator is None and like.device.type != "cpu":
        return torch.randn_like(like.redistribute(placements=placements))
    every = torch.randn(shape, generator=generator, dtype=like.dtype, device=like.device)
    mesh = like.device_mesh
    for at, placement in enumerate(placements):
        if placement.is_replicate() and mesh.size(at) > 1:
            every = functional.wait_tensor(functional.broadcast(every, 0, (mesh, at)))
    return distribute_tensor(every, mesh, placements, src_data_rank=None)


_numbered: WeakValueDictionary[int, torch.Generator] = WeakValueDictionary()
_calls = count()


# A graph can hold the numbers as constants, because another generator needs another trace.
@called_by_compiler
def _number(generator: torch.Generator) -> tuple[int, int]:
    """Return a number that identifies the generator, and a number that is new in each call.

    Without the new number, the compiler would merge calls with the same arguments into one call.
    """
    _operator()
    _numbered[id(generator)] = generator
    return id(generator), next(_calls)


def _by_the_operator(like: Tensor) -> bool:
    """Whether a compiled graph may draw noise by `normal_` on an empty tensor.

    In a transform of `torch.func` the empty tensor would not be batched. If `like` is not
    contiguous, the empty tensor would not have its memory format.
    """
    return like.device.type == "cpu" and like.is_contiguous() and not _transformed()


@called_by_compiler
def _transformed() -> bool:
    return transformed()


@called_by_compiler
def _batched() -> bool:
    return batched()


@cache
def _operator() -> Any:
    """Register the operator ``logunif_kl_nn::normals`` in a library, and return the library."""
    made = torch.library.Library("logunif_kl_nn", "FRAGMENT")
    made.define(
        "normals(Tensor like, SymInt[] shape, int generator, int call) -> Tensor",
        tags=(torch.Tag.nondeterministic_seeded, torch.Tag.pt2_compliant_tag),
    )
    made.impl("normals", _drawn, "CompositeExplicitAutograd")
    made.impl("normals", lambda like, shape, generator, call: like.new_empty(shape), "Meta")
    return made


def _drawn(like: Tensor, shape: Sequence[int], number: int, call: int) -> Tensor:
    generator = _numbered[number]
    return torch.randn(shape, generator=generator, dtype=like.dtype, device=like.device)
