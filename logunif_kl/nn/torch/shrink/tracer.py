"""A tracer of `torch.fx` that has no effects on other threads."""

# mypy: allow-untyped-calls, no-warn-return-any
from __future__ import annotations

import hashlib
import weakref
from collections.abc import Iterator
from functools import partial
from typing import Any

import torch
from torch import fx, nn

from ..hooks import is_mask
from .activations import Activation


class Tracer(fx.Tracer):
    """Record the calls of modules and functions in a graph.

    `fx.Tracer.trace` would replace ``Module.__call__`` in all threads. Instead, the modules of a
    copy record their calls, and `torch.fx.Proxy` objects take the place of its parameters.
    """

    def __init__(self) -> None:
        super().__init__()
        self.graph = fx.Graph(tracer_cls=Tracer)
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


def _hash(constant: torch.Tensor) -> str:
    constant = constant.detach()
    found = hashlib.sha256(f"{constant.dtype} {tuple(constant.shape)}".encode())
    parts = (constant._indices(), constant._values()) if constant.is_sparse else (constant,)
    for each in parts:
        found.update(each.cpu().contiguous().reshape(-1).view(torch.uint8).numpy().data)
    return found.hexdigest()


def observed(module: Any) -> bool:
    """Whether a hook or an assigned forward may read the inputs or outputs of a module.

    Pruning hooks do not.
    """
    before = [h for h in module._forward_pre_hooks.values() if not is_mask(h)]
    of_all = nn.modules.module
    of_all_modules = of_all._global_forward_hooks or of_all._global_forward_pre_hooks
    assigned = "forward" in vars(module)
    return bool(before or module._forward_hooks or of_all_modules or assigned)
