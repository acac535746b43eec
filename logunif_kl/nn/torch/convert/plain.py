"""The plain form of a layer: the class of torch that computes the same without noise."""

# mypy: allow-untyped-calls, no-warn-return-any
from __future__ import annotations

from typing import Any

import torch

from ..arguments import shown_name
from ..noise.normal import StochasticModule


def check_known(name: str, module: torch.nn.Module) -> None:
    """Raise if a layer belongs to a user-defined subclass, whose plain form is not known."""
    kind = type(module)
    if isinstance(module, StochasticModule) and "_lk_plain" not in vars(kind):
        raise TypeError(
            f"{shown_name(name)} is of type {kind.__name__}, which has no known plain form: "
            "replace it by a layer of torch.nn first"
        )


def check_forward(name: str, module: torch.nn.Module) -> None:
    """Raise if a layer or its class was given a forward, which a copy would share or lose."""
    for own in ("forward", "_conv_forward"):
        of_class = getattr(plain_kind(module), own, None)
        of_torch = getattr(of_class, "__module__", "torch.").startswith("torch.")
        if own in vars(module) or not of_torch or hasattr(of_class, "__wrapped__"):
            raise TypeError(
                f"{shown_name(name)} has a {own} that was assigned to it, which a converted layer "
                "would not call: put it into a module around the layer, or convert the layer first"
            )


def plain_kind(module: torch.nn.Module) -> Any:
    """Return the class of `torch.nn` that computes what a layer computes without noise."""
    return module._lk_plain if isinstance(module, StochasticModule) else type(module)
