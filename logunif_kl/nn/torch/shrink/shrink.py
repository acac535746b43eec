"""Remove dead units: units that nothing reads, and units with a constant output."""

# mypy: allow-untyped-calls, no-warn-return-any
from __future__ import annotations

import copy
from collections import Counter
from collections.abc import Container, Iterable, Mapping
from typing import Any, NamedTuple

import numpy as np
from torch import nn

from ...slots import Slots, keep_some
from ..hooks import copies, held, is_mask
from .kinds import NOT_FOLLOWED, dead_heads, fixed, slotted
from .reader import Reader
from .slots import Slotted, Tensors
from .traces import Part, compiled
from .units import Array


class Shrunk(NamedTuple):
    """The tensors of layers without dead units, and why other dead units stay."""

    tensors: dict[Any, Tensors]
    left: dict[Any, str]


def shrink(
    model: nn.Module,
    given: dict[Any, Tensors],
    traced: list[Part],
    multiple_of: int,
    layers: Container[Any],
) -> Shrunk:
    """Remove dead units from modules with the given tensors, in a traced model.

    A unit stays if it may change an output of the model. Constant units are added to biases. Each
    layer keeps at least one unit, and a multiple of a number if it has as many. The `layers` among
    the modules get tensors of their own.
    """
    slots, why = Slots(), _not_followed(model, given, traced, layers)
    found: dict[Any, Slotted] = {}
    for module, tensors in given.items():
        if module not in why:
            made = slotted(module, tensors, slots)
            if made is None:
                why[module] = fixed(module)
            else:
                found[module] = made
    for part in traced:
        for graph in part.graphs:
            Reader(part, graph, slots, found, given).read()
    roots = slots.roots()
    live = _live(slots, roots, found)
    left = _left(slots, roots, live, found)
    _keep_shapes(roots, live, found, multiple_of)
    gone = ~live[roots]
    small = {module: each.without(gone) for module, each in found.items()}
    last = [*given][-1:]  # perhaps the output
    for module, reason in why.items():
        made = slotted(module, given[module], Slots())
        if module not in last and (_dead_rows(given[module]) if made is None else len(made.dead())):
            left[module] = reason
    for module in model.modules():
        if type(module) is nn.MultiheadAttention and dead_heads(module):
            left[module] = "torch gives the heads of attention together the width of its input"
        elif type(module) in NOT_FOLLOWED and _dead_rows(module._parameters):
            left[module] = f"units of {type(module).__name__} are not followed"
    return Shrunk({**given, **small}, left)


def _not_followed(
    model: nn.Module, given: Iterable[Any], traced: list[Part], layers: Container[Any]
) -> dict[Any, str]:
    """Return the modules whose units must stay, with the reasons."""
    times = Counter(id(each) for _, each in model.named_modules(remove_duplicate=False))
    calls: Counter[int] = sum((part.calls() for part in traced), Counter())
    read: set[int] = set().union(*(part.read() for part in traced))
    dicts = (d for m in model.modules() for d in (m._forward_pre_hooks, m._forward_hooks))
    hooks = (hook for each in dicts for hook in each.values())
    read_by_hooks = [x for h in hooks if not is_mask(h) for x in held(h, objects=True)]
    # A copy gives other modules that hold a tensor of a layer that of the new layer.
    untraced = {*model.modules()} - {part.module for part in traced}
    of_layers, of_others = (
        {id(x) for m in untraced if (m in layers) is own for x in _tensors(m)}
        for own in (True, False)
    )
    # Untraced parts that are called may call their layers, too.
    untraced = {m for m in untraced if compiled(m) is None}
    whole = [m for m in untraced if calls[id(m)] and m not in given]
    inside = {id(each) for m in whole for each in m.modules()}
    called = (m for m in untraced if calls[id(m)] or id(m) in inside)
    held_apart = _held_apart(model, called)
    of_others |= held_apart
    hooked = {id(each) for each in read_by_hooks}
    for each in (*read_by_hooks, *(m for m in model.modules() if id(m) in held_apart)):
        if isinstance(each, nn.Module):
            hooked.update(map(id, each.modules()))
    found = {}
    for module in given:
        elsewhere = of_others if module in layers else of_layers
        if any(id(x) in elsewhere for x in _tensors(module)):
            found[module] = "other modules have their tensors, too"
        elif id(module) in read:
            found[module] = "the forward reads their tensors"
        elif id(module) in inside or not calls[id(module)]:
            found[module] = "no trace of the forward finds them (see drop_units of to_sparse)"
        elif calls[id(module)] > 1 or times[id(module)] > 1:
            found[module] = "they are called several times, or have several names"
        elif not hooked.isdisjoint(map(id, (module, *_tensors(module)))) or any(
            part.observed(module) for part in traced
        ):
            found[module] = "hooks or other modules hold them, or they stay in training mode"
    return found


