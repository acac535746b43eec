"""The internals of JAX that a custom call needs. Any new version of JAX may change them.

If the installed version lacks one of them, XLA compiles plain operations instead of custom calls.
"""

# mypy: allow-untyped-calls
from __future__ import annotations

from collections.abc import Callable, Iterable
from functools import partial
from importlib import import_module
from typing import Any

import jax
import jax.numpy as jnp

try:
    from jax import typeof
    from jax.extend.core import Primitive
    from jax.ffi import ffi_lowering, register_ffi_target
    from jax.interpreters.ad import instantiate_zeros, primitive_jvps
    from jax.interpreters.batching import primitive_batchers
    from jax.interpreters.mlir import (
        LoweringParameters,
        ShardingContext,
        SPMDAxisContext,
        lower_fun,
        register_lowering,
    )
    from jax.interpreters.partial_eval import dce_rules
except ImportError as error:
    MISSING: str | None = error.msg
else:
    MISSING = None if hasattr(LoweringParameters, "for_export") else "no for_export is known"

Rule = Callable[..., Any]

_convert: Rule | None
try:
    from jax._src.lax.lax import _convert_element_type as _convert
except ImportError:
    _convert = None


def alike(*arrays: Any) -> bool:
    """Return whether arrays have the same shape, dtype, sharding and varying mesh axes."""
    return len({typeof(x) for x in arrays}) == 1


def as_weak_as(*arrays: Any, result: Any) -> Any:
    """Make a result weakly typed if all arrays are, because bit operations lose the weak type."""
    if _convert is None or not all(getattr(x, "weak_type", False) for x in arrays):
        return result
    return _convert(result, result.dtype, weak_type=True)


def primitive(
    name: str, results: int, function: Rule, *, jvp: Rule, batch: Rule, called: Rule
) -> Any:
    """Make an elementwise primitive.

    Parameters
    ----------
    name : str
        The name in a jaxpr.
    results : int
        The number of results, which have the type of the arguments.
    function : callable
        Computes the results by plain operations.
    jvp, batch : callable
        The rules for derivatives and for `jax.vmap`. Tangents of `jvp` are always arrays.
    called : callable
        Takes the context and the operands of a lowering for the CPU. Returns the lowered custom
        call, or None to compile `function`.
    """
    made = Primitive(name)
    made.multiple_results = results > 1

    def abstract(*avals: Any, **params: Any) -> Any:
        return (avals[0],) * results if results > 1 else avals[0]

    def jvp_with_zeros(primals: Any, tangents: Any, **params: Any) -> Any:
        return jvp(primals, [instantiate_zeros(t) for t in tangents], **params)

    plain = lower_fun(function, multiple_results=results > 1)

    def for_cpu(context: Any, *operands: Any, **params: Any) -> Any:
        found = called(context, *operands, **params)
        return plain(context, *operands, **params) if found is None else found

    def at_once(*arrays: Any, **params: Any) -> Any:
        # JAX calls this when it evaluates a jaxpr eagerly, as `jax.checkpoint` does.
        with jax.disable_jit(False):
            return jax.jit(partial(made.bind, **params))(*arrays)

    made.def_abstract_eval(abstract)
    made.def_impl(at_once)
    primitive_jvps[made] = jvp_with_zeros
    primitive_batchers[made] = batch
    register_lowering(made, plain)
    register_lowering(made, for_cpu, platform="cpu")
    return made


def drop_unused(whole: Any, parts: Iterable[tuple[Any, slice]]) -> None:
    """Let JAX replace a primitive by one that computes only the results that are used."""
    parts = tuple(parts)

    def rule(used: list[bool], equation: Any) -> Any:
        arguments = len(equation.invars)
        if not any(used):
            return [False] * arguments, None
        for part, of in parts:
            if sum(used[of]) == sum(used):
                left = equation.replace(primitive=part, outvars=equation.outvars[of])
                return [True] * arguments, left
        return [True] * arguments, equation

    dce_rules[whole] = rule


def with_one_batch_axis(arrays: Any, axes: Any) -> tuple[list[Any], int]:
    """Broadcast and move axes, so that all arrays have a batch axis, at the same position."""
    if len(set(axes)) == 1:
        return list(arrays), axes[0]
    length = next(x.shape[axis] for x, axis in zip(arrays, axes, strict=True) if axis is not None)
    return [
        jnp.broadcast_to(x, (length, *x.shape)) if axis is None else jnp.moveaxis(x, axis, 0)
        for x, axis in zip(arrays, axes, strict=True)
    ], 0


def size(context: Any) -> int:
    """Count the elements of the first operand."""
    return int(context.avals_in[0].size)


def for_this_process(context: Any) -> bool:
    """Return whether a program is compiled for the CPU of this process, not exported."""
    module = context.module_context
    return (
        tuple(module.platforms) == ("cpu",)
        and not module.lowering_parameters.for_export
        and getattr(module.backend, "platform", None) == "cpu"
    )


def unpartitioned(context: Any) -> bool:
    """Return whether this part of a program runs on arrays that XLA does not divide among devices.

    If an array is sharded, XLA gathers all of it on every device before a custom call.
    """
    axes = context.module_context.axis_context
    if isinstance(axes, ShardingContext):
        return int(axes.num_devices) == 1
    return isinstance(axes, SPMDAxisContext) and set(axes.manual_axes) == set(axes.mesh.axis_names)


def registers_at_once() -> bool:
    """Let `register` reach XLA before JAX makes its client for the CPU. False if JAX cannot."""
    try:
        xla_client: Any = import_module("jaxlib.xla_client")
        # JAX does the same when it makes the client. A second call does nothing.
        xla_client.register_custom_call_handler("cpu", xla_client._xla.register_custom_call_target)
    except (ImportError, AttributeError, TypeError):
        return False
    return True


def register(name: str, handler: Any) -> None:
    """Register a handler with XLA for programs on the CPU."""
    register_ffi_target(name, handler, platform="cpu", api_version=1)


def call(context: Any, name: str, *operands: Any, **attributes: Any) -> Any:
    """Lower a custom call of a registered handler."""
    return ffi_lowering(name)(context, *operands, **attributes)
