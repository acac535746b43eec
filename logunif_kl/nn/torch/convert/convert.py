"""Make trained networks variational, and variational networks plain again.

A conversion assigns another class to a module, as torch's lazy modules do. The module keeps its
identity, parameters and hooks, so optimizers, tied weights and other modules still refer to it.
"""

# mypy: allow-untyped-calls, no-warn-return-any
from __future__ import annotations

import copy
from typing import Any, NoReturn, Unpack

import torch
from torch.nn import Parameter
from torch.nn.modules.lazy import LazyModuleMixin

from ...checks import check_flag
from ...sparsity import check_threshold, is_noisy
from ..arguments import (
    check_module,
    check_parameters,
    check_unwrapped,
    no_shape,
    shown_name,
    whole,
)
from ..hooks import check_apart, copies, masked, remove_masks
from ..noise.draws import unhook
from ..noise.normal import StochasticModule
from ..options import VariationalOptions, checked, list_options
from ..weights.kinds import has_sampled_form
from ..weights.models import gaussians, kind_name
from ..weights.sampled import SampledModule, apart, sample_weights
from ..weights.tied import forget_tied_variances, name_tied_variances, variances_of_weights
from ..weights.weight import VariationalModule, Weight
from .choose import Modules, Parameters, choose, not_additive
from .conversion import VARIATIONAL, copied, warn_of_kept, warn_of_left, warn_of_optimizers
from .plain import check_forward, check_known

Tensor = torch.Tensor


