"""In what state a module ran in an activation checkpoint, for its second run in the backward pass.

A context such as `sampled` may begin or end between the two runs. PyTorch restores its generators,
but it does not know our contexts.
"""

# mypy: allow-untyped-calls, no-warn-return-any
from __future__ import annotations

import sys
from collections.abc import Iterator
from functools import cache
from types import FrameType
from typing import Any

import torch
from torch import is_inference_mode_enabled
from torch._C import _current_graph_task_id, _is_fwd_grad_enabled
from torch._C._autograd import (
    _pop_saved_tensors_default_hooks,
    _push_saved_tensors_default_hooks,
    _top_saved_tensors_default_hooks,
)
from torch.autograd.function import BackwardCFunction
from torch.compiler import is_compiling

from ....torch._internals import PLAIN_TYPES, called_by_compiler, transformed
from .mask import Mask

Tensor = torch.Tensor

# For each kind of a frame in torch.utils.checkpoint: its variable that lives as long as the graph,
# and whether the frame computes the outputs again.
_FRAMES = {
    "forward": ("ctx", False),
    "backward": ("ctx", True),
    "checkpoint": ("gen", False),
    "unpack_hook": ("frame", True),
}

_FUNCTIONS = (torch.autograd.Function.apply.__code__, BackwardCFunction.apply.__code__)

_ITS_OWN = ("torch.utils.checkpoint", "torch._")
"""Where PyTorch has Functions of its own, such as those of compiled graphs."""

OPENED: list[bool] = []
"""Not empty once the process has opened a context. Until then, second runs need no check."""


class _FirstRun:
    """What a module found when it ran in a checkpoint for the first time."""

    def __init__(self) -> None:
        self.noise: list[Any] = []
        self.mask: Mask | None = None


PLAIN_NOISE = (False, None)
USED_AGAIN = (
    "{} was drawn in this call before a torch.utils.checkpoint or an autograd Function that uses "
    "it, too, and whose second run would draw another sample: run all that uses it in one "
    "checkpoint, or call the model and backward() within logunif_kl.torch.nn.sampled(model)"
)
_OTHER_NOISE = (
    "the backward pass runs a {} again, for torch.utils.checkpoint, but its noise is not that of "
    "the first run, because a context of sampled or sampling began or ended meanwhile, or drew "
    "other numbers from a generator: call backward() within the same context as the model, and "
    "begin sampled(model, generator) outside of the checkpoint"
)


def backward_pass() -> list[int] | None:
    """Return the number of the backward pass that runs the caller, if one does.

    A list, because with dynamic=True torch.compile loses changes of numbers at graph breaks. In
    compiled code the result is None, because a graph may run in any pass.
    """
    if is_compiling():
        return None
    run = _current_graph_task_id()
    return [] if run == -1 else [run]


def may_run_again() -> bool:
    """Whether the caller may run again for a checkpoint."""
    return bool(backward_pass())


def may_be_checkpointed() -> bool:
    """Whether the caller may run in a checkpoint, or again for one."""
    if is_compiling():
        return False
    if _current_graph_task_id() != -1:
        return True
    if _top_saved_tensors_default_hooks(True) is not None:
        return True
    # Within the forward of an autograd Function, and so of a reentrant checkpoint, the forward mode
    # is off. It is on within `no_grad`.
    return not _is_fwd_grad_enabled() and not is_inference_mode_enabled()


def in_checkpoint() -> bool:
    """Whether the caller runs in a checkpoint, or again for one."""
    return bool(regions())


def regions() -> list[Any]:
    """Return a mark of each checkpoint in which the caller runs, or runs again."""
    return [_mark(region) for _, region in checkpoints()] if may_be_checkpointed() else []


def _mark(region: Any) -> Any:
    # Not the region itself, which holds the samples of its second run.
    if not hasattr(region, "_lk_mark"):
        region._lk_mark = object()
    return region._lk_mark


def _is_of_function(region: Any) -> bool:
    name = type(region).__name__
    return isinstance(region, BackwardCFunction) and name != "CheckpointFunctionBackward"


