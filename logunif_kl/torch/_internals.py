"""All private names of PyTorch that this package uses.

They tell whether a kernel may read a tensor's memory, and which transforms are active. If PyTorch
lacks one of these names, the composite backend computes every tensor, without kernels.
"""

# mypy: allow-untyped-calls, no-warn-return-any
from __future__ import annotations

import warnings
from collections.abc import Callable, Iterator
from contextlib import AbstractContextManager, contextmanager, nullcontext
from functools import cache, wraps
from inspect import signature
from typing import Any

import torch
from torch.autograd import Function, forward_ad

try:
    from torch import _is_functional_tensor
    from torch._C import (
        _are_functorch_transforms_active,
        _get_tracing_state,
        _has_storage,
        _len_torch_dispatch_stack,
    )
    from torch._C._functorch import (
        TransformType,
        _add_batch_dim,
        get_interpreter_stack,
        get_unwrapped,
        is_batchedtensor,
        is_functorch_wrapped_tensor,
        is_legacy_batchedtensor,
        maybe_get_bdim,
        maybe_get_level,
    )
    from torch.autograd.forward_ad import (
        _current_level,  # noqa: F401
        _set_fwd_grad_enabled,
    )
except ImportError:
    _COMPLETE = False
else:
    _COMPLETE = True

Tensor = torch.Tensor

PLAIN_TYPES = (torch.Tensor, torch.nn.Parameter)
_OF_COMPILER = ("FakeTensor", "FunctionalTensor")


def fake_outside_mode(x: Tensor) -> bool:
    """Whether a tensor is a FakeTensor outside its mode, where constants cannot be added to it."""
    return type(x).__name__ == "FakeTensor" and _COMPLETE and not _len_torch_dispatch_stack()


def plain(*tensors: Tensor) -> bool:
    """Whether these tensors have memory and are not seen by a tracer, a mode or a transform."""
    return concrete(*tensors) and not observed()


def observed() -> bool:
    """Whether a mode such as `torch.utils.flop_counter.FlopCounterMode` sees all operations."""
    return not _COMPLETE or bool(_len_torch_dispatch_stack())


def unobserved() -> AbstractContextManager[None]:
    """Hide operations from modes, such as that of a selective checkpoint, which counts them."""
    if not observed():
        return nullcontext()
    from torch.utils._python_dispatch import _disable_current_modes

    return _disable_current_modes()


def concrete(*tensors: Tensor) -> bool:
    """Whether these tensors have memory and are not seen by a tracer or a transform."""
    if not _COMPLETE or _get_tracing_state() is not None:
        return False
    for x in tensors:
        # A tensor under a transform, or escaped from one, has no storage.
        if type(x) not in PLAIN_TYPES or not _has_storage(x):
            return False
        if _is_functional_tensor(x) or x._is_zerotensor():
            return False
    return True


def traced_to_leave() -> bool:
    """Whether torch.export or torch.jit.trace is writing a program, perhaps for other runtimes."""
    return torch.compiler.is_exporting() or (_COMPLETE and _get_tracing_state() is not None)


def apply(function: type[Function], *arguments: Any) -> Any:
    """Apply an autograd Function, or only compute it in a program that is traced without gradients.

    `torch.jit.save` cannot save a Function, which is Python code.
    """
    if _COMPLETE and _get_tracing_state() is not None:
        # Not `no_grad`, which torch.jit.trace sets to check that a second program is the same.
        # The old ONNX exporter would take the last output of a Function that has several.
        if torch.is_inference_mode_enabled() or torch.onnx.is_in_onnx_export():
            return function.forward(*arguments)
        warnings.warn(
            "torch.jit.trace keeps the gradients of logunif_kl, which are Python code, so "
            "torch.jit.save cannot save the program: trace within torch.inference_mode() "
            "to save it without gradients, or use torch.export",
            stacklevel=2,
        )
    return function.apply(*arguments)


def transformed() -> bool:
    """Whether a transform of torch.func or forward-mode differentiation may be active."""
    return bool(
        not _COMPLETE or _are_functorch_transforms_active() or forward_ad._current_level >= 0
    )


def pushed(*tensors: Tensor) -> bool:
    """Whether a transform of torch.func is active, or a tensor has a tangent of forward mode."""
    if not _COMPLETE or _are_functorch_transforms_active():
        return True
    if forward_ad._current_level < 0:
        return False
    return any(forward_ad.unpack_dual(x).tangent is not None for x in tensors)


def pushed_forward() -> bool:
    """Whether forward-mode differentiation is active, which gives every output a tangent."""
    if not _COMPLETE:
        return False
    if forward_ad._current_level >= 0:
        return True
    levels = get_interpreter_stack() or ()
    return any(level.key() == TransformType.Jvp for level in levels)


def batched() -> bool:
    """Whether `torch.func.vmap` is active."""
    levels = (get_interpreter_stack() or ()) if _COMPLETE else ()
    return any(level.key() == TransformType.Vmap for level in levels)


@cache
def fused_multiply_add() -> Callable[..., Tensor] | None:
    """Return the compiler's fused multiply-add, or None if the compiler cannot be imported."""
    try:
        from torch._inductor.inductor_prims import fma
    except ImportError:
        return None
    found: Callable[..., Tensor] = fma
    return found


