"""The KL of a whole model, and its parameters in groups."""

# mypy: allow-untyped-calls, no-warn-return-any
from __future__ import annotations

from collections.abc import Sequence
from operator import is_not
from typing import Any

import numpy as np
import torch
from torch.nn import Parameter

from ...._errors import real_number, shown, type_name
from ...penalty import check_of
from ...terms import Term
from ..arguments import check_gathered, check_module
from ..priors.penalty import total
from .weight import Distinct, Weight, weights

Tensor = torch.Tensor


def neg_kl(model: torch.nn.Module, of: str | None = None) -> Tensor:
    r"""Compute -KL(q || p) of all variational layers of a model: *maximise* it (ELBO sign).

    It is a sum over all alphas, with F as in `logunif_kl.neg_kl` (Hron et al. 2017, Eq. 1):

    .. math::

        -\mathrm{KL} = \sum_i c_i \left(\mathrm{constant} - F(u_i)\right), \qquad
        u_i = \frac{1}{2 \alpha_i}, \qquad \mathrm{constant} = 0 \; (\mathrm{zero\_at} = \infty)

    c_i is the number of weights, or scales of `Correlated`, that share alpha_i. Layers with
    the posterior `Scaled` have alphas of their scales, and add -KL of v (see `Scaled`). A
    module that is used several times (a recurrent cell) counts once. So do layers that share
    `weight` and also `log_sigma2` or `log_alpha`. The row at a `padding_idx` has no noise and does
    not count, unless another layer with the same weight draws noise for it.

    Parameters
    ----------
    model : torch.nn.Module
        A layer, or any module that holds layers.
    of : {"weights", "scales"}, optional
        Check that all layers have this KL. Layers with the posterior `Correlated` have the KL of
        the scales. All other layers have the KL of the weights.

    Returns
    -------
    Tensor
        A 0-d tensor, in nats; float64 if a layer is float64, otherwise float32. If parameters are
        sharded (DTensor), it is the sum over all processes, as a plain tensor.

    Raises
    ------
    TypeError
        If `model` is not a module.
    ValueError
        If `model` has no variational layers, or a layer does not have the KL that `of` names.

    See Also
    --------
    kl : the same with the opposite sign, to be added to a loss.
    named_kl : the KL of each layer.

    Notes
    -----
    One autograd node computes the KL of all tensors of one dtype and device, without copies. Under
    `torch.compile`, in transforms of `torch.func` and for DTensors, each tensor has its own node.

    Layers share a weight if they have the same `Parameter`. ``load_state_dict(assign=True)``,
    `torch.__future__.set_overwrite_module_params_on_conversion` and tensor parallelism give each
    layer a parameter of its own, which counts by itself: assign the shared parameters again.

    Examples
    --------
    >>> import torch
    >>> from logunif_kl.torch import nn
    >>> layer = nn.VariationalLinear(2, 2, posterior=nn.Multiplicative(initial=0.0))
    >>> model = torch.nn.Sequential(layer, torch.nn.ReLU(), layer)
    >>> print(f"{nn.neg_kl(model):.4f}")  # 4 weights with alpha = 1
    -1.7067
    """
    return total(_terms(model, of))


def kl(model: torch.nn.Module, of: str | None = None) -> Tensor:
    """Compute the sum of KL(q || p) of all variational layers, to be *added to a loss*.

    This is ``-neg_kl(model, of)``. If the loss is a mean over a minibatch, divide the KL by the
    number of examples in the data set (Kingma et al. 2015, Eqs. 1 and 3), as `ELBO` does.

    Parameters
    ----------
    model : torch.nn.Module
        As for `neg_kl`.
    of : {"weights", "scales"}, optional
        As for `neg_kl`.

    Returns
    -------
    Tensor
        A 0-d tensor, in nats. KL is not negative, except with an approximate `penalty`, an estimate
        by samples, or a prior that leaves its constant out.

    Raises
    ------
    TypeError, ValueError
        As for `neg_kl`.

    Examples
    --------
    >>> from logunif_kl.torch import nn
    >>> layer = nn.VariationalLinear(2, 2, posterior=nn.Multiplicative(initial=0.0))
    >>> print(f"{nn.kl(layer):.4f}")
    1.7067
    """
    return -neg_kl(model, of)


