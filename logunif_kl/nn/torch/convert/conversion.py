"""List which modules of a model are variational, and why others are not."""

# mypy: allow-untyped-calls, no-warn-return-any
from __future__ import annotations

import copy
import warnings
from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass
from typing import Any

import torch
from torch.nn.parameter import is_lazy
from torch.optim.lr_scheduler import LRScheduler

from ...._display import Table, Tabular, shown_few
from ..arguments import REMOVE_PARAMETRIZATIONS, check_module, shown_name
from ..hooks import copies, held
from ..layers.base import VariationalLayer
from ..layers.conv import VariationalConv1d, VariationalConv2d, VariationalConv3d
from ..layers.embedding import VariationalEmbedding
from ..layers.linear import VariationalLinear
from ..weights.kinds import has_parametrizations, has_sampled_form, matrices
from ..weights.weight import VariationalModule

Tensor = torch.Tensor

VARIATIONAL: dict[type, type[VariationalLayer]] = {
    layer._lk_plain: layer
    for layer in (
        *(VariationalLinear, VariationalConv1d, VariationalConv2d, VariationalConv3d),
        VariationalEmbedding,
    )
}


@dataclass(frozen=True)
class Conversion(Tabular):
    """The result of `conversion`: the variational modules, and why the others are not variational.

    Modules without parameters of their own are not listed.

    Attributes
    ----------
    variational : dict of str to int
        The number of parameters of each variational layer, by its name.
    left : dict of str to tuple
        For each other module: its number of parameters, and why it is not variational.
    """

    variational: dict[str, int]
    left: dict[str, tuple[int, str]]

    def __repr__(self) -> str:
        return f"<Conversion: {len(self.variational)} modules variational, {len(self.left)} left>"

    def _tables(self) -> list[Table]:
        rows = [(name, str(count), "variational") for name, count in self.variational.items()]
        rows += [(name, str(count), why) for name, (count, why) in self.left.items()]
        return [Table("", ("module", "parameters", "conversion"), rows, ("conversion",))]


def conversion(model: torch.nn.Module) -> Conversion:
    """List the modules of a model that are variational, and those that are not, with the reason.

    Parameters
    ----------
    model : torch.nn.Module
        Any module, such as a network that `to_variational` returned.

    Returns
    -------
    Conversion
        Parameters that several modules share are counted in the first of these modules.

    Raises
    ------
    TypeError
        If `model` is not a module.

    Examples
    --------
    >>> import torch
    >>> from logunif_kl.torch import nn
    >>> model = torch.nn.Sequential(
    ...     nn.VariationalLinear(4, 3), torch.nn.LayerNorm(3), torch.nn.GRU(3, 2)
    ... )
    >>> print(nn.conversion(model))
    module  parameters  conversion
    0               27  variational
    1                6  LayerNorm has no weight matrix
    2               42  GRU is plain, and to_variational can convert it
    """
    found = Conversion({}, {})
    for name, module, parameters in _own(check_module(model)):
        count = sum(parameter.numel() for parameter in parameters)
        if isinstance(module, VariationalModule):
            found.variational[name] = count
        else:
            found.left[name] = count, _why(module, parameters)
    return found


def priors(model: torch.nn.Module) -> set[torch.nn.Module]:
    """Return the modules of priors that layers of a model hold, and that the network has not."""
    held = (
        module._lk_weights() for module in model.modules() if isinstance(module, VariationalModule)
    )
    penalties = (weight.penalty for each in held for weight in each)
    found = {each for each in penalties if isinstance(each, torch.nn.Module)}
    if not found:
        return found
    return {module for penalty in found for module in penalty.modules()} - _without(model, found)


def _without(model: torch.nn.Module, left_out: set[torch.nn.Module]) -> set[torch.nn.Module]:
    """Return the modules of a model, but not some, nor those that only they have."""
    own, left = {model}, [model]
    while left:
        parts = {*left.pop().children()} - own - left_out
        own |= parts
        left += parts
    return own


def _own(model: torch.nn.Module) -> list[tuple[str, torch.nn.Module, list[Tensor]]]:
    """List the modules that have parameters themselves, or in their parametrizations."""
    found = []
    seen: set[int] = set()
    others = priors(model)
    for name, module in model.named_modules():
        if module in others:
            continue
        within = has_parametrizations(module)
        parameters = [p for p in module.parameters(within) if id(p) not in seen]
        # A lazy parameter has no size before the first batch.
        parameters = [p for p in parameters if not is_lazy(p)]
        seen.update(map(id, parameters))
        if parameters:
            found.append((name, module, parameters))
    return found


