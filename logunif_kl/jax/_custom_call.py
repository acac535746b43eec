"""Call the float32 C kernels of -KL and its derivatives in JAX's programs for the CPU.

In a traced program a primitive represents each computation. When JAX lowers the program, it turns
each primitive into a custom call of a kernel or into plain operations. It uses plain operations on
other platforms, in exported programs, for arrays that XLA divides among devices, and for small
arrays, where fusing the operations with their neighbours costs less than a call.

The primitives multiply their results by a sign, because XLA cannot fuse a negation into a custom
call. A separate negation would make the gradient of the KL of 1e6 weights 10 % slower.

The import registers the kernels with XLA, so that a new process can load a compiled program. XLA
may refuse kernels that were built for another interface. Before JAX has made its client for the
CPU, `jax.ffi` only puts kernels on a list, and an error would later make JAX unusable. So the
kernels are registered at the import only if they reach XLA at once, and otherwise when a program
first calls one.
"""

from __future__ import annotations

from collections import Counter
from collections.abc import Callable
from functools import cache, partial
from importlib import import_module
from typing import Any, NamedTuple

import jax
import jax.numpy as jnp
import numpy as np

from .._arithmetic import functions, limits
from .._numpy import ufuncs
from . import _internals

Array = Any

# In a jitted gradient a call costs less than plain operations from 64 elements on. The threshold is
# higher, because XLA can fuse plain operations with their neighbours.
LEAST_ELEMENTS = 512
# The last part of the handlers' names. Increase it when the order of their arguments changes.
_VERSION = 1


def _of_log_alpha(xp: Any, x: Array) -> tuple[Array, Array]:
    return limits.neg_kl(xp, x), functions.neg_kl_grad(xp, x)


class _Kernel(NamedTuple):
    """A kernel, which computes the slice ``of`` of the tuple that ``arithmetic`` returns."""

    arithmetic: Callable[..., tuple[Array, ...]]
    of: slice
    results: int


_KERNELS = {
    "value": _Kernel(functions.neg_kl_normal, slice(0, 1), 1),
    "gradient": _Kernel(functions.neg_kl_normal, slice(1, 3), 2),
    "value_and_gradient": _Kernel(functions.neg_kl_normal, slice(0, 3), 3),
    "log_alpha_value": _Kernel(_of_log_alpha, slice(0, 1), 1),
    "log_alpha_gradient": _Kernel(_of_log_alpha, slice(1, 2), 1),
    "log_alpha_value_and_gradient": _Kernel(_of_log_alpha, slice(0, 2), 2),
}
_WHOLE = ("value_and_gradient", "log_alpha_value_and_gradient")

# The JVP rules of the kernels in `_WHOLE`, set by `_rules`. JAX uses these rules after it has
# replaced a `jax.custom_jvp` function by the primitives that the function calls.
RULES: dict[str, Any] = {}

_lowered: Counter[str] = Counter()


def value(mu: Array, log_sigma2: Array, sign: float = 1.0) -> Array:
    """Compute -KL times a sign, 1.0 or -1.0."""
    return _computed("value", mu, log_sigma2, sign=sign)


def value_and_gradient(
    mu: Array, log_sigma2: Array, sign: float = 1.0
) -> tuple[Array, Array, Array]:
    """Compute -KL and its two derivatives, each times a sign."""
    found, d_mu, d_log_sigma2 = _computed("value_and_gradient", mu, log_sigma2, sign=sign)
    return found, d_mu, d_log_sigma2


def value_of_log_alpha(log_alpha: Array, sign: float = 1.0) -> Array:
    """Compute -KL times a sign."""
    return _computed("log_alpha_value", log_alpha, sign=sign)


def value_and_gradient_of_log_alpha(log_alpha: Array, sign: float = 1.0) -> tuple[Array, Array]:
    """Compute -KL and its derivative, each times a sign."""
    found, slope = _computed("log_alpha_value_and_gradient", log_alpha, sign=sign)
    return found, slope


def _computed(name: str, *arguments: Array, sign: float) -> Any:
    first, *_ = arguments
    suits = first.dtype == jnp.float32 and why_not() is None and _internals.alike(*arguments)
    compute = _primitives()[name].bind if suits else partial(_plain, name)
    return compute(*arguments, sign=sign)


