"""Load a sparse or compact network."""

# mypy: allow-untyped-calls, no-warn-return-any
from __future__ import annotations

import copy
from collections import OrderedDict
from collections.abc import Container, Mapping
from typing import Any, NamedTuple

import torch

from ...._errors import type_name
from ...checks import one_of
from ..arguments import check_parameters, shown_name
from ..convert.convert import without_samples
from ..convert.plain import check_known, plain_kind
from ..hooks import check_copied, copies, ties
from ..shrink.kinds import others, resize
from .layers import copy_rest, dense_layer, has_max_norm, sparse_layer
from .sparse import BACKENDS
from .sparsity import weighted

Tensor = torch.Tensor


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
        A network as before `to_sparse` or `to_compact`, with any weights: variational or plain. If
        layers were fused before (`torch.nn.utils.fusion`), fuse those of this network too. The
        model is not changed. It may be on the meta device; the copy is then on the devices of
        `state_dict`.
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
        If `backend` is unknown, `state_dict` lacks the values of a module, a tensor on the meta
        device has no values there, or something other than a layer holds a parameter of which only
        the variational layer has the values.
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
    found, smaller = _saved(model, state_dict), others(model)
    made: dict[int, torch.nn.Module] = {}
    for module, saved in found.items():
        device = saved.device if module.weight.is_meta else module.weight.device
        weight = torch.zeros(saved.shape, dtype=module.weight.dtype, device=device)
        kind, bias = plain_kind(module), None if saved.bias is None else saved.bias.to(weight)
        if saved.sparse:
            made[id(module)] = sparse_layer(kind, module, weight, bias, backend)
        else:
            made[id(module)] = dense_layer(kind, module, weight, bias)
    memo: dict[int, Any] = {**copies(model), **made}
    for module in found:
        memo |= ties(module, made[id(module)])
    loaded = copy.deepcopy(model, memo)
    for module in found:
        copy_rest(module, made[id(module)], memo)
    check_copied(model, loaded, {id(module): memo.get(id(module)) for module in (*found, *smaller)})
    loaded.eval()
    _check_held(model, loaded, memo, found)
    apart = _apart(model, state_dict)
    for name, module in model.named_modules():
        if module in smaller:
            own = {key: state_dict.get(f"{name}.{key}" if name else key) for key in smaller[module]}
            if own and not any(value is not None for value in own.values()):
                raise _lacks(name)
            _fit(memo[id(module)], smaller[module], own, apart)
    _leave_meta(loaded, state_dict)
    loaded.load_state_dict(_unmarked(state_dict))
    return loaded


def _check_held(
    model: torch.nn.Module, loaded: torch.nn.Module, memo: Mapping[int, Any], layers: Any
) -> None:
    """Refuse parameters of replaced layers that something else holds, and that are not saved."""
    registered = {id(x) for x in loaded.parameters()}
    for name, module in model.named_modules():
        for own, tensor in module._parameters.items() if module in layers else ():
            if id(tensor) in memo and id(memo[id(tensor)]) not in registered:
                raise ValueError(
                    f"a list or an attribute holds {own} of {shown_name(name)}, and state_dict has "
                    "no values for it: load the network from before to_sparse or to_compact, "
                    "and call that again"
                )


def _leave_meta(model: torch.nn.Module, state_dict: Mapping[str, Tensor]) -> None:
    """Give tensors on the meta device memory on the device of their values."""
    made: dict[int, Tensor] = {}
    for path, module in model.named_modules():
        held: Any
        for held in (module._parameters, module._buffers):
            for own, tensor in held.items():
                if tensor is None or not tensor.is_meta:
                    continue
                name = f"{path}.{own}" if path else own
                if name not in state_dict:
                    raise ValueError(
                        f"{name} is on the meta device, and state_dict has no values for it: make "
                        "the model, or this tensor, on a device with memory"
                    )
                if id(tensor) not in made:
                    new = torch.empty_like(tensor, device=state_dict[name].device)
                    is_parameter = isinstance(tensor, torch.nn.Parameter)
                    made[id(tensor)] = torch.nn.Parameter(new) if is_parameter else new
                held[own] = made[id(tensor)].requires_grad_(tensor.requires_grad)


def _lacks(name: str, what: str = "weights") -> ValueError:
    return ValueError(
        f"state_dict has no {what} of {shown_name(name)}: pass what state_dict() of the network "
        "returned, and a model with the same layers, fused if the model was fused before "
        "to_sparse or to_compact"
    )


def _unmarked(state_dict: Mapping[str, Tensor]) -> Mapping[str, Tensor]:
    """Return values without the mark of ``load_state_dict(assign=True)``, which shares memory."""
    values: Any = OrderedDict(state_dict)
    if hasattr(state_dict, "_metadata"):
        mark = "assign_to_params_buffers"
        values._metadata = {
            name: {key: value for key, value in each.items() if key != mark}
            for name, each in state_dict._metadata.items()
        }
    return values


def _apart(model: torch.nn.Module, state_dict: Mapping[str, Tensor]) -> set[int]:
    """Return the `id` of parameters that the model uses twice, but that were saved with two values.

    `to_compact` adds constants to biases, and so makes two of one.
    """
    saved: dict[int, Tensor] = {}
    found = set()
    for name, tensor in model.named_parameters(remove_duplicate=False):
        value = state_dict.get(name)
        if not isinstance(value, Tensor):
            continue
        first = saved.setdefault(id(tensor), value)
        same = first is value or first.shape == value.shape
        if not same or not torch.allclose(first, value.to(first), 0.0, 0.0, equal_nan=True):
            found.add(id(tensor))
    return found


def _fit(
    module: Any,
    tensors: Mapping[str, Tensor],
    saved: Mapping[str, Tensor | None],
    apart: Container[int],
) -> None:
    """Give a module the shapes that were saved, and tensors of its own where they differ."""
    made = {
        name: tensors[name].new_zeros(each.shape)
        for name, each in saved.items()
        if each is not None and (each.shape != tensors[name].shape or id(tensors[name]) in apart)
    }
    if made:
        resize(module, made)


class _Saved(NamedTuple):
    """What a ``state_dict`` has of a layer."""

    sparse: bool
    shape: tuple[int, ...]
    device: torch.device
    bias: Tensor | None


def _saved(model: torch.nn.Module, state_dict: Mapping[str, Tensor]) -> dict[Any, _Saved]:
    found: dict[Any, _Saved] = {}
    for name, each in weighted(model):
        module = each.module
        if not each.alone:
            continue  # `to_sparse` leaves this module dense.
        if has_max_norm(module):
            continue  # `to_sparse` leaves this table as it is.
        check_parameters(name, module)
        check_known(name, module)
        prefix = f"{name}." if name else ""
        shape, weight = (state_dict.get(prefix + each) for each in ("dense_shape", "weight"))
        bias = state_dict.get(f"{prefix}bias")
        saved = weight if shape is None else shape
        if saved is None:
            raise _lacks(name)
        if bias is None and getattr(module, "bias", None) is not None:
            raise _lacks(name, "bias")
        size = saved.shape if shape is None else shape.tolist()
        found[module] = _Saved(shape is not None, tuple(size), saved.device, bias)
    return found
