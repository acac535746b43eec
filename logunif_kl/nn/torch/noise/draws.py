"""The samples that modules hold while a network is called, and the hooks that end them."""

# mypy: allow-untyped-calls
from __future__ import annotations

import sys
import threading
from typing import Any

import torch

Tensor = torch.Tensor


class Draws(threading.local):
    """The samples that modules hold until the outermost call ends.

    All sampled modules of a network share one object. Its methods are hooks of these modules, and
    of the modules that contain them. A call belongs to its thread, so each thread has attributes of
    its own.
    """

    def __init__(self) -> None:
        # Not a number: with dynamic=True, torch.compile loses changes of numbers at graph breaks.
        self.calls: list[torch.nn.Module] = []
        """The modules that are being called, from outside in."""
        self.samples: dict[int, tuple[Any, Tensor, Tensor, list[Any]]] = {}
        """By the `id` of a parameter: the parameter, its noise, its sample, and the checkpoints in
        which the noise was drawn."""

    def __reduce__(self) -> Any:
        """Copy without the samples, which do not hold for a copy."""
        return Draws, ()

    def enter(self, module: torch.nn.Module, args: Any) -> None:
        if getattr(module, "_is_replica", False):
            raise RuntimeError(
                "a network with sampled weights was called by torch.nn.DataParallel, whose copies "
                "have no parameters: use torch.nn.parallel.DistributedDataParallel"
            )
        for name in module.__dict__.get("_lk_gaussian", ()):
            module._lk_parameter(name)  # type: ignore[operator]
        if self.calls and module is self.calls[0] and not _is_called(module):
            # A KeyboardInterrupt ended the last call, after which PyTorch calls no hooks.
            self.calls = []
        if not self.calls:
            self.samples = {}
        self.calls = [*self.calls, module]

    def leave(self, module: torch.nn.Module, args: Any, output: Any) -> None:
        # If another hook raised an error before `enter`, there is no call.
        self.calls = self.calls[:-1]
        if not self.calls:
            self.samples = {}

    def refuse_forward(self) -> None:
        """Raise if a network's ``forward`` was called itself, whose parts would each draw anew."""
        if torch.compiler.is_compiling():
            return
        call, outside = torch.nn.Module._call_impl.__code__, False
        frame: Any = sys._getframe(1)
        while frame is not None:
            code = frame.f_code
            if code is call:
                outside = outside or frame.f_locals["self"] is self.calls[0]
            elif outside and code.co_name == "forward" and code.co_argcount:
                owner = frame.f_locals.get(code.co_varnames[0])
                module = isinstance(owner, torch.nn.Module) and owner not in self.calls
                if module and self.is_hooked(owner):
                    raise RuntimeError(
                        f"forward of a {type(owner).__name__} was called itself, so its sampled "
                        "weights would be drawn anew in each call of a part: call the module"
                    )
            frame = frame.f_back

    def is_hooked(self, module: torch.nn.Module) -> bool:
        return any(getattr(h, "__self__", None) is self for h in module._forward_hooks.values())

    def hook(self, module: torch.nn.Module) -> None:
        """Count the calls of a module."""
        if self.is_hooked(module):
            return
        unhook(module)
        module.register_forward_pre_hook(self.enter)
        # Also after an error, so that the next call draws again.
        module.register_forward_hook(self.leave, always_call=True)
        if isinstance(module, torch.nn.TransformerEncoder):
            # Its nested tensors are for the fast path of its layers, which hooks turn off.
            module.__dict__["_lk_nested"] = module.use_nested_tensor
            module.use_nested_tensor = False


def _is_called(module: torch.nn.Module) -> bool:
    """Whether a module is being called already, when its next call begins."""
    if torch.compiler.is_compiling():
        return True
    code, found = torch.nn.Module._call_impl.__code__, 0
    frame: Any = sys._getframe(1)
    while frame is not None:
        found += frame.f_code is code and frame.f_locals.get("self") is module
        frame = frame.f_back
    return found > 1


def unhook(module: torch.nn.Module) -> None:
    """Remove the hooks of all `Draws` from a module."""
    for hooks in (module._forward_pre_hooks, module._forward_hooks):
        for key, hook in [*hooks.items()]:
            if isinstance(getattr(hook, "__self__", None), Draws):
                del hooks[key]
                module._forward_hooks_always_called.pop(key, None)
    nested = module.__dict__.pop("_lk_nested", None)
    if nested is not None:
        module.use_nested_tensor = nested
