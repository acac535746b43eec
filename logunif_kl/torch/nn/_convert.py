"""Make trained networks variational, and variational networks plain again.

A conversion assigns another class to a module, as torch's lazy modules do. The module keeps its
identity, parameters and hooks, so optimizers, tied weights and other modules still refer to it.
"""

# mypy: allow-untyped-calls, no-warn-return-any
from __future__ import annotations

import copy
from collections.abc import Callable
from typing import Any, Unpack

import torch
from torch.nn import Parameter
from torch.nn.modules.lazy import LazyModuleMixin

from ..._errors import OF_COMPLEX, shown
from ..._layers import check_flag, check_threshold
from ._arguments import check_module, check_parameters, no_shape, shown_name
from ._conversion import VARIATIONAL, copied, warn_of_left
from ._dropout import GaussianDropoutA, GaussianDropoutLinear
from ._hooks import copies, masked, remove_masks
from ._layer import VariationalLayer
from ._models import kind_name, layers
from ._options import DEFAULTS, VariationalOptions, checked, list_options, without_embeddings

Tensor = torch.Tensor
Modules = type | tuple[type, ...] | Callable[[str, torch.nn.Module], bool]

PLAIN: dict[type, type[torch.nn.Module]] = {
    **{variational: plain for plain, variational in VARIATIONAL.items()},
    GaussianDropoutLinear: torch.nn.Linear,
    GaussianDropoutA: torch.nn.Identity,
}
_OURS = (VariationalLayer, GaussianDropoutA, GaussianDropoutLinear)
_NAMES = ", ".join(kind.__name__ for kind in VARIATIONAL)


@list_options
def to_variational(
    model: torch.nn.Module,
    *,
    modules: Modules | None = None,
    inplace: bool = False,
    **options: Unpack[VariationalOptions],
) -> torch.nn.Module:
    """Copy a network and make its layers variational, with their weights as the means.

    `torch.nn.Linear`, `Conv1d`, `Conv2d`, `Conv3d` and `Embedding` become `VariationalLinear` and
    so on. They keep their names in the ``state_dict``, their hooks and their mode (training or
    evaluation). In evaluation mode the copy gives the same outputs as `model`.

    `log_sigma2` or `log_alpha` is trainable even if the weight is frozen. With the additive
    posterior, weights that are exactly 0 (after pruning, for example) get noise again. Other
    modules are not converted: `MultiheadAttention` with its ``out_proj``, `LSTM`, `GRU`,
    `ConvTranspose2d`, `Bilinear`, layers with parametrizations, and subclasses of layers. Unless
    `modules` is given, a warning names the unconverted modules that have weight matrices.

    Parameters
    ----------
    model : torch.nn.Module
        The network, or one layer.
    posterior, sharing, noise, estimator, initial, max_log_alpha, penalty, generator
        As for `VariationalLinear`, the same for every layer.
    modules : type, tuple of types or callable, optional
        The layers to convert: all layers of these types, or all for which ``modules(name, module)``
        is true. By default all layers are converted. Subclasses are never converted, because they
        may use their weight in another way.
    inplace : bool
        Convert the layers of `model` itself instead of a copy.

    Returns
    -------
    torch.nn.Module
        The copy, or `model`. Layers that shared a weight still share it, and share its variances.

    Raises
    ------
    TypeError
        If `model` is not a module; if `modules` names a type that has no variational form; if a
        weight is not real, or a hook computes it (`torch.nn.utils.weight_norm`, `spectral_norm`,
        `prune`); if all layers have parametrizations.
    ValueError
        If there is no layer to convert, all layers are variational already, an Embedding has
        `max_norm` or `sparse` or would have scales or groups (exclude it with `modules`), an option
        is invalid, or layers that share a weight would have different alphas.

    See Also
    --------
    conversion : which modules are variational, and why the others are not.
    to_deterministic : the inverse.

    Examples
    --------
    >>> import torch
    >>> from logunif_kl.torch import nn
    >>> model = torch.nn.Sequential(torch.nn.Linear(4, 3), torch.nn.ReLU(), torch.nn.Linear(3, 2))
    >>> nn.to_variational(model, modules=lambda name, module: name == "0")
    Sequential(
      (0): VariationalLinear(in_features=4, out_features=3, bias=True, posterior='additive')
      (1): ReLU()
      (2): Linear(in_features=3, out_features=2, bias=True)
    )
    """
    check_flag("inplace", inplace)
    chosen = _chooser(model, modules)
    checked(options)
    found = [name for name, module in model.named_modules() if chosen(name, module)]
    if not found:
        if modules is None and any(isinstance(m, VariationalLayer) for m in model.modules()):
            raise ValueError(
                f"the layers of this {kind_name(model)} are variational already: change their "
                "options, or make it plain first by to_deterministic"
            )
        for name, each in model.named_modules():
            check_parameters(name, each)
        raise ValueError(
            f"a {kind_name(model)} was given that has no layer to convert: with modules=, choose "
            f"among {_NAMES} (no subclasses)"
        )
    for name in found:
        _check_convertible(name, model.get_submodule(name), options)
    _check_shared(model, found, options.get("sharing", "weight"))
    result = model if inplace else copied(model)
    shared: dict[int, Any] = {}
    for name in found:
        module: Any = result.get_submodule(name)
        module.__class__ = VARIATIONAL[type(module)]
        module._become_variational(**options)
        own = {each: module._parameters[each] for each in module._shapes(module.weight.shape)}
        module._parameters.update(shared.setdefault(id(module.weight), own))
    if modules is None:
        warn_of_left(result)
    return result


