"""The names of JAX that this package uses and JAX does not promise to keep, all of them here.

They make a primitive, and tell what program a primitive is lowered into. On a version of JAX that
lacks one of them, XLA compiles plain operations.
"""

# mypy: allow-untyped-calls
from __future__ import annotations

from collections.abc import Callable, Iterable
from functools import partial
from typing import Any

import jax

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
    """Tell whether arrays have one type: shape, dtype, sharding, and axes that they vary over."""
    return len({typeof(x) for x in arrays}) == 1


def as_weak_as(*arrays: Any, result: Any) -> Any:
    """Make a result weakly typed if all of these arrays are.

    Operations on bits forget it. On a version of JAX without the conversion the type is strong.
    """
    if _convert is None or not all(getattr(x, "weak_type", False) for x in arrays):
        return result
    return _convert(result, result.dtype, weak_type=True)


def primitive(
    name: str, results: int, function: Rule, *, jvp: Rule, batch: Rule, called: Rule
) -> Any:
    """Make an elementwise primitive, which computes what the function does.

    Parameters
    ----------
    name : str
        The name in a jaxpr.
    results : int
        How many arrays of the type of the arguments it returns.
    function : callable
        What is compiled, but for where `called` returns a result.
    jvp, batch : callable
        The rules; tangents are arrays.
    called : callable
        Is given the context of a lowering for the CPU, and the operands. It returns what computes
        the results, or None.
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
        # Reached where JAX evaluates a jaxpr outside of a program, as of `jax.checkpoint`.
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
    """Replace a primitive by another where no result is used but those of the other."""
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


def size(context: Any) -> int:
    """Return how many elements the first operand has."""
    return int(context.avals_in[0].size)


def for_this_process(context: Any) -> bool:
    """Tell whether a program is compiled for the CPU here, and not to be stored and sent."""
    module = context.module_context
    return (
        tuple(module.platforms) == ("cpu",)
        and not module.lowering_parameters.for_export
        and getattr(module.backend, "platform", None) == "cpu"
    )


def unpartitioned(context: Any) -> bool:
    """Tell whether XLA leaves this part of a program as it is, and does not divide its arrays.

    A call of a function that XLA does not know would make it gather arrays that are sharded.
    """
    axes = context.module_context.axis_context
    if isinstance(axes, ShardingContext):
        return int(axes.num_devices) == 1
    return isinstance(axes, SPMDAxisContext) and set(axes.manual_axes) == set(axes.mesh.axis_names)


def register(name: str, handler: Any) -> None:
    """Give XLA a function that its programs for the CPU may call."""
    register_ffi_target(name, handler, platform="cpu", api_version=1)


def call(context: Any, name: str, *operands: Any, **attributes: Any) -> Any:
    """Lower a call of a function that was registered under this name."""
    return ffi_lowering(name)(context, *operands, **attributes)
