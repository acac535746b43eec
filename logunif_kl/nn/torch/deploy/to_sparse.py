"""Make a network sparse or compact for inference."""

# mypy: allow-untyped-calls, no-warn-return-any
from __future__ import annotations

import copy
import warnings
from collections.abc import Callable, Iterable
from typing import Any

import torch

from ...._display import shown_few
from ...._errors import real_number
from ...checks import check_flag, count, one_of
from ...sparsity import THRESHOLD, check_threshold
from ..arguments import check_parameters, shown_name
from ..convert.convert import without_samples
from ..convert.plain import check_forward, check_known, plain_kind
from ..hooks import check_copied, copies, is_mask, masked, own_tensors, ties
from ..shrink.kinds import others, resize
from ..shrink.shrink import shrink
from ..shrink.slots import Tensors
from ..shrink.traces import Part, evaluated, parts
from .layers import copy_rest, dense_layer, has_max_norm, sparse_layer
from .sparse import BACKENDS
from .sparsity import weighted, with_kept

Tensor = torch.Tensor
Make = Callable[[Any, Tensor, Tensor | None], torch.nn.Module]


@torch.no_grad()
def to_sparse(
    model: torch.nn.Module,
    threshold: float = THRESHOLD,
    *,
    backend: str = "torch",
    drop_units: bool = True,
    max_density: float = 0.1,
) -> torch.nn.Module:
    """Return a network for inference that stores and multiplies only the kept weights.

    Linear layers, convolutions and embeddings, of this library or of torch, become layers with
    weights in compressed sparse rows (CSR). The result computes the same outputs as
    ``to_deterministic(model, threshold)``, except for rounding (the order of sums differs).

    Parameters
    ----------
    model : torch.nn.Module
        A network with variational layers, or a pruned network, with or without masks of
        `torch.nn.utils.prune`. The model is not changed.
    threshold : float
        Zeros and weights with a log alpha above `threshold` are left out. The default, 3, is from
        Molchanov et al. (2017), section 5. With inf only zeros are left out.
    backend : {"torch", "scipy"}
        The library whose CSR matrices are used. SciPy's matrices are for the CPU and have no
        gradients: call the network under `torch.no_grad`. Sparse layers multiply in the dtype of
        their weights, or in float32 for half types, and return the dtype of their input, also under
        autocast.
    drop_units : bool
        Remove hidden units and channels that no kept weight reads, and units that are constant
        because no kept weight leads to them. The constant is added to the biases of the layers that
        read it. A trace of ``forward`` finds what reads a unit. It follows units through
        elementwise functions, batch normalisation, pooling, means over positions, a flatten that
        keeps the batch dimension, sums, products and concatenations of activations, transposed and
        depthwise convolutions, the feed-forward layers of torch's transformers, LSTM, GRU and RNN,
        whose layers and directions have one hidden size, and other convolutions in groups, which
        have one size too. A unit of a sum goes if it is dead in every summand. Units stay where
        something else reads them, such as layer normalisation, softmax or attention, or if an
        activation is kept. Inputs need a batch dimension, and `BatchNorm1d` after a linear layer
        needs two dimensions.
        All units stay in a module that takes ``*args``, branches on an activation, has a hook that
        reads the module, changes its own attributes so that the next call computes something else,
        such as a counter of calls, or cannot be traced for another reason. They also stay in its
        parts, which it may use in any way. If it calls a part as a whole, convert this part:
        ``model.net = to_sparse(model.net)``.
        Pass False if other code runs a part of the network or reads hidden activations, or if
        dropout is on in the result, as in `predict`, which would not drop the constants. Pass it,
        too, if the forward computes with what a trace does not see: a random Python number, as in
        ``torch.rand(1).item()``; a state that may change, such as a global variable, the
        environment, a number that a part computes, or the modes of autograd and autocast;
        ``type(...)`` of an activation; an error of an argument that it catches; the type or
        identity of an argument or of its entries, as in ``batch["y"] is None``.
        `sparsity` of the result does not count weights of removed units, but ``sparsity(model,
        threshold)`` does.
    max_density : float
        A layer that keeps a larger fraction of its weights becomes a dense layer of torch. For a
        linear layer of 1024 by 1024 that keeps a tenth of its weights, sparse weights were faster
        for minibatches of 100 and 1000, and slower for one example:
        `validation/results/molchanov2017/inference.json`. With 1.0 all layers are sparse, which
        gives the smallest file if less than half of the weights are kept.
        A layer is also dense if a trace finds that the forward reads its parameters itself, and all
        layers are if it loops over ``parameters()``, ``state_dict()`` or ``modules()``. In a hook,
        and in a module that cannot be traced, such a loop would miss sparse layers: use
        `to_compact`, or pass 0.0.

    Returns
    -------
    torch.nn.Module
        A copy in evaluation mode, whose sparse layers have no trainable parameters. Its
        ``state_dict`` holds ``values``, ``columns``, ``row_starts``, ``dense_shape`` and ``bias``
        of each sparse layer; `load_sparse` loads it. Layers keep the hooks of their calls. No exporter takes
        CSR matrices: export the result of `to_compact`.

    Raises
    ------
    TypeError
        If `model` is not a module, an argument is of a wrong type, a weight is computed by a
        parametrization, or a layer belongs to a user-defined subclass.
    ValueError
        If there is no layer with weights, `threshold` is NaN, `backend` is unknown, or
        `max_density` is not from 0 to 1.

    See Also
    --------
    to_compact : the same without dead units, in dense layers of torch.
    prune : mask weights, for further training.
    sparsity : count the kept weights.

    Examples
    --------
    >>> import torch
    >>> from logunif_kl.torch import nn
    >>> model = torch.nn.Sequential(
    ...     nn.VariationalLinear(3, 4), torch.nn.ReLU(), nn.VariationalLinear(4, 1)
    ... )
    >>> for layer in model[0], model[2]:
    ...     _ = torch.nn.init.constant_(layer.log_sigma2, 9.0)
    >>> model[0].log_sigma2.data[0, 1] = model[2].log_sigma2.data[0, :2] = -30.0
    >>> nn.to_sparse(model, max_density=0.5)  # of the hidden units, one is left
    Sequential(
      (0): SparseLinear(in_features=3, out_features=1, bias=True, kept=1, weights=3, backend='torch')
      (1): ReLU()
      (2): Linear(in_features=1, out_features=1, bias=True)
    )
    """  # noqa: E501
    threshold = check_threshold(threshold)
    one_of("backend", backend, BACKENDS)
    check_flag("drop_units", drop_units)
    share = real_number("max_density", max_density)
    if not 0.0 <= share <= 1.0:
        raise ValueError(
            f"max_density must be from 0 to 1, but {share} was given: pass 1.0 to make every layer "
            "sparse"
        )
    network, _ = _rebuilt(
        model,
        threshold,
        1 if drop_units else None,
        lambda module, weight, bias: _made(module, weight, bias, backend, share),
    )
    return network