def to_deterministic(
    model: torch.nn.Module, threshold: float | None = None, *, inplace: bool = False
) -> torch.nn.Module:
    """Copy a network and make its layers plain, with their means as the weights.

    Modules of torch replace the layers of this library, so the copy can be exported
    (`torch.onnx.export`, `torch.export`). Unless `threshold` prunes weights, the copy gives the
    same outputs as the network in evaluation mode. In the replaced layers, masks of `prune` become
    permanent. `GaussianDropoutLinear` becomes `torch.nn.Linear`, and `GaussianDropoutA` becomes
    `torch.nn.Identity`.

    Parameters
    ----------
    model : torch.nn.Module
        A network with variational layers, or one layer.
    threshold : float, optional
        Weights with a log alpha above `threshold` become 0. Molchanov et al. (2017), section 5, use
        3. By default all weights are kept.
    inplace : bool
        Convert the layers of `model` itself instead of a copy.

    Returns
    -------
    torch.nn.Module
        The copy, or `model`.

    Raises
    ------
    TypeError
        If `model` is not a module, `threshold` is not a real number, a layer belongs to a
        user-defined subclass, or a hook (`torch.nn.utils.weight_norm`, `spectral_norm`) or a
        parametrization computes a weight.
    ValueError
        If there is no variational layer, a lazy layer has no shape yet, or `threshold` is NaN.

    Examples
    --------
    >>> import torch
    >>> from logunif_kl.torch import nn
    >>> layer = nn.VariationalLinear(3, 1, bias=False)
    >>> _ = torch.nn.init.constant_(layer.log_sigma2, 0.0)
    >>> layer.weight.data = torch.tensor([[2.0, 1.0, 0.1]])  # log alpha: -1.4, 0, 4.6
    >>> nn.to_deterministic(layer, threshold=3.0).weight
    Parameter containing:
    tensor([[2., 1., 0.]], requires_grad=True)
    """
    check_flag("inplace", inplace)
    if threshold is not None:
        threshold = check_threshold(threshold)
    found = [name for name, m in check_module(model).named_modules() if isinstance(m, _OURS)]
    if not found or any(isinstance(m, VariationalLayer) for m in model.modules()):
        layers(model)  # recomputes masked weights; raises if there are no layers
    for name in found:
        module: Any = model.get_submodule(name)
        if isinstance(module, LazyModuleMixin):
            raise no_shape(shown_name(name), module)
        names = ["weight"] if hasattr(module, "weight") else []
        if isinstance(module, VariationalLayer):
            names += module._shapes(module.weight.shape)
        check_parameters(name, module, [each for each in names if not masked(module, each)])
        check_known(name, module)
    result = model if inplace else copy.deepcopy(model, copies(model))
    products: dict[tuple[int, int], Any] = {}
    for name in found:
        remove_masks(result.get_submodule(name))
        _make_plain(result.get_submodule(name), threshold, products)
    return result


