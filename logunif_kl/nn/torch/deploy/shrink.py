"""Remove dead units: units that nothing reads, and units with a constant output."""

# mypy: allow-untyped-calls, no-warn-return-any
from __future__ import annotations

import operator
from collections import Counter
from collections.abc import Iterable
from typing import Any, NamedTuple

import numpy as np
import torch
from torch import fx, nn

from . import units
from .kinds import slotted
from .slots import Slots, Slotted, Tensors
from .traces import Part, observed
from .units import Array, Other, Rows, Shape, Units

_IN_PLACE = (operator.iadd, operator.isub, operator.imul, operator.itruediv)
_HARMLESS = ("dtype", "device", "ndim", "is_cuda", "requires_grad", "dim", "is_floating_point")


class Shrunk(NamedTuple):
    """The tensors of layers without dead units, and why other dead units stay."""

    tensors: dict[Any, Tensors]
    left: dict[Any, str]


def shrink(model: nn.Module, given: dict[Any, Tensors], traced: list[Part]) -> Shrunk:
    """Remove dead units from modules with the given tensors, in a traced model.

    A unit stays if it may change an output of the model. Constant units are added to biases. Each
    layer keeps at least one unit.
    """
    slots, why = Slots(), _not_followed(model, given, traced)
    found: dict[Any, Slotted] = {}
    for module, tensors in given.items():
        if module not in why:
            made = slotted(module, tensors, slots)
            if made is None:
                why[module] = "their groups, or a size of the module, are fixed"
            else:
                found[module] = made
    for part in traced:
        for graph in part.graphs:
            _Reader(part, graph, slots, found, why, given).read()
    roots = slots.roots()
    live = _live(slots, roots, found)
    left = _left(slots, roots, live, found)
    _keep_shapes(roots, live, found)
    gone = ~live[roots]
    tensors = {module: _without(each, gone) for module, each in found.items()}
    last = [*given][-1:]  # perhaps the output
    for module, reason in why.items():
        made = slotted(module, given[module], Slots())
        if module not in last and (_dead_rows(given[module]) if made is None else len(made.dead())):
            left[module] = reason
    return Shrunk({**given, **tensors}, left)


def _not_followed(model: nn.Module, given: Iterable[Any], traced: list[Part]) -> dict[Any, str]:
    """Return the modules whose units must stay, with the reasons."""
    times = Counter(id(each) for _, each in model.named_modules(remove_duplicate=False))
    calls: Counter[int] = sum((part.calls() for part in traced), Counter())
    read: set[int] = set().union(*(part.read() for part in traced))
    found = {}
    for module in given:
        if id(module) in read:
            found[module] = "the forward reads their tensors"
        elif not calls[id(module)]:
            found[module] = "no trace of the forward calls them (see drop_units of to_sparse)"
        elif calls[id(module)] > 1 or times[id(module)] > 1:
            found[module] = "they are called several times, or have several names"
        elif observed(module):
            found[module] = "hooks observe them"
    return found


def _live(slots: Slots, roots: Array, found: dict[Any, Slotted]) -> Array:
    """Return which units may change an output: those that pinned units depend on."""
    live = np.zeros(len(roots), bool)
    live[roots[[*slots.pins]]] = True
    edges = [edge for each in found.values() for edge in each.reads()]
    while True:
        before = live.sum()
        for outs, ins, needs in reversed(edges):
            live[roots[ins[needs[live[roots[outs]]].any(0)]]] = True
        if live.sum() == before:
            return live


def _keep_shapes(roots: Array, live: Array, found: dict[Any, Slotted]) -> None:
    """Keep one unit of each layer, and as many of each direction of a recurrent module."""
    while True:
        before = live.sum()
        for each in found.values():
            for _, _, ids in each.dims():
                if len(ids) and not live[roots[ids]].any():
                    live[roots[ids[0]]] = True
            balanced = each.balanced()
            most = max((live[roots[ids]].sum() for ids in balanced), default=0)
            for ids in balanced:
                dead = ids[~live[roots[ids]]]
                live[roots[dead[: most - (len(ids) - len(dead))]]] = True
        if live.sum() == before:
            return


def _without(each: Slotted, gone: Array) -> Tensors:
    tensors = {**each.tensors, **each.folded(gone)}
    for name, dim, ids in each.dims():
        kept = torch.from_numpy(np.flatnonzero(~gone[ids]))
        if name in tensors and len(kept) < len(ids):
            tensors[name] = tensors[name].index_select(dim, kept.to(tensors[name].device))
    return tensors


