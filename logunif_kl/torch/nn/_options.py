"""The options of a variational layer: their names, defaults and checks."""

# mypy: allow-untyped-calls, no-warn-return-any
from __future__ import annotations

import inspect
from collections.abc import Callable
from typing import Any, TypedDict, TypeVar

import torch

from ..._errors import shown
from ..._layers import finite, one_of
from . import _penalty
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
# The values of `sharing` with which groups of weights share a variance, if it is not alpha.
GROUPS = ("output", "input")
# Options that cannot be changed after the layer is made.
FIXED = ("posterior", "sharing", "noise")
_CHOICES = {
    "posterior": ("additive", "multiplicative", "scaled"),
    "sharing": ("weight", "output", "input", "layer"),
    "noise": ("independent", "correlated"),
    "estimator": ("local", "per_example", "per_batch"),
}

# The initial log sigma^2 is from Molchanov et al. (2017), section 5. The initial log alpha gives a
# dropout rate alpha/(1 + alpha) of 5 %. With a much smaller alpha, training would take thousands of
# steps until the noise matters, because the KL's gradient in log alpha is at most 1/2.
_INITIAL = {"additive": -10.0, "multiplicative": -3.0, "scaled": -10.0}


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
    """Check the given options, and return all options, with defaults for those not given."""
    for name in options:
        if name not in DEFAULTS:
            raise TypeError(f"there is no option {name!r}: pass one of {', '.join(DEFAULTS)}")
    given: dict[str, Any] = {**DEFAULTS, **options}
    posterior = given["posterior"]
    found = {name: option(name, given[name], posterior) for name in _CHOICES}
    found["max_log_alpha"] = option("max_log_alpha", given["max_log_alpha"], posterior)
    check_together(**found)
    if given["initial"] is None:
        given["initial"] = _INITIAL[posterior]
    for name in ("initial", "generator", "penalty"):
        found[name] = option(name, given[name], posterior)
    check_penalty(posterior, found["sharing"], found["penalty"])
    return found


def option(name: str, value: Any, posterior: str) -> Any:
    """Return the value of an option if it is allowed for this posterior, otherwise raise."""
    if name in _CHOICES:
        return one_of(name, value, _CHOICES[name])
    if name == "penalty":
        return _penalty.check(value, posterior)
    if name == "initial":
        parameter = "log_alpha" if posterior == "multiplicative" else "log_sigma2"
        return finite(name, value, f"the initial {parameter}")
    if name == "max_log_alpha":
        if value is not None:
            value = finite(name, value, "0.0 for alpha <= 1, or None for no bound")
        return value
    return check_generator(value)


def check_together(
    posterior: str, sharing: str, noise: str, max_log_alpha: float | None, **_: Any
) -> None:
    """Raise ValueError if options that are valid one by one cannot be combined."""
    if posterior != "multiplicative":
        given = {"sharing": sharing, "noise": noise, "max_log_alpha": max_log_alpha}
        if posterior == "additive" and sharing in GROUPS:
            del given["sharing"]
        for name, value in given.items():
            if value != DEFAULTS[name]:  # type: ignore[literal-required]
                raise ValueError(
                    f"{name}={value!r} was given with posterior={posterior!r}, where alpha is not "
                    "a parameter: pass posterior='multiplicative'"
                )
    if noise == "correlated" and sharing not in ("input", "layer"):
        raise ValueError(
            f"noise='correlated' scales the inputs, but sharing={sharing!r} was given: pass "
            "sharing='input' or sharing='layer'"
        )


def check_penalty(posterior: str, sharing: str, penalty: Any) -> None:
    """Raise ValueError if a penalty of single weights is given for groups of weights."""
    if posterior != "additive" or sharing not in GROUPS or penalty == _penalty.EXACT:
        return
    from ...fitting import Fit

    if isinstance(penalty, (str, Fit)):
        raise ValueError(
            f"penalty={shown(penalty)} approximates the KL of single weights, but "
            f"sharing={sharing!r} with posterior='additive' makes groups: pass 'exact' or a prior"
        )


def without_embeddings(options: VariationalOptions) -> str | None:
    """Return the option that gives units scales or variances of their own, or None."""
    posterior, sharing = options.get("posterior", "additive"), options.get("sharing")
    if posterior == "scaled":
        return "posterior='scaled'"
    if posterior == "additive" and sharing in GROUPS:
        return f"sharing={sharing!r} with posterior='additive'"
    return None


def check_of(of: Any, noise: str) -> None:
    """Raise ValueError if a layer with this noise does not have the KL that `of` names."""
    if of is None:
        return
    one_of("of", of, ("weights", "scales"))
    if noise == "correlated" and of == "weights":
        raise ValueError(
            "the KL of weights under correlated noise is infinite (Hron et al. 2017, section 3): "
            "pass of='scales'"
        )
    if noise == "independent" and of == "scales":
        raise ValueError(
            "there are no scales under independent noise: pass of='weights', or make the layer "
            "with noise='correlated'"
        )
