"""Find layers whose outputs only the next layer reads, in graphs of `torch.fx`."""

# mypy: allow-untyped-calls, no-warn-return-any
from __future__ import annotations

import operator
from collections import Counter
from collections.abc import Container, Iterator
from typing import Any

import torch
from torch import fx, nn
from torch.nn import functional as F

from .traces import Part, observed

ELEMENTWISE = (
    *(nn.CELU, nn.ELU, nn.GELU, nn.Hardshrink, nn.Hardsigmoid, nn.Hardswish, nn.Hardtanh),
    *(nn.LeakyReLU, nn.LogSigmoid, nn.Mish, nn.ReLU, nn.ReLU6, nn.SELU, nn.SiLU, nn.Sigmoid),
    *(nn.Softplus, nn.Softshrink, nn.Softsign, nn.Tanh, nn.Tanhshrink, nn.Threshold),
)
_FUNCTIONS = {
    **{cls.__name__.lower(): cls for cls in ELEMENTWISE},
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
}


def chains(
    model: nn.Module, found: list[Part], layers: Container[nn.Module]
) -> Iterator[list[Any]]:
    """Yield lists of modules: a layer, the modules that only its output passes, the next layer.

    Functions are given as modules. The layers of a list are called once in the whole model, no hook
    observes its modules, and nothing else reads their parameters.
    """
    times = Counter(id(each) for _, each in model.named_modules(remove_duplicate=False))
    calls: Counter[int] = sum((part.calls() for part in found), Counter())
    read: set[int] = set().union(*(part.read() for part in found))
    alone = {id(m) for m in model.modules() if calls[id(m)] == times[id(m)] == 1} - read
    for part in found:
        first, *others = (
            {_key(chain): chain for chain in _of_graph(part, graph, layers, alone)}
            for graph in part.graphs
        )
        for key, chain in first.items():
            if all(key in each for each in others):
                yield chain


def _key(chain: list[Any]) -> Any:
    """Return what is equal for equal chains of two graphs, whose functions become new modules."""
    first, *between, last = chain
    options = ({k: v for k, v in vars(each).items() if k[0] != "_"} for each in between)
    return id(first), *zip(map(type, between), map(repr, options), strict=True), id(last)


def _of_graph(
    part: Part, graph: fx.Graph, layers: Container[nn.Module], alone: set[int]
) -> Iterator[list[Any]]:
    for node in graph.nodes:
        if part.called(node) not in layers or id(part.called(node)) not in alone:
            continue
        passed, chain = [node.args[0], node], [part.called(node)]
        while chain[-1] is not None and (chain[-1] not in layers or len(chain) == 1):
            after = _reader(passed[-1])
            chain.append(None if after is None else _passed(part, after, passed))
            passed.append(after)
        if id(chain[-1]) in alone and not any(map(observed, chain)):
            yield chain


def _passed(part: Part, node: fx.Node, before: list[Any]) -> Any:
    """Return the module of a node, or None if units must not pass it."""
    return part.called(node) if node.op == "call_module" else _as_module(node, before)


def outputs(found: list[Part], layers: Container[nn.Module]) -> Iterator[Any]:
    """Yield the layers of a traced model from which no other layer reads."""

    def holds_layer(part: Part, node: fx.Node) -> bool:
        module = part.called(node)
        return module is not None and any(each in layers for each in module.modules())

    for part in found:
        for node in part.graphs[0].nodes if not part.name else ():
            if part.called(node) in layers:
                after, new = {node}, {node}
                while new:
                    new = {user for each in new for user in each.users} - after
                    after |= new
                if not any(holds_layer(part, each) for each in after - {node}):
                    yield part.called(node)


def _reader(node: fx.Node) -> fx.Node | None:
    """Return the only node that reads the output of a node, except for views by its batch size."""
    readers = [user for user in node.users if not _is_for_views(user)]
    if len(readers) != 1 or readers[0].op == "output":
        return None
    reader = readers[0]
    first, *others = [*reader.args, *reader.kwargs.values()] or [None]
    return reader if first is node and node not in others else None


def _is_for_views(node: fx.Node) -> bool:
    if node.op == "call_function" and node.target is getattr and node.args[1] == "shape":
        return all(_is_for_views(user) for user in node.users)
    is_size = node.op == "call_method" and node.target == "size"
    is_item = node.op == "call_function" and node.target is operator.getitem
    if not (is_size or is_item) or node.args[1:] != (0,):
        return False
    return all(user.args[1:] == (node, -1) and _is_view(user) for user in node.users)


def _is_view(node: fx.Node) -> bool:
    return node.op == "call_method" and node.target in ("view", "reshape")


def _sized(size: Any) -> Any:
    """Return the node whose batch size a node is."""
    if not isinstance(size, fx.Node):
        return None
    if size.op == "call_method" and size.target == "size":
        return size.args[0]
    shape = size.args[0] if size.target is operator.getitem else None
    return shape.args[0] if isinstance(shape, fx.Node) and shape.target is getattr else None


def _as_module(node: fx.Node, chain: list[Any]) -> nn.Module | None:
    """Return the module that computes what a function or a method of tensors computes."""
    name = getattr(node.target, "__name__", node.target)
    if node.op not in ("call_function", "call_method") or not isinstance(name, str):
        return None
    if node.op == "call_function" and node.target not in (
        getattr(F, name, None),
        getattr(torch, name, None),
    ):
        return None
    given, options = node.args[1:], dict(node.kwargs)
    if _is_view(node):
        whole = len(given) == 2 and given[1] == -1
        return nn.Flatten() if whole and _sized(given[0]) in chain else None
    if any(isinstance(each, fx.Node) for each in (*given, *options.values())):
        return None
    if name == "flatten":
        ends = dict(zip(("start_dim", "end_dim"), given))  # noqa: B905
        whole = {**ends, **options} in ({"start_dim": 1}, {"start_dim": 1, "end_dim": -1})
        return nn.Flatten() if whole else None
    if name == "dropout" and options.get("training") is False:
        return nn.Identity()
    if name in _POOLING and not options.get("return_indices"):
        return _POOLING[name](1)
    try:
        return _FUNCTIONS[name](*given, **options)
    except (KeyError, TypeError):
        return None
