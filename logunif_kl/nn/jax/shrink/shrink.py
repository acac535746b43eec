"""Remove the units of arrays that a function does not need."""

# mypy: allow-untyped-calls, no-warn-return-any
from __future__ import annotations

from collections.abc import Callable
from typing import Any, NamedTuple

import jax.numpy as jnp
import numpy as np

from ...slots import Array, keep_some
from .programs import Program
from .rules import RULES
from .values import Reader, is_float, numbers

_BY_SIZE = "the function does not work with fewer of them"

_READ = "what they add is read, and no bias can take it in"


class Shrunk(NamedTuple):
    """Smaller leaves, and why dead units of leaves stay, by the number of the leaf."""

    leaves: list[Any]
    left: dict[int, str]


def shrink(
    function: Callable[..., Any], leaves: list[Any], args: tuple[Any, ...], multiple_of: int
) -> Shrunk:
    """Return the leaves of which ``function(leaves, *args)`` has the same outputs.

    The function is traced again with the smaller leaves, and must do the same operations. Where it
    does others, because it takes a size from elsewhere or computes with it, units stay.
    """
    program = Program.of(function, leaves, *args)
    reader = Reader(program, leaves)
    reader.read(RULES)
    roots = reader.slots.roots()
    groups = _groups(reader, roots, _live(reader, roots, multiple_of))

    def live_if(gone: list[Array]) -> Array:
        """Return which units stay if only those of these groups may go."""
        may_go = np.isin(np.arange(len(roots)), np.concatenate([np.zeros(0, int), *gone]))
        return _live(reader, roots, multiple_of, ~may_go)

    def works(gone: list[Array]) -> bool:
        live = live_if(gone)
        shapes = [
            tuple(
                size if ids is None else int(live[roots[ids]].sum())
                for size, ids in zip(value.shape, value.ids, strict=True)
            )
            for value in reader.values
        ]
        try:
            other = Program.of(function, _smaller(reader, leaves, live[roots]), *args)
        except Exception:  # of any library
            return False
        return program.same(other, shapes)

    def added(gone: list[Array], more: list[Array]) -> list[Array]:
        if not more or works(gone + more):
            return gone + more
        if len(more) == 1:
            reader.slots.pin(more[0], _BY_SIZE)
            return gone
        half = len(more) // 2
        return added(added(gone, more[:half]), more[half:])

    small = _smaller(reader, leaves, live_if(added([], groups))[roots])
    return Shrunk(small, _left(reader, roots, _live(reader, roots, 1)))


def _groups(reader: Reader, roots: Array, live: Array) -> list[Array]:
    """Return the units that may go, in groups of those that share a dimension of a leaf."""
    groups: list[set[int]] = []
    for number in reader.leaves:
        for ids in reader.values[number].ids:
            own = set() if ids is None else {int(root) for root in roots[ids] if not live[root]}
            shared = [each for each in groups if each & own]
            groups = [each for each in groups if not each & own]
            groups += [own.union(*shared)] if own else []
    return [np.array(sorted(each)) for each in groups]


def _live(reader: Reader, roots: Array, multiple_of: int, fixed: Any = False) -> Array:
    """Return which units may change an output, and which each dimension of a leaf keeps."""
    live = np.ones(len(roots), bool)
    live[roots[: reader.of_leaves]] = False
    live |= fixed
    live[roots[reader.slots.pinned()]] = True
    while True:
        before = live.sum()
        for ids, outs, needs in reversed(reader.needs):
            needed = needs
            for i, own in enumerate(outs):
                if own is not None:
                    at = [dim for dim in range(needs.ndim) if dim != i + 1]
                    needed = needed & np.expand_dims(live[roots[own]], at)
            live[roots[ids[needed.any(tuple(range(1, needs.ndim)))]]] = True
        for number in reader.leaves:
            for ids in reader.values[number].ids:
                if ids is not None:
                    keep_some(roots[ids], live, multiple_of)
        if live.sum() == before:
            return live


def _smaller(reader: Reader, leaves: list[Any], live: Array) -> list[Any]:
    found = [jnp.asarray(leaf) if is_float(leaf) else leaf for leaf in leaves]
    for ids, products, bias in reader.folds:
        gone = ~live[ids]
        added = products[gone].sum(0)
        if gone.any() and added.any():
            at = reader.leaves.index(bias)
            found[at] = jnp.asarray(numbers(found[at]) + added, found[at].dtype)
    for i, number in enumerate(reader.leaves):
        for dim, ids in enumerate(reader.values[number].ids):
            if ids is not None and not live[ids].all():
                found[i] = jnp.take(found[i], np.flatnonzero(live[ids]), dim)
    return found


def _left(reader: Reader, roots: Array, live: Array) -> dict[int, str]:
    """Return the leaves with weights that make dead units, which stay, and why."""
    pins = [(roots[ids], why) for ids, why in reader.slots.pins]
    inputs = np.concatenate([np.zeros(0, int), *reader.inputs])
    left = {}
    for i, number in enumerate(reader.leaves):
        value = reader.values[number]
        for dim, ids in enumerate(value.ids):
            if len(value.shape) < 2 or ids is None or np.isin(ids, inputs).all():
                continue
            kept = live[roots[ids]]
            dead = roots[ids][(value.constant(dim) == 0.0) & kept]
            why = [reason for own, reason in pins if np.isin(dead, own).any()]
            if len(dead) and kept.sum() > 1 and "" not in why:
                left[i] = why[0] if why else _READ
    return left
