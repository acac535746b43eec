"""Trace the modules of a network into graphs of `torch.fx`, without effects on other threads."""

# mypy: allow-untyped-calls, no-warn-return-any
from __future__ import annotations

import copy
import inspect
from collections import Counter
from collections.abc import Callable, Container, Iterator
from enum import Enum
from functools import partial
from typing import Any, NamedTuple

from torch import fx, nn

from ..hooks import copies
from .code import compares, loads, reads_module
from .random_state import OwnRandomState
from .state import repeats, state, unchanged
from .tracer import Tracer, observed


class Part(NamedTuple):
    """A module that was traced. Its name is its path in the whole model."""

    name: str
    module: nn.Module
    graphs: list[fx.Graph]
    """A graph for each choice of the optional arguments of ``forward``."""
    training: Container[int]
    """The `id` of the modules that stay in training mode in a network that is evaluated."""

    def observed(self, module: Any) -> bool:
        """Whether a module may do something else than its class does in evaluation mode."""
        return observed(module) or id(module) in self.training

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
        """Return the `id` of all modules that hold a tensor which the code itself reads.

        Not those of which it reads the dtype or the device alone.
        """
        nodes = (node for graph in self.graphs for node in graph.nodes if node.op == "get_attr")
        targets = {str(node.target) for node in nodes if not all(map(_asks_for_kind, node.users))}
        found = {id(self.module.get_submodule(each.rpartition(".")[0])) for each in targets}
        named = self.module.named_parameters(remove_duplicate=False)
        tensors = {id(parameter) for name, parameter in named if name in targets}
        for module in self.module.modules():
            if any(id(each) in tensors for each in module._parameters.values()):
                found.add(id(module))
        return found


def _asks_for_kind(node: fx.Node) -> bool:
    return node.target is getattr and node.args[1] in ("dtype", "device")


def evaluated(model: nn.Module) -> tuple[nn.Module, set[int]]:
    """Return a model in evaluation mode, and the `id` of its modules that stay in training mode.

    It is a copy if a module has a ``train`` of its own, which may change weights. Otherwise it is
    the model, whatever its mode.
    """
    plain = nn.Module.train, nn.Module.eval
    if all((type(each).train, type(each).eval) == plain for each in model.modules()):
        return model, set()
    model = copy.deepcopy(model, copies(model))
    model.eval()  # An own ``train`` may return nothing.
    return model, {id(each) for each in model.modules() if each.training}


def parts(
    model: nn.Module, layers: Container[nn.Module], training: Container[int] = (), name: str = ""
) -> Iterator[Part]:
    """Trace a model and, in what was traced, the modules that are called as a whole.

    A module whose code cannot be traced, or which has a hook that reads it or a ``__call__`` of its
    own, may do anything with the modules inside.
    """
    inner = compiled(model)
    if inner is not None:
        yield from parts(inner, layers, training, f"{name}._orig_mod".lstrip("."))
        return
    names = {path for path, module in model.named_modules() if module in layers}
    hooks = (*model._forward_pre_hooks.values(), *model._forward_hooks.values())
    traced = isinstance(model, fx.GraphModule)  # It has a ``__call__`` that calls this of a module.
    own_call = type(model).__call__ is not nn.Module.__call__ and not traced
    if not names or names == {""} or own_call or any(map(reads_module, hooks)):
        return
    graphs = _traced(model, names)
    if graphs is None:
        return
    yield Part(name, model, graphs, training)
    nodes = (node for graph in graphs for node in graph.nodes)
    targets = {str(node.target) for node in nodes if node.op == "call_module"}
    for path in sorted(targets - names):
        inner = f"{name}.{path}".lstrip(".")
        yield from parts(model.get_submodule(path), layers, training, inner)


def compiled(model: nn.Module) -> Any:
    """Return what a wrapper of `torch.compile` calls, or None."""
    hooks = model._forward_pre_hooks or model._forward_hooks
    kind = type(model)
    wraps = kind.__name__ == "OptimizedModule" and kind.__module__.startswith("torch._dynamo.")
    return getattr(model, "_orig_mod", None) if wraps and not hooks else None


def _feed_forward(layer: Any, x: Any) -> Any:
    last = getattr(layer, "norm3", layer.norm2)
    return last(layer._ff_block(layer.self_attn(x, x, x)[0]))


def _stack(stack: Any, x: Any) -> Any:
    for layer in stack.layers:
        _check(layer)
        x = layer(x)
    return x


