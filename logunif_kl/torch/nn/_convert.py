"""Trained networks made variational, and variational ones made plain again.

A module is converted by giving it another class, as torch's lazy modules are. Its parameters, hooks
and identity remain, so that what refers to it (an optimizer, a tied weight, another module) still
does.
"""

# mypy: allow-untyped-calls, no-warn-return-any
from __future__ import annotations

import copy
from collections.abc import Callable, Sequence
from typing import Any

import torch
from torch.nn.modules.lazy import LazyModuleMixin
from torch.nn.utils import parametrize

from ..._errors import OF_COMPLEX, real_number, shown
from ..._layers import check_flag
from ._arguments import check_module
from ._conversion import VARIATIONAL, copied, has_parametrizations, shown_name, warn_of_left
from ._dropout import GaussianDropoutA, GaussianDropoutLinear
from ._hooks import copies, masked, remove_masks
from ._layer import VariationalLayer
from ._linear import VariationalLinear
from ._models import kind_name, layers

Tensor = torch.Tensor
Modules = type | tuple[type, ...] | Callable[[str, torch.nn.Module], bool]

PLAIN: dict[type, type[torch.nn.Module]] = {
    **{variational: plain for plain, variational in VARIATIONAL.items()},
    GaussianDropoutLinear: torch.nn.Linear,
    GaussianDropoutA: torch.nn.Identity,
}
_NAMES = ", ".join(kind.__name__ for kind in VARIATIONAL)


def to_variational(
    model: torch.nn.Module,
    *,
    posterior: str = "additive",
    sharing: str = "weight",
    noise: str = "independent",
    estimator: str = "local",
    initial: float | None = None,
    max_log_alpha: float | None = None,
    penalty: Any = "exact",
    generator: torch.Generator | None = None,
    modules: Modules | None = None,
    inplace: bool = False,
) -> torch.nn.Module:
    """Make the layers of a trained network variational, with their weights as the means.

    `torch.nn.Linear`, `Conv1d`, `Conv2d`, `Conv3d` and `Embedding` become `VariationalLinear` and
    so on. Names in the ``state_dict``, hooks and the mode (training or not) remain. In evaluation
    mode the result computes what the network did.

    `log_sigma2` or `log_alpha` is trainable, also where the weight is frozen. Weights that are
    exactly 0, as after pruning, get noise again from the additive posterior. Other modules stay
    plain: `MultiheadAttention` with its ``out_proj``, `LSTM`, `GRU`, `ConvTranspose2d`, `Bilinear`,
    layers with parametrizations, and modules of derived classes. If those have weight matrices, a
    warning names them. There is none for normalisation layers, nor with `modules`.

    Parameters
    ----------
    model : torch.nn.Module
        The network, or one layer.
    posterior, sharing, noise, estimator, initial, max_log_alpha, penalty, generator
        As for `VariationalLinear`, the same for every layer.
    modules : type, tuple of types or callable, optional
        Which layers to convert: those of a type, or those for which ``modules(name, module)`` is
        true; all by default. Modules of derived classes are left as they are, since they may use
        their weight in a way of their own.
    inplace : bool
        Convert the layers of `model` itself, instead of those of a copy.

    Returns
    -------
    torch.nn.Module
        The copy, or `model`. Weights that layers shared are shared, and so are their variances.

    Raises
    ------
    TypeError
        If `model` is no module, or `modules` names a type that has no variational form, or a weight
        is not real or computed by a hook (`torch.nn.utils.weight_norm`, `spectral_norm`, `prune`),
        or if the only layers have parametrizations.
    ValueError
        If there is no layer to convert, or all are variational already, if an Embedding has
        `max_norm` or `sparse` (leave it out by `modules`), if an option is refused by the layers,
        or if layers that share a weight would have different alphas.

    See Also
    --------
    conversion : which modules are variational, and why the others are not.
    to_deterministic : the way back.

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
    options = (posterior, sharing, noise, estimator, initial, max_log_alpha, penalty, generator)
    _check(options)
    found = [name for name, module in model.named_modules() if chosen(name, module)]
    if not found:
        if modules is None and any(isinstance(m, VariationalLayer) for m in model.modules()):
            raise ValueError(
                f"the layers of this {kind_name(model)} are variational already: change their "
                "options, or make it plain first by to_deterministic"
            )
        for name, each in model.named_modules():
            if parametrize.is_parametrized(each):
                raise has_parametrizations(name)
        raise ValueError(
            f"a {kind_name(model)} was given in which no module is to be converted: choose "
            f"{_NAMES} (no subclasses) with modules="
        )
    for name in found:
        _check_convertible(name, model.get_submodule(name))
    _check_shared(model, found, options)
    result = model if inplace else copied(model)
    spreads: dict[int, Any] = {}
    for name in found:
        module: Any = result.get_submodule(name)
        module.__class__ = VARIATIONAL[type(module)]
        module._become_variational(*options)
        shared = spreads.setdefault(id(module.weight), module._log_variance)
        module._parameters[module._log_variance_name] = shared
    if modules is None:
        warn_of_left(result)
    return result


def to_deterministic(
    model: torch.nn.Module, threshold: float | None = None, *, inplace: bool = False
) -> torch.nn.Module:
    """Make the variational layers of a network plain again, with their means as the weights.

    The result holds modules of torch alone where layers of this library were, so it can be
    exported (`torch.onnx.export`, `torch.export`). It computes what the network computes in
    evaluation mode, but for the weights that are pruned. Masks of `prune` are made permanent in
    these layers. `GaussianDropoutLinear` becomes
    `torch.nn.Linear`, and `GaussianDropoutA` becomes `torch.nn.Identity`.

    Parameters
    ----------
    model : torch.nn.Module
        A network with variational layers, or one layer.
    threshold : float, optional
        Weights with log alpha above it become 0. Molchanov et al. (2017), section 5, take 3. By
        default none do.
    inplace : bool
        Convert the layers of `model` itself, instead of those of a copy.

    Returns
    -------
    torch.nn.Module
        The copy, or `model`.

    Raises
    ------
    TypeError
        If `model` is no module, `threshold` no real number, or a layer is of a derived class, or
        its weight is computed by a hook (`torch.nn.utils.weight_norm`, `spectral_norm`) or by a
        parametrization.
    ValueError
        If there is no variational layer, a lazy one has no shape yet, or `threshold` is NaN.

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
        threshold = real_number("threshold", threshold)
        if threshold != threshold:
            raise ValueError("threshold must be no NaN: pass 3.0, or None to keep every weight")
    if not _has_dropout(model):
        layers(model)
    ours: Any = (VariationalLayer, GaussianDropoutA, GaussianDropoutLinear)
    found = [name for name, module in model.named_modules() if isinstance(module, ours)]
    for name in found:
        module: Any = model.get_submodule(name)
        if isinstance(module, LazyModuleMixin):
            raise _no_shape(name, module)
        if parametrize.is_parametrized(module):
            raise has_parametrizations(name)
        check_known(name, module)
        if isinstance(module, VariationalLayer):
            names = ("weight", module._log_variance_name)
            _check_parameters(name, module, [each for each in names if not masked(module, each)])
    result = model if inplace else copy.deepcopy(model, copies(model))
    for name in found:
        remove_masks(result.get_submodule(name))
        _make_plain(result.get_submodule(name), threshold)
    return result