def being_compiled(*tensors: Tensor) -> bool:
    """Whether AOTAutograd traces these tensors for `torch.compile`, not for an export."""
    if not all(type(x).__name__ in _OF_COMPILER for x in tensors) or transformed():
        return False
    try:
        # These imports take no time: the compiler that made the tensors has imported the modules.
        from torch._guards import TracingContext
        from torch._subclasses.fake_tensor import FakeTensor
        from torch._subclasses.functional_tensor import FunctionalTensor
        from torch.compiler import is_exporting
    except ImportError:
        return False
    if TracingContext.try_get() is None or is_exporting():
        return False
    return all(
        type(x) in (FakeTensor, FunctionalTensor)
        and not is_functorch_wrapped_tensor(x)
        and not is_legacy_batchedtensor(x)
        for x in tensors
    )


@contextmanager
def computed_again() -> Iterator[None]:
    """Let the compiler compute what is traced here again in the backward instead of keeping it.

    This is the mark of `torch.utils.checkpoint`. If PyTorch lacks it, the compiler chooses.
    """
    try:
        from torch.fx import traceback
        from torch.utils.checkpoint import CheckpointPolicy

        meta, mark = traceback.current_meta, {"recompute": CheckpointPolicy.PREFER_RECOMPUTE}
    except (ImportError, AttributeError):
        meta = mark = {}
    before = dict(meta)
    meta.update({**mark, **before})  # a checkpoint of the caller has its own mark
    try:
        yield
    finally:
        meta.clear()
        meta.update(before)


def is_number(x: Tensor) -> bool:
    """Whether all elements are one number in memory, as in a 0-d or an expanded tensor."""
    return all(isinstance(step, int) and step == 0 for step in x.stride())


def hint(size: int | torch.SymInt) -> int:
    """Return the length that a compiler assumes for a dimension, or 0, without adding a guard."""
    if isinstance(size, int):
        return size
    node: Any = getattr(size, "node", None)
    known = getattr(node, "has_hint", None)
    return int(node.hint) if known is not None and known() else 0


def extension_file() -> str:
    """Return the file of PyTorch's own extension module, or an empty string if unknown."""
    return str(getattr(torch._C, "__file__", ""))


def legacy_batched(x: Tensor) -> bool:
    """Whether a tensor is a batch of gradients (`is_grads_batched`)."""
    return bool(_COMPLETE and is_legacy_batchedtensor(x))


def with_signature(forward: Any) -> Any:
    """Store the signature of a forward, or `Function.apply` would compute it at every call."""
    forward.__signature__ = signature(forward)
    return forward


def direct_apply(function: type[Function]) -> Callable[..., Any]:
    """Return the part of `Function.apply` that plain tensors need when no transform is active.

    The rest of `Function.apply` binds the arguments to a signature, which takes longer than a
    kernel on a few elements.
    """
    apply: Callable[..., Any] = super(Function, function).apply  # type: ignore[misc]
    return apply


def with_primals(jvp: Callable[..., Any]) -> Callable[..., Any]:
    """Make a ``jvp`` from a function of the saved tensors and the tangents, for nested transforms.

    PyTorch disables the forward mode at all levels of nested transforms while it runs a ``jvp``.
    The tangents of outer levels would then silently be zero (pytorch issue 197867). The returned
    ``jvp`` enables the forward mode again, and removes the innermost level's tangents from the
    saved tensors.
    """

    @wraps(jvp)
    def rule(ctx: Any, *tangents: Tensor | None) -> Any:
        if not _COMPLETE:
            raise NotImplementedError(
                f"PyTorch {torch.__version__} lacks internals that forward-mode derivatives need "
                "here: use backward(), torch.func.grad or torch.func.jacrev, or install another "
                "version"
            )
        with _set_fwd_grad_enabled(True):
            return jvp(ctx, *map(_primal, ctx.saved_tensors), *tangents)

    return rule


def _primal(x: Tensor) -> Tensor:
    """Return x without its innermost tangent, but with its batch dimensions of vmap."""
    if is_batchedtensor(x):
        inner = _primal(get_unwrapped(x))
        return _add_batch_dim(inner, maybe_get_bdim(x), maybe_get_level(x))
    # Pass level 0, the only level: the default is -1 in a compiler's graph, which enters no level.
    return forward_ad.unpack_dual(x, level=0).primal


def called_by_compiler(function: Callable[..., Any]) -> Callable[..., Any]:
    """Let torch.compile call the function while it traces, and use the result as a constant.

    `torch.compiler.assume_constant_result` sets the same attribute, but imports the compiler.
    """
    function._dynamo_marked_constant = True  # type: ignore[attr-defined]
    return function


def in_graphs(function: Callable[..., Any]) -> Callable[..., Any]:
    """Let torch.compile put calls of the function into its graph, without tracing into it.

    `torch.compiler.allow_in_graph` imports the compiler, so wait until the compiler traces a call.
    """

    @called_by_compiler
    def allow() -> bool:
        torch.compiler.allow_in_graph(function)
        return True

    @wraps(function)
    def called(*arguments: Any) -> Any:
        if torch.compiler.is_compiling():
            allow()
        return function(*arguments)

    return called
