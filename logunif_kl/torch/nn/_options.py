"""The options of a variational layer: their names, defaults and checks."""

# mypy: allow-untyped-calls, no-warn-return-any
from __future__ import annotations

import inspect
from collections.abc import Callable
from typing import Any, TypedDict, TypeVar

import torch

from ..._layers import one_of
from ...nn import penalty as penalties
from ...nn.posteriors import Additive, Correlated, Grouped, Multiplicative, Scaled
from ...nn.terms import UNITS
from ._arguments import check_generator

F = TypeVar("F", bound=Callable[..., Any])


class VariationalOptions(TypedDict, total=False):
    """The options that every variational layer takes. `VariationalLinear` explains them."""

    posterior: str
    sharing: str
    noise: str
    estimator: str
    initial: float | None
    max_log_alpha: float | None
    penalty: Any
    generator: torch.Generator | None


DEFAULTS: VariationalOptions = {
    "posterior": "additive",
    "sharing": "weight",
    "noise": "independent",
    "estimator": "local",
    "initial": None,
    "max_log_alpha": None,
    "penalty": "exact",
    "generator": None,
}
# The options besides those of the posterior.
OWN = ("estimator", "generator", "penalty")
_CHOICES = {
    "posterior": ("additive", "multiplicative", "scaled"),
    "sharing": ("weight", "output", "input", "layer"),
    "noise": ("independent", "correlated"),
    "estimator": ("local", "per_example", "per_batch"),
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
    """Check the given options. Return the posterior, and all other options, with defaults."""
    for name in options:
        if name not in DEFAULTS:
            raise TypeError(f"there is no option {name!r}: pass one of {', '.join(DEFAULTS)}")
    given: dict[str, Any] = {**DEFAULTS, **options}
    for name, choices in _CHOICES.items():
        one_of(name, given[name], choices)
    posterior = posterior_of(
        *(given[name] for name in ("posterior", "sharing", "noise", "max_log_alpha", "initial"))
    )
    return {
        "_lk_posterior": posterior,
        **{name: option(name, given[name], posterior) for name in OWN},
    }


def option(name: str, value: Any, posterior: Additive) -> Any:
    """Return the value of an option besides the posterior if it is allowed, otherwise raise."""
    if name == "penalty":
        what = of_units(posterior) or shown_kind(posterior)
        return penalties.check(value, posterior, what, "pass posterior='additive'")
    return check_generator(value) if name == "generator" else one_of(name, value, _CHOICES[name])


def kind(posterior: Additive) -> str:
    if "scale" in posterior.parameters:
        return "scaled"
    return "multiplicative" if posterior.relative else "additive"


def shown_kind(posterior: Additive) -> str:
    return f"posterior={kind(posterior)!r}"


def of_units(posterior: Additive) -> str | None:
    """Return the option that gives units scales or variances of their own, or None."""
    if posterior.grouped:
        return f"sharing={posterior.sharing!r} with posterior='additive'"
    return shown_kind(posterior) if "scale" in posterior.parameters else None


def posterior_of(
    posterior: str, sharing: str, noise: str, max_log_alpha: Any, initial: Any
) -> Additive:
    """Return the posterior that has these options, or raise if they cannot be combined."""
    others: dict[str, Any] = {} if initial is None else {"initial": initial}
    if posterior == "multiplicative":
        made = Multiplicative if noise == "independent" else Correlated
        return made(sharing, max_log_alpha, **others)
    grouped = posterior == "additive" and sharing in UNITS
    given = {} if grouped else {"sharing": sharing}
    for name, value in {**given, "noise": noise, "max_log_alpha": max_log_alpha}.items():
        if value != DEFAULTS[name]:  # type: ignore[literal-required]
            raise ValueError(
                f"{name}={value!r} was given with posterior={posterior!r}, where alpha is not "
                "a parameter: pass posterior='multiplicative'"
            )
    if grouped:
        return Grouped(sharing, **others)
    return Additive(**others) if posterior == "additive" else Scaled(**others)
