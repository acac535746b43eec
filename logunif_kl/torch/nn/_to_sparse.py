"""Make a network sparse or compact for inference, and load such networks."""

# mypy: allow-untyped-calls, no-warn-return-any
from __future__ import annotations

import copy
from collections.abc import Callable, Mapping
from typing import Any, NamedTuple

import torch

from ..._errors import real_number, type_name
from ..._layers import THRESHOLD, check_flag, check_threshold, one_of
from ._arguments import check_parameters, shown_name
from ._convert import check_known, plain_kind, without_samples
from ._dead_units import drop_units as dropped
from ._dead_units import links
from ._hooks import copies
from ._sampled import PlainWeight
from ._sparse import BACKENDS, SparseConv, SparseEmbedding, SparseLinear
from ._sparsity import means, weighted, with_kept

Tensor = torch.Tensor


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
        In a `torch.nn.Sequential`, remove hidden units and channels without kept weights to the
        next layer, or without kept weights from the layer before. A unit of the second kind is
        constant, and its value is added to the bias of the next layer. Between the two layers there
        may be elementwise functions, pooling, dropout and `torch.nn.Flatten`; with `Flatten`, the
        input needs a batch dimension. Pass False if other code runs a part of the network or
        reads hidden activations, which lack the removed units. `sparsity` of the result does not
        count weights of removed units, but ``sparsity(model, threshold)`` does.
    max_density : float
        A layer that keeps a larger fraction of its weights becomes a dense layer of torch. For a
        linear layer of 1024 by 1024 that keeps a tenth of its weights, sparse weights were faster
        for minibatches of 100 and 1000, and slower for one example:
        `validation/results/molchanov2017/inference.json`.

    Returns
    -------
    torch.nn.Module
        A copy in evaluation mode, whose sparse layers have no trainable parameters. Its
        ``state_dict`` holds ``values``, ``columns``, ``row_starts`` and ``bias`` of each
        sparse layer; `load_sparse` loads it. Hooks of the layers are not copied. No exporter takes
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
    return _rebuilt(
        model,
        threshold,
        drop_units,
        lambda module, weight, bias: _made(module, weight, bias, backend, share),
    )


