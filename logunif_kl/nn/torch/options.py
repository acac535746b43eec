"""The options of a variational layer: their names, defaults and checks."""

# mypy: allow-untyped-calls, no-warn-return-any
from __future__ import annotations

import inspect
import warnings
from collections.abc import Callable
from typing import Any, TypedDict, TypeVar

import torch

from .. import penalty as penalties
from ..checks import one_of
from ..options import REPLACED, check_posterior
from ..posteriors import Additive, Grouped, Scaled
from .arguments import check_generator
from .hooks import held

F = TypeVar("F", bound=Callable[..., Any])

ESTIMATORS = ("local", "per_example", "per_batch")


class VariationalOptions(TypedDict, total=False):
    """The options that every variational layer takes. `VariationalLinear` explains them."""

    posterior: Additive
    estimator: str
    penalty: Any
    generator: torch.Generator | None


DEFAULTS: VariationalOptions = {
    "posterior": Additive(),
    "estimator": "local",
    "penalty": "exact",
    "generator": None,
}


def list_options(function: F) -> F:
    """Let `help` list the options of a function one by one, instead of ``**options``."""
    signature: Any = inspect.signature(function)
    types = VariationalOptions.__annotations__
    given = [p for p in signature.parameters.values() if p.kind is not p.VAR_KEYWORD]
    options = [
        inspect.Parameter(
            name,
            inspect.Parameter.KEYWORD_ONLY,
            default=default,
            annotation=getattr(types[name], "__forward_arg__", types[name]),
        )
        for name, default in DEFAULTS.items()
    ]
    first = [p for p in given if p.kind is not p.KEYWORD_ONLY]
    last = [p for p in given if p.kind is p.KEYWORD_ONLY]
    shown_signature = signature.replace(parameters=[*first, *options, *last])
    function.__signature__ = shown_signature  # type: ignore[attr-defined]
    return function


def checked(options: VariationalOptions) -> dict[str, Any]:
    """Check the given options, and return all options, with defaults."""
    for name in options:
        if name not in DEFAULTS and name not in REPLACED:
            raise TypeError(f"there is no option {name!r}: pass one of {', '.join(DEFAULTS)}")
    posterior = check_posterior(options)
    given: dict[str, Any] = {**DEFAULTS, **options, "posterior": posterior}
    return {name: option(name, value, posterior) for name, value in given.items()}


def option(name: str, value: Any, posterior: Additive) -> Any:
    """Return the value of an option if weights with this posterior may have it, else raise."""
    if name == "posterior":
        return check_posterior({name: value})
    if name == "penalty":
        given = f"posterior={posterior!r}"
        value = penalties.check(value, posterior, given, "pass posterior=nn.Additive()")
        _check_registered(value)
        return value
    return check_generator(value) if name == "generator" else one_of(name, value, ESTIMATORS)


def _check_registered(prior: Any) -> None:
    """Warn of a prior that holds what is trained, in an object that PyTorch does not see."""
    if isinstance(prior, (str, torch.nn.Module)):
        return
    for each in held(prior, objects=True):
        tensors = each.parameters() if isinstance(each, torch.nn.Module) else (each,)
        if any(isinstance(x, torch.Tensor) and x.requires_grad and x.is_leaf for x in tensors):
            warnings.warn(
                f"the prior {type(prior).__name__} holds a parameter, but is no torch.nn.Module, "
                "so model.parameters() and state_dict leave it out: make the prior a "
                "torch.nn.Module",
                stacklevel=4,
            )
            return


def check_table(posterior: Additive, what: str, instead: str) -> None:
    """Raise ValueError if the weights of an embedding cannot have this posterior."""
    if isinstance(posterior, (Grouped, Scaled)):
        raise ValueError(
            f"posterior={posterior!r} was given, which has no form for {what}: {instead}"
        )