def begin_part(depth: int) -> None:
    """Note that a part is called within a call of the network, `depth` calls deep.

    An autograd Function gets another mark for each part that it calls itself, because in its second
    run each of these draws by itself.
    """
    for _, region in checkpoints():
        if _is_of_function(region):
            if not hasattr(region, "_lk_depth"):
                region._lk_depth = depth
            if region._lk_depth == depth:
                region._lk_mark = object()


def as_before(module: Any, noise: tuple[Any, ...], mask: Mask | None) -> Mask | None:
    """Keep the state of a call for a second run, or compare it with that of the first run.

    `noise` says which noise the call draws: `PLAIN_NOISE` if no context changes it. Return the mask
    of the first run.
    """
    found = [*checkpoints()]
    again = next((region for repeated, region in found if repeated), None)
    if again is not None:
        before = getattr(again, "_lk_first", {}).get(module) or _FirstRun()
        if noise not in (before.noise or [PLAIN_NOISE]):
            raise RuntimeError(_OTHER_NOISE.format(type(module).__name__))
        mask = before.mask if mask is None else mask
    if mask is not None or noise != PLAIN_NOISE:
        for _, region in found:
            if not hasattr(region, "_lk_first"):
                region._lk_first = {}
            kept = region._lk_first.setdefault(module, _FirstRun())
            kept.noise.append(noise)
            kept.mask = mask
    return mask


def share_samples(draws: Any) -> list[Any]:
    """Return the marks of the caller's checkpoints, after noting those that began within its call.

    In the second run of these the call has ended, so that each call of a part would be an outermost
    one, with samples of its own, where the first run had the same samples for all.
    """
    found = [region for _, region in checkpoints()]
    for region in found:
        if not _is_of_function(region) and not any(region is each for each in draws.own.began):
            if not hasattr(region, "_lk_samples"):
                region._lk_samples = {}
            region._lk_samples.setdefault(draws, {})
    return [*map(_mark, found)]


def samples_again(draws: Any) -> tuple[dict[Any, Any], list[Any]]:
    """Return the samples that an outermost call begins with, and the checkpoints around it.

    In the second run of a checkpoint that began within the call, these are the samples that other
    calls have drawn in this run.
    """
    found = [*checkpoints()] if may_be_checkpointed() else []
    samples = _samples_of(found, draws)
    return ({}, [region for _, region in found]) if samples is None else (samples, [])


def samples_of_run(draws: Any) -> dict[Any, Any] | None:
    """Return the samples of a checkpoint that runs again and began within a call, or None.

    None also for hooks in the backward pass of a reentrant checkpoint, after its second run.
    """
    frame: FrameType | None = sys._getframe(1) if may_run_again() else None
    while frame is not None and frame.f_code.co_name != "_engine_run_backward":
        _, repeats = _FRAMES.get(frame.f_code.co_name, ("", False))
        if repeats and _name(frame) == "torch.utils.checkpoint":
            return _samples_of([*checkpoints()], draws)
        frame = frame.f_back
    return None


def _samples_of(found: list[Any], draws: Any) -> dict[Any, Any] | None:
    if not found or not found[-1][0]:
        return None
    samples = getattr(found[-1][1], "_lk_samples", {}).get(draws)
    if samples is None:
        return None
    run = _current_graph_task_id()
    if run not in samples:
        samples.clear()
        samples[run] = {}
    return samples[run]  # type: ignore[no-any-return]


def watch(noise: Tensor | None) -> None:
    """Let a graph of the compiler check whenever it runs that a checkpoint runs it in one context.

    `noise` is what `sampled` keeps, if the context is one of `sampled`.
    """
    if _is_first():
        # PyTorch has no rule for an operator of a DTensor.
        plain = noise is None or type(noise) in PLAIN_TYPES
        torch.ops.logunif_kl_nn.watch(noise if plain else None)


@called_by_compiler
def _is_first() -> bool:
    """Whether a graph has no such check yet. Register the operator.

    False too if the program may run elsewhere, or in a transform.
    """
    from torch._guards import TracingContext

    _operator()
    graph: Any = TracingContext.try_get()
    if torch.compiler.is_exporting() or transformed() or hasattr(graph, "_lk_watched"):
        return False
    graph._lk_watched = True
    return True


