"""Find layers whose outputs only the next layer reads, in graphs of `torch.fx`."""

# mypy: allow-untyped-calls, no-warn-return-any
from __future__ import annotations

import copy
import inspect
import operator
import weakref
from collections import Counter
from collections.abc import Container, Iterator
from functools import partial
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
    graphs: list[fx.Graph]
    """A graph for each choice of the optional arguments of ``forward``."""

    def called(self, node: fx.Node) -> Any:
        """Return the module that a node calls, or None."""
        is_call = node.op == "call_module"
        return self.module.get_submodule(str(node.target)) if is_call else None

    def calls(self) -> Counter[int]:
        """Count the calls of each module, by its `id`, in the graph that has the most."""
        found: Counter[int] = Counter()
        for graph in self.graphs:
            found |= Counter(id(self.called(node)) for node in graph.nodes)
        return found

    def read(self) -> set[int]:
        """Return the `id` of all modules that hold a tensor which the code itself reads."""
        nodes = (node for graph in self.graphs for node in graph.nodes if node.op == "get_attr")
        targets = {str(node.target) for node in nodes}
        found = {id(self.module.get_submodule(each.rpartition(".")[0])) for each in targets}
        named = self.module.named_parameters(remove_duplicate=False)
        tensors = {id(parameter) for name, parameter in named if name in targets}
        for module in self.module.modules():
            if any(id(each) in tensors for each in module._parameters.values()):
                found.add(id(module))
        return found


class _Tracer(fx.Tracer):
    """Record the calls of modules and functions in a graph.

    `fx.Tracer.trace` would replace ``Module.__call__`` in all threads. Instead, the modules of a
    copy record their calls, and `torch.fx.Proxy` objects take the place of its parameters.
    """

    def __init__(self) -> None:
        super().__init__()
        self.graph = fx.Graph(tracer_cls=_Tracer)
        self.tensor_attrs = {}
        self.made: list[weakref.ref[fx.Proxy]] = []

    def proxy(self, node: fx.Node) -> fx.Proxy:
        found = super().proxy(node)
        self.made.append(weakref.ref(found))
        return found

    def attributes(self, model: nn.Module, layers: set[str]) -> dict[int, fx.Proxy]:
        """Return proxies of the tensors of a model, by their `id`.

        These are parameters, buffers, and the weights of layers that hooks compute.
        """
        named = [*model.named_parameters(), *model.named_buffers()]
        for path in sorted(layers):
            given = model.get_submodule(path).__dict__.items()
            named += [(f"{path}.{k}", v) for k, v in given if isinstance(v, torch.Tensor)]
        return {id(x): self.create_proxy("get_attr", name, (), {}) for name, x in named}

    def watch(self, model: nn.Module, layers: set[str], deep: bool) -> None:
        """Let the modules of a copied model record their calls.

        Record what happens within `torch.nn.Sequential` and, if `deep`, within modules of other
        packages.
        """
        for path, module in model.named_modules():
            if path and (path in layers or observed(module) or self._is_whole(module, deep)):
                call = partial(self._call, path)
                module.__dict__["forward"] = call
                for hooks in (module._forward_pre_hooks, module._forward_hooks):
                    hooks.clear()

    def _call(self, path: str, *args: Any, **kwargs: Any) -> fx.Proxy:
        return self.create_proxy("call_module", path, args, kwargs)

    def _is_whole(self, module: nn.Module, deep: bool) -> bool:
        if type(module) is nn.Sequential:
            return False
        ours = type(module).__module__.startswith("logunif_kl.")
        return not deep or ours or self.is_leaf_module(module, "")


def parts(model: nn.Module, layers: Container[nn.Module], name: str = "") -> Iterator[Part]:
    """Trace a model and, in what was traced, the modules that are called as a whole.

    If the code of a module cannot be traced, it may do anything with the modules inside.
    """
    names = {path for path, module in model.named_modules() if module in layers}
    if not names or names == {""}:
        return
    graphs = _traced(model, names)
    if graphs is None:
        return
    yield Part(name, model, graphs)
    nodes = (node for graph in graphs for node in graph.nodes)
    targets = {str(node.target) for node in nodes if node.op == "call_module"}
    for path in sorted(targets - names):
        yield from parts(model.get_submodule(path), layers, f"{name}.{path}".lstrip("."))


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


_CHOICES = 16
"""The largest number of choices of optional arguments for which a module is traced."""


def _traced(model: nn.Module, names: set[str]) -> list[fx.Graph] | None:
    """Trace a model with each choice of its optional arguments, or return None."""
    try:
        choices = _choices(model)
    except (TypeError, ValueError):
        return None
    for deep in (True, False):
        graphs = []
        for given in choices:
            try:
                graph = _graph(model, names, deep, given)
            except Exception:  # the forward may raise anything when it is given proxies
                break
            if graph is None:
                break
            graphs.append(graph)
        else:
            return graphs or None
    return None


def _choices(model: nn.Module) -> list[dict[str, Any]]:
    """Return the optional arguments with which to trace a model, or [] if there are too many.

    An argument may be anything, which a proxy stands for. But a flag is True or False, and the code
    may ask whether an argument is None.
    """
    found: list[dict[str, Any]] = [{}]
    for name, parameter in inspect.signature(model.forward).parameters.items():
        default = parameter.default
        if parameter.kind in (parameter.VAR_POSITIONAL, parameter.VAR_KEYWORD):
            return []
        if default is not parameter.empty:
            values = (True, False) if isinstance(default, bool) else (_ANY, default)
            found = [{**each, name: value} for each in found for value in values]
            if len(found) > _CHOICES:
                return []
    return found


_ANY = object()


def _graph(model: nn.Module, names: set[str], deep: bool, given: dict[str, Any]) -> fx.Graph | None:
    """Trace a model, or return None if something keeps an activation."""
    tracer = _Tracer()
    attributes = tracer.attributes(model, names)
    # A copy of the structure, because the forward may keep what it computes.
    same = copy.deepcopy(model, {**copies(model), **attributes}).eval()
    tracer.root = same
    tracer.watch(same, names, deep)
    args, options = [], {}
    kept = len(tracer.made)
    for name, parameter in inspect.signature(same.forward).parameters.items():
        value = given.get(name, _ANY)
        if value is _ANY:
            value = tracer.create_proxy("placeholder", name, (), {})
        if parameter.kind is parameter.KEYWORD_ONLY:
            options[name] = value
        else:
            args.append(value)
    cuda = range(torch.cuda.device_count()) if torch.cuda.is_initialized() else ()
    with torch.random.fork_rng(devices=cuda):
        output: Any = same.forward(*args, **options)
    tracer.create_node("output", "output", (tracer.create_arg(output),), {})
    value = args = options = output = None
    if any(made() is not None for made in tracer.made[kept:]):
        return None
    for node in reversed(tracer.graph.nodes):
        if node.op == "get_attr" and not node.users:
            tracer.graph.erase_node(node)
    return tracer.graph


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