def named_kl(model: torch.nn.Module, of: str | None = None) -> dict[str, Tensor]:
    """Return a dict with KL(q || p) of each variational layer of a model, by the layer's name.

    Parameters
    ----------
    model : torch.nn.Module
        As for `neg_kl`.
    of : {"weights", "scales"}, optional
        As for `neg_kl`.

    Returns
    -------
    dict of str to Tensor
        0-d tensors, whose sum is ``kl(model)`` up to rounding. Layers that share parameters have
        one entry, under the first name.

    Raises
    ------
    TypeError, ValueError
        As for `neg_kl`.

    Examples
    --------
    >>> import torch
    >>> from logunif_kl.torch import nn
    >>> layer = nn.VariationalLinear(2, 2, posterior=nn.Multiplicative(initial=0.0))
    >>> model = torch.nn.Sequential(layer, torch.nn.Linear(2, 1))
    >>> {name: round(value.item(), 4) for name, value in nn.named_kl(model).items()}
    {'0': 1.7067}
    """
    names = [name for name, *_ in gaussians(model)]
    found = _terms(model, of)
    return {name: -total([each]) for name, each in zip(names, found, strict=True)}


def parameter_groups(
    model: torch.nn.Module, weight_decay: float, **options: Any
) -> list[dict[str, Any]]:
    """Return groups of parameters for an optimizer, with weight decay for all but the variances.

    Weight decay would pull `log_sigma2`, `log_alpha` and `scale_log_sigma2` of the variational
    layers to 0, that is a variance or alpha to 1. They get a group without weight decay.

    Parameters
    ----------
    model : torch.nn.Module
        Any network.
    weight_decay : float
        Of all other parameters.
    **options
        Of both groups, such as ``lr=1e-3``.

    Returns
    -------
    list of dict
        The first argument of an optimizer. Each parameter that requires a gradient is in one group.

    Raises
    ------
    TypeError
        If `model` is not a module, or `weight_decay` is not a real number.

    Examples
    --------
    >>> import torch
    >>> from logunif_kl.torch import nn
    >>> layer = nn.VariationalLinear(2, 1)
    >>> optimizer = torch.optim.AdamW(nn.parameter_groups(layer, weight_decay=0.01), lr=1e-3)
    >>> [(group["weight_decay"], len(group["params"])) for group in optimizer.param_groups]
    [(0.01, 2), (0.0, 1)]
    """
    decay = real_number("weight_decay", weight_decay)
    if not decay >= 0.0:
        raise ValueError(
            f"weight_decay must be at least 0, but {decay:g} was given: pass the factor of the "
            "squared weights, such as 0.01"
        )
    variances = {
        id(each)
        for _, weight in weights(check_module(model))
        for own, name in zip(weight.posterior.parameters, weight.parameters, strict=True)
        if own != "scale"
        for each in weight.sources(name)
    }
    groups: list[dict[str, Any]] = [
        {"params": [], "weight_decay": decay, **options},
        {"params": [], "weight_decay": 0.0, **options},
    ]
    for parameter in model.parameters():
        if parameter.requires_grad:
            groups[id(parameter) in variances]["params"].append(parameter)
    return groups