@cache
def _operator() -> Any:
    made = torch.library.Library("logunif_kl_nn", "FRAGMENT")
    made.define("watch(Tensor? noise) -> ()", tags=(torch.Tag.pt2_compliant_tag,))
    made.impl("watch", _watched, "CompositeExplicitAutograd")
    made.impl("watch", lambda noise: None, "Meta")
    torch.fx.node.has_side_effect(torch.ops.logunif_kl_nn.watch.default)
    return made


def _watched(noise: Tensor | None) -> None:
    if not may_be_checkpointed():
        return
    for repeated, region in checkpoints():
        if isinstance(region, BackwardCFunction):
            raise RuntimeError(
                "a compiled part of the model was called in torch.utils.checkpoint with "
                "use_reentrant=True, or in an autograd Function, within sampled, sampling or "
                "ELBO(mask_from=), so its second run might draw other noise: pass "
                "use_reentrant=False, or compile the whole model"
            )
        # The region keeps the noise, so that no other noise gets its address.
        before = region.__dict__.setdefault("_lk_kept", {})
        own = None if noise is None else noise.data_ptr()
        if repeated and own not in before:
            raise RuntimeError(_OTHER_NOISE.format("compiled part of the model"))
        before[own] = noise


def checkpoints() -> Iterator[tuple[bool, Any]]:
    """Yield (whether it runs again, object) for the checkpoints of the caller, from inside out.

    The last one is the first that runs again: what lies outside of it asked for the second run.
    The object lives as long as the graph of the checkpoint. An autograd Function is one too: those
    of reversible networks compute their outputs again.
    """
    frame: FrameType | None = sys._getframe(1)
    inner: FrameType | None = None
    hooked = _hooked()
    yield from ((False, found) for found in hooked)
    while frame is not None:
        code = frame.f_code
        of_function = code is _FUNCTIONS[0] or code is _FUNCTIONS[1]
        if of_function and inner is not None and not _name(inner).startswith(_ITS_OWN):
            found, again = _context(frame, inner), "self" in frame.f_locals
            # Without a record, the forward pass ran nothing of ours, or had no `ctx` for it.
            if found is not None and (not again or _is_recorded(found)):
                yield again, found
                if again:
                    return
        if _name(frame) == "torch.utils.checkpoint":
            name, repeated = _FRAMES.get(frame.f_code.co_name, ("", False))
            found = frame.f_locals.get(name)
            if name == "gen" and found is not None:
                found = found.gi_frame.f_locals.get("new_frame")
            if found is not None and (repeated or all(found is not each for each in hooked)):
                yield repeated, found
                if repeated:
                    return
        inner, frame = frame, frame.f_back


def _hooked() -> list[Any]:
    """Return the checkpoints of the caller that hooks of saved tensors show to be in a first run.

    PyTorch's composable checkpoints have no function of `torch.utils.checkpoint` around it.
    """
    given: list[Any] = []
    found: list[Any] = []
    while True:
        hooks: Any = _top_saved_tensors_default_hooks(True)
        if hooks is None:
            break
        given.append(hooks)
        _pop_saved_tensors_default_hooks()
    for hooks in given[::-1]:
        _push_saved_tensors_default_hooks(*hooks)
    for pack, _ in given:
        if getattr(pack, "__module__", None) == "torch.utils.checkpoint":
            variables = pack.__code__.co_freevars
            if "frame" not in variables:
                break  # a second run, for which what lies outside of it asked
            found.append(pack.__closure__[variables.index("frame")].cell_contents)
    return found


def _is_recorded(found: BackwardCFunction) -> bool:
    return any(hasattr(found, name) for name in ("_lk_first", "_lk_mark", "_lk_states"))


def _name(frame: FrameType) -> str:
    return str(frame.f_globals.get("__name__"))


def _context(frame: FrameType, inner: FrameType) -> BackwardCFunction | None:
    """Return the `ctx` of an autograd Function whose method runs in the frame `inner`."""
    found = frame.f_locals.get("self")
    if found is None and inner.f_code.co_varnames:
        found = inner.f_locals.get(inner.f_code.co_varnames[0])
        found = found[0] if isinstance(found, tuple) and found else found  # of a decorator
    return found if isinstance(found, BackwardCFunction) else None
