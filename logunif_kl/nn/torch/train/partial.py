"""Register the parameters of a `functools.partial`, or of a method's module, with an `ELBO`."""

# mypy: allow-untyped-calls, no-warn-return-any
from __future__ import annotations

import inspect
import warnings
from functools import partial
from types import FunctionType, MethodType
from typing import Any

import torch


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
    if not isinstance(owner, torch.nn.Module):
        if not isinstance(function, torch.nn.Module):
            _warn_of_unregistered(function, model)
        return function
    within = owner in model.modules() or model in owner.modules()
    return function if within else _Method(function)


def _warn_of_unregistered(function: Any, model: torch.nn.Module) -> None:
    """Warn of trained parameters that a function reads, because torch finds no parameters there.

    They are not registered, because a copy of the function would read the same ones.
    """
    read = dict(getattr(function, "__dict__", {}))
    code = function.__func__ if isinstance(function, MethodType) else function
    if isinstance(code, FunctionType):
        found = inspect.getclosurevars(code)
        defaults = {k: each.default for k, each in inspect.signature(code).parameters.items()}
        read |= {**found.globals, **found.nonlocals, **defaults}
    own = {id(each) for each in model.parameters()}
    for name, value in read.items():
        is_module = isinstance(value, torch.nn.Module)
        given = value.parameters() if is_module else [value]
        if is_module and model in value.modules():
            continue
        if any(
            isinstance(each, torch.nn.Parameter) and each.requires_grad and id(each) not in own
            for each in given
        ):
            warnings.warn(
                f"log_likelihood reads {name}, whose parameters are not those of the ELBO, so "
                "elbo.parameters() and its state_dict leave them out: pass functools.partial of a "
                "function that takes it as an argument",
                stacklevel=5,
            )
