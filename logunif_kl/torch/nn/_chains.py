"""Find layers whose outputs only the next layer reads, in graphs of `torch.fx`."""

# mypy: allow-untyped-calls, no-warn-return-any
from __future__ import annotations

import copy
import inspect
import operator
from collections import Counter
from collections.abc import Container, Iterator
from typing import Any, NamedTuple

import torch
from torch import fx, nn
from torch.nn import functional as F

from ._hooks import copies

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


class Part(NamedTuple):
    """A module that was traced. Its name is its path in the whole model."""

    name: str
    module: nn.Module
    graph: fx.Graph

    def called(self, node: fx.Node) -> Any:
        """Return the module that a node calls, or None."""
        is_call = node.op == "call_module"
        return self.module.get_submodule(str(node.target)) if is_call else None


class _Tracer(fx.Tracer):
    """Trace into modules of other packages (if `deep`), and into `torch.nn.Sequential`."""

    proxy_buffer_attributes = True  # The forward may change buffers in place.

    def __init__(self, layers: Container[str], deep: bool) -> None:
        super().__init__()
        self.layers, self.deep = layers, deep

    def is_leaf_module(self, m: nn.Module, module_qualified_name: str) -> bool:
        if module_qualified_name in self.layers or observed(m):
            return True
        if type(m) is nn.Sequential:
            return False
        ours = type(m).__module__.startswith("logunif_kl.")
        return not self.deep or ours or super().is_leaf_module(m, module_qualified_name)


def parts(model: nn.Module, layers: Container[nn.Module], name: str = "") -> Iterator[Part]:
    """Trace a model, or those of its modules that `torch.fx` can trace."""
    names = {path for path, module in model.named_modules() if module in layers}
    if not names or names == {""}:
        return
    graph = _traced(model, names)
    if graph is None:
        inside = dict(model.named_children())
    else:
        yield Part(name, model, graph)
        targets = {str(node.target) for node in graph.nodes if node.op == "call_module"}
        inside = {target: model.get_submodule(target) for target in sorted(targets - names)}
    for path, module in inside.items():
        yield from parts(module, layers, f"{name}.{path}".lstrip("."))


def chains(
    model: nn.Module, found: list[Part], layers: Container[nn.Module]
) -> Iterator[list[Any]]:
    """Yield lists of modules: a layer, the modules that only its output passes, the next layer.

    Functions are given as modules. The layers of a list are called once in the whole model, no hook
    observes its modules, and nothing else reads their parameters.
    """
    times = Counter(id(each) for _, each in model.named_modules(remove_duplicate=False))
    for part in found:
        calls = Counter(id(part.called(node)) for node in part.graph.nodes)
        read = {str(n.target).rpartition(".")[0] for n in part.graph.nodes if n.op == "get_attr"}
        alone = {
            node
            for node in part.graph.nodes
            if calls[id(part.called(node))] == times[id(part.called(node))] == 1
            and node.target not in read
        }
        for node in part.graph.nodes:
            if part.called(node) not in layers or node not in alone:
                continue
            passed, chain = [node.args[0], node], [part.called(node)]
            while chain[-1] is not None and (chain[-1] not in layers or len(chain) == 1):
                after = _reader(passed[-1])
                chain.append(None if after is None else _passed(part, after, passed))
                passed.append(after)
            if chain[-1] is not None and passed[-1] in alone and not any(map(observed, chain)):
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
        for node in part.graph.nodes if not part.name else ():
            if part.called(node) in layers:
                after, new = {node}, {node}
                while new:
                    new = {user for each in new for user in each.users} - after
                    after |= new
                if not any(holds_layer(part, each) for each in after - {node}):
                    yield part.called(node)


def _traced(model: nn.Module, names: set[str]) -> fx.Graph | None:
    # A copy of the structure, which shares the parameters: the forward may keep what it computes.
    shared = {id(tensor): tensor for tensor in model.parameters()}
    cuda = range(torch.cuda.device_count()) if torch.cuda.is_initialized() else ()
    for deep in (True, False) if type(model) is nn.Sequential else (True,):
        try:
            parameters = inspect.signature(model.forward).parameters.values()
            if any(p.default is not p.empty or p.kind in (2, 4) for p in parameters):
                # With default values, `forward` may do something else from what is traced.
                return None
            same = copy.deepcopy(model, {**copies(model), **shared}).eval()
            with torch.random.fork_rng(devices=cuda):
                graph = _Tracer(names, deep).trace(same)
        except Exception:  # the forward may raise anything when it is given proxies
            continue
        kept = (value for module in same.modules() for value in module.__dict__.values())
        if not any(isinstance(value, fx.Proxy) for value in kept):
            return graph
    return None


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


def observed(module: Any) -> bool:
    """Whether a hook may read the inputs or outputs of a module. Pruning hooks do not."""
    pruning = nn.utils.prune.BasePruningMethod
    before = [h for h in module._forward_pre_hooks.values() if not isinstance(h, pruning)]
    return bool(before or module._forward_hooks)