def _left(slots: Slots, roots: Array, live: Array, found: dict[Any, Slotted]) -> dict[Any, str]:
    """Return the modules whose dead units stay, with the reasons."""
    reasons: dict[int, list[str]] = {}
    for slot, why in slots.pins.items():
        reasons.setdefault(roots[slot], []).extend(why)
    dead = {module: each.dead() for module, each in found.items()}
    alive: set[int] = set()
    for module, each in found.items():
        alive.update(roots[np.setdiff1d(each.outs, dead[module])])
    left = {}
    for module, each in found.items():
        why = []
        for root in roots[dead[module]]:
            if live[root]:
                summed = "they are added to units that are read" if root in alive else each.else_why
                why += reasons.get(root, [summed])
        named = [*dict.fromkeys(filter(None, why))]
        if named:
            left[module] = " and ".join(named[:2])
        elif len({int(live[roots[ids]].sum()) for ids in each.balanced()}) > 1:
            left[module] = "all layers and directions of a recurrent module have one size"
    return left


def _dead_rows(tensors: Tensors) -> bool:
    weight = tensors.get("weight")
    return weight is not None and not bool((weight != 0).reshape(len(weight), -1).any(1).all())


class _Reader:
    """Follows the units of layers through a graph."""

    def __init__(
        self,
        part: Part,
        graph: fx.Graph,
        slots: Slots,
        found: dict[Any, Slotted],
        why: dict[Any, str],
        layers: Iterable[Any],
    ) -> None:
        self.part, self.graph, self.slots, self.found, self.why = part, graph, slots, found, why
        self.env: dict[fx.Node, Any] = {}
        self.in_place = False
        """Whether the node changes its first argument."""
        held = {id(module) for module in layers}
        self.before_layers: set[fx.Node] = set()
        """The nodes whose results reach a layer."""
        for node in reversed(graph.nodes):
            users = [*node.users]
            if any(user in self.before_layers or self._holds(user, held) for user in users):
                self.before_layers.add(node)

    def _holds(self, node: fx.Node, held: set[int]) -> bool:
        module = self.part.called(node)
        return module is not None and any(id(each) in held for each in module.modules())

    def read(self) -> None:
        for node in self.graph.nodes:
            self.in_place = node.target in _IN_PLACE
            self.env[node] = self._value(node)
            if self.in_place and node.args:
                self._forget(self.env.get(node.args[0]), node)

    def _forget(self, changed: Any, node: fx.Node | None = None) -> None:
        """Forget the constants of what may share memory with an activation that changes."""
        if not isinstance(changed, Units):
            return
        for key, each in self.env.items():
            if isinstance(each, Units) and each.memory is changed.memory and key is not node:
                self.env[key] = each._replace(values=each.values + np.nan)
        if node is not None and isinstance(self.env[node], Units):
            self.env[node] = self.env[node]._replace(memory=changed.memory)
            first = node.args[0]
            if isinstance(first, fx.Node):
                self.env[first] = self.env[node]

    def _value(self, node: fx.Node) -> Any:
        if node.op == "output":
            why = f"{self.part.name!r} returns them" if self.part.name else ""
            return self._pin(node.args, why, forget=False)
        if node.op in ("placeholder", "get_attr"):
            return Other(node)
        found = self._module(node) if node.op == "call_module" else self._function(node)
        if found is None:
            after = self.part.name or not node.users or node in self.before_layers
            why = self._name(node) if after else ""
            self._pin((node.args, node.kwargs), why)
            found = Other(node)
        return found

    def _name(self, node: fx.Node) -> str:
        module = self.part.called(node)
        if module is None:
            return f"{units.name_of(node)} is not followed"
        name = f"{self.part.name}.{node.target}".lstrip(".")
        if observed(module):
            return f"a hook observes {name!r}"
        return f"{name!r} ({type(module).__name__}) reads them together"

    def _pin(self, given: Any, why: str, forget: bool = True) -> None:
        found: list[Any] = []
        fx.node.map_arg(given, lambda node: found.append(self.env[node]))
        while found:
            each = found.pop()
            if isinstance(each, Units):
                self.slots.pin(each.ids, why)
                if forget:
                    self._forget(each)
            elif isinstance(each, (Shape, Rows)):
                found.append(each.of)
            elif type(each) is tuple:
                found += each

    def _module(self, node: fx.Node) -> Any:
        module, x = self.part.called(node), self._only_input(node)
        own = self.found.get(module)
        if own is not None:
            made = None if x is None else own.call(x, node)
            if made is None:
                for each in own.dims():
                    self.slots.pin(each[2], "they are called in a way that is not followed")
            return made
        if not isinstance(x, Units) or observed(module):
            return None
        if type(module) is nn.PReLU and module.weight.numel() == 1:
            slope = float(module.weight)
            return x._replace(values=np.where(x.values < 0.0, slope * x.values, x.values))
        return self._through(module, x)

    def _through(self, module: Any, x: Units) -> Units | None:
        self.in_place = bool(getattr(module, "inplace", False))
        return units.through(module, x)

    def _only_input(self, node: fx.Node) -> Any:
        """Return the input of a module that is called with one activation, or None."""
        given = [*node.args, *node.kwargs.values()]
        given = given[:1] + [each for each in given[1:] if each is not None]
        found = self.env[given[0]] if len(given) == 1 and isinstance(given[0], fx.Node) else None
        return found if isinstance(found, (Units, Other)) else None

    def _function(self, node: fx.Node) -> Any:
        given = [self.env[x] if isinstance(x, fx.Node) else x for x in node.args]
        first, rest = (given or [None])[0], [*node.args[1:]]
        name = units.name_of(node)
        if node.target is getattr and name == "getattr":
            return self._attribute(first, node)
        if node.op == "call_method" and name in ("size", *_HARMLESS):
            return self._attribute(first, node)
        if node.target is operator.getitem:
            return self._item(first, rest[0])
        if not (node.op == "call_method" or units.is_torch(node)):
            return None
        if name in ("cat", "concat", "concatenate"):
            return self._concatenated(node)
        function = units.binary(node)
        if function is not None and len(given) == 2:
            return self._joined(function, node, *given)
        if not isinstance(first, Units):
            return None
        return self._alone(node, name, first, rest)

    def _alone(self, node: fx.Node, name: str, x: Units, rest: list[Any]) -> Any:
        options = dict(node.kwargs)
        if name in ("mean", "amax", "amin", "sum"):
            given = {**dict(zip(("dim", "keepdim"), rest)), **options}  # noqa: B905
            dims, keepdim = given.pop("dim", None), given.pop("keepdim", False)
            return None if given or len(rest) > 2 else units.reduced(name, x, dims, keepdim)
        if name in ("transpose", "permute"):
            return None if options else units.permuted(name, x, rest)
        if name in ("neg", "abs", "exp", "square") and not (rest or options):
            return x._replace(values=units.mapped(getattr(torch, name), x.values))
        module = units.as_module(node, x, rest, self.env)
        return None if module is None else self._through(module, x)

    def _attribute(self, x: Any, node: fx.Node) -> Any:
        name = node.args[1] if node.target is getattr else node.target
        if name == "shape":
            return Shape(x)
        if name == "size":
            return self._item(Shape(x), *node.args[1:2]) if node.args[1:] else Shape(x)
        return Other(node) if name in _HARMLESS else None

    def _item(self, x: Any, index: Any) -> Any:
        if isinstance(x, Units):
            return units.indexed(x, index)
        if type(x) is tuple:
            return x[index] if type(index) is int and -len(x) <= index < len(x) else None
        if not isinstance(x, Shape):
            return None
        of = x.of
        if not isinstance(of, Units):
            return Rows(of.rows if index == 0 and isinstance(of, Other) else object())
        if index == 0 and of.ndim is None:
            return Rows(of.rows, of)
        if of.ndim is None or type(index) not in (int, slice):
            return None
        read = range(of.ndim)[index]
        at = of.ndim + of.axis
        if at == read or (isinstance(read, range) and at in read):
            return None
        return Rows(of.rows if read == 0 else object())

    def _joined(self, function: Any, node: fx.Node, first: Any, second: Any) -> Any:
        numbers = (int, float)
        pair = []
        for each, given in zip(node.args, (first, second), strict=True):
            if isinstance(given, Other) and isinstance(each, fx.Node) and each.op == "get_attr":
                tensor = operator.attrgetter(str(each.target))(self.part.module)
                pair.append(tensor)
            elif isinstance(given, Units) or type(given) in numbers:
                pair.append(given)
            else:
                return None
        if not any(isinstance(each, Units) for each in pair):
            return None
        for i, each in enumerate(pair):
            if isinstance(each, torch.Tensor):
                x = pair[1 - i]
                if not isinstance(x, Units) or each.ndim > (x.ndim or each.ndim):
                    return None
                if each.ndim >= -x.axis and each.shape[x.axis] != 1:
                    return None
                pair[i] = np.nan
        x = units.joined(function, *pair, self.slots)
        return None if x is None else x._replace(memory=node)

    def _concatenated(self, node: fx.Node) -> Any:
        given = {**dict(zip(("tensors", "dim"), node.args)), **node.kwargs}  # noqa: B905
        each, dim = given.pop("tensors", ()), given.pop("dim", 0)
        if given or not isinstance(each, (tuple, list)) or not each:
            return None
        found = [self.env[x] if isinstance(x, fx.Node) else None for x in each]
        if not all(isinstance(x, Units) for x in found):
            return None
        made = units.concatenated(found, dim, self.slots)
        return None if made is None else made._replace(memory=node)
