"""What each operation of a program does to units."""

# mypy: allow-untyped-calls, no-warn-return-any
from __future__ import annotations

import math
from typing import Any

import numpy as np

from ...slots import Array
from .products import convolution, dot
from .programs import Step
from .values import Reader, Shape, Value, numbers


def elementwise(reader: Reader, step: Step, ins: list[Value], shape: Shape) -> Value:
    """Arrays whose dimensions are equal, or 1, or which are numbers."""
    arrays = [each for each in ins if each.shape]
    ids: list[Any] = []
    constants: list[Any] = []
    for dim, size in enumerate(shape):
        of_size = [each for each in arrays if each.shape[dim] == size]
        for each in arrays:
            if each.shape[dim] != size:
                reader.pin(each, [dim])
        own = of_size[0].ids[dim]
        for each in of_size[1:]:
            own = reader.unite(own, each.ids[dim])
        ids.append(own)
        given = [each.constant(dim) if each.shape else np.array([each.only]) for each in ins]
        constants.append(_mapped(reader, step, [np.broadcast_to(each, size) for each in given]))
    return Value(shape, ids, constants)


def _mapped(reader: Reader, step: Step, given: list[Array]) -> Array:
    unknown = np.isnan(np.array(given)).any(0)
    found = np.full(len(unknown), np.nan)
    if not unknown.all():
        known = [np.where(np.isnan(each), 0.0, each) for each in given]
        computed = reader.computed(step, known)
        if computed is not None:
            found = np.where(unknown, np.nan, numbers(computed))
    if step.name == "mul":
        found = np.where((np.array(given) == 0.0).any(0), 0.0, found)
    return found


def broadcast(reader: Reader, step: Step, ins: list[Value], shape: Shape) -> Value:
    """`jax.lax.broadcast_in_dim`."""
    (x, *_) = ins
    ids: list[Any] = [None] * len(shape)
    constants: list[Any] = [None] * len(shape)
    at = {int(to): dim for dim, to in enumerate(step.params["broadcast_dimensions"])}
    for to, size in enumerate(shape):
        if to in at and x.shape[at[to]] == size:
            ids[to], constants[to] = x.ids[at[to]], x.constant(at[to])
        else:
            if to in at:
                reader.pin(x, [at[to]])
            ids[to] = reader.slots.new(size) if size > 1 else None
            constants[to] = np.full(size, x.only)
    return Value(shape, ids, constants)


def reshape(reader: Reader, step: Step, ins: list[Value], shape: Shape) -> Value | None:
    """Dimensions that are joined or split. Of joined ones, the units of one are followed."""
    x = ins[0]
    if step.params.get("dimensions") is not None:
        return None
    ids: list[Any] = [None] * len(shape)
    constants: list[Any] = [None] * len(shape)
    for olds, news in _groups(x.shape, shape):
        for dim in news:
            constants[dim] = np.full(shape[dim], x.only)
        reader.pin(x, [dim for dim in olds if x.shape[dim] == 1])
        olds = [dim for dim in olds if x.shape[dim] != 1]
        wide = [dim for dim in news if shape[dim] != 1]
        followed = [dim for dim in olds if x.ids[dim] is not None]
        if len(olds) == len(wide) == 1:
            ids[wide[0]], constants[wide[0]] = x.ids[olds[0]], x.constant(olds[0])
        elif len(wide) == 1 and followed:
            dim = max(followed, key=lambda each: x.shape[each])
            reader.pin(x, [each for each in followed if each != dim], "they are flattened together")
            before, after = (
                math.prod(x.shape[each] for each in olds if (each < dim) is left and each != dim)
                for left in (True, False)
            )
            ids[wide[0]], constants[wide[0]] = (
                np.tile(np.repeat(each, after), before) for each in (x.ids[dim], x.constant(dim))
            )
        elif len(olds) == 1 and followed and len(wide) > 1:
            first, rest = wide[0], math.prod(shape[dim] for dim in wide[1:])
            rows = x.ids[olds[0]].reshape(shape[first], rest)
            reader.slots.unite(rows[:, :1].repeat(rest, 1).ravel(), rows.ravel())
            ids[first] = rows[:, 0]
            values = x.constant(olds[0]).reshape(shape[first], rest)
            constants[first] = np.where((values == values[:, :1]).all(1), values[:, 0], np.nan)
        else:
            reader.pin(x, followed, "a reshape mixes them")
    return Value(shape, ids, constants)


