"""What is known of an activation while a graph of `torch.fx` is read: its units and constants."""

# mypy: allow-untyped-calls, no-warn-return-any
from __future__ import annotations

import operator
from typing import Any, NamedTuple

import numpy as np
import torch
from torch import fx, nn
from torch.nn import functional as F

from ..layers.dropout import GaussianDropoutA

Array = np.ndarray[Any, Any]


class Units(NamedTuple):
    """An activation whose units (features or channels) are outputs of layers."""

    ids: Array
    """The slot of each unit, as numbered by `Slots`."""
    values: Array
    """The constant that each unit has in evaluation mode, or NaN."""
    axis: int
    """The dimension of the units, counted from the end: -1 for the last."""
    ndim: int | None
    """The number of dimensions, if it is known."""
    rows: Any
    """The node whose batch size it has."""
    memory: Any
    """What is equal for activations that may share memory."""
    flat: str = ""
    """After a flatten: whether "each" unit is repeated, or "all" units are."""
    single: bool = False
    """Whether the dimensions after that of the units have length 1."""

    def spread(self, length: int) -> Units | None:
        """Return an activation in which each of `length` elements is a unit."""
        times, rest = divmod(length, len(self.ids))
        if rest or (times > 1 and not self.flat):
            return None
        repeat = np.tile if self.flat == "all" else np.repeat
        ids, values = (repeat(each, times) for each in (self.ids, self.values))
        return self._replace(ids=ids, values=values, flat="")

    def at(self, dim: Any) -> int | None:
        """Return a dimension counted from the end, or None if it is not known."""
        if type(dim) is not int or (dim >= 0 and self.ndim is None):
            return None
        return dim if dim < 0 else dim - (self.ndim or 0)

    @property
    def second(self) -> bool:
        """Whether the units are in the second dimension."""
        return self.ndim is not None and self.axis == 1 - self.ndim


class Other(NamedTuple):
    """A value without units that are followed."""

    rows: Any


class Shape(NamedTuple):
    """The shape of an activation."""

    of: Any


class Rows(NamedTuple):
    """A size of an activation, such as its batch size."""

    rows: Any
    of: Any = None
    """The activation, if this size may be its number of units."""


_ELEMENTWISE = (
    *(nn.CELU, nn.ELU, nn.GELU, nn.Hardshrink, nn.Hardsigmoid, nn.Hardswish, nn.Hardtanh),
    *(nn.LeakyReLU, nn.LogSigmoid, nn.Mish, nn.ReLU, nn.ReLU6, nn.SELU, nn.SiLU, nn.Sigmoid),
    *(nn.Softplus, nn.Softshrink, nn.Softsign, nn.Tanh, nn.Tanhshrink, nn.Threshold),
)
# Dropout is the identity in evaluation mode.
_IDENTITY = (
    *(nn.Identity, nn.Dropout, nn.Dropout1d, nn.Dropout2d, nn.Dropout3d, nn.AlphaDropout),
    *(nn.FeatureAlphaDropout, GaussianDropoutA),
)
_POOLS = ("MaxPool", "AvgPool", "AdaptiveMaxPool", "AdaptiveAvgPool")
_PADS = ("ReflectionPad", "ReplicationPad", "CircularPad", "ConstantPad", "ZeroPad")
_DIMENSIONS = {getattr(nn, f"{name}{d}d"): d for name in _POOLS + _PADS for d in (1, 2, 3)}
"""Modules that change each channel alone, by the number of dimensions that they pool or pad."""
_FUNCTIONS = {
    **{cls.__name__.lower(): cls for cls in _ELEMENTWISE},
    "leaky_relu": nn.LeakyReLU,
    **{f"avg_pool{d}d": getattr(nn, f"AvgPool{d}d") for d in "123"},
}
_POOLING = {
    f"{name}_pool{d}d": getattr(nn, f"{kind}Pool{d}d")
    for name, kind in (
        ("max", "Max"),
        ("adaptive_max", "AdaptiveMax"),
        ("adaptive_avg", "AdaptiveAvg"),
    )
    for d in "123"
} | {"interpolate": nn.Upsample}
_DROPOUT = ("dropout", "dropout1d", "dropout2d", "dropout3d", "alpha_dropout")
_BINARY = {
    **dict.fromkeys(("add", "iadd"), np.add),
    **dict.fromkeys(("sub", "isub"), np.subtract),
    **dict.fromkeys(("mul", "imul", "multiply"), np.multiply),
    **dict.fromkeys(("div", "truediv", "itruediv", "divide"), np.divide),
}
_SAME = ("contiguous", "clone", "detach", "float", "double")


