"""The means of weights, as they are read where no noise is drawn for them.

Another module, or a method other than a call, may read the weight of a layer: with ``F.linear(x,
self.layer.weight)`` it would compute with the means and train them as if they were certain.
"""

# mypy: allow-untyped-calls, no-warn-return-any
from __future__ import annotations

import math
import re
import sys
from types import FrameType
from typing import Any, Literal

import torch
from torch.autograd.function import BackwardCFunction
from torch.autograd.graph import saved_tensors_hooks

Tensor = torch.Tensor

# Modules that read parameters to store, initialise, shard or replace them.
_TRUSTED = (
    *("logunif_kl.", "torch.nn.init.", "torch.nn.modules.module.", "torch.nn.utils."),
    *("torch.optim.", "torch.distributed.", "torch.func.", "torch.fx.", "torch.export.", "torch._"),
    "copy.",
)
_PREPARES = re.compile("(?:^|_)(init|initiali[sz]e|reset|tie|resize|load|configure)(?:_|$)")
_KEPT = frozenset(
    {
        *("detach", "data", "grad", "as_subclass", "_base"),
        *("register_hook", "register_post_accumulate_grad_hook", "retain_grad", "backward"),
    }
)
"""What gives a tensor without the weight's noise on purpose, or none of its numbers."""

_CHANGES = frozenset(
    {
        *("__iadd__", "__isub__", "__imul__", "__idiv__", "__itruediv__", "__ifloordiv__"),
        *("__imod__", "__ipow__", "__iand__", "__ior__", "__ixor__", "__ilshift__"),
        *("__irshift__", "__setitem__", "__set__", "__delete__"),
    }
)
"""What changes a tensor, beside functions whose names end with an underscore."""

_FUNCTIONS = (
    torch.autograd.Function.apply.__code__,
    BackwardCFunction.apply.__code__,
    BackwardCFunction.apply_jvp.__code__,
)
"""What calls the methods of an autograd Function, in which gradients are off."""

_NUMBERS = frozenset(
    {
        *("tolist", "item", "numpy", "__array__", "__float__", "__int__", "__dlpack__"),
        *(
            "__format__",
            "__bool__",
            "__index__",
            "__complex__",
            "__contains__",
            "equal",
            "allclose",
        ),
        *("is_nonzero", "__reduce_ex__", "__deepcopy__"),
        *("data_ptr", "storage", "untyped_storage"),
    }
)
"""What gives the numbers of a tensor, but no tensor of PyTorch."""


class UndrawnWeight(torch.Tensor):
    """The means of a weight that is read where no noise is drawn: nothing can be computed with it.

    Its shape, dtype and device can be read. What changes it, and its attributes, such as `grad` and
    `data`, are those of the parameter. Outside of modules, its numbers can be read under
    `torch.no_grad` unless noise was asked for, and within `sampled` the sample takes its place.
    """

    _lk_owner: str
    _lk_mean: Tensor
    _lk_strict: bool
    _lk_sample: Tensor | None

    @classmethod
    def __torch_function__(cls, func: Any, types: Any, args: Any = (), kwargs: Any = None) -> Any:
        name = getattr(func, "__name__", "")
        if name == "__get__":
            name = getattr(getattr(func, "__self__", None), "__name__", "")
        given = args, kwargs or {}
        own = _found((*args, *given[1].values()))
        if own is None:
            raise RuntimeError(_message("a weight"))
        mean, sample = own._lk_mean, own._lk_sample
        refused = own._lk_strict or torch.is_grad_enabled()
        if name in _NUMBERS and own._lk_strict and sample is None:
            raise RuntimeError(_message(own._lk_owner))
        changed = _changed(name, *given)
        with torch._C.DisableTorchFunctionSubclass():
            if torch.compiler.is_compiling():  # The compiler has no parameter for a view.
                found = _called(func, given, "view")
                if name not in _KEPT and _has_tensor(found) and refused:
                    raise RuntimeError(_message(own._lk_owner))
                return found
            trusted = getattr(func, "__module__", "") == "torch.nn.init"
            trusted = trusted or _module(sys._getframe(1)).startswith("torch.optim.")
            if trusted or name in _KEPT or _found(changed) is not None:
                found = _called(func, given, "mean")
                return own if found is mean else found
            # Call once what may draw numbers, or change another tensor.
            if sample is None:
                if changed is not None and refused:
                    raise RuntimeError(_message(own._lk_owner))
                # A checkpoint's hooks of saved tensors may raise, to end a second run early.
                with saved_tensors_hooks(_same, _same):
                    found = of_mean = _called(func, given, "mean")
            else:
                found = _called(func, given, "sample")
                attribute = getattr(func, "__name__", "") == "__get__" and not _has_tensor(found)
                if not attribute and found is not sample and not _is_view(found, sample):
                    return found
                of_mean = _called(func, given, "mean")
                if attribute:
                    return of_mean
            if of_mean is mean:
                return own
            if _is_view(of_mean, mean):
                kept = None if sample is None else found
                return undrawn(own._lk_owner, of_mean, own._lk_strict, kept)
        if sample is None and refused and _has_tensor(found):
            raise RuntimeError(_message(own._lk_owner))
        return found


def _same(x: Tensor) -> Tensor:
    return x