def gaussians(model: Any) -> list[tuple[str, Weight, bool]]:
    """List (name, weight, whole) for each Gaussian weight of a model, once.

    A weight is left out if an earlier one has the same mean and second parameter. `whole` is True
    if another weight with this mean has noise in the row at `padding_idx`.
    """
    found: list[tuple[str, Weight, bool]] = []
    distinct = Distinct()
    for name, weight in weights(check_module(model)):
        mean, log_variance = weight.stored, weight.log_variance
        check_gathered(name, weight.module, mean)
        sources: Sequence[Tensor] = ()
        if not type(mean) is type(log_variance) is Parameter:
            sources = [*weight.sources(weight.name), *weight.sources(weight.parameters[0])]
            for each in sources:
                check_gathered(name, weight.module, each)
        at = distinct.number(sources, (mean, log_variance))
        if at == len(found):
            found.append((name, weight, False))
            continue
        first, other, _ = found[at]
        _check_same_divergence(first, other, name, weight)
        if weight.posterior.scaled or other.posterior.scaled:
            _check_same_scales(first, other, name, weight)
        if weight.padding != other.padding:
            found[at] = first, other if other.padding is None else weight, True
    if not found:
        raise ValueError(
            f"a {kind_name(model)} without variational layers was given: make some with "
            "logunif_kl.torch.nn.to_variational"
        )
    return found


def _check_same_divergence(first: str, weight: Weight, second: str, other: Weight) -> None:
    bounds = [each.posterior.max_log_alpha for each in (weight, other) if each.posterior.relative]
    for name, ours, theirs in (
        ("penalty", weight.penalty, other.penalty),
        ("posterior.max_log_alpha", *(bounds if len(bounds) == 2 else (None, None))),
    ):
        if _differ(ours, theirs):
            raise ValueError(
                f"layers {first!r} and {second!r} share a weight, so its KL counts once, but the "
                f"{name} is {shown(ours)} in one and {shown(theirs)} in the other: make them equal"
            )


def _differ(ours: Any, theirs: Any, seen: set[tuple[int, int]] | None = None) -> bool:
    """Whether two options have another meaning, as far as they can be compared."""
    seen = set() if seen is None else seen
    if ours is theirs or (id(ours), id(theirs)) in seen:
        return False
    seen.add((id(ours), id(theirs)))
    if isinstance(ours, torch.nn.Module) or isinstance(theirs, torch.nn.Module):
        return True
    try:
        if type(ours) is type(theirs):
            if isinstance(ours, Tensor):
                return not torch.equal(ours, theirs)
            if isinstance(ours, np.ndarray):
                return not np.array_equal(ours, theirs)
            if isinstance(ours, (list, tuple)):
                pairs = zip(ours, theirs, strict=False)
                return len(ours) != len(theirs) or any(_differ(x, y, seen) for x, y in pairs)
            is_dict = isinstance(ours, dict)
            if is_dict or getattr(type(ours), "__eq__", None) is object.__eq__:
                one, other = (ours, theirs) if is_dict else (vars(ours), vars(theirs))
                return one.keys() != other.keys() or any(
                    _differ(one[key], other[key], seen) for key in one
                )
        return bool(ours != theirs)
    except (RuntimeError, TypeError, ValueError):  # of arrays, or there is no ``__dict__``
        return False


def _check_same_scales(first: str, weight: Weight, second: str, other: Weight) -> None:
    scales = [
        [own for name in each.parameters[1:] for own in each.sources(name)]
        for each in (weight, other)
    ]
    if any(scales):
        if len(scales[0]) != len(scales[1]) or any(map(is_not, *scales)):
            raise ValueError(
                f"layers {first!r} and {second!r} share weight and log_sigma2, but not scale and "
                "scale_log_sigma2: share these too, or do not share log_sigma2"
            )
    elif (
        weight.posterior.scaled != other.posterior.scaled
        or weight.module._scales() != other.module._scales()
    ):
        raise ValueError(
            f"layers {first!r} and {second!r} share their parameters, but not the scales of "
            "their inputs: use posterior=nn.Multiplicative()"
        )


def kind_name(model: torch.nn.Module) -> str:
    """Name the type of a module as users write it: ``torch.nn.Linear``."""
    name = type(model).__name__
    return f"torch.nn.{name}" if getattr(torch.nn, name, None) is type(model) else type_name(model)


def _terms(model: Any, of: str | None) -> list[tuple[Any, list[Term]]]:
    """Return the penalty and the terms of each Gaussian weight of a model."""
    found = []
    for _, weight, whole in gaussians(model):
        check_of(of, weight.posterior)
        found.append((weight.penalty, weight.terms(whole)))
    return found
