"""Noise in evaluation mode: `sampling` for users, and the contexts in which `predict` runs.

`torch.nn.Dropout` and similar modules draw only in training mode, from the device's global
generator. Modules of this library can also draw in evaluation mode, and can own a generator.
"""

# mypy: allow-untyped-calls, no-warn-return-any
from __future__ import annotations

import os
from collections.abc import Iterator
from contextlib import ExitStack, contextmanager, nullcontext
from threading import RLock
from typing import Any

import torch

from ...._errors import shown
from ..arguments import check_module
from ..noise.normal import StochasticModule, own_generator
from ..noise.recomputation import OPENED
from ..weights.models import kind_name
from ..weights.sampled import SampledModule
from .inputs import tensors

DROPOUTS = (
    torch.nn.Dropout,
    torch.nn.Dropout1d,
    torch.nn.Dropout2d,
    torch.nn.Dropout3d,
    torch.nn.AlphaDropout,
    torch.nn.FeatureAlphaDropout,
)
# In these modules, training mode affects only the dropout.
_WITH_RATE = (torch.nn.MultiheadAttention, torch.nn.RNNBase)


@contextmanager
def sampling(model: torch.nn.Module) -> Iterator[None]:
    """Let a model draw its noise in evaluation mode too, within a ``with`` statement.

    Other modules (batch normalisation, binary dropout) stay in their mode. The context holds in all
    threads, but not for copies of the model. If the model runs in a checkpoint, call ``backward``
    within the context, too: afterwards it raises RuntimeError. If contexts overlap, the last one to
    end stops the noise. A context disables the fast path of `torch.nn.TransformerEncoder` for the
    process (`torch.backends.mha`), because the fast path reads the weights of layers instead of
    calling the layers. `torch.compile` cannot trace this change: call a compiled model within the
    context, and do not compile a function that opens the context.

    Parameters
    ----------
    model : torch.nn.Module
        A model with variational layers, `GaussianDropoutA` or `GaussianDropoutLinear`.

    Raises
    ------
    TypeError
        If `model` is not a module.
    ValueError
        If `model` has no such layers.

    Examples
    --------
    >>> import torch
    >>> from logunif_kl.torch import nn
    >>> layer = nn.VariationalLinear(3, 1, posterior=nn.Additive(initial=0.0)).eval()
    >>> x = torch.ones(1, 3)
    >>> bool(layer(x) == layer(x))
    True
    >>> with nn.sampling(layer):
    ...     bool(layer(x) == layer(x))
    False
    """
    found = [m for m in check_module(model).modules() if isinstance(m, StochasticModule)]
    if not found:
        raise ValueError(
            f"a {kind_name(model)} was given in which no layer of this library draws noise: pass a "
            "model with variational layers, or use predict if it has dropout of torch"
        )
    _count(found, 1)
    try:
        with without_fast_path():
            yield
    finally:
        # Within the context, `to_deterministic` may have made some layers plain.
        _count([module for module in found if isinstance(module, StochasticModule)], -1)


# While it is held, the garbage collector may end a context of a generator in the same thread.
_lock = RLock()
_seeding = RLock()
"""Held while a call has seeded the global generator."""


def _renew_locks() -> None:
    """Forget the locks in a forked process, in which no thread would release them."""
    global _lock, _seeding
    _lock, _seeding = RLock(), RLock()


if hasattr(os, "register_at_fork"):
    os.register_at_fork(after_in_child=_renew_locks)


def changing() -> Any:
    """Return a context in which no other thread counts contexts."""
    if not OPENED:
        OPENED.append(True)
    return nullcontext() if torch.compiler.is_compiling() else _lock


def _count(modules: list[StochasticModule], step: int) -> None:
    with changing():
        for module in modules:
            module._lk_sampling += step


_assigned: dict[tuple[int, str], list[tuple[Any, Any]]] = {}
"""For each module and attribute: the user's value, and that of each open context."""


@contextmanager
def assigned(attribute: str, values: list[tuple[torch.nn.Module, Any]]) -> Iterator[None]:
    """Assign an attribute of modules. Contexts may end in another order than they began.

    The context that began last holds. Each one removes its own value when it ends.
    """
    own = object()
    with changing():
        # Read all before one changes: the wrapper of torch.compile has the mode of its module.
        for module, _ in values:
            users = [(None, getattr(module, attribute))]
            _assigned.setdefault((id(module), attribute), users)
        for module, value in values:
            _assigned[id(module), attribute].append((own, value))
            setattr(module, attribute, value)
    try:
        yield
    finally:
        with changing():
            for module, _ in values:
                key = id(module), attribute
                given = _assigned[key]
                del given[next(at for at, (context, _) in enumerate(given) if context is own)]
                if len(given) == 1:
                    _assigned.pop(key, None)
                # Within the context, `to_deterministic` may have made the module plain.
                if hasattr(module, attribute):
                    setattr(module, attribute, given[-1][1])


_fast_path: list[bool] = []
"""For each open context, the setting of the fast path when the context began."""