def _encoder_decoder(model: Any, x: Any, y: Any) -> Any:
    _check(model.encoder)
    _check(model.decoder)
    return model.decoder(model.encoder(x), y)


def _check(module: Any) -> None:
    if type(module) not in _SIMPLER:
        raise TypeError("this part may do anything")


_SIMPLER: dict[type, Callable[..., Any]] = {
    nn.TransformerEncoderLayer: _feed_forward,
    nn.TransformerDecoderLayer: _feed_forward,
    nn.TransformerEncoder: _stack,
    nn.TransformerDecoder: _stack,
    nn.Transformer: _encoder_decoder,
}
"""Functions that read no other units of layers than the forward of a module, which branches."""


def _forward(module: nn.Module) -> Callable[..., Any]:
    simpler = _SIMPLER.get(type(module))
    assigned = {"forward", "_sa_block", "_mha_block", "_ff_block"}.intersection(vars(module))
    return module.forward if simpler is None or assigned else partial(simpler, module)


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

    An argument may be anything, which a proxy stands for. But a flag is True or False, a mode is a
    member of its enumeration, and the code may ask whether an argument is None.
    """
    found: list[dict[str, Any]] = [{}]
    for name, parameter in inspect.signature(_forward(model)).parameters.items():
        default = parameter.default
        if parameter.kind in (parameter.VAR_POSITIONAL, parameter.VAR_KEYWORD):
            return []
        if default is not parameter.empty:
            values: Any = (True, False) if isinstance(default, bool) else (_ANY, default)
            values = tuple(type(default)) if isinstance(default, Enum) else values
            found = [{**each, name: value} for each in found for value in values]
            if len(found) > _CHOICES:
                return []
    return found


_ANY = object()


def _graph(model: nn.Module, names: set[str], deep: bool, given: dict[str, Any]) -> fx.Graph | None:
    """Trace a model, or return None if it branches on an activation, or something keeps one."""
    tracer = Tracer()
    attributes = tracer.attributes(model, names)
    # A copy of the structure, because the forward may keep what it computes.
    memo = {**copies(model), **attributes}
    same = copy.deepcopy(model, memo).eval()
    if not {*same.modules()}.isdisjoint(model.modules()):
        return None  # A part whose ``__deepcopy__`` returns itself would be changed.
    tracer.root = same
    tracer.watch(same, names, deep)
    copied = [x for key, x in memo.items() if key not in attributes]
    whole = [x for x in copied if "forward" in getattr(x, "__dict__", ())]
    forward, before, of_whole = _forward(same), state(copied), state(whole)
    nodes = _call(tracer, forward, given)
    if nodes is None or not unchanged(of_whole, state(whole)):
        return None  # A part that is called as a whole would be traced in another state.
    after = state(copied)
    if not unchanged(before, after):
        again = _call(tracer, forward, given)
        if again is None or not unchanged(after, state(copied)) or not repeats(nodes, again):
            return None  # The next call computes something else.
        for node in reversed(again):
            tracer.graph.erase_node(node)
    given_alone = (x for x in tracer.graph.nodes if x.op == "placeholder" and not x.users)
    if compares(forward) or any(loads(forward, str(node.target)) for node in given_alone):
        return None  # The code may have asked with `is` or a dict what the argument is.
    for node in reversed(tracer.graph.nodes):
        if node.op == "get_attr" and not node.users:
            tracer.graph.erase_node(node)
    return tracer.graph


def _call(
    tracer: Tracer, forward: Callable[..., Any], given: dict[str, Any]
) -> list[fx.Node] | None:
    """Record a call, or return None if it branches on an activation, or something keeps one."""
    start, kept = len(tracer.graph.nodes), len(tracer.made)
    given = copy.deepcopy(given, {id(_ANY): _ANY})  # It may keep activations, too.
    args: list[Any] = []
    options: dict[str, Any] = {}
    value: Any = None
    for name, parameter in inspect.signature(forward).parameters.items():
        value = given.get(name, _ANY)
        if value is _ANY:
            value = tracer.create_proxy("placeholder", name, (), {})
        if parameter.kind is parameter.KEYWORD_ONLY:
            options[name] = value
        else:
            args.append(value)
    with OwnRandomState():
        output: Any = forward(*args, **options)
    tracer.create_node("output", "output", (tracer.create_arg(output),), {})
    del value, args, options, output
    tracer.branched |= any(x._node is None or not x._node.users for x in tracer.asked)
    tracer.asked.clear()
    if tracer.branched or any(made() is not None for made in tracer.made[kept:]):
        return None
    return [*tracer.graph.nodes][start:]