def _has_dropout(model: Any) -> bool:
    return isinstance(model, torch.nn.Module) and any(
        isinstance(module, (GaussianDropoutA, GaussianDropoutLinear)) for module in model.modules()
    )


def _make_plain(module: Any, threshold: float | None) -> None:
    if isinstance(module, VariationalLayer):
        if threshold is not None:
            with torch.no_grad():
                pruned = module.log_alpha_of_weights() > threshold
                module.weight.masked_fill_(pruned, 0.0)
        del module._parameters[module._log_variance_name]
    module.__class__ = PLAIN[type(module)]
    for name in _OPTIONS:
        module.__dict__.pop(name, None)


_OPTIONS = (
    *("posterior", "sharing", "noise", "estimator", "initial", "max_log_alpha", "penalty"),
    *("generator", "_sampling", "p"),
)


def check_known(name: str, module: torch.nn.Module) -> None:
    """Raise if a layer is of a subclass, which may compute something else.

    Raises
    ------
    TypeError
        If it is variational, or draws dropout, and has no plain form here.
    """
    kind = type(module)
    ours = (VariationalLayer, GaussianDropoutA, GaussianDropoutLinear)
    if isinstance(module, ours) and kind not in PLAIN:
        raise TypeError(
            f"{shown_name(name)} is of type {kind.__name__}, of which no plain form is known: "
            "convert it before the others"
        )


def plain_kind(module: torch.nn.Module) -> type[torch.nn.Module]:
    """Return the type of torch that computes what a layer does without noise."""
    return PLAIN.get(type(module), type(module))


def _check(options: tuple[Any, ...]) -> None:
    """Make a layer without memory, so that a wrong option is refused before anything changes."""
    layer: Any = torch.nn.Linear(1, 1, device="meta")
    layer.__class__ = VariationalLinear
    layer._become_variational(*options)


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
        raise _no_shape(name, module)
    return type(module) in VARIATIONAL


def _no_shape(name: str, module: Any) -> ValueError:
    return ValueError(
        f"{shown_name(name)} is a {type(module).__name__} that has no shape yet: run a batch "
        "through the model first"
    )


def _check_parameters(name: str, module: Any, names: Sequence[str]) -> None:
    for parameter in names:
        if parameter not in module._parameters:
            raise TypeError(
                f"the {parameter} of {shown_name(name)} is computed by a hook: remove it first, by "
                "torch.nn.utils.remove_weight_norm, remove_spectral_norm or prune.remove"
            )


def _check_convertible(name: str, module: Any) -> None:
    _check_parameters(name, module, ("weight",))
    if module.weight.is_complex():
        raise TypeError(
            f"the weights of {shown_name(name)} are of {module.weight.dtype}: {OF_COMPLEX}"
        )
    if not module.weight.is_floating_point():
        raise TypeError(
            f"the weights of {shown_name(name)} are of {module.weight.dtype}, which has no "
            "variances: convert the model before it is quantized"
        )
    if isinstance(module, torch.nn.Embedding):
        for option in ("max_norm", "sparse"):
            if getattr(module, option):
                raise ValueError(
                    f"{shown_name(name)} is an Embedding with {option}={getattr(module, option)}, "
                    "which has no variational form: leave it out with modules="
                )


def _check_shared(model: torch.nn.Module, found: list[str], options: tuple[Any, ...]) -> None:
    """Raise if one weight would be of layers with different alphas."""
    shapes: dict[int, tuple[str, Any]] = {}
    for name in found:
        module: Any = model.get_submodule(name)
        kind: Any = VARIATIONAL[type(module)]
        units = {key: i for key, i in kind._units.items() if key == options[1]}
        first, shape = shapes.setdefault(id(module.weight), (name, units))
        if shape != units:
            raise ValueError(
                f"modules {first!r} and {name!r} share a weight, which sharing={options[1]!r} "
                "would give two alphas: pass sharing='weight' or sharing='layer'"
            )