def _groups(old: Shape, new: Shape) -> list[tuple[list[int], list[int]]]:
    """Return the dimensions of two shapes in groups of the same number of elements."""
    groups: list[tuple[list[int], list[int]]] = []
    i = j = 0
    while i < len(old) or j < len(new):
        olds: list[int] = []
        news: list[int] = []
        one = other = 1
        while not (olds and news and one == other):
            if (one <= other and i < len(old)) or j == len(new):
                olds.append(i)
                one, i = one * old[i], i + 1
            else:
                news.append(j)
                other, j = other * new[j], j + 1
            if i == len(old) and j == len(new):
                break
        groups.append((olds, news))
    return groups


def transpose(reader: Reader, step: Step, ins: list[Value], shape: Shape) -> Value:
    return _taken(ins[0], shape, step.params["permutation"])


def squeeze(reader: Reader, step: Step, ins: list[Value], shape: Shape) -> Value:
    gone = {int(dim) for dim in step.params["dimensions"]}
    reader.pin(ins[0], sorted(gone))
    return _taken(ins[0], shape, [dim for dim in range(len(ins[0].shape)) if dim not in gone])


def _taken(x: Value, shape: Shape, dims: Any) -> Value:
    order = [int(dim) for dim in dims]
    return Value(shape, [x.ids[dim] for dim in order], [x.constant(dim) for dim in order])


def concatenate(reader: Reader, step: Step, ins: list[Value], shape: Shape) -> Value:
    at = step.params["dimension"]
    ids: list[Any] = []
    constants: list[Any] = []
    for dim in range(len(shape)):
        given = [each.constant(dim) for each in ins]
        if dim == at:
            for each in ins:
                if each.ids[dim] is None:
                    each.ids[dim] = reader.slots.new(each.shape[dim])
                    reader.pin(each, [dim])
            ids.append(np.concatenate([each.ids[dim] for each in ins]))
            constants.append(np.concatenate(given))
        else:
            own = ins[0].ids[dim]
            for each in ins[1:]:
                own = reader.unite(own, each.ids[dim])
            ids.append(own)
            equal = (np.array(given) == given[0]).all(0)
            constants.append(np.where(equal, given[0], np.nan))
    return Value(shape, ids, constants)


def reduction(reader: Reader, step: Step, ins: list[Value], shape: Shape) -> Value | None:
    if len(ins) != 1:
        return None
    x, axes = ins[0], {int(axis) for axis in step.params["axes"]}
    reader.pin(x, sorted(axes), f"{step.name} reads them together")
    kept = [dim for dim in range(len(x.shape)) if dim not in axes]
    found = _taken(x, shape, kept)
    if step.name not in ("reduce_max", "reduce_min"):
        _only_zeros(found, step.name == "reduce_sum")
    return found


def _only_zeros(x: Value, zeros: bool = True, of: float = 0.0) -> None:
    """Forget constants other than 0, or all."""
    for dim in range(len(x.shape)):
        given = x.constant(dim)
        x.constants[dim] = np.where(zeros & (given == of), given, np.nan)