class _Asked(dict[int, Any]):
    """A memo of `copy.deepcopy` that keeps the `id` of what is to be copied."""

    def __init__(self, given: Mapping[int, Any]) -> None:
        super().__init__(given)
        self.ids: set[int] = set()

    def get(self, key: int, default: Any = None) -> Any:
        self.ids.add(key)
        return super().get(key, default)


def _held_apart(model: nn.Module, modules: Iterable[nn.Module]) -> set[int]:
    """Return the `id` of modules and tensors that modules hold without registering them.

    They are what `copy.deepcopy` would copy for the attributes of these modules, and of the modules
    that they hold.
    """
    every = (*model.modules(), *model.parameters(), *model.buffers())
    known: dict[int, Any] = {id(x): x for x in every}
    memo, found = {**copies(model), **known}, set[int]()
    left = [*modules]
    seen = {*left}
    registered = "_modules", "_parameters", "_buffers"
    plain = bool, int, float, str
    while left:
        module = left.pop()
        values = [x for k, x in vars(module).items() if k not in registered]
        values = [x for x in values if not (x is None or isinstance(x, plain) or _is_empty(x))]
        # Of its own, because what an object holds is asked for once.
        asked = _Asked(memo if values else {})
        for value in values:
            try:
                copy.deepcopy(value, asked)
            except Exception:  # a lock, or a part of a ScriptModule
                asked.ids.update(map(id, held(value, objects=True)))
        new = asked.ids.intersection(known) - {id(module), *map(id, _tensors(module))}
        found |= new
        held_modules = (known[each] for each in new if isinstance(known[each], nn.Module))
        more = {part for each in held_modules for part in each.modules()} - seen
        left += more
        seen |= more
    return found


def _is_empty(value: Any) -> bool:
    return isinstance(value, (dict, set)) and not value


def _tensors(module: nn.Module) -> list[nn.Parameter]:
    return [x for x in held([*vars(module).values()]) if isinstance(x, nn.Parameter)]


def _live(slots: Slots, roots: Array, found: dict[Any, Slotted]) -> Array:
    """Return which units may change an output: those that pinned units depend on."""
    live = np.zeros(len(roots), bool)
    live[roots[slots.pinned()]] = True
    edges = [edge for each in found.values() for edge in each.reads()]
    while True:
        before = live.sum()
        for outs, ins, needs in reversed(edges):
            live[roots[ins[needs[live[roots[outs]]].any(0)]]] = True
        if live.sum() == before:
            return live


def _keep_shapes(roots: Array, live: Array, found: dict[Any, Slotted], multiple_of: int) -> None:
    """Keep some units of each layer, and as many of each direction of a recurrent module."""
    while True:
        before = live.sum()
        for each in found.values():
            for _, _, ids in each.dims():
                keep_some(roots[ids], live, multiple_of)
            for balanced in each.balanced():
                most = max(live[roots[ids]].sum() for ids in balanced)
                for ids in balanced:
                    dead = ids[~live[roots[ids]]]
                    live[roots[dead[: most - (len(ids) - len(dead))]]] = True
        if live.sum() == before:
            return


def _left(slots: Slots, roots: Array, live: Array, found: dict[Any, Slotted]) -> dict[Any, str]:
    """Return the modules whose dead units stay, with the reasons."""
    dead = {module: roots[each.dead()] for module, each in found.items()}
    dead = {module: own[live[own]] for module, own in dead.items()}
    stay, read = np.zeros((2, len(live)), bool)
    for module, own in dead.items():
        stay[own] = True
        if found[module].outs is not found[module].ins:  # It makes them of other units.
            read[np.setdiff1d(roots[found[module].outs], own)] = True
    left = {}
    for module, each in found.items():
        own = dead[module]
        pins = [(roots[ids], why) for ids, why in slots.pins if stay.any()]
        why = [reason for ids, reason in pins if np.isin(own, ids).any()]
        free = own[~np.isin(own, roots[slots.pinned()])] if len(own) else own
        if read[free].any():
            why.append("they are added to units that are read")
        if (~read[free]).any():
            why.append(each.else_why)
        named = [*dict.fromkeys(filter(None, why))]
        if named:
            left[module] = " and ".join(named[:2])
        elif any(
            len({int(live[roots[ids]].sum()) for ids in balanced}) > 1
            for balanced in each.balanced()
        ):
            left[module] = each.one_size
    return left


def _dead_rows(tensors: Mapping[str, Any]) -> bool:
    matrices = (each for each in tensors.values() if each is not None and each.ndim > 1)
    return any(not bool((each != 0).reshape(len(each), -1).any(1).all()) for each in matrices)