def _make_plain(module: Any, threshold: float | None, products: dict[tuple[int, int], Any]) -> None:
    if isinstance(module, VariationalLayer):
        with torch.no_grad():
            if module.posterior == "scaled":
                # A new parameter, because another layer may use this one with other scales.
                made = Parameter(module._means(), module.weight.requires_grad)
                key = id(module.weight), id(module.scale)
                # Keep both tensors: if one were freed, another could get the same `id`.
                kept = products.setdefault(key, (made, module.weight, module.scale))
                module.weight = kept[0]
            if threshold is not None:
                pruned = module.log_alpha_of_weights() > threshold
                module.weight.masked_fill_(pruned, 0.0)
        for name in module._shapes(module.weight.shape):
            del module._parameters[name]
    module.__class__ = PLAIN[type(module)]
    for name in (*DEFAULTS, "_sampling", "p"):
        module.__dict__.pop(name, None)


def check_known(name: str, module: torch.nn.Module) -> None:
    """Raise if a layer belongs to a user-defined subclass, whose plain form is not known."""
    kind = type(module)
    if isinstance(module, _OURS) and kind not in PLAIN:
        raise TypeError(
            f"{shown_name(name)} is of type {kind.__name__}, which has no known plain form: "
            "replace it by a layer of torch.nn first"
        )


def plain_kind(module: torch.nn.Module) -> type[torch.nn.Module]:
    """Return the class of `torch.nn` that computes what a layer computes without noise."""
    return PLAIN.get(type(module), type(module))


def _chooser(model: Any, modules: Any) -> Callable[[str, torch.nn.Module], bool]:
    check_module(model)
    if modules is None:
        return _has_form
    if isinstance(modules, (type, tuple)):
        kinds = modules if isinstance(modules, tuple) else (modules,)
        for kind in kinds:
            if kind not in VARIATIONAL:
                raise TypeError(
                    f"modules names {getattr(kind, '__name__', shown(kind))}, which has no "
                    f"variational form: choose from {_NAMES}"
                )
        return lambda name, module: _has_form(name, module) and type(module) in kinds
    if not callable(modules):
        raise TypeError(
            f"modules must be types or a function of name and module, but {shown(modules)} was "
            "given: pass torch.nn.Linear, for example"
        )
    return lambda name, module: _has_form(name, module) and bool(modules(name, module))


def _has_form(name: str, module: torch.nn.Module) -> bool:
    becomes = getattr(module, "cls_to_become", None)
    if isinstance(module, LazyModuleMixin) and becomes in VARIATIONAL:
        raise no_shape(shown_name(name), module)
    return type(module) in VARIATIONAL


def _check_convertible(name: str, module: Any, options: VariationalOptions) -> None:
    check_parameters(name, module, ("weight",))
    if module.weight.is_complex():
        raise TypeError(
            f"the weights of {shown_name(name)} are of {module.weight.dtype}: {OF_COMPLEX}"
        )
    if not module.weight.is_floating_point():
        raise TypeError(
            f"the weights of {shown_name(name)} are of {module.weight.dtype}, not of a floating "
            "type: convert the model before it is quantized"
        )
    if isinstance(module, torch.nn.Embedding):
        unsuited = without_embeddings(options)
        if unsuited:
            raise ValueError(
                f"{unsuited} was given, which has no form for {shown_name(name)}, an Embedding: "
                "leave it out with modules="
            )
        for option in ("max_norm", "sparse"):
            if getattr(module, option):
                raise ValueError(
                    f"{shown_name(name)} is an Embedding with {option}={getattr(module, option)}, "
                    "which has no variational form: leave it out with modules="
                )


def _check_shared(model: torch.nn.Module, found: list[str], sharing: str) -> None:
    """Raise if layers with different alphas would share one weight."""
    units: dict[int, tuple[str, Any]] = {}
    for name in found:
        module: Any = model.get_submodule(name)
        unit = VARIATIONAL[type(module)]._units.get(sharing)
        first, of_first = units.setdefault(id(module.weight), (name, unit))
        if unit != of_first:
            raise ValueError(
                f"modules {first!r} and {name!r} share a weight, which sharing={sharing!r} would "
                "give two alphas: pass sharing='weight' or sharing='layer'"
            )
