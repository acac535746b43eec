"""The log-likelihood of an `ELBO`: its parameters are registered, or a warning tells of them."""

# mypy: allow-untyped-calls, no-warn-return-any
from __future__ import annotations

import dis
import inspect
import warnings
from collections.abc import Iterable, Iterator
from contextlib import suppress
from functools import partial
from types import CodeType, FunctionType, MethodType, ModuleType
from typing import Any

import torch

from ...._errors import type_name
from ..hooks import held
from ..weights.weight import VariationalModule


class _Partial(torch.nn.Module):
    """A `functools.partial` whose parameters and modules are registered with this module."""

    def __init__(self, given: partial[Any], model: torch.nn.Module) -> None:
        super().__init__()
        self._keywords = [*given.keywords]
        self._constants: dict[str, Any] = {}
        first = enumerate((given.func, *given.args))
        for name, value in [*((str(i), each) for i, each in first), *given.keywords.items()]:
            value = registered(value, model)
            if isinstance(value, torch.nn.Parameter):
                self._parameters[name] = value
            elif isinstance(value, torch.nn.Module) and model not in value.modules():
                self._modules[name] = value
            else:
                self._constants[name] = value
                if isinstance(value, torch.nn.Module) and isinstance(given.func, FunctionType):
                    _warn_of_left_out(MethodType(given.func, value), model)

    def forward(self, *args: Any, **kwargs: Any) -> Any:
        held = {**self._constants, **self._parameters, **self._modules}
        named = {name: held.pop(name) for name in self._keywords}
        function, *first = (held[str(i)] for i in range(len(held)))
        return function(*first, *args, **{**named, **kwargs})


class _Method(torch.nn.Module):
    """A method of a module, which is registered with this module."""

    def __init__(self, given: MethodType) -> None:
        super().__init__()
        self.owner = given.__self__
        self._function = given.__func__

    def forward(self, *args: Any, **kwargs: Any) -> Any:
        return self._function(self.owner, *args, **kwargs)


def registered(function: Any, model: torch.nn.Module) -> Any:
    """Wrap a `functools.partial` or a method in a module, because torch finds no parameters there.

    A method of a part of the model, or of a module that contains the model, stays as it is.
    """
    if isinstance(function, partial):
        return _Partial(function, model)
    owner = function.__self__ if isinstance(function, MethodType) else None
    known = isinstance(function, (torch.nn.Module, torch.nn.Parameter))
    told = known or _warn_of_left_out(function, model)
    if not isinstance(owner, torch.nn.Module):
        if not told:
            _warn_of_unregistered(function, model)
        return function
    within = owner in model.modules() or model in owner.modules()
    return function if within else _Method(function)


def refuse_loss(function: Any) -> None:
    """Raise TypeError if a log-likelihood is a loss of torch."""
    while isinstance(function, partial):
        function = function.func
    is_module = isinstance(function, torch.nn.Module)
    code = getattr(type(function), "forward", None) if is_module else function
    if getattr(code, "__module__", None) in ("torch.nn.modules.loss", "torch.nn.functional"):
        name = getattr(function, "__name__", None) or type(function).__name__
        raise TypeError(
            f"log_likelihood is {name}, a loss, which has the opposite sign: pass "
            "categorical_log_likelihood, or lambda output, target: -loss(output, target), where "
            "loss has reduction='none'"
        )


def _warn_of_unregistered(function: Any, model: torch.nn.Module) -> None:
    """Warn of trained parameters that a function reads, because torch finds no parameters there.

    They are not registered, because a copy of the function would read the same ones.
    """
    own = {id(each) for each in model.parameters()}
    for name, value in reads(function, set()):
        parts = [*held(value)]
        modules = [each for each in parts if isinstance(each, torch.nn.Module)]
        others = [
            each
            for module in modules
            if model not in module.modules()
            for each in module.parameters()
        ]
        if any(
            isinstance(each, torch.nn.Parameter) and each.requires_grad and id(each) not in own
            for each in (*parts, *others)
        ):
            warnings.warn(
                f"log_likelihood reads {name}, whose parameters are not those of the ELBO, so "
                "elbo.parameters() and its state_dict leave them out: pass functools.partial of a "
                "function that takes it as an argument",
                stacklevel=5,
            )
            return


