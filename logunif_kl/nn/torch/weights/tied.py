"""The variances of weights that modules share, and their names for Hugging Face."""

# mypy: allow-untyped-calls, no-warn-return-any
from __future__ import annotations

from typing import Any

import torch

from .weight import VariationalModule

_ATTRIBUTES = ("_tied_weights_keys", "all_tied_weights_keys")


def name_tied_variances(model: torch.nn.Module) -> None:
    """Add the variances of tied weights to the tied names that the modules of a model list.

    These are dicts of target to source, or lists in version 4. Without their variances there,
    ``save_pretrained`` and ``Trainer`` refuse tensors that are shared without a name.
    """
    for module in model.modules():
        for attribute in _ATTRIBUTES:
            names: Any = getattr(module, attribute, None)
            if isinstance(names, dict):
                pairs = {_variance(module, a): _variance(module, b) for a, b in names.items()}
                more = {a: b for a, b in pairs.items() if a is not None and b is not None}
                if more:
                    setattr(module, attribute, {**names, **more})
            elif isinstance(names, list):
                added = [each for name in names if (each := _variance(module, name)) is not None]
                if added:
                    setattr(module, attribute, [*names, *added])


def forget_tied_variances(model: torch.nn.Module) -> None:
    """Undo `name_tied_variances`, for a network without variances."""
    for module in model.modules():
        for attribute in _ATTRIBUTES:
            names: Any = getattr(module, attribute, None)
            if isinstance(names, dict):
                kept: Any = {name: source for name, source in names.items() if not _ours(name)}
            elif isinstance(names, list):
                kept = [name for name in names if not _ours(name)]
            else:
                continue
            if len(kept) < len(names):
                setattr(module, attribute, kept)


def _ours(name: Any) -> bool:
    return str(name).endswith(("log_sigma2", "log_alpha"))


def _variance(model: torch.nn.Module, weight: Any) -> str | None:
    """Return the name of the variances of a weight, or None for another tensor or a pattern."""
    path, _, own = str(weight).rpartition(".")
    try:
        module = model.get_submodule(path)
    except AttributeError:
        return None
    if isinstance(module, VariationalModule):
        for each in module._lk_weights():
            if each.name == own:
                return f"{path}.{each.parameters[0]}" if path else each.parameters[0]
    return None


def variances_of_weights(model: torch.nn.Module) -> dict[int, dict[str, Any]]:
    """Return the parameters of the noise of weights that are variational already.

    A layer that shares one of these weights, and is converted later, shares its noise.
    """
    found: dict[int, dict[str, Any]] = {}
    for module in model.modules():
        if isinstance(module, VariationalModule):
            for weight in module._lk_weights():
                own = (weight.own(each) for each in weight.parameters)
                given = dict(zip(weight.posterior.parameters, own, strict=True))
                if weight.own(weight.name) is not None and None not in given.values():
                    found[id(weight.own(weight.name))] = given
    return found