def through(module: Any, x: Units) -> Units | None:
    """Return what a module without weights makes of an activation, or None."""
    kind = type(module)
    if kind in _IDENTITY:
        return x
    if kind in _ELEMENTWISE:
        return x._replace(values=mapped(module, x.values))
    if kind is nn.Flatten:
        return _flattened(x) if (module.start_dim, module.end_dim) == (1, -1) else None
    if kind is nn.Upsample:
        return x._replace(single=False) if x.second and not x.flat and x.axis < -1 else None
    if kind in _DIMENSIONS and x.second and x.axis == -1 - _DIMENSIONS[kind]:
        if getattr(module, "return_indices", False):
            return None
        x = x._replace(single=getattr(module, "output_size", None) in (1, (1,), (1, 1), (1, 1, 1)))
        return x if _keeps_constants(module) else _only(x, getattr(module, "value", 0.0))
    return None


def mapped(function: Any, values: Array) -> Array:
    """Apply an elementwise function to constants."""
    with torch.no_grad():
        found = function(torch.from_numpy(values.copy())).numpy()
    return np.where(np.isnan(values), np.nan, found)


def _only(x: Units, kept: float) -> Units:
    """Return an activation in which only one constant is known."""
    return x._replace(values=np.where(x.values == kept, kept, np.nan))


def _keeps_constants(module: Any) -> bool:
    """Whether a pool or a padding maps a constant channel to the same constant."""
    name = type(module).__name__
    if name.startswith("Avg"):
        padded = module.padding if isinstance(module.padding, tuple) else (module.padding,)
        divisor = getattr(module, "divisor_override", None)
        return not (any(padded) or module.ceil_mode or divisor is not None)
    return not name.startswith(("ConstantPad", "ZeroPad")) or not any(module.padding)


def _flattened(x: Units) -> Units | None:
    if x.flat or (x.axis == -1 and x.ndim == 2):
        return x
    if x.axis == -1:
        return x._replace(flat="all", ndim=2)
    return x._replace(flat="each", ndim=2, axis=-1) if x.second else None


def as_module(node: fx.Node, x: Any, rest: list[Any], env: dict[fx.Node, Any]) -> nn.Module | None:
    """Return the module that computes what a function or a method of tensors computes."""
    name, options = name_of(node), dict(node.kwargs)
    if node.op == "call_function" and not is_torch(node):
        return None
    if name in ("view", "reshape"):
        size: Any = env.get(rest[0]) if rest and isinstance(rest[0], fx.Node) else None
        whole = node.op == "call_method" and rest[1:] == [-1] and isinstance(size, Rows)
        return nn.Flatten() if whole and size.rows is x.rows else None
    sized = name in _POOLING or name in ("avg_pool1d", "avg_pool2d", "avg_pool3d")
    given = [1 if sized and _is_size(each, env) else each for each in rest]
    options = {k: 1 if sized and _is_size(v, env) else v for k, v in options.items()}
    if any(isinstance(each, fx.Node) for each in (*given, *options.values())):
        return None
    if name == "flatten":
        ends = dict(zip(("start_dim", "end_dim"), given))  # noqa: B905
        whole = {**ends, **options} in ({"start_dim": 1}, {"start_dim": 1, "end_dim": -1})
        return nn.Flatten() if whole else None
    if name in _DROPOUT:
        training = given[1] if len(given) > 1 else options.get("training")
        return nn.Identity() if training is False else None
    if name in _POOLING and not options.get("return_indices"):
        size = rest[0] if rest else options.get("output_size")
        return _POOLING[name](size if name.startswith("adaptive") and _is_literal(size) else 2)
    if name in _SAME and node.op == "call_method" and not (given or options):
        return nn.Identity()
    try:
        return _FUNCTIONS[name](*given, **options)
    except (KeyError, TypeError):
        return None


def _is_literal(size: Any) -> bool:
    return all(type(each) is int for each in (size if isinstance(size, tuple) else (size,)))


def _is_size(given: Any, env: dict[fx.Node, Any]) -> bool:
    """Whether an argument was computed from shapes."""
    if isinstance(given, (tuple, list)):
        return any(_is_size(each, env) for each in given)
    found = env.get(given) if isinstance(given, fx.Node) else None
    return isinstance(found, Rows) and found.of is None


def name_of(node: fx.Node) -> str:
    """Return the name of the function or method that a node calls."""
    return str(getattr(node.target, "__name__", node.target))


def is_torch(node: fx.Node) -> bool:
    """Whether a node calls a function of torch or an operator."""
    name = name_of(node)
    return node.target in [getattr(each, name, None) for each in (F, torch, operator)]


def binary(node: fx.Node) -> Any:
    """Return the arithmetic of an operator of two activations, or None."""
    in_python = node.op == "call_method" or is_torch(node)
    return _BINARY.get(name_of(node)) if in_python and not node.kwargs else None


def arithmetic(function: Any, first: Any, second: Any) -> Array:
    """Compute constants, of which 0 times anything is 0."""
    with np.errstate(all="ignore"):
        found = function(first, second)
    if function is np.multiply:
        found = np.where((first == 0.0) | (second == 0.0), 0.0, found)
    return np.asarray(found)


