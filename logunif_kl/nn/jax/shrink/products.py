"""What products and convolutions do to units: which they read, and where outputs are constant."""

# mypy: allow-untyped-calls, no-warn-return-any
from __future__ import annotations

import numpy as np

from .programs import Step
from .values import Fold, Need, Reader, Shape, Value, numbers


def dot(reader: Reader, step: Step, ins: list[Value], shape: Shape) -> Value:
    """`jax.lax.dot_general`."""
    x, w = ins
    (xc, wc), (xb, wb) = (
        [[int(dim) for dim in dims] for dims in pair] for pair in step.params["dimension_numbers"]
    )
    xf = [dim for dim in range(len(x.shape)) if dim not in (*xc, *xb)]
    wf = [dim for dim in range(len(w.shape)) if dim not in (*wc, *wb)]
    joined = {}
    for one, other in zip((*xc, *xb), (*wc, *wb), strict=True):
        joined[one] = reader.unite(x.ids[one], w.ids[other])
    found = Value(
        shape, [joined[dim] for dim in xb] + [x.ids[i] for i in xf] + [w.ids[i] for i in wf]
    )
    at = len(xb) + len(xf)
    if w.known is None and x.known is None:
        for one, other in zip(xc, wc, strict=True):
            ids = x.ids[one]
            if ids is not None:
                reader.slots.pin(ids[(x.constant(one) != 0.0) & (w.constant(other) != 0.0)], "")
        return found
    if w.known is None:
        x, w, xc, wc, xb, wb, xf, wf = w, x, wc, xc, wb, xb, wf, xf
        starts = (at - len(wf), at)
    else:
        starts = (at, at - len(xf))
    _product(reader, step, x, w, (xc, wc), wb, wf, found, starts)
    for i, dim in enumerate(xf):
        zero = x.constant(dim) == 0.0
        found.constants[starts[1] + i] = np.where(zero, 0.0, np.nan)
    return found


def _product(
    reader: Reader,
    step: Step,
    x: Value,
    w: Value,
    contracted: tuple[list[int], list[int]],
    wb: list[int],
    wf: list[int],
    found: Value,
    starts: tuple[int, int],
) -> None:
    """Say which units a product with known weights reads, and which of its outputs are constant."""
    xc, wc = contracted
    weights = numbers(w.known)
    reads = weights != 0.0
    every = range(weights.ndim)
    for one, other in zip(xc, wc, strict=True):
        reads &= np.expand_dims(x.constant(one) != 0.0, [dim for dim in every if dim != other])
    if len(xc) == len(wf) == 1 and not wb:
        given = x.constant(xc[0])
        order = [wc[0], wf[0], *(dim for dim in every if dim not in (wc[0], wf[0]))]
        size = (len(given), w.shape[wf[0]], -1)
        matrix = weights.transpose(order).reshape(size).sum(2)
        some = reads.transpose(order).reshape(size).any(2)
        finite = np.isfinite(given)
        products = np.where(some, np.where(finite, given, 0.0)[:, None] * matrix, 0.0)
        unknown = (some & ~finite[:, None]).any(0)
        found.constants[starts[0]] = np.where(unknown, np.nan, products.sum(0))
        bias, ids = reader.bias_of(step.outs[0], starts[0]), x.ids[xc[0]]
        if bias is not None and ids is not None:
            reader.folds.append(Fold(ids, products, bias))
            reads &= np.expand_dims(~finite, [dim for dim in every if dim != wc[0]])
    else:
        for i, dim in enumerate(wf):
            others = tuple(each for each in every if each != dim)
            found.constants[starts[0] + i] = np.where(reads.any(others), np.nan, 0.0)
    for one, other in zip(xc, wc, strict=True):
        ids = x.ids[one]
        if ids is not None and w.ids[other] is not None:
            reader.inputs.append(w.ids[other])
        if ids is not None:
            order = [other, *wf, *(dim for dim in every if dim != other and dim not in wf)]
            needs = reads.transpose(order).any(tuple(range(1 + len(wf), weights.ndim)))
            reader.needs.append(Need(ids, [w.ids[dim] for dim in wf], needs))


def convolution(reader: Reader, step: Step, ins: list[Value], shape: Shape) -> Value | None:
    """`jax.lax.conv_general_dilated`, of one group or of a group for each channel."""
    x, w = ins
    sides, groups = step.params["dimension_numbers"], step.params["feature_group_count"]
    (batch, feature, *places), (out, into, *window) = sides.lhs_spec, sides.rhs_spec
    to = sides.out_spec
    if w.known is None or step.params["batch_group_count"] != 1:
        return None
    depthwise = groups == x.shape[feature] == w.shape[out] and w.shape[into] == 1
    if groups != 1 and not depthwise:
        return None
    reader.pin(x, places)
    reader.pin(w, window)
    found = Value(shape)
    found.ids[to[0]], found.ids[to[1]] = x.ids[batch], w.ids[out]
    if groups != 1:
        reader.pin(w, [into])
        found.ids[to[1]] = reader.unite(x.ids[feature], w.ids[out])
        zero = (w.constant(out) == 0.0) | (x.constant(feature) == 0.0)
        found.constants[to[1]] = np.where(zero, 0.0, np.nan)
        return found
    reader.unite(x.ids[feature], w.ids[into])
    whole = all(tuple(each) == (0, 0) for each in step.params["padding"]) and set(
        step.params["lhs_dilation"]
    ) <= {1}
    given = x if whole else _zeros_of(x)
    _product(reader, step, given, w, ([feature], [into]), [], [out], found, (to[1], 0))
    return found


def _zeros_of(x: Value) -> Value:
    given = [x.constant(dim) for dim in range(len(x.shape))]
    return Value(x.shape, x.ids, [np.where(each == 0.0, 0.0, np.nan) for each in given])