@contextmanager
def without_fast_path() -> Iterator[None]:
    """Make `torch.nn.TransformerEncoderLayer` call its layers, so that they draw noise.

    In evaluation mode, its fast path would read the weights of the layers without calling them.
    """
    mha = torch.backends.mha
    if torch.compiler.is_compiling():
        # A compiler refuses to trace a call that sets the fast path.
        yield
        return
    with _lock:
        _fast_path.append(mha.get_fastpath_enabled())
        mha.set_fastpath_enabled(False)
    try:
        yield
    finally:
        with _lock:
            # The first context saved the user's setting. The last one to end restores it.
            last = _fast_path.pop()
            if not _fast_path:
                mha.set_fastpath_enabled(last)


def check_kinds(modules: Any) -> tuple[type, ...]:
    found = modules if isinstance(modules, tuple) else (modules,)
    if not all(isinstance(kind, type) for kind in found):
        raise TypeError(
            f"modules must be a type or a tuple of types, but {shown(modules)} was given: pass "
            "type(module)"
        )
    return found


def noisy(model: torch.nn.Module, more: tuple[type, ...]) -> list[torch.nn.Module]:
    """List the modules that draw noise, in training mode or within `sampling`."""
    found = [
        m for m in model.modules() if isinstance(m, StochasticModule) or _draws_in_training(m, more)
    ]
    if not found:
        raise ValueError(
            f"a {kind_name(model)} was given in which no layer draws noise: pass a model with "
            "dropout, or pass the types of modules that draw noise as modules="
        )
    if any(isinstance(m, StochasticModule) and m._lk_kept is not None for m in found):
        raise RuntimeError(
            "predict was called within sampled(model), which keeps one sample of the weights, so "
            "all samples would be equal: call predict outside of that context"
        )
    return found


@contextmanager
def drawing(
    model: torch.nn.Module, found: list[torch.nn.Module], more: tuple[type, ...]
) -> Iterator[None]:
    """Make the modules in `found` draw noise, and put all others into evaluation mode."""
    ours = any(isinstance(module, StochasticModule) for module in found)
    training = [
        module
        for module in found
        if not isinstance(module, StochasticModule)
        or (isinstance(module, SampledModule) and _draws_in_training(module, more))
    ]
    with in_training(model, training), sampling(model) if ours else without_fast_path():
        yield


@contextmanager
def in_training(model: torch.nn.Module, chosen: list[torch.nn.Module]) -> Iterator[None]:
    """Put only the chosen modules into training mode, and restore all modes at the end.

    The modes are set one by one, because a user-defined ``train`` method may skip modules.
    """
    training = {id(module) for module in chosen}
    with assigned("training", [(each, id(each) in training) for each in model.modules()]):
        yield


def _draws_in_training(module: torch.nn.Module, more: tuple[type, ...]) -> bool:
    if isinstance(module, _WITH_RATE):
        return module.dropout > 0.0 or isinstance(module, more)
    return isinstance(module, (*DROPOUTS, *more))


@contextmanager
def drawn_by(generator: torch.Generator | None, model: torch.nn.Module, x: Any) -> Iterator[None]:
    """Make all noise of a model depend only on `generator`. If it is None, change nothing.

    `generator` seeds the global and the modules' own generators, which are restored afterwards.
    Calls in several threads wait for one another.
    """
    if generator is None:
        yield
        return
    if _is_global(generator):
        # Draw a seed before the global state is saved, so that the next call draws other noise.
        seed = _seed(generator)
        generator = torch.Generator(generator.device).manual_seed(seed)
    with _seeding, ExitStack() as stack:
        _seed_global(stack, generator, _accelerators(model, x))
        own = (own_generator(module) for module in model.modules())
        for each in {id(g): g for g in own if isinstance(g, torch.Generator)}.values():
            # Do not restore the caller's generator, so that the next call draws other noise.
            if each is not generator:
                stack.callback(each.set_state, each.get_state())
                each.manual_seed(_seed(generator))
        yield


def _is_global(generator: torch.Generator) -> bool:
    return any(
        generator is each for each in (torch.default_generator, *torch.cuda.default_generators)
    )


def _seed(generator: torch.Generator) -> int:
    return int(torch.randint(2**62, (), generator=generator, device=generator.device))


def _accelerators(model: torch.nn.Module, x: Any) -> set[str]:
    found = [*model.parameters(), *model.buffers(), *tensors(x)]
    return {each.device.type for each in found} - {"cpu", "meta"}


def _seed_global(stack: ExitStack, generator: torch.Generator, types: set[str]) -> None:
    stack.enter_context(torch.random.fork_rng(devices=[]))
    torch.default_generator.manual_seed(_seed(generator))
    for kind in sorted(types):
        module = torch.get_device_module(kind)
        devices = range(module.device_count())
        stack.enter_context(torch.random.fork_rng(devices=devices, device_type=kind))
        getattr(module, "manual_seed_all", module.manual_seed)(_seed(generator))