def _changed(name: str, args: Any, kwargs: dict[str, Any]) -> Any:
    """Return the tensors that a function changes in place, or None."""
    first = args[0] if args else kwargs.get("input")
    if name.endswith("_") and not name.endswith("__"):
        return first
    if name in _CHANGES or kwargs.get("inplace"):
        return first
    return kwargs.get("out")


def _called(func: Any, given: tuple[Any, dict[str, Any]], takes: str) -> Any:
    """Call a function with the means of weights, or their samples, in place of `UndrawnWeight`."""

    def of(x: Any) -> Any:
        if isinstance(x, UndrawnWeight):
            found = x._lk_mean if takes == "mean" else x._lk_sample
            if found is None:
                raise RuntimeError(_message(x._lk_owner))
            return found
        return type(x)(map(of, x)) if type(x) in (tuple, list) else x

    args, kwargs = given
    if takes == "view":
        return func(*args, **kwargs)
    return func(*map(of, args), **{name: of(x) for name, x in kwargs.items()})


def _is_view(found: Any, mean: Tensor) -> bool:
    """Whether a tensor is a part of the means, which may be changed in place, too."""
    if not isinstance(found, torch.Tensor) or not found._is_view():
        return False
    return found._base is (mean._base if mean._is_view() else mean)


def _found(given: Any) -> UndrawnWeight | None:
    """Find the weight among arguments, which may be lists of tensors."""
    if isinstance(given, UndrawnWeight):
        return given
    if not isinstance(given, (tuple, list)):
        return None
    return next((own for own in map(_found, given) if own is not None), None)


def _has_tensor(found: Any) -> bool:
    if isinstance(found, (tuple, list)):
        return any(map(_has_tensor, found))
    return isinstance(found, torch.Tensor)


def _message(owner: str) -> str:
    return (
        f"{owner} has noise, but it was read outside the call that draws it, so its mean would be "
        "used as if it were certain: call the module itself, name the weight in "
        "to_variational(parameters=...) so that it is drawn once in each call of the network, or "
        "run the code within logunif_kl.torch.nn.sampled(model). For the mean itself use .detach()"
    )


def undrawn(owner: str, mean: Tensor, strict: bool, sample: Tensor | None = None) -> Tensor:
    """Return a tensor that refuses to be computed with, or computes with the sample.

    Its own numbers are NaN, for code that takes no subclass of tensors, such as `torch.func.vmap`.
    """
    if hasattr(mean, "placements"):
        raise RuntimeError(_message(owner))  # PyTorch has no subclass of a DTensor.
    own = mean
    if not torch.compiler.is_compiling():
        own = mean.detach().new_full((), math.nan).expand(mean.shape)
    found: Any = own.as_subclass(UndrawnWeight)
    found._lk_owner, found._lk_mean, found._lk_strict = owner, mean, strict
    found._lk_sample = sample
    return found


def unwrapped(value: Any) -> Any:
    """Return the parameter of an `UndrawnWeight` that is assigned to a module."""
    return value._lk_mean if isinstance(value, UndrawnWeight) else value


Reader = Literal["trusted", "call", "method", "script"]


def reader(depth: int) -> Reader:
    """Say who reads an attribute: the code that is `depth` frames above this function.

    "trusted" is this package, or a part of torch that handles parameters; "call" is code that runs
    while a module is called, "method" code of a module or an autograd Function outside of calls,
    and "script" other code. Code of a compiled graph counts as a call, because this package reads
    parameters in another way there.
    """
    if torch.compiler.is_compiling():
        return "call"
    frame: FrameType | None = sys._getframe(depth)
    while frame is not None and frame.f_code.co_name == "__getattr__":
        frame = frame.f_back  # of a wrapper, such as that of torch.compile
    if frame is not None and f"{_module(frame)}.".startswith(_TRUSTED):
        return "trusted"
    call, method = torch.nn.Module._call_impl.__code__, False
    while frame is not None and frame.f_code is not call:
        method = method or frame.f_code in _FUNCTIONS or _is_method(frame)
        frame = frame.f_back
    return "call" if frame is not None else "method" if method else "script"


def _module(frame: FrameType) -> str:
    return str(frame.f_globals.get("__name__", ""))


def _is_method(frame: FrameType) -> bool:
    """Whether code of a module's class runs in a frame, unless it prepares the module's parameters.

    The code may be a method, with any decorator, a property, or a function within one of these.
    """
    code = frame.f_code
    names = code.co_qualname.split(".")
    for name in (*code.co_varnames[: code.co_argcount], *code.co_freevars):
        owner = frame.f_locals.get(name)
        if isinstance(owner, torch.nn.Module):
            kinds = {kind.__name__ for kind in type(owner).__mro__}
            at = next((i for i, each in enumerate(names[:-1]) if each in kinds), None)
            if at is not None:
                return not any(map(_PREPARES.search, names[at + 1 :]))
            # A method of this instance alone, or one that was assigned to the class.
            for held in (vars(owner), *map(vars, type(owner).__mro__)):
                for attribute, each in held.items():
                    function = getattr(each, "fget", getattr(each, "__func__", each))
                    if getattr(function, "__code__", None) is code:
                        return not _PREPARES.search(attribute)
    return False