def _why(module: torch.nn.Module, parameters: Sequence[Tensor]) -> str:
    kind = type(module)
    if has_parametrizations(module):
        return f"{kind.__bases__[0].__name__} {REMOVE_PARAMETRIZATIONS}"
    if not _is_matrix(parameters):
        return f"{kind.__name__} has no weight matrix"
    if kind in VARIATIONAL or has_sampled_form(module):
        return f"{kind.__name__} is plain, and to_variational can convert it"
    how = "modules= names it" if matrices(module) else "parameters= names its parameters"
    return f"{kind.__name__} is converted if {how}"


def _is_matrix(parameters: Sequence[Tensor]) -> bool:
    return any(sum(n > 1 for n in p.shape) > 1 for p in parameters)


def copied(model: torch.nn.Module, options: Mapping[str, Any]) -> torch.nn.Module:
    """Copy a model, but not what the layers will share with those that are variational already."""
    shared = {id(each): each for each in options.values() if each is not None}
    given = {x for x in options.values() if isinstance(x, torch.nn.Module)}
    if not _without(model, given).isdisjoint(part for each in given for part in each.modules()):
        warnings.warn(
            "the penalty holds a part of the model, and the copy has another: pass inplace=True so "
            "that both are one, or give the penalty a copy.deepcopy of that part",
            stacklevel=4,
        )
    try:
        return copy.deepcopy(model, {**copies(model), **shared})
    except RuntimeError:  # deepcopy refuses a tensor that autograd has computed
        raise TypeError(
            "the model cannot be copied, because it holds a tensor that was computed, as by "
            "torch.nn.utils.weight_norm: remove such hooks first, or pass inplace=True"
        ) from None


def warn_of_left(model: torch.nn.Module) -> None:
    left = [
        f"{shown_name(name)} ({type(module).__name__})"
        for name, module, parameters in _own(model)
        if _is_matrix(parameters) and not isinstance(module, VariationalModule)
    ]
    if left:
        warnings.warn(
            f"to_variational left {shown_few(left)} without noise. "
            "logunif_kl.torch.nn.conversion(model) says why; choose with modules= and parameters=.",
            stacklevel=3,
        )


def warn_of_kept(model: torch.nn.Module) -> None:
    """Warn of modules with a second reference to a Gaussian weight, which is read without noise."""
    gaussian = [m for m in model.modules() if isinstance(m, VariationalModule)]
    every = [each for module in gaussian for each in module._lk_weights()]
    means = {id(own) for each in every for own in each.sources(each.name)}
    kept = [
        f"{shown_name(name)} ({type(module).__name__})"
        for name, module in model.named_modules()
        if not isinstance(module, VariationalModule) and not means.isdisjoint(_held(module))
    ]
    if kept:
        warnings.warn(
            f"{shown_few(kept)} keeps the weight of a variational layer in an attribute of its "
            "own, which has no noise: convert it too, or let it read the weight from the layer",
            stacklevel=3,
        )


def warn_of_optimizers(model: torch.nn.Module) -> None:
    """Warn of modules that hold an optimizer of means, which does not have their variances."""
    gaussian = [m for m in model.modules() if isinstance(m, VariationalModule)]
    pairs = [
        [
            {id(own) for own in weight.sources(name) if own.requires_grad}
            for name in (weight.name, weight.parameters[0])
        ]
        for module in gaussian
        for weight in module._lk_weights()
    ]
    found: dict[str, set[int]] = {}
    for path, module in model.named_modules():
        for name, value in vars(module).items():
            for each in held(value):
                each = getattr(each, "optimizer", each) if isinstance(each, LRScheduler) else each
                if isinstance(each, torch.optim.Optimizer):
                    groups = getattr(each, "param_groups", ())
                    own = {id(x) for group in groups for x in group["params"]}
                    found.setdefault(f"{name!r} of {shown_name(path)}", set()).update(own)
    trained = set().union(*found.values())
    left = [m for m, variances in pairs if variances and trained & m and not trained & variances]
    for name, own in found.items():
        if any(own & means for means in left):
            warnings.warn(
                f"{name} holds an optimizer that was made before the conversion, and does not "
                "train the new variances: make it anew",
                stacklevel=3,
            )


def _held(module: torch.nn.Module) -> Iterator[int]:
    """Yield the `id` of what the attributes of a module hold, also in lists and partials.

    Of a view, also that of the tensor whose memory it has.
    """
    for value in vars(module).values():
        for each in held(value):
            yield id(each)
            if isinstance(each, torch.Tensor) and each._base is not None:
                yield id(each._base)
