"""Modules that draw noise, of torch and of this library: switched on, and drawn from a generator.

`torch.nn.Dropout` and its kin draw in training mode, from the global generator of the device.
"""

# mypy: allow-untyped-calls, no-warn-return-any
from __future__ import annotations

from collections.abc import Iterator
from contextlib import ExitStack, contextmanager
from typing import Any

import torch

from ..._errors import shown
from ._models import kind_name
from ._noise import Drawing
from ._sampling import sampling, without_fast_path

DROPOUTS = (
    torch.nn.Dropout,
    torch.nn.Dropout1d,
    torch.nn.Dropout2d,
    torch.nn.Dropout3d,
    torch.nn.AlphaDropout,
    torch.nn.FeatureAlphaDropout,
)
# Training changes nothing else in these.
_WITH_RATE = (torch.nn.MultiheadAttention, torch.nn.RNNBase)


def kinds(modules: Any) -> tuple[type, ...]:
    """Return the types of modules that the user names.

    Raises
    ------
    TypeError
        If it is no type or tuple of types.
    """
    found = modules if isinstance(modules, tuple) else (modules,)
    if not all(isinstance(kind, type) for kind in found):
        raise TypeError(
            f"modules must be a type or a tuple of types, but {shown(modules)} was given: pass "
            "type(module)"
        )
    return found


def noisy(model: torch.nn.Module, more: tuple[type, ...]) -> list[torch.nn.Module]:
    """List the modules that draw noise, in training mode or under `sampling`.

    Raises
    ------
    ValueError
        If there are none.
    """
    found = [m for m in model.modules() if isinstance(m, Drawing) or _draws_in_training(m, more)]
    if not found:
        raise ValueError(
            f"a {kind_name(model)} was given in which no layer draws noise: pass a model with "
            "dropout, or the types that draw as modules="
        )
    return found


@contextmanager
def drawing(model: torch.nn.Module, found: list[torch.nn.Module]) -> Iterator[None]:
    """Have the modules that `noisy` found draw, and all others be in evaluation mode."""
    ours = any(isinstance(module, Drawing) for module in found)
    training = [module for module in found if not isinstance(module, Drawing)]
    with in_training(model, training), sampling(model) if ours else without_fast_path():
        yield


@contextmanager
def in_training(model: torch.nn.Module, chosen: list[torch.nn.Module]) -> Iterator[None]:
    """Put some modules into training mode and the others out of it; restore their modes at the end.

    The modes are set one by one, since a method ``train`` of the user may leave some as they are.
    """
    training = {id(module) for module in chosen}
    modes = [(module, module.training) for module in model.modules()]
    try:
        for module, _ in modes:
            module.training = id(module) in training
        yield
    finally:
        for module, mode in modes:
            module.training = mode


def _draws_in_training(module: torch.nn.Module, more: tuple[type, ...]) -> bool:
    if isinstance(module, _WITH_RATE):
        return module.dropout > 0.0 or isinstance(module, more)
    return isinstance(module, (*DROPOUTS, *more))


@contextmanager
def drawn_by(generator: torch.Generator | None, model: torch.nn.Module, x: Any) -> Iterator[None]:
    """Have all noise of a model depend on a generator alone.

    The global generators, and those of the modules, are seeded from it. They have their own states
    again afterwards. With None, all of them go on as they are.
    """
    if generator is None:
        yield
        return
    if _is_global(generator):
        # Its state is restored below; so it goes on before that.
        seed = _seed(generator)
        generator = torch.Generator(generator.device).manual_seed(seed)
    with ExitStack() as stack:
        _seed_global(stack, generator, _accelerators(model, x))
        own = (getattr(module, "generator", None) for module in model.modules())
        for each in {id(g): g for g in own if isinstance(g, torch.Generator)}.values():
            # The state of the one that was passed is to go on.
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
    tensors = [*model.parameters(), *model.buffers(), *([x] if isinstance(x, torch.Tensor) else [])]
    return {tensor.device.type for tensor in tensors} - {"cpu", "meta"}


def _seed_global(stack: ExitStack, generator: torch.Generator, types: set[str]) -> None:
    stack.enter_context(torch.random.fork_rng(devices=[]))
    torch.default_generator.manual_seed(_seed(generator))
    for kind in sorted(types):
        module = torch.get_device_module(kind)
        devices = range(module.device_count())
        stack.enter_context(torch.random.fork_rng(devices=devices, device_type=kind))
        getattr(module, "manual_seed_all", module.manual_seed)(_seed(generator))