@torch.no_grad()
def to_compact(
    model: torch.nn.Module, threshold: float = THRESHOLD, *, multiple_of: int = 1
) -> torch.nn.Module:
    """Return a dense network for inference without the dead units, made of layers of torch.

    The result computes the same outputs as ``to_deterministic(model, threshold)``, except for
    rounding, with smaller matrices. It can be exported (`torch.export`, `torch.onnx.export`).

    Parameters
    ----------
    model : torch.nn.Module
        As for `to_sparse`. Its `drop_units` says between which layers units are removed, and for
        which networks `to_deterministic` is the right choice.
    threshold : float
        As for `to_sparse`. With -inf, which prunes all weights, the result is the smallest network
        that there can be. Try this before you train: layers that stay large in it always stay
        large.

    multiple_of : int
        Keep some dead units, so that the number of units of a layer is a multiple of this number.
        In ONNX Runtime 1.32 convolutions take 2 to 3 times as long if their channels are not a
        multiple of 4.

    Returns
    -------
    torch.nn.Module
        A copy in evaluation mode, whose weights do not require gradients. Layers keep the hooks of
        their calls. `load_sparse` loads its ``state_dict``. What its layers and other methods than
        `forward` return can have fewer features.

    Warns
    -----
    UserWarning
        If dead units stay. The warning names their layers, and what keeps them.

    Raises
    ------
    TypeError, ValueError
        As for `to_sparse`, and if `multiple_of` is not a positive integer.

    See Also
    --------
    to_sparse : stores only the kept weights.
    to_deterministic : keeps the sizes of the layers.

    Examples
    --------
    >>> import torch
    >>> from logunif_kl.torch import nn
    >>> model = torch.nn.Sequential(
    ...     nn.VariationalLinear(3, 4), torch.nn.ReLU(), nn.VariationalLinear(4, 1)
    ... )
    >>> for layer in model[0], model[2]:
    ...     _ = torch.nn.init.constant_(layer.log_sigma2, 9.0)
    >>> model[0].log_sigma2.data[0, 1] = model[2].log_sigma2.data[0, :2] = -30.0
    >>> nn.to_compact(model)  # of the hidden units, one is left
    Sequential(
      (0): Linear(in_features=3, out_features=1, bias=True)
      (1): ReLU()
      (2): Linear(in_features=1, out_features=1, bias=True)
    )
    """
    threshold = check_threshold(threshold)
    network, left = _rebuilt(model, threshold, count("multiple_of", multiple_of), _dense)
    reasons: dict[str, list[str]] = {}
    for name, why in left.items():
        reasons.setdefault(why, []).append(name)
    if reasons:
        kept = "; of ".join(f"{shown_few(names)}: {why}" for why, names in reasons.items())
        warnings.warn(f"to_compact kept the dead units of {kept}", stacklevel=3)
    return network


