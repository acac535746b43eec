"""Choose the layers and the weights that `to_variational` converts."""

# mypy: allow-untyped-calls, no-warn-return-any
from __future__ import annotations

from collections.abc import Callable, Iterable, Sequence
from typing import Any, NamedTuple

import torch
from torch.nn.modules.lazy import LazyModuleMixin

from ...._errors import OF_COMPLEX, shown
from ...posteriors import Additive
from ..arguments import check_parameters, no_shape, shown_name
from ..options import DEFAULTS, check_table
from ..weights.kinds import has_sampled_form, lazily_sampled, matrices
from ..weights.sampled import SUFFIX
from ..weights.weight import VariationalModule
from .conversion import VARIATIONAL, priors

Tensor = torch.Tensor
Modules = type | tuple[type, ...] | Callable[[str, torch.nn.Module], bool]
Parameters = Sequence[str] | Callable[[str, Tensor], bool]


class Chosen(NamedTuple):
    """What is converted, by the names of modules."""

    layers: list[str]
    """These become variational layers."""
    sampled: dict[str, list[str]]
    """Of these modules the named parameters become Gaussian, and are drawn in each call."""


def choose(model: torch.nn.Module, modules: Any, parameters: Any, posterior: Additive) -> Chosen:
    """Choose by the arguments of `to_variational`, and check that the choice can be converted."""
    accepted, found, others = _chooser(modules, model), Chosen([], {}), priors(model)
    unsuited = type(posterior) is not Additive
    parts: dict[torch.nn.Module, bool] = {}
    """Whether attention was chosen, by its `out_proj`, with whose weight it computes itself."""
    for name, module in model.named_modules():
        becomes = getattr(module, "cls_to_become", None)
        if isinstance(module, LazyModuleMixin) and (
            becomes in VARIATIONAL or lazily_sampled(module)
        ):
            raise no_shape(shown_name(name), module)
        if isinstance(module, VariationalModule) or module in others:
            continue
        if module in parts:
            if parts[module] or (accepted is not None and accepted(name, module)):
                found.sampled[name] = ["weight"]
        elif type(module) in VARIATIONAL:
            if accepted is None or accepted(name, module):
                found.layers.append(name)
        elif matrices(module) and (
            has_sampled_form(module) and not unsuited
            if accepted is None
            else accepted(name, module)
        ):
            found.sampled[name] = matrices(module)
        if isinstance(module, torch.nn.MultiheadAttention) and isinstance(
            module.out_proj, torch.nn.Linear
        ):
            parts[module.out_proj] = name in found.sampled
    if parameters is not None:
        _add_parameters(model, parameters, found)
    for name in found.layers:
        _check_layer(name, model.get_submodule(name), posterior)
    for name, names in found.sampled.items():
        if unsuited:
            raise not_additive(name, model.get_submodule(name), posterior)
        _check_weights(name, model.get_submodule(name), names)
    _check_shared(model, found.layers, posterior)
    return found


def not_additive(name: str, module: torch.nn.Module, posterior: Additive) -> ValueError:
    """Return the error for a module whose weights are sampled, with a posterior of layers."""
    return ValueError(
        f"posterior={posterior!r} was given, but the weights of {shown_name(name)}, a "
        f"{type(module).__name__}, can only be additive: leave it out with modules=, or pass "
        "posterior=nn.Additive()"
    )


def _chooser(modules: Any, model: torch.nn.Module) -> Callable[[str, torch.nn.Module], Any] | None:
    if modules is None:
        return None
    if isinstance(modules, (type, tuple, list)):
        kinds = (modules,) if isinstance(modules, type) else tuple(modules)
        for kind in kinds:
            if not (isinstance(kind, type) and issubclass(kind, torch.nn.Module)):
                raise TypeError(
                    f"modules names {getattr(kind, '__name__', shown(kind))}, which is not a type "
                    "of module: pass torch.nn.Linear, for example"
                )
        return lambda name, module: type(module) in kinds
    if not callable(modules):
        raise TypeError(
            f"modules must be types or a function of name and module, but {shown(modules)} was "
            "given: pass torch.nn.Linear, for example"
        )
    names: dict[torch.nn.Module, list[str]] = {}
    for name, module in model.named_modules(remove_duplicate=False):
        names.setdefault(module, []).append(name)
    return lambda _, module: any(modules(name, module) for name in names[module])