def window(reader: Reader, step: Step, ins: list[Value], shape: Shape) -> Value | None:
    """Reductions over windows of places."""
    if len(ins) != 1:
        return None
    x = ins[0]
    names = ("window_dimensions", "window_strides", "base_dilation", "window_dilation")
    free = [
        all(step.params[name][dim] == 1 for name in names)
        and tuple(step.params["padding"][dim]) == (0, 0)
        for dim in range(len(x.shape))
    ]
    found = _along(reader, step, x, shape, free)
    params = step.params
    pairs = zip(params["padding"], params["window_dimensions"], strict=True)
    # Otherwise some windows may hold nothing but padding.
    full = all(max(pad) < size for pad, size in pairs) and {1} == {*params["base_dilation"]} | {
        *params["window_dilation"]
    }
    if step.name == "reduce_window_sum" or not full:
        _only_zeros(found, step.name == "reduce_window_sum")
    return found


def _along(reader: Reader, step: Step, x: Value, shape: Shape, free: list[bool]) -> Value:
    """Return a value whose units stay where a dimension is free, and are pinned elsewhere."""
    reader.pin(x, [dim for dim, own in enumerate(free) if not own], f"{step.name} mixes them")
    ids = [x.ids[dim] if own else None for dim, own in enumerate(free)]
    constants = [x.constant(dim) if own else None for dim, own in enumerate(free)]
    return Value(shape, ids, constants)


def pad(reader: Reader, step: Step, ins: list[Value], shape: Shape) -> Value:
    x, value = ins
    free = [set(each) == {0} for each in step.params["padding_config"]]
    found = _along(reader, step, x, shape, free)
    _only_zeros(found, of=value.only)
    return found


def sliced(reader: Reader, step: Step, ins: list[Value], shape: Shape) -> Value:
    x = ins[0]
    free = [own == its for own, its in zip(x.shape, shape, strict=True)]
    return _along(reader, step, x, shape, free)


def gather(reader: Reader, step: Step, ins: list[Value], shape: Shape) -> Value | None:
    """Rows of a table."""
    table, ids = ins
    places, sizes = step.params["dimension_numbers"], step.params["slice_sizes"]
    if getattr(places, "operand_batching_dims", ()):
        return None
    reader.pin(ids)
    left = [dim for dim in range(len(table.shape)) if dim not in places.collapsed_slice_dims]
    free = [
        dim for dim in left if sizes[dim] == table.shape[dim] and dim not in places.start_index_map
    ]
    reader.pin(table, [dim for dim in range(len(table.shape)) if dim not in free])
    found = Value(shape)
    for dim, to in zip(left, places.offset_dims, strict=True):
        if dim in free:
            found.ids[to], found.constants[to] = table.ids[dim], table.constant(dim)
    if step.params.get("fill_value") is not None:  # for rows that the table does not have
        _only_zeros(found, of=float(step.params["fill_value"]))
    return found


_ELEMENTWISE = """
abs acos acosh add add_any and asin asinh atan atan2 atanh cbrt ceil clamp convert_element_type copy
copy_p cos cosh digamma div eq erf erf_inv erfc exp exp2 expm1 floor ge gt integer_pow is_finite le
lgamma log log1p logistic lt max min mul ne neg nextafter not or pow reduce_precision rem round
rsqrt select_n sign sin sinh sqrt square stop_gradient sub tan tanh xor
"""
RULES: dict[str, Any] = {
    **dict.fromkeys(_ELEMENTWISE.split(), elementwise),
    **dict.fromkeys(("reduce_sum", "reduce_max", "reduce_min", "reduce_prod"), reduction),
    **dict.fromkeys(("argmax", "argmin", "reduce_and", "reduce_or"), reduction),
    **dict.fromkeys(("reduce_window_max", "reduce_window_min", "reduce_window_sum"), window),
    "broadcast_in_dim": broadcast,
    "reshape": reshape,
    "transpose": transpose,
    "squeeze": squeeze,
    "concatenate": concatenate,
    "dot_general": dot,
    "conv_general_dilated": convolution,
    "pad": pad,
    "slice": sliced,
    "gather": gather,
}