@list_options
def to_variational(
    model: torch.nn.Module,
    *,
    modules: Modules | None = None,
    parameters: Parameters | None = None,
    inplace: bool = False,
    **options: Unpack[VariationalOptions],
) -> torch.nn.Module:
    """Copy a network and make its weights Gaussian, with the present weights as the means.

    `torch.nn.Linear`, `Conv1d`, `Conv2d`, `Conv3d` and `Embedding` become `VariationalLinear` and
    so on. Attention, recurrent modules and cells, transposed convolutions, `Bilinear`,
    `EmbeddingBag` and the ``Conv1D`` of Hugging Face become a `SampledModule`: their weights are
    drawn once in each call of the network, and each weight ``w`` gets a parameter
    ``w_log_sigma2``. All parameters keep their names in the ``state_dict``, and modules keep their
    hooks and their mode (training or evaluation). In evaluation mode the copy gives the same
    outputs as `model`.

    The variances are trainable even if a weight is frozen. With the posterior `Additive`, weights
    that are exactly 0 (after pruning, for example) get noise again. Layers with parametrizations,
    subclasses of layers and user-defined modules are converted only if `modules` or `parameters`
    choose them. Unless `modules` is given, a warning names the unconverted modules that have weight
    matrices. Initialise weights before the conversion: a loop over ``named_parameters()`` that
    looks for "weight" in names, or for two dimensions, also changes ``weight_log_sigma2``.

    If parts of a network were converted apart, each part draws its sampled weights in its own
    calls. Convert the network once more, to draw them once in each call of the network.

    Parameters
    ----------
    model : torch.nn.Module
        The network, or one layer.
    posterior, estimator, penalty, generator
        As for `VariationalLinear`, the same for every layer. Sampled weights have the posterior
        `Additive`, and ignore `estimator`; with another `posterior` they are left. The layers hold
        the generator and the prior themselves, not copies of them.
    modules : type, tuple of types or callable, optional
        The modules to convert: all of exactly these types, or all for which ``modules(name,
        module)`` is true. A module that has no layer here becomes a `SampledModule`, in which all
        parameters with two dimensions or more are Gaussian, except biases. By default all modules
        listed above are converted.
    parameters : sequence of str or callable, optional
        Further parameters of any module to make Gaussian: their names in ``named_parameters()``, or
        a function that is true for ``parameters(name, parameter)``. Their modules become a
        `SampledModule`. What a function says of layers, and of modules that are converted
        already, does not count. To convert only these parameters, pass ``modules=()``. All rows of
        an `Embedding` have noise then, also that of its `padding_idx`.
    inplace : bool
        Convert the layers of `model` itself instead of a copy. Do not pass True if other networks
        that were converted before have parts of `model`: a part would draw anew in each call.

    Returns
    -------
    torch.nn.Module
        The copy, or `model`. Layers that shared a weight still share it, and share its variances.

    Raises
    ------
    TypeError
        If `model` is not a module, or is in a `DistributedDataParallel` or sharded by FSDP; if
        `modules` or `parameters` is neither of its types; if a weight is not real, or a hook
        computes it (`torch.nn.utils.weight_norm`, `spectral_norm`, `prune`); if all layers have
        parametrizations; if a ``forward`` was assigned to a layer.
    ValueError
        If there is no layer to convert, all layers are variational already, an Embedding has
        `max_norm` or `sparse` or would have scales or groups (exclude it with `modules`), a chosen
        module cannot have the given `posterior`, an option is invalid, layers that
        share a weight would have different alphas, the model has no parameter of a given name, or a
        module has an attribute with the name of an option or of a new parameter.

    See Also
    --------
    conversion : which modules are variational, and why the others are not.
    to_deterministic : the inverse.

    Notes
    -----
    A layer draws its noise when it is called. If a network reads the weight of a layer instead, as
    in ``F.linear(x, self.layer.weight)``, or if a method other than the call reads a Gaussian
    parameter, as in ``model.encode(x)``, nothing is drawn. While noise is on, such a weight has a
    shape, a dtype and a device, but computing with it raises RuntimeError. Name the weight in
    `parameters` (and leave the layer out of `modules`) to draw it once in each call of the network,
    or run the code within `sampled`, where every module gets the same sample. The means themselves
    are ``weight.detach()``. Code outside of modules, and methods that prepare parameters (with
    init, reset, tie, resize, load or configure as a word of their name), get the parameter of a
    layer: the means. So does all code that calls ``parameters()``, ``get_parameter`` or
    ``state_dict`` or reads ``_parameters``, a function that a module hands to another thread, and a
    module that keeps the weight in an attribute of its own. A warning tells of such an attribute if
    it is there already, but not of a ``cached_property`` that is read first in evaluation mode.
    Functions of `torch.func` and of TorchScript that another module calls with the weight of a
    layer give NaN instead of the error. The weight of a layer that has a parametrization has its
    noise only in calls of the layer: other readers get the means that it computes. An autograd
    Function that runs modules again in its backward pass, as those of reversible networks do, is
    found only if its ``forward`` takes `ctx` and has no ``setup_context``. Otherwise it does not
    get the mask of ``ELBO(mask_from=)`` again, and gradients are wrong if its modules share a
    sample, or if `sampled` has ended. A ``ParameterDict`` or ``ParameterList`` that a ``forward``
    makes of samples detaches them: make a dict or a list.

    Examples
    --------
    >>> import torch
    >>> from logunif_kl.torch import nn
    >>> model = torch.nn.Sequential(torch.nn.Linear(4, 3), torch.nn.ReLU(), torch.nn.Linear(3, 2))
    >>> nn.to_variational(model, modules=lambda name, module: name == "0")
    Sequential(
      (0): VariationalLinear(in_features=4, out_features=3, bias=True)
      (1): ReLU()
      (2): Linear(in_features=3, out_features=2, bias=True)
    )
    >>> cell = nn.to_variational(torch.nn.GRUCell(2, 1))
    >>> [name for name, _ in cell.named_parameters() if "log_sigma2" in name]
    ['weight_ih_log_sigma2', 'weight_hh_log_sigma2']
    """
    check_flag("inplace", inplace)
    whole(check_module(model))
    check_unwrapped(model)
    values = checked(options)
    posterior = values["posterior"]
    chosen = choose(model, modules, parameters, posterior)
    if not chosen.layers and not chosen.sampled and not apart(model):
        _refuse_nothing(model, modules, posterior)
    for name in chosen.layers:
        check_forward(name, model.get_submodule(name))
    result = model if inplace else copied(model, values)
    if not inplace:
        names = (*chosen.layers, *chosen.sampled)
        check_apart(model, result, {model.get_submodule(name) for name in names})
    shared = variances_of_weights(result)
    for name in chosen.layers:
        module: Any = result.get_submodule(name)
        module.__class__ = VARIATIONAL[type(module)]
        module._become_variational(**options)
        own = {each: module._parameters[each] for each in module._shapes(module._lk_stored.shape)}
        given = shared.setdefault(id(module._lk_stored), own)
        if {k: x.shape for k, x in given.items()} != {k: x.shape for k, x in own.items()}:
            raise ValueError(
                f"{shown_name(name)} shares its weight with a module that was converted before, "
                "with another posterior: convert both with the same posterior"
            )
        module._parameters.update(given)
    sample_weights(result, chosen.sampled, shared, values)
    name_tied_variances(result)
    VariationalModule._lk_conversions += 1
    warn_of_kept(result)
    warn_of_optimizers(result)
    if modules is None:
        warn_of_left(result)
    return result