def _warn_of_left_out(function: Any, model: torch.nn.Module) -> bool:
    """Warn of variational layers that a function runs, perhaps those of a module around the model.

    That module has their parameters, but the bound has not their KL.
    """
    own = {*model.modules()}
    for name, value in reads(function, set(), model):
        parts = {*value.modules()} if isinstance(value, torch.nn.Module) else set()
        layers = (each for each in parts - own if isinstance(each, VariationalModule))
        trained = (x.requires_grad for layer in layers for x in layer.parameters())
        if model not in parts and any(trained):
            warnings.warn(
                f"log_likelihood runs {name}, whose variational layers are not those of the model, "
                "so the bound leaves out their KL: pass functools.partial of a function that takes "
                "it as an argument, or a model that has all layers",
                stacklevel=5,
            )
            return True
    return False


def reads(
    value: Any, seen: set[int], within: torch.nn.Module | None = None
) -> Iterator[tuple[str, Any]]:
    """Yield the names and values that a function reads, and that functions read which it reads.

    With a model, these are the modules of other modules around it.
    """
    is_method = isinstance(value, MethodType)
    owner, function = (value.__self__, value.__func__) if is_method else (None, value)
    call = inspect.getattr_static(type(value), "__call__", None)
    if not isinstance(function, FunctionType) and isinstance(call, FunctionType):
        owner, function = value, call
    seen.add(id(function))
    read = dict(getattr(value, "__dict__", {}))
    if isinstance(function, FunctionType):
        names, loaded = _names(function.__code__)
        for name, cell in zip(
            function.__code__.co_freevars, function.__closure__ or (), strict=True
        ):
            with suppress(ValueError):  # The cell is still empty.
                read[name] = cell.cell_contents
        read |= {k: function.__globals__[k] for k in loaded if k in function.__globals__}
        parameters = inspect.signature(function).parameters
        read |= {name: each.default for name, each in parameters.items()}
        for holder in (owner, *read.values()):
            read = {**_attributes(holder, names, within), **read}
    yield from read.items() if read else [(type_name(value), value)]
    for each in read.values():
        code = each.__func__ if isinstance(each, MethodType) else each
        if not isinstance(code, FunctionType) or id(code) in seen:
            continue
        if str(code.__module__).partition(".")[0] not in ("logunif_kl", "torch"):
            yield from reads(each, seen, within)


def _names(code: CodeType) -> tuple[set[str], set[str]]:
    """Return the names of attributes and globals in a code, and those of globals alone."""
    names = {*code.co_names}
    loaded = {x.argval for x in dis.get_instructions(code) if x.opname == "LOAD_GLOBAL"}
    for each in code.co_consts:
        if isinstance(each, CodeType):  # a function within it
            names, loaded = (a | b for a, b in zip((names, loaded), _names(each), strict=True))
    return names, loaded


def _attributes(
    holder: Any, names: Iterable[str], within: torch.nn.Module | None
) -> dict[str, Any]:
    """Return attributes of these names, and methods, of an object of a user."""
    own = getattr(holder, "__dict__", {})
    if isinstance(holder, torch.nn.Module):
        if within is None or holder is within or within not in holder.modules():
            return {}
        own = holder._modules
    elif isinstance(holder, (torch.Tensor, ModuleType, type)):
        return {}
    if type(holder).__module__.startswith("torch."):  # such as an optimizer
        return {}
    found = {}
    for name in names:
        method = getattr(type(holder), name, None)
        if name in own:
            found[name] = own[name]
        elif isinstance(method, FunctionType):
            found[name] = MethodType(method, holder)
    return found
