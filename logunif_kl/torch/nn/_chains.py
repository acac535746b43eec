"""Find layers whose outputs only the next layer reads, in a graph of `torch.fx`."""

# mypy: allow-untyped-calls, no-warn-return-any
from __future__ import annotations

import copy
import inspect
import operator
from collections import Counter
from collections.abc import Container, Iterator
from typing import Any

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


class _Tracer(fx.Tracer):
    """Trace into modules of other packages, or only into `torch.nn.Sequential`."""

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


def chains(model: nn.Module, layers: Container[nn.Module]) -> Iterator[list[Any]]:
    """Yield lists of modules: a layer, the modules that only its output passes, the next layer.

    A model that `torch.fx` cannot trace is searched for modules that it can trace. Functions are
    given as modules. The layers of a list are called once, and no hook observes its modules.
    """
    names = {name for name, module in model.named_modules() if module in layers}
    graph = _traced(model, names)
    if graph is None:
        for child in dict.fromkeys(model.children()):
            yield from chains(child, layers)
        return
    calls = Counter(node.target for node in graph.nodes if node.op == "call_module")
    times = Counter(id(each) for _, each in model.named_modules(remove_duplicate=False))

    def called(node: fx.Node) -> Any:
        """Return the module that a node calls, or None for a layer that is called again."""
        if node.op != "call_module":
            return _as_module(node)
        module = model.get_submodule(str(node.target))
        again = calls[node.target] > 1 or times[id(module)] > 1
        return None if observed(module) or (module in layers and again) else module

    for node in graph.nodes:
        if node.target not in names or node.op != "call_module":
            continue
        chain = [called(node)]
        while chain[-1] is not None and (chain[-1] not in layers or len(chain) == 1):
            after = _reader(node)
            chain.append(None if after is None else called(after))
            node = after
        if chain[-1] is not None:
            yield chain


def _traced(model: nn.Module, names: set[str]) -> fx.Graph | None:
    if type(model) is nn.Sequential:
        return _Tracer(names, deep=False).trace(model)
    found = inspect.signature(model.forward).parameters.values()
    if not names or any(p.default is not p.empty or p.kind in (2, 4) for p in found):
        # With default values, `forward` may do something else from what is traced.
        return None
    tensors = {id(tensor): tensor for tensor in (*model.parameters(), *model.buffers())}
    # Trace a copy, which shares the tensors, because the forward may keep what it computes.
    same = copy.deepcopy(model, {**copies(model), **tensors}).eval()
    try:
        return _Tracer(names, deep=True).trace(same)
    except Exception:  # the forward may raise anything when it is given proxies
        return None


def _reader(node: fx.Node) -> fx.Node | None:
    """Return the only node that reads the output of a node, except for its batch size."""
    readers = [
        user
        for user in node.users
        if not (_is_batch_size(user) or (_is_shape(user) and all(map(_is_batch_size, user.users))))
    ]
    if len(readers) != 1 or readers[0].op == "output":
        return None
    reader = readers[0]
    first, *others = [*reader.args, *reader.kwargs.values()] or [None]
    return reader if first is node and node not in others else None


def _is_shape(node: Any) -> bool:
    return isinstance(node, fx.Node) and node.target is getattr and node.args[1] == "shape"


def _is_batch_size(node: Any) -> bool:
    if not isinstance(node, fx.Node) or node.args[1:] != (0,):
        return False
    is_item = node.target is operator.getitem and _is_shape(node.args[0])
    return is_item or (node.op == "call_method" and node.target == "size")


def _as_module(node: fx.Node) -> nn.Module | None:
    """Return the module that computes what a function or a method of tensors computes."""
    name = getattr(node.target, "__name__", node.target)
    if node.op not in ("call_function", "call_method") or not isinstance(name, str):
        return None
    if node.op == "call_function" and not any(hasattr(m, name) for m in (F, torch)):
        return None
    given, options = node.args[1:], dict(node.kwargs)
    if name == "flatten":
        ends = dict(zip(("start_dim", "end_dim"), given))  # noqa: B905
        whole = {**ends, **options} in ({"start_dim": 1}, {"start_dim": 1, "end_dim": -1})
        return nn.Flatten() if whole else None
    if name in ("view", "reshape") and len(given) == 2 and given[1] == -1:
        return nn.Flatten() if _is_batch_size(given[0]) else None
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
