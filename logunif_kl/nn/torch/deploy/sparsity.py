"""Compute log alpha of a model, count the weights that a threshold keeps, or choose a threshold."""

# mypy: allow-untyped-calls, no-warn-return-any
from __future__ import annotations

import math
from collections.abc import Callable, Iterable, Iterator, Sequence
from typing import Any

import numpy as np
import torch

from ...._errors import shown
from ....methods._progress import progress_bar
from ...sparsity import THRESHOLD, Sparsity, check_threshold, is_noisy, threshold_that_keeps
from ...threshold_curve import ThresholdCurve, check_measured, check_thresholds
from ..arguments import check_gathered, check_module, check_shape, sharded
from ..convert.conversion import VARIATIONAL, priors
from ..convert.convert import to_deterministic
from ..hooks import has_scales, refresh
from ..layers.dropout import GaussianDropoutLinear
from ..priors.penalty import gathered
from ..weights.kinds import class_of, has_parametrizations, has_sampled_form, matrices
from ..weights.models import gaussians, kind_name
from ..weights.sampled import SUFFIX
from ..weights.weight import Distinct, VariationalModule, Weight
from .sparse import SparseLayer

Tensor = torch.Tensor


@torch.no_grad()
def log_alpha(model: torch.nn.Module) -> dict[str, Tensor]:
    """Compute log alpha of every weight of a model, by the name of the layer.

    Parameters
    ----------
    model : torch.nn.Module
        A layer, or any module that holds variational layers.

    Returns
    -------
    dict of str to Tensor
        The result of ``VariationalLayer.log_alpha_of_weights`` for each layer, without gradient, in
        the shape of its `weight`. It is inf where the mean is 0. A shared weight is listed once,
        under the first name.

    Raises
    ------
    TypeError
        If `model` is not a module.
    ValueError
        If `model` has no variational layers.

    See Also
    --------
    sparsity : how many weights a threshold on log alpha keeps.

    Examples
    --------
    >>> import torch
    >>> from logunif_kl.torch import nn
    >>> layer = nn.VariationalLinear(3, 1, posterior=nn.Additive(initial=0.0))
    >>> layer.weight.data = torch.tensor([[1.0, 0.1, 0.0]])
    >>> nn.log_alpha(torch.nn.Sequential(layer))
    {'0': tensor([[0.0000, 4.6052,    inf]])}
    """
    return {name: weight.log_alpha() for name, weight, _ in gaussians(model)}


@torch.no_grad()
def sparsity(model: torch.nn.Module, threshold: float = THRESHOLD) -> Sparsity:
    """Count the weights that a threshold on log alpha keeps, by layer and in total.

    A weight is kept if it is not 0 and its log alpha is not above the threshold. A NaN is neither 0
    nor above the threshold. The kept weights are the nonzero weights of
    ``to_deterministic(model, threshold)``. `torch.nn.Linear`, `Conv1d`, `Conv2d`, `Conv3d` and
    `Embedding`, and the modules that `to_variational` makes a `SampledModule`, have no alpha, so
    their nonzero weights are kept. All parameters of other modules, such as `LayerNorm`, are kept,
    and appear in the row ``"not converted"``.

    Parameters
    ----------
    model : torch.nn.Module
        A layer, or a network: variational, pruned, plain, or from `to_sparse`. In a network from
        `to_sparse`, only the weights of the remaining units count.
    threshold : float
        The default, 3, is from Molchanov et al. (2017), section 5. With inf only zeros are pruned.

    Returns
    -------
    Sparsity
        With ``kept``, ``weights``, ``pruned`` (a fraction), ``compression`` (weights/kept), and
        ``layers``, a dict with a `Sparsity` for each layer. Shared weights count once. Biases count
        only in ``"not converted"``.

    Raises
    ------
    TypeError
        If `model` is not a module, or `threshold` is not a number.
    ValueError
        If there are no layers with weights, a layer has no shape yet, or `threshold` is NaN.

    References
    ----------
    Molchanov, Ashukha, Vetrov, "Variational Dropout Sparsifies Deep Neural Networks" (2017).

    Examples
    --------
    >>> import torch
    >>> from logunif_kl.torch import nn
    >>> layer = nn.VariationalLinear(3, 1, posterior=nn.Additive(initial=0.0))
    >>> layer.weight.data = torch.tensor([[1.0, 0.1, 0.0]])
    >>> print(nn.sparsity(torch.nn.Sequential(layer, torch.nn.ReLU(), torch.nn.Linear(1, 2))))
    layer  weights  kept   pruned  compression
    0            3     1  66.67 %          3.0
    2            2     2   0.00 %          1.0
    all          5     3  40.00 %          1.7
    """
    threshold = check_threshold(threshold)
    found: dict[str, Sparsity] = {}
    distinct = Distinct()
    for name, weight, stored, kept in with_kept(weighted(model, sparse=True), threshold):
        if distinct.number(weight.sources(weight.name), (stored,)) == len(found):
            found[name] = Sparsity(int(gathered(kept.sum())), stored.numel())
    others = _of_others(model)
    if others:
        found["not converted"] = Sparsity(others, others)
    return Sparsity.of(found)