@torch.no_grad()
def to_compact(model: torch.nn.Module, threshold: float = THRESHOLD) -> torch.nn.Module:
    """Return a dense network for inference without the dead units, made of layers of torch.

    The result computes the same outputs as ``to_deterministic(model, threshold)``, except for
    rounding, with smaller matrices. It can be exported (`torch.export`, `torch.onnx.export`).

    Parameters
    ----------
    model : torch.nn.Module
        As for `to_sparse`, which says between which layers units are removed.
    threshold : float
        As for `to_sparse`.

    Returns
    -------
    torch.nn.Module
        A copy in evaluation mode, whose weights do not require gradients. Hooks of the layers are
        not copied.

    Raises
    ------
    TypeError, ValueError
        As for `to_sparse`.

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
    return _rebuilt(
        model,
        threshold,
        True,
        lambda module, weight, bias: _dense(plain_kind(module), module, weight, bias),
    )


@torch.no_grad()
def load_sparse(
    model: torch.nn.Module, state_dict: Mapping[str, Tensor], *, backend: str = "torch"
) -> torch.nn.Module:
    """Build the network of `to_sparse` or `to_compact` whose ``state_dict`` was saved.

    The saved layers may be sparse, or smaller than those of the model. A ``state_dict`` holds only
    tensors, so that any format stores it: `torch.save`, or ``safetensors.torch.save_file``.

    Parameters
    ----------
    model : torch.nn.Module
        A network as before `to_sparse` or `to_compact`, with any weights: variational or plain. The
        model is not changed.
    state_dict : mapping of str to Tensor
        What ``to_sparse(...).state_dict()`` or ``to_compact(...).state_dict()`` returned.
    backend : {"torch", "scipy"}
        As for `to_sparse`.

    Returns
    -------
    torch.nn.Module
        A copy of `model` in evaluation mode, with the layers and weights of the file.

    Raises
    ------
    TypeError
        If `model` is not a module, or `state_dict` is not a mapping.
    ValueError
        If `backend` is unknown, or `state_dict` lacks the weights of a layer.
    RuntimeError
        If other tensors of `state_dict` do not fit, as for ``load_state_dict``.

    Examples
    --------
    >>> import torch
    >>> from logunif_kl.torch import nn
    >>> made = lambda: torch.nn.Sequential(nn.VariationalLinear(3, 4), torch.nn.ReLU())
    >>> sparse = nn.to_sparse(made(), threshold=9.0, max_density=1.0)
    >>> loaded = nn.load_sparse(made(), sparse.state_dict())
    >>> x = torch.ones(1, 3)
    >>> bool((loaded(x) == sparse(x)).all())
    True
    """
    one_of("backend", backend, BACKENDS)
    if not isinstance(state_dict, Mapping):
        raise TypeError(
            f"state_dict must be a mapping of names to tensors, but {type_name(state_dict)} was "
            "given: pass what state_dict() of the network returned"
        )
    model = without_samples(model, None)
    found = _saved(model, state_dict)
    shapes = {module: list(module.weight.shape) for module in found}
    for module, saved in found.items():
        shapes[module][0] = saved.rows
    for link in links(model, {module: (module.weight, None) for module in found}):
        before, after = link.first.weight.shape[0], link.second.weight.shape[1]
        shapes[link.second][1] = after // before * shapes[link.first][0]
    made: dict[int, torch.nn.Module] = {}
    for module, saved in found.items():
        weight = module.weight.new_zeros(shapes[module])
        kind, bias = plain_kind(module), None if saved.bias is None else saved.bias.to(weight)
        if saved.sparse:
            made[id(module)] = _sparse(kind, module, weight, bias, backend)
        else:
            made[id(module)] = _dense(kind, module, weight, bias)
    loaded = copy.deepcopy(model, {**copies(model), **made}).eval()
    loaded.load_state_dict(state_dict)
    return loaded


class _Saved(NamedTuple):
    """What a ``state_dict`` has of a layer."""

    sparse: bool
    rows: int
    bias: Tensor | None


def _saved(model: torch.nn.Module, state_dict: Mapping[str, Tensor]) -> dict[Any, _Saved]:
    found: dict[Any, _Saved] = {}
    for name, module in weighted(model):
        if isinstance(module, PlainWeight):
            continue  # `to_sparse` leaves this module dense.
        if getattr(module, "max_norm", None) is not None:
            continue  # `to_sparse` leaves this table as it is.
        check_parameters(name, module)
        check_known(name, module)
        prefix = f"{name}." if name else ""
        starts, weight = (state_dict.get(prefix + each) for each in ("row_starts", "weight"))
        bias = state_dict.get(f"{prefix}bias")
        if starts is not None:
            found[module] = _Saved(True, len(starts) - 1, bias)
        elif weight is not None:
            found[module] = _Saved(False, len(weight), bias)
        else:
            raise ValueError(
                f"state_dict has no weights of {shown_name(name)}: pass what state_dict() of the "
                "network returned, and a model with the same layers"
            )
    return found


def _rebuilt(
    model: torch.nn.Module,
    threshold: float,
    drop_units: bool,
    make: Callable[[Any, Tensor, Tensor | None], torch.nn.Module],
) -> torch.nn.Module:
    """Copy a model, with the layers that `make` makes of each layer's kept weights and its bias."""
    model = without_samples(model, threshold)
    weights: dict[torch.nn.Module, tuple[Tensor, Tensor | None]] = {}
    for name, module, _, kept in with_kept(weighted(model), threshold):
        if isinstance(module, PlainWeight):
            continue
        if getattr(module, "max_norm", None) is not None:
            continue  # With max_norm, each look-up changes rows of this table.
        check_parameters(name, module)
        check_known(name, module)
        weights[module] = means(module).masked_fill(~kept, 0.0), getattr(module, "bias", None)
    if drop_units:
        dropped(model, weights)
    made = {id(module): make(module, weight, bias) for module, (weight, bias) in weights.items()}
    # With `made` in its memo, deepcopy takes the new layers instead of copying the old ones.
    return copy.deepcopy(model, {**copies(model), **made}).eval()


def _made(
    module: Any, weight: Tensor, bias: Tensor | None, backend: str, max_density: float
) -> torch.nn.Module:
    kind = plain_kind(module)
    if int(weight.count_nonzero()) > max_density * weight.numel():
        return _dense(kind, module, weight, bias)
    return _sparse(kind, module, weight, bias, backend)


def _sparse(
    kind: Any, module: Any, weight: Tensor, bias: Tensor | None, backend: str
) -> torch.nn.Module:
    if kind is torch.nn.Linear:
        return SparseLinear(weight, bias, backend)
    if kind is torch.nn.Embedding:
        return SparseEmbedding(weight, backend)
    return SparseConv(weight, bias, backend, module)


def _dense(kind: Any, module: Any, weight: Tensor, bias: Tensor | None) -> torch.nn.Module:
    """Make a torch layer with the given weights, without drawing initial weights."""
    options: dict[str, Any] = {"device": "meta", "dtype": weight.dtype}
    made: Any
    if kind is torch.nn.Embedding:
        rows, columns = weight.shape
        made = kind(rows, columns, module.padding_idx, **options)
    elif kind is torch.nn.Linear:
        made = kind(weight.shape[1], weight.shape[0], bias is not None, **options)
    else:
        made = kind(
            *(weight.shape[1] * module.groups, weight.shape[0], module.kernel_size),
            *(module.stride, module.padding, module.dilation, module.groups, bias is not None),
            module.padding_mode,
            **options,
        )
    made.weight = torch.nn.Parameter(weight.detach().clone(), requires_grad=False)
    if bias is not None:
        made.bias = torch.nn.Parameter(bias.detach().clone(), requires_grad=False)
    return made