def _plain(name: str, *arguments: Array, sign: float) -> Any:
    kernel = _KERNELS[name]
    results = tuple(
        _internals.as_weak_as(*arguments, result=x if sign > 0 else -x)
        for x in kernel.arithmetic(jnp, *arguments)[kernel.of]
    )
    return results if kernel.results > 1 else results[0]


def lowered() -> dict[str, int]:
    """Return how many computations JAX has lowered for the CPU in this process, by kind.

    ``"C"`` counts calls of the kernels, ``"XLA"`` plain operations. A program that JAX has cached
    is counted once.
    """
    return dict(_lowered)


def why_not() -> str | None:
    """Return the reason why programs cannot call the kernels, or None if they can."""
    if _internals.MISSING is not None:
        return f"JAX {jax.__version__} lacks what a call needs: {_internals.MISSING}"
    extension = _extension()
    return extension if isinstance(extension, str) else _refusal


# Why XLA refused to register the kernels, or why this JAX version cannot lower a call.
_refusal: str | None = None
_registered = False


@cache
def _extension() -> Any:
    """Return the extension module, or the reason why it cannot be used."""
    if ufuncs.kernel_name() == "python":
        return f"NumPy's kernel is Python: {ufuncs.why_python()}"
    try:
        return import_module("logunif_kl.jax._ffi")
    except ImportError as error:
        return f"the extension logunif_kl.jax._ffi is not in use: {error}"


def _target(name: str) -> str:
    return f"logunif_kl.{name}.{_VERSION}"


def _register() -> bool:
    """Register the handlers with XLA once. Return whether they are registered."""
    global _registered
    if not _registered and _refusal is None:
        try:
            for name in _KERNELS:
                _internals.register(_target(name), getattr(_extension(), name))
            _registered = True
        # Whatever the error, plain operations give the same results.
        except Exception as error:
            _refuse(f"XLA refused the kernels: {error}")
    return _registered


def _refuse(reason: str) -> None:
    """Use plain operations in all further programs, and remember the reason for `why_not`."""
    global _refusal
    _refusal = reason


@cache
def _primitives() -> dict[str, Any]:
    """Make a primitive for each function of the extension."""
    made = {name: _primitive(name) for name in _KERNELS}
    for whole in _WHOLE:
        names = [whole.replace("value_and_gradient", part) for part in ("value", "gradient")]
        _internals.drop_unused(made[whole], [(made[name], _KERNELS[name].of) for name in names])
    return made


def _primitive(name: str) -> Any:
    arithmetic, of, results = _KERNELS[name]
    (whole,) = (each for each in _WHOLE if _KERNELS[each].arithmetic is arithmetic)

    def jvp(primals: Any, tangents: Any, *, sign: float) -> Any:
        both = RULES[whole](sign, primals, tangents)
        return tuple(each[of] if results > 1 else each[of][0] for each in both)

    def batch(arguments: Any, axes: Any, *, sign: float) -> Any:
        arrays, axis = _internals.with_one_batch_axis(arguments, axes)
        alike = _internals.alike(*arrays)
        compute = _primitives()[name].bind if alike else partial(_plain, name)
        return compute(*arrays, sign=sign), axis if results == 1 else (axis,) * results

    def called(context: Any, *operands: Any, sign: float) -> Any:
        found = None
        try:
            if _suits(context):
                found = _internals.call(context, _target(name), *operands, sign=np.float32(sign))
        # The context may have other attributes in another version of JAX.
        except (AttributeError, TypeError) as error:
            _refuse(f"JAX {jax.__version__} lacks what a call needs: {error}")
        _lowered["XLA" if found is None else "C"] += 1
        return found

    plain = partial(_plain, name)
    return _internals.primitive(
        f"logunif_kl_{name}", results, plain, jvp=jvp, batch=batch, called=called
    )


def _suits(context: Any) -> bool:
    """Return whether to call the kernel in the program that is being lowered."""
    return (
        # Check this first, because a program to be exported may have symbolic sizes.
        _internals.for_this_process(context)
        and _internals.size(context) >= LEAST_ELEMENTS
        and _internals.unpartitioned(context)
        and _register()
    )


if why_not() is None and _internals.registers_at_once():
    _register()