@torch.no_grad()
def threshold_curve(
    model: torch.nn.Module,
    measure: Callable[[torch.nn.Module], Any],
    thresholds: Sequence[float] | None = None,
    *,
    progress: bool = False,
) -> ThresholdCurve:
    """Measure a loss of the pruned model at several thresholds, to choose a threshold.

    Measure the loss on examples that are used neither to train nor to test the model.

    Parameters
    ----------
    model : torch.nn.Module
        A network with variational layers.
    measure : callable
        ``measure(pruned)`` returns a number, where lower is better, such as the error on a
        validation set. ``pruned`` is ``to_deterministic(model, threshold)`` in evaluation mode.
    thresholds : sequence of float, optional
        Thresholds on log alpha; by default from -4 to 8 in steps of 0.5.
    progress : bool
        Show a progress bar on standard error, if it is a terminal and the call takes longer than
        two seconds. This needs the package rich.

    Returns
    -------
    ThresholdCurve
        With ``choose(tolerance)`` and ``plot(path)``.

    Raises
    ------
    TypeError
        If `model` is not a module, `measure` cannot be called or does not return a number, or
        `thresholds` is not a sequence of numbers.
    ValueError
        If `thresholds` is empty or holds NaN, or `to_deterministic` refuses the `model`.

    Examples
    --------
    >>> import torch
    >>> from logunif_kl.torch import nn
    >>> layer = nn.VariationalLinear(3, 1, bias=False, posterior=nn.Additive(initial=0.0))
    >>> layer.weight.data = torch.tensor([[1.0, 0.5, 0.1]])
    >>> x = torch.tensor([[1.0, 2.0, 3.0]])
    >>> curve = nn.threshold_curve(layer, lambda m: (m(x) - 2.0).abs().mean(), [-1.0, 3.0, 6.0])
    >>> [each.kept for each in curve.sparsities], curve.choose()
    ([0, 2, 3], 3.0)
    """
    if not callable(measure):
        raise TypeError(
            f"measure must be a function of the pruned model, but {shown(measure)} was given: pass "
            "one that returns a loss"
        )
    found = check_thresholds(thresholds)
    losses, counts = [], []
    with progress_bar("thresholds", len(found), progress) as advance:
        for threshold in found:
            pruned = to_deterministic(model, threshold).eval()
            losses.append(check_measured(measure(pruned)))
            counts.append(sparsity(model, threshold))
            advance(1)
    return ThresholdCurve(found, tuple(losses), tuple(counts))


@torch.no_grad()
def density_threshold(model: torch.nn.Module, density: float) -> float:
    """Return the threshold on log alpha that keeps a given share of the weights.

    With it `prune`, `to_sparse` and the other functions that take a threshold keep that share, or
    less if several weights have the same log alpha. To give each layer a density of its own, pass
    one layer at a time to this function and to `prune`.

    Parameters
    ----------
    model : torch.nn.Module
        A layer, or a network with variational layers. Weights that layers share count once.
    density : float
        The share of the weights to keep, from 0 to 1. Weights that are 0 are never kept.

    Returns
    -------
    float
        -inf if no weight can be kept.

    Raises
    ------
    TypeError
        If `model` is not a module, or `density` is not a real number.
    ValueError
        If there are no variational layers, `density` is not from 0 to 1, or a weight is NaN.

    See Also
    --------
    threshold_curve : the loss at several thresholds.

    Examples
    --------
    >>> import torch
    >>> from logunif_kl.torch import nn
    >>> layer = nn.VariationalLinear(4, 1, posterior=nn.Additive(initial=0.0))
    >>> layer.weight.data = torch.tensor([[1.0, 0.1, 0.5, 0.0]])  # log alpha: 0, 4.6, 1.4, inf
    >>> threshold = nn.density_threshold(layer, 0.5)
    >>> print(f"{threshold:.4f}")
    1.3863
    >>> nn.sparsity(layer, threshold).kept
    2
    """
    each = []
    for _, weight, _ in gaussians(model):
        x = weight.log_alpha().masked_fill(weight.means() == 0, math.inf)
        each.append(gathered(x).flatten().double().cpu().numpy())
    return threshold_that_keeps(density, np.concatenate(each))