def _refuse_nothing(model: torch.nn.Module, modules: Any, posterior: Any) -> NoReturn:
    if modules is None and any(isinstance(m, VariationalModule) for m in model.modules()):
        raise ValueError(
            f"the layers of this {kind_name(model)} are variational already: change their options, "
            "or make it plain first by to_deterministic"
        )
    for name, each in model.named_modules():
        check_parameters(name, each)
        if modules is None and has_sampled_form(each):
            raise not_additive(name, each, posterior)
    raise ValueError(
        f"a {kind_name(model)} was given that has no layer to convert: with modules=, choose types "
        "of modules that have weight matrices"
    )


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
        A network with variational layers, or one layer. The copy is that of the network in a
        `DistributedDataParallel`.
    threshold : float, optional
        Weights with a log alpha above `threshold` become 0. Molchanov et al. (2017), section 5, use
        3. By default all weights are kept.
    inplace : bool
        Convert the layers of `model` itself instead of a copy. With the posterior `Scaled`, the
        weights are new parameters, which an optimizer that was made before does not have.

    Returns
    -------
    torch.nn.Module
        The copy, or `model`.

    Raises
    ------
    TypeError
        If `model` is not a module, is sharded by FSDP, or is a `DistributedDataParallel` to convert
        in place, `threshold` is not a real number, a layer belongs to a user-defined subclass, or a
        hook (`torch.nn.utils.weight_norm`, `spectral_norm`) or a parametrization computes a weight.
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
    unwrapped = whole(check_module(model))
    model = model if inplace else unwrapped
    check_unwrapped(model)
    found = [name for name, m in model.named_modules() if isinstance(m, StochasticModule)]
    if not found or any(isinstance(m, VariationalModule) for m in model.modules()):
        gaussians(model)  # recomputes masked weights; raises if there are none
    for name in found:
        module: Any = model.get_submodule(name)
        if isinstance(module, LazyModuleMixin):
            raise no_shape(shown_name(name), module)
        names = ["weight"] if hasattr(module, "weight") else []
        if isinstance(module, VariationalModule):
            names = [x for each in module._lk_weights() for x in (each.name, *each.parameters)]
        check_parameters(name, module, [each for each in names if not masked(module, each)])
        check_known(name, module)
    result = model if inplace else copy.deepcopy(model, copies(model))
    if not inplace:
        check_apart(model, result, {m for m in model.modules() if isinstance(m, StochasticModule)})
    products: dict[tuple[int, int], Any] = {}
    # Without the names, because the copy of a compiled layer is the layer itself.
    for module in [m for m in result.modules() if isinstance(m, StochasticModule)]:
        remove_masks(module)
        _make_plain(module, threshold, products)
    for module in result.modules():
        unhook(module)
    forget_tied_variances(result)
    return result


def without_samples(model: torch.nn.Module, threshold: float | None) -> torch.nn.Module:
    """Copy a model and make its sampled modules and its dropout plain, or return one without.

    Raise for parameters that are split, whose dead units would not be found.
    """
    model = whole(model)
    if any(hasattr(each, "placements") for each in model.parameters()):
        raise TypeError(
            "the model has DTensors as parameters, each of which several processes hold in parts: "
            "load its full state_dict (see torch.distributed.checkpoint.state_dict) into a model "
            "that is not sharded"
        )
    if not any(map(_has_no_layer, model.modules())):
        return model
    result = copy.deepcopy(model, copies(model))
    check_apart(model, result, {*filter(_has_no_layer, model.modules())})
    for each in [*filter(_has_no_layer, result.modules())]:
        remove_masks(each)
        _make_plain(each, threshold, {})
    for module in result.modules():
        unhook(module)
    return result


def _has_no_layer(module: torch.nn.Module) -> bool:
    """Whether a module has noise, and is no layer with a weight."""
    dropout = isinstance(module, StochasticModule) and not hasattr(module, "weight")
    return isinstance(module, SampledModule) or dropout


def _make_plain(module: Any, threshold: float | None, products: dict[tuple[int, int], Any]) -> None:
    if isinstance(module, VariationalModule):
        for weight in module._lk_weights():
            _make_mean(weight, threshold, products)
    module._lk_become_plain()


@torch.no_grad()
def _make_mean(weight: Weight, threshold: float | None, products: dict[Any, Any]) -> None:
    """Make the parameter of a weight its mean, without the noisy weights."""
    module, name = weight.module, weight.name
    scale = module._parameters["scale"] if "scale" in weight.posterior.parameters else None
    noisy = None if threshold is None else is_noisy(weight.log_alpha(), threshold)
    if scale is not None:
        # A new parameter, because another layer may use this one with other scales.
        given = module._parameters[name]
        made = Parameter(weight.means(), given.requires_grad)
        # Keep both tensors: if one were freed, another could get the same `id`.
        kept = products.setdefault((id(given), id(scale)), (made, given, scale))
        module._parameters[name] = kept[0]
    if noisy is not None:
        module._parameters[name].masked_fill_(noisy, 0.0)
