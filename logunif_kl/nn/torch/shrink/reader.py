"""Follow the units of layers through a graph of `torch.fx`."""

# mypy: allow-untyped-calls, no-warn-return-any
from __future__ import annotations

import operator
from collections.abc import Iterable
from typing import Any

import numpy as np
import torch
from torch import fx, nn

from ...slots import Slots
from . import units
from .recurrent import Recurrent
from .slots import Slotted
from .traces import Part
from .units import Other, Rows, Shape, Units

_IN_PLACE = (operator.iadd, operator.isub, operator.imul, operator.itruediv)
_HARMLESS = ("dtype", "device", "ndim", "is_cuda", "requires_grad", "dim", "is_floating_point")


class Reader:
    """Follows the units of layers through a graph."""

    def __init__(
        self,
        part: Part,
        graph: fx.Graph,
        slots: Slots,
        found: dict[Any, Slotted],
        layers: Iterable[Any],
    ) -> None:
        self.part, self.graph, self.slots, self.found = part, graph, slots, found
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
        if self.part.observed(module):
            return f"a hook or an own mode changes {name!r}"
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
        module = self.part.called(node)
        given = self._known((*node.args, *node.kwargs.values()))
        x, *more = [each for each in given if each is not None] or [None]
        own = self.found.get(module)
        if own is not None:
            made = None
            if isinstance(x, (Units, Other)) and len(more) <= isinstance(own, Recurrent):
                made = own.call(x, node, *more)
            if made is None:
                for each in own.dims():
                    self.slots.pin(each[2], "they are called in a way that is not followed")
            return made
        if not isinstance(x, Units) or more or self.part.observed(module):
            return None
        if type(module) is nn.PReLU and module.weight.numel() == 1:
            slope = float(module.weight)
            return x._replace(values=np.where(x.values < 0.0, slope * x.values, x.values))
        return self._through(module, x)

    def _through(self, module: Any, x: Units) -> Units | None:
        self.in_place = bool(getattr(module, "inplace", False))
        return units.through(module, x)

    def _known(self, given: Any) -> Any:
        """Return what is known of an argument, perhaps of a tuple of nodes."""
        if isinstance(given, (tuple, list)):
            return tuple(self._known(each) for each in given)
        return self.env[given] if isinstance(given, fx.Node) else given

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
        if type(first) is tuple and (name, len(first), rest) == ("squeeze", 1, [0]):
            return first[0]  # the state of a module with one layer and one direction
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
        if name == "unsqueeze" and len(rest) == 1 and type(rest[0]) is int:
            whole = (slice(None),) * rest[0]
            after = (Ellipsis, None, *[slice(None)] * (-1 - rest[0]))
            return units.indexed(x, (*whole, None) if rest[0] >= 0 else after)
        if name == "squeeze":
            return None if options else units.squeezed(x, rest)
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
        if type(of) is tuple:
            return None  # the state of a recurrent module, whose last dimension are its units
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
                try:
                    pair.append(operator.attrgetter(str(each.target))(self.part.module))
                except AttributeError:
                    return None  # a tensor that the forward makes
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
                pair[i], pair[1 - i] = np.nan, x._replace(single=False, rows=object())
        x = units.joined(function, pair[0], pair[1], self.slots)
        return None if x is None else x._replace(memory=node)

    def _concatenated(self, node: fx.Node) -> Any:
        given = {**dict(zip(("tensors", "dim"), node.args)), **node.kwargs}  # noqa: B905
        each, dim = given.pop("tensors", ()), given.pop("dim", 0)
        if given or not isinstance(each, (tuple, list)) or not each:
            return None
        found = [self.env[x] for x in each if isinstance(x, fx.Node)]
        if len(found) < len(each) or not all(isinstance(x, Units) for x in found):
            return None
        made = units.concatenated(found, dim, self.slots)
        return None if made is None else made._replace(memory=node)
