"""Trace the modules of a network into graphs of `torch.fx`, without effects on other threads."""

# mypy: allow-untyped-calls, no-warn-return-any
from __future__ import annotations

import copy
import hashlib
import inspect
import weakref
from collections import Counter
from collections.abc import Callable, Container, Iterator
from enum import Enum
from functools import partial
from typing import Any, NamedTuple

import torch
from torch import fx, nn

from ..hooks import copies
from .activations import Activation
from .code import compares, loads, reads_module
from .random_state import OwnRandomState
from .state import state


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
        self.asked: list[Any] = []
        """Attributes of activations that are not methods."""
        self.branched = False
        """Whether the code asked for numbers, perhaps within a ``try`` that hides the error."""

    def create_arg(self, a: Any) -> Any:
        if issubclass(type(a), fx.Proxy):
            return a.node
        if isinstance(a, torch.Tensor):
            # By its content, which may be the size of a layer.
            return self.create_node("get_attr", f"_constant_{_hash(a)}", (), {})
        return super().create_arg(a)

    def to_bool(self, obj: fx.Proxy) -> bool:
        self.branched = True
        return super().to_bool(obj)

    def iter(self, obj: fx.Proxy) -> Iterator[Any]:
        self.branched = True
        return super().iter(obj)

    def proxy(self, node: fx.Node) -> fx.Proxy:
        found = Activation(node, self)
        self.made.append(weakref.ref(found))
        return found

    def attributes(self, model: nn.Module, layers: set[str]) -> dict[int, Any]:
        """Return proxies of the tensors of a model, by their `id`.

        These are parameters, buffers, and the weights of layers that hooks compute.
        """
        named = [*model.named_parameters(), *model.named_buffers()]
        for path in sorted(layers):
            given = model.get_submodule(path).__dict__.items()
            named += [(f"{path}.{k}", v) for k, v in given if isinstance(v, torch.Tensor)]
        found: dict[int, Any] = {
            id(x): self.create_proxy("get_attr", name, (), {}) for name, x in named
        }
        for _, x in named:
            found[id(x)]._is_param = isinstance(x, nn.Parameter)
        return found

    def watch(self, model: nn.Module, layers: set[str], deep: bool) -> None:
        """Let the modules of a copied model record their calls.

        Record what happens within `torch.nn.Sequential` and, if `deep`, within modules of other
        packages.
        """
        for path, module in model.named_modules():
            if path and (path in layers or observed(module) or self._is_whole(module, deep)):
                call = partial(self._call, path)
                module.__dict__["forward"] = call
                forward = module._forward_pre_hooks, module._forward_hooks
                for hooks in (*forward, module._backward_pre_hooks, module._backward_hooks):
                    hooks.clear()

    def _call(self, path: str, *args: Any, **kwargs: Any) -> fx.Proxy:
        return self.create_proxy("call_module", path, args, kwargs)

    def _is_whole(self, module: nn.Module, deep: bool) -> bool:
        if type(module) is nn.Sequential:
            return False
        ours = type(module).__module__.startswith("logunif_kl.")
        return not deep or ours or self.is_leaf_module(module, "")


def _asks_for_kind(node: fx.Node) -> bool:
    return node.target is getattr and node.args[1] in ("dtype", "device")


def _hash(constant: torch.Tensor) -> str:
    constant = constant.detach()
    found = hashlib.sha256(f"{constant.dtype} {tuple(constant.shape)}".encode())
    parts = (constant._indices(), constant._values()) if constant.is_sparse else (constant,)
    for each in parts:
        found.update(each.cpu().contiguous().reshape(-1).view(torch.uint8).numpy().data)
    return found.hexdigest()


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
    tracer = _Tracer()
    attributes = tracer.attributes(model, names)
    # A copy of the structure, because the forward may keep what it computes.
    memo = {**copies(model), **attributes}
    same = copy.deepcopy(model, memo).eval()
    if not {*same.modules()}.isdisjoint(model.modules()):
        return None  # A part whose ``__deepcopy__`` returns itself would be changed.
    tracer.root = same
    tracer.watch(same, names, deep)
    copied = [x for key, x in memo.items() if key not in attributes]
    before = state(copied)
    given = copy.deepcopy(given, {id(_ANY): _ANY})  # It may keep activations, too.
    args: list[Any] = []
    options: dict[str, Any] = {}
    value: Any = None
    kept = len(tracer.made)
    forward = _forward(same)
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
    if state(copied) != before:
        return None  # The next call may compute something else.
    tracer.branched |= any(x._node is None or not x._node.users for x in tracer.asked)
    tracer.asked.clear()
    if tracer.branched or any(made() is not None for made in tracer.made[kept:]):
        return None
    given_alone = (x for x in tracer.graph.nodes if x.op == "placeholder" and not x.users)
    if compares(forward) or any(loads(forward, str(node.target)) for node in given_alone):
        return None  # The code may have asked with `is` or a dict what the argument is.
    for node in reversed(tracer.graph.nodes):
        if node.op == "get_attr" and not node.users:
            tracer.graph.erase_node(node)
    return tracer.graph


def observed(module: Any) -> bool:
    """Whether a hook or an assigned forward may read the inputs or outputs of a module.

    Pruning hooks do not.
    """
    pruning = nn.utils.prune.BasePruningMethod
    before = [h for h in module._forward_pre_hooks.values() if not isinstance(h, pruning)]
    of_all = nn.modules.module
    of_all_modules = of_all._global_forward_hooks or of_all._global_forward_pre_hooks
    assigned = "forward" in vars(module)
    return bool(before or module._forward_hooks or of_all_modules or assigned)
