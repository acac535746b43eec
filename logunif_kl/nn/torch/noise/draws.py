"""The samples that modules hold while a network is called, and the hooks that end them."""

# mypy: allow-untyped-calls
from __future__ import annotations

import sys
import threading
from typing import Any, NamedTuple

import torch
from torch.nn import Parameter

from .recomputation import (
    backward_pass,
    begin_part,
    may_be_checkpointed,
    regions,
    samples_again,
    samples_of_run,
)

Tensor = torch.Tensor


class Drawn(NamedTuple):
    """A sample of a weight, and what it was computed from."""

    parameters: tuple[Any, ...]
    """The means and the variances."""
    mask: Any
    noise: Tensor
    sample: Tensor
    regions: list[Any]
    """The checkpoints in which the noise was drawn."""

    def fits(self, mean: Tensor) -> bool:
        """Whether the noise is that of means like these."""
        noise = self.noise
        alike = noise.shape == mean.shape and noise.dtype == mean.dtype
        return alike and noise.device == mean.device

    def is_within(self, regions: list[Any]) -> bool:
        return all(each in self.regions for each in regions)

    def is_of(self, parameters: tuple[Any, ...]) -> bool:
        mean, variance = self.parameters
        return mean is parameters[0] and variance is parameters[1]


def keep(samples: dict[Any, Drawn], module: Any, name: str, drawn: Drawn) -> None:
    samples[tuple(map(id, drawn.parameters))] = samples[id(module), name] = drawn


class _State:
    """The calls of one thread."""

    def __init__(self) -> None:
        # Not a number: with dynamic=True, torch.compile loses changes of numbers at graph breaks.
        self.calls: list[torch.nn.Module] = []
        """The modules that are being called, from outside in."""
        self.samples: dict[Any, Drawn] = {}
        """By the `id` of the parameters of a weight, and by that of a module and a name."""
        self.began: list[Any] = []
        """The checkpoints in which the outermost call began."""
        self.within: list[int] | None = []
        """The backward pass in which the outermost call began, or None for one in a graph."""
        self.outside: list[Any] = []
        """What calls held, from outside in, within which a backward pass runs the call."""

    def is_called(self) -> bool:
        """Whether a call runs, and not a backward pass within it."""
        return bool(self.calls) and not self.is_other(backward_pass())

    def is_other(self, within: list[int] | None) -> bool:
        """Whether this is another backward pass than that of the outermost call."""
        return within is not None and self.within is not None and within != self.within

    def begin_or_end_pass(self, within: list[int] | None) -> None:
        if self.calls and within:
            # A second run for a checkpoint, which draws what the first run drew.
            held = self.calls, self.samples, self.began, self.within
            self.outside = [*self.outside, held]
            self.calls = []
            return
        while self.within:  # A KeyboardInterrupt ended the backward pass.
            self.calls = []
            if not self.resume():
                self.within = []

    def resume(self) -> bool:
        """Go on with the call within which a backward pass ran."""
        if self.outside:
            *self.outside, last = self.outside
            self.calls, self.samples, self.began, self.within = last
            return True
        return False


class _OfThread(threading.local):
    # Not the attributes themselves: torch.compile loses changes of those of a `threading.local`.
    def __init__(self) -> None:
        self.state = _State()


class Draws:
    """The samples that modules hold until the outermost call ends.

    All sampled modules of a network share one object. Its methods are hooks of these modules, and
    of the modules that contain them.
    """

    def __init__(self) -> None:
        self._of_thread = _OfThread()

    @property
    def own(self) -> _State:
        return self._of_thread.state

    def __reduce__(self) -> Any:
        """Copy without the samples, which do not hold for a copy."""
        return Draws, ()

    def enter(self, module: torch.nn.Module, args: Any) -> None:
        own = self.own
        if getattr(module, "_is_replica", False):
            raise RuntimeError(
                "a network with sampled weights was called by torch.nn.DataParallel, whose copies "
                "have no parameters: use torch.nn.parallel.DistributedDataParallel"
            )
        for name in module.__dict__.get("_lk_gaussian", ()):
            module._lk_parameter(name)  # type: ignore[operator]
        within = backward_pass()
        if own.is_other(within):
            own.begin_or_end_pass(within)
        if own.calls and module is own.calls[0] and not _is_called(module):
            # A KeyboardInterrupt ended the last call, after which PyTorch calls no hooks.
            own.calls = []
        if not own.calls:
            own.within = within
            own.samples, own.began = samples_again(self)
        elif may_be_checkpointed():
            begin_part(len(own.calls))
        own.calls = [*own.calls, module]

    def leave(self, module: torch.nn.Module, args: Any, output: Any) -> None:
        own = self.own
        # If another hook raised an error before `enter`, there is no call. A KeyboardInterrupt that
        # the network catches leaves calls of parts.
        for at in range(len(own.calls) - 1, -1, -1):
            if own.calls[at] is module:
                own.calls = own.calls[:at]
                break
        if not own.calls:
            own.samples = {}
            own.resume()

    def again(self, module: Any, name: str) -> Tensor | None:
        """Return the sample that this call drew for a parameter, if there is nothing to check."""
        drawn = self.own.samples.get((id(module), name))
        if drawn is None or may_be_checkpointed():
            return None
        parameters, (mean, variance) = module._parameters, drawn.parameters
        if type(mean) is not Parameter or mean is not parameters.get(name):
            return None  # masked, or held by a DTensor, whose readers differ
        if variance is not parameters.get(f"{name}_log_sigma2"):
            return None
        sample = drawn.sample
        return sample if sample.requires_grad or not torch.is_grad_enabled() else None

    def samples(self) -> dict[Any, Drawn] | None:
        """Return the samples of the call that runs, or of a part of it that runs again, or None."""
        own = self.own
        return own.samples if own.is_called() else samples_of_run(self)

    def noise_of(
        self,
        samples: dict[Any, Drawn],
        module: Any,
        name: str,
        mean: Tensor,
        parameters: tuple[Any, ...],
    ) -> tuple[Tensor, list[Any]]:
        """Return the noise of a weight in this call, and the checkpoints in which it was drawn.

        Weights that are one parameter share it, also with different masks. So do the parameters
        that an offloading hook gives a module in turn.
        """
        drawn = samples.get(tuple(map(id, parameters)))
        # A parameter of `functional_call` may be freed, and another one may get its `id`.
        if drawn is None or not drawn.is_of(parameters):
            drawn = samples.get((id(module), name))
        if drawn is not None and drawn.fits(mean):
            return drawn.noise, drawn.regions if module._lk_kept is None else regions()
        if not samples and samples is self.own.samples and module._lk_kept is None:
            self._refuse_forward()
        return module._lk_normals(mean.shape, mean, name), regions()

    def _refuse_forward(self) -> None:
        """Raise if a network's ``forward`` was called itself, whose parts would each draw anew."""
        own = self.own
        if torch.compiler.is_compiling():
            return
        call, outside = torch.nn.Module._call_impl.__code__, False
        called = [*own.calls, *(each for held in own.outside for each in held[0])]
        frame: Any = sys._getframe(1)
        while frame is not None:
            code = frame.f_code
            if code is call:
                outside = outside or frame.f_locals["self"] is own.calls[0]
            elif outside and code.co_name == "forward" and code.co_argcount:
                owner = frame.f_locals.get(code.co_varnames[0])
                module = isinstance(owner, torch.nn.Module) and owner not in called
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
        # The wrapper of torch.compile calls its module, which counts.
        if self.is_hooked(module) or "_orig_mod" in module._modules:
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