def _add_parameters(model: torch.nn.Module, parameters: Any, found: Chosen) -> None:
    every, others = dict(model.named_parameters(remove_duplicate=False)), priors(model)
    # A module with several names has the first one in `found`.
    first = {module: name for name, module in model.named_modules()}
    if callable(parameters):
        names: Iterable[str] = [name for name, each in every.items() if parameters(name, each)]
    elif isinstance(parameters, str) or not isinstance(parameters, Sequence):
        raise TypeError(
            "parameters must be a list of names or a function of name and parameter, but "
            f"{shown(parameters)} was given: pass ['cell.weight_ih'], for example"
        )
    else:
        names = parameters
    for name in names:
        if name not in every:
            raise ValueError(
                f"parameters names {shown(name)}, which the model does not have: pass names of "
                "model.named_parameters()"
            )
        path, _, own = name.rpartition(".")
        module = model.get_submodule(path)
        path = first[module]
        if module in others:
            if callable(parameters):
                continue
            raise ValueError(
                f"parameters names {name!r}, a parameter of a prior, which is not of the network: "
                "leave out the name"
            )
        if isinstance(module, VariationalModule):
            if callable(parameters):
                continue
            raise ValueError(
                f"parameters names {name!r}, but {shown_name(path)} is converted already: name all "
                "parameters of a module in one call"
            )
        if path in found.layers:
            if callable(parameters):
                continue
            raise ValueError(
                f"parameters names {name!r}, but {shown_name(path)} is converted as a layer: leave "
                "the layer out with modules=, or leave out the name"
            )
        chosen = found.sampled.setdefault(path, [])
        if own not in chosen:
            chosen.append(own)


def _check_layer(name: str, module: Any, posterior: Additive) -> None:
    check_parameters(name, module, ("weight",))
    _check_names(name, module, [*DEFAULTS, *Additive.parameters, *posterior.parameters])
    _check_dtype(name, "weight", module.weight)
    if isinstance(module, torch.nn.Embedding):
        what = f"{shown_name(name)}, an Embedding"
        check_table(posterior, what, "leave it out with modules=")
        _check_table(name, module)


def _check_weights(name: str, module: torch.nn.Module, names: list[str]) -> None:
    check_parameters(name, module, names)
    _check_names(name, module, [each + SUFFIX for each in names])
    for each in names:
        _check_dtype(name, each, module._parameters[each])
    if isinstance(module, (torch.nn.EmbeddingBag, torch.nn.Embedding)):
        _check_table(name, module)


def _check_names(name: str, module: torch.nn.Module, needed: Sequence[str]) -> None:
    for each in needed:
        if hasattr(module, each):
            raise ValueError(
                f"{shown_name(name)} has an attribute {each!r}, a name that the converted module "
                "uses itself: rename the attribute, or leave the module out with modules="
            )


def _check_dtype(name: str, parameter: str, given: Any) -> None:
    if not given.is_floating_point():
        remedy = (
            f"of {given.dtype}: {OF_COMPLEX}"
            if given.is_complex()
            else f"of {given.dtype}, not of a floating type: convert the model before it is "
            "quantized"
        )
        what = "weights" if parameter == "weight" else f"elements of {parameter}"
        raise TypeError(f"the {what} of {shown_name(name)} are {remedy}")


def _check_table(name: str, module: Any) -> None:
    for option in ("max_norm", "sparse"):
        if getattr(module, option):
            raise ValueError(
                f"{shown_name(name)} is an {type(module).__name__} with {option}="
                f"{getattr(module, option)}, which has no variational form: leave it out with "
                "modules="
            )


def _check_shared(model: torch.nn.Module, found: list[str], posterior: Additive) -> None:
    """Raise if layers with different alphas would share one weight."""
    seen: dict[int, tuple[str, Any]] = {}
    for name in found:
        module: Any = model.get_submodule(name)
        unit = getattr(VARIATIONAL[type(module)]._units, posterior.sharing, None)
        first, of_first = seen.setdefault(id(module.weight), (name, unit))
        if unit != of_first:
            raise ValueError(
                f"modules {first!r} and {name!r} share a weight, which posterior={posterior!r} "
                "would give two alphas: pass sharing='weight' or sharing='layer' to the posterior"
            )