def reduced(name: str, x: Units, dims: Any, keepdim: Any) -> Units | None:
    """Return the mean, the largest or the sum over dimensions without the units."""
    over = {x.at(dim) for dim in (dims if isinstance(dims, (tuple, list)) else (dims,))}
    if x.flat or None in over or x.axis in over or type(keepdim) is not bool:
        return None
    x = x._replace(single=x.single or over >= set(range(x.axis + 1, 0)))
    x = _only(x, 0.0) if name == "sum" else x
    if not keepdim:
        right = sum(dim > x.axis for dim in over if dim is not None)
        ndim = None if x.ndim is None else x.ndim - len(over)
        rows = object() if x.ndim is None or -x.ndim in over else x.rows
        x = x._replace(axis=x.axis + right, ndim=ndim, rows=rows)
    return x


def joined(function: Any, first: Any, second: Any, slots: Any) -> Units | None:
    """Return what an operator makes of two activations, or of an activation and a number.

    Their units are united.
    """
    if not isinstance(first, Units) or not isinstance(second, Units):
        x = first if isinstance(first, Units) else second
        pair = [each.values if isinstance(each, Units) else each for each in (first, second)]
        return x._replace(values=arithmetic(function, *pair))
    if (first.axis, first.flat) != (second.axis, second.flat):
        return None
    x, other = (first, second) if len(first.ids) >= len(second.ids) else (second, first)
    if len(other.ids) == len(x.ids):
        slots.unite(x.ids, other.ids)
    elif len(other.ids) == 1 and not x.flat:
        slots.pin(other.ids, "")  # a single unit always stays
    else:
        return None
    both = first.ndim is not None and second.ndim is not None
    return x._replace(
        values=arithmetic(function, first.values, second.values),
        ndim=max(first.ndim or 0, second.ndim or 0) if both else None,
        single=first.single and second.single,
        rows=first.rows if first.rows is second.rows else object(),
    )


def concatenated(each: list[Units], dim: Any, slots: Any) -> Units | None:
    """Return the concatenation of activations, along their units or not."""
    x = each[0]
    ndims = {one.ndim for one in each} - {None}
    if any(one.axis != x.axis or one.flat for one in each) or len(ndims) > 1:
        return None
    ndim = ndims.pop() if ndims else None
    if ndim is None and x.axis == -1 and dim == 1:
        ndim = 2  # Otherwise the number of units does not fit the next layer.
    x = x._replace(ndim=ndim, rows=object(), single=all(one.single for one in each))
    at = x.at(dim)
    if at is None:
        return None
    if at == x.axis:
        ids, values = (np.concatenate([one[i] for one in each]) for i in (0, 1))
        return x._replace(ids=ids, values=values)
    values, x = x.values, x._replace(single=False)
    for one in each[1:]:
        if len(one.ids) != len(x.ids):
            return None
        slots.unite(x.ids, one.ids)
        values = np.where(values == one.values, values, np.nan)
    return x._replace(values=values)


def indexed(x: Units, index: Any) -> Units | None:
    """Return ``x[index]`` if the index takes all units."""
    entries = list(index) if isinstance(index, tuple) else [index]
    full, taken = slice(None), sum(each is not None and each is not Ellipsis for each in entries)
    if x.ndim is None or x.flat or taken > x.ndim:
        return None
    if Ellipsis not in entries:
        entries.append(Ellipsis)
    at = entries.index(Ellipsis)
    entries[at : at + 1] = [full] * (x.ndim - taken)
    if any(each is not None and type(each) not in (int, slice) for each in entries):
        return None
    before = [i for i, each in enumerate(entries) if each is not None][x.axis]
    if entries[before] != full:
        return None
    left = [i for i, each in enumerate(entries) if type(each) is not int]
    rows = x.rows if entries[0] == full else object()
    return x._replace(axis=left.index(before) - len(left), ndim=len(left), rows=rows)


def squeezed(x: Units, dims: list[Any]) -> Units | None:
    """Return an activation without a dimension of length 1 behind the units."""
    dim = x.at(dims[0]) if len(dims) == 1 else None
    if dim is None or dim <= x.axis or not x.single or x.flat:
        return None
    return x._replace(axis=x.axis + 1, ndim=None if x.ndim is None else x.ndim - 1)


def permuted(name: str, x: Units, dims: list[Any]) -> Units | None:
    """Return an activation with its dimensions in another order."""
    if x.flat:
        return None
    x = x._replace(rows=object(), single=False)
    if name == "transpose":
        pair = [x.at(dim) for dim in dims]
        if None in pair or len(pair) != 2:
            return None
        other: dict[Any, Any] = {pair[0]: pair[1], pair[1]: pair[0]}
        return x._replace(axis=other.get(x.axis, x.axis))
    order = list(dims[0]) if len(dims) == 1 and isinstance(dims[0], (tuple, list)) else dims
    if any(type(dim) is not int for dim in order):
        return None
    own = x._replace(ndim=len(order))
    return own._replace(axis=[own.at(dim) for dim in order].index(x.axis) - len(order))