def weighted(model: Any, *, sparse: bool = False) -> Iterator[tuple[str, Weight]]:
    """Yield (name, weight) for prunable weights and, if `sparse` is True, of sparse layers."""
    check_module(model)
    found, others = False, priors(model)
    for name, module in model.named_modules():
        if module in others:
            continue
        check_shape(name, module)
        own = _weights_of(module)
        if sparse and isinstance(module, SparseLayer):
            own = [Weight(module, "weight", alone=True)]
        if own:
            found = True
            refresh(module)
        for weight in own:
            yield weight.path(name), weight
    if not found:
        raise ValueError(
            f"a {kind_name(model)} was given in which no layer has weights to prune: make "
            "variational layers with logunif_kl.torch.nn.to_variational"
        )


def _weights_of(module: torch.nn.Module) -> list[Weight]:
    """Return the weights of a module that have noise, or would have it after a conversion."""
    if isinstance(module, VariationalModule):
        return module._lk_weights()
    if has_sampled_form(module):
        return [Weight(module, name) for name in matrices(module)]
    kind = class_of(module)
    if has_parametrizations(module):
        kind = kind.__bases__[0]
    is_layer = kind in (*VARIATIONAL, GaussianDropoutLinear)
    return [Weight(module, "weight", alone=True)] if is_layer else []


def _of_others(model: torch.nn.Module) -> int:
    """Count the parameters of modules that cannot be pruned."""
    ours = {id(p) for module in priors(model) for p in module.parameters()}
    for module in model.modules():
        own = _weights_of(module)
        if any(weight.alone for weight in own):
            ours.update(map(id, module.parameters(has_parametrizations(module))))
        elif own:
            # Other parameters of such a module count here, but not biases, as for a layer.
            names = {weight.name for weight in own}
            for name, parameter in module._parameters.items():
                named = name.removesuffix(SUFFIX)
                base = name.removesuffix("_orig").removesuffix(SUFFIX)
                if parameter is not None and ({named, base} & names or "bias" in base):
                    ours.add(id(parameter))
    others = [p for p in model.parameters() if id(p) not in ours]
    if any(getattr(p, "_is_flat_param", False) for p in others):
        raise sharded("the model")
    return sum(p.numel() for p in others)


def kept_weights(weight: Weight, threshold: float) -> Tensor:
    """Return a mask of the weights that are not 0 and whose log alpha is not above a threshold."""
    kept = weight.means() != 0
    return kept if weight.posterior is None else kept & ~is_noisy(weight.log_alpha(), threshold)


def with_kept(
    found: Iterable[tuple[str, Weight]], threshold: float
) -> list[tuple[str, Weight, Tensor, Tensor]]:
    """List (name, weight, its means, mask of what is kept) for each weight.

    An element of a shared weight is kept only if every layer keeps it, because `to_deterministic`
    prunes one layer after another.
    """
    rows = [(name, weight, weight.stored) for name, weight in found]
    for name, weight, stored in rows:
        for each in (stored, *weight.sources(weight.name)):
            check_gathered(name, weight.module, each)
    # Layers with scales of their own do not prune a weight that they share.
    distinct = Distinct()
    keys = [
        (
            distinct.number(x.sources(x.name), (stored,)),
            id(x.module.scale if has_scales(x.module) else None),
        )
        for _, x, stored in rows
    ]
    masks: dict[tuple[int, int], Tensor] = {}
    for key, (_, weight, _) in zip(keys, rows, strict=True):
        kept, before = kept_weights(weight, threshold), masks.get(key)
        masks[key] = kept if before is None else before & kept
    return [(*row, masks[key]) for key, row in zip(keys, rows, strict=True)]