def _rebuilt(
    model: torch.nn.Module, threshold: float, multiple_of: int | None, make: Make
) -> tuple[torch.nn.Module, dict[str, str]]:
    """Copy a model, with the layers that `make` makes of each layer's kept weights and its bias.

    Also return the names of layers whose dead units could not be removed, with the reasons. With
    None as `multiple_of` all units stay.
    """
    model, training = evaluated(without_samples(model, threshold))
    layers: dict[Any, Tensors] = {}
    for name, weight, _, kept in with_kept(weighted(model), threshold):
        module = weight.module
        if not weight.alone:
            continue
        if has_max_norm(module):
            continue
        check_parameters(name, module, () if masked(module, "weight") else ("weight",))
        check_known(name, module)
        check_forward(name, module)
        layers[module] = {"weight": weight.means().masked_fill(~kept, 0.0)}
        if getattr(module, "bias", None) is not None:
            layers[module]["bias"] = module.bias
    given = layers if multiple_of is None else {**others(model), **layers}
    small, left = given, dict[Any, str]()
    traced = list(parts(model, given, training))
    read: set[int] = set().union(*(part.read() for part in traced))
    if multiple_of is not None:
        small, left = shrink(model, given, traced, multiple_of, layers)

    def built(tensors: dict[Any, Tensors], make: Make) -> tuple[torch.nn.Module, list[Any]]:
        # Code that reads or holds the parameters of a layer expects those of a dense layer.
        made = {
            id(module): (_dense if id(module) in read else make)(
                module, tensors[module]["weight"], tensors[module].get("bias")
            )
            for module in layers
        }
        # With `made` in its memo, deepcopy takes the new layers instead of copying the old ones.
        memo: dict[int, Any] = {**copies(model), **made}
        for module in layers:
            memo |= ties(module, made[id(module)])
        before = {*memo}
        network = copy.deepcopy(model, memo)
        for module in layers:
            copy_rest(module, made[id(module)], memo)
        check_copied(model, network, {id(module): memo.get(id(module)) for module in tensors})
        network.eval()
        held = {
            id(m) for m in layers if any(id(x) in memo.keys() - before for _, x in own_tensors(m))
        }
        if held - read:
            read.update(held)
            return built(tensors, make)
        for module in tensors:
            if module not in layers and _differ(tensors[module], given[module]):
                resize(memo[id(module)], tensors[module])
        return network, [memo[id(module)] for module in given]

    fewer = [each for each in given if _differ(small[each], given[each])]
    forms = [(small, make)]
    if fewer:
        forms.append((given, make))
    if make is not _dense:
        forms.append((given, _dense))
    for form in forms:
        network, made = built(*form)
        if form is forms[-1] or _graphs(parts(network, made)) == _graphs(traced):
            break
    if form[0] is not small:
        left |= dict.fromkeys(fewer, "the forward reads sizes of layers")
    named = {module: shown_name(name) for name, module in model.named_modules() if module in left}
    return network, {name: left[module] for module, name in named.items()}


def _differ(first: Tensors, second: Tensors) -> bool:
    return any(first[name] is not second.get(name) for name in first)


def _graphs(traced: Iterable[Part]) -> list[str]:
    """Write the traced parts of a model, to compare them after units or layers were replaced.

    They differ if the forward reads sizes, kinds or parameters of layers.
    """
    return [f"{each.name}: {graph}" for each in traced for graph in each.graphs]


def _dense(module: Any, weight: Tensor, bias: Tensor | None) -> torch.nn.Module:
    return dense_layer(plain_kind(module), module, weight, bias)


def _made(
    module: Any, weight: Tensor, bias: Tensor | None, backend: str, max_density: float
) -> torch.nn.Module:
    # A hook may change the weight, which a sparse layer makes anew for each reader.
    hooks = (hook for hook in module._forward_pre_hooks.values() if not is_mask(hook))
    dense = any(hooks) or not vars(module).keys().isdisjoint(("shape", "backend"))
    if dense or not max_density or int(weight.count_nonzero()) > max_density * weight.numel():
        return _dense(module, weight, bias)
    return sparse_layer(plain_kind(module), module, weight, bias, backend)
