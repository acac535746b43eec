"""-KL of N(mu, sigma^2) in float32 by the C kernels, in programs that XLA compiles for the CPU.

A primitive stands for each computation until the program is lowered. Then it becomes a call of the
kernel, or the same plain operations as elsewhere: for another platform, for a program that is
exported, where XLA divides the arrays among devices, and for few elements, where a fusion with the
operations around costs less than a call.

Nothing is registered with XLA before a program calls a kernel. XLA may refuse a kernel that was
built for another interface, which would make JAX unusable if it was registered with the backend.
"""

from __future__ import annotations

from collections import Counter
from functools import cache
from importlib import import_module
from typing import Any

import jax
import jax.numpy as jnp
import numpy as np

from .._arithmetic import functions
from .._numpy import ufuncs
from . import _internals

Array = Any

# In a jitted gradient a call cost less than plain operations from 64 elements on. Fewer than these
# are left to XLA, which fuses them with what is around.
LEAST_ELEMENTS = 512
# In the names of the handlers: another order of arguments would be another version.
_VERSION = 1

# The rule of differentiation of `value_and_gradient`; `_rules` puts it in. It is around the
# primitives, and they need it only where JAX has taken that apart.
RULES: dict[str, Any] = {}

_taken: Counter[str] = Counter()


def value(mu: Array, log_sigma2: Array, sign: float) -> Array:
    """Compute -KL times a sign, 1.0 or -1.0."""
    if not _callable(mu, log_sigma2):
        return _plain_value(mu, log_sigma2, sign=sign)
    return _primitives()["value"].bind(mu, log_sigma2, sign=sign)


def value_and_gradient(mu: Array, log_sigma2: Array, sign: float) -> tuple[Array, Array, Array]:
    """Compute -KL and its two derivatives, each times a sign."""
    if not _callable(mu, log_sigma2):
        return _plain_value_and_gradient(mu, log_sigma2, sign=sign)
    all_three = _primitives()["value_and_gradient"].bind(mu, log_sigma2, sign=sign)
    return tuple(all_three)  # type: ignore[return-value]


def ways() -> dict[str, int]:
    """Count how often each way was taken when a program was made for the CPU in this process.

    ``"C"`` is a call of the kernels, ``"XLA"`` are plain operations. A program that JAX has kept
    is not counted again.
    """
    return dict(_taken)


def why_not() -> str | None:
    """Say why no program can call the kernels; None if some can."""
    if _internals.MISSING is not None:
        return f"JAX {jax.__version__} lacks what a call needs: {_internals.MISSING}"
    extension = _extension()
    if isinstance(extension, str):
        return extension
    return _refusal


# What XLA said when it refused the handlers, or JAX when it was asked for a call.
_refusal: str | None = None
_registered = False


@cache
def _extension() -> Any:
    """The extension, or why there is none."""
    if ufuncs.kernel_name() == "python":
        return f"NumPy's kernel is Python: {ufuncs.why_python()}"
    try:
        return import_module("logunif_kl.jax._ffi")
    except ImportError as error:
        return f"the extension logunif_kl.jax._ffi is not in use: {error}"


def _plain_value(mu: Array, log_sigma2: Array, *, sign: float) -> Array:
    return _plain_value_and_gradient(mu, log_sigma2, sign=sign)[0]


def _plain_gradient(mu: Array, log_sigma2: Array, *, sign: float) -> tuple[Array, Array]:
    return _plain_value_and_gradient(mu, log_sigma2, sign=sign)[1:]


def _plain_value_and_gradient(
    mu: Array, log_sigma2: Array, *, sign: float
) -> tuple[Array, Array, Array]:
    found, d_mu, d_log_sigma2 = (
        _internals.as_weak_as(mu, log_sigma2, result=x)
        for x in functions.neg_kl_normal(jnp, mu, log_sigma2)
    )
    return (found, d_mu, d_log_sigma2) if sign > 0 else (-found, -d_mu, -d_log_sigma2)


def _callable(mu: Array, log_sigma2: Array) -> bool:
    return mu.dtype == jnp.float32 and why_not() is None and _internals.alike(mu, log_sigma2)


def _target(name: str) -> str:
    return f"logunif_kl.{name}.{_VERSION}"


def _register() -> bool:
    """Register the handlers with XLA, once; tell whether XLA has them."""
    global _registered
    if not _registered and _refusal is None:
        try:
            for name in _primitives():
                _internals.register(_target(name), getattr(_extension(), name))
            _registered = True
        # Whatever is raised, plain operations give the same.
        except Exception as error:
            _refuse(f"XLA refused the kernels: {error}")
    return _registered


def _refuse(reason: str) -> None:
    """Have no program call the kernels from now on."""
    global _refusal
    _refusal = reason


@cache
def _primitives() -> dict[str, Any]:
    """Make a primitive for each function of the extension."""
    rest = slice(1, 3)
    made = {
        "value": _primitive("value", slice(0, 1), _plain_value),
        "gradient": _primitive("gradient", rest, _plain_gradient),
        "value_and_gradient": _primitive(
            "value_and_gradient", slice(0, 3), _plain_value_and_gradient
        ),
    }
    parts = (made["value"], slice(0, 1)), (made["gradient"], rest)
    _internals.drop_unused(made["value_and_gradient"], parts)
    return made


def _primitive(name: str, of: slice, plain: Any) -> Any:
    """Make a primitive that computes some of the value and the two derivatives."""
    results = of.stop - of.start

    def jvp(primals: Any, tangents: Any, *, sign: float) -> Any:
        primals_out, tangents_out = RULES["value_and_gradient"](sign, primals, tangents)
        if results == 1:
            return primals_out[0], tangents_out[0]
        return primals_out[of], tangents_out[of]

    def batch(arguments: Any, dims: Any, *, sign: float) -> Any:
        arrays, dim = _batched(arguments, dims)
        if _internals.alike(*arrays):
            found = _primitives()[name].bind(*arrays, sign=sign)
        else:
            found = plain(*arrays, sign=sign)
        return (found, dim) if results == 1 else (found, (dim,) * results)

    def called(context: Any, *operands: Any, sign: float) -> Any:
        try:
            found = None
            if _suits(context):
                found = _internals.call(context, _target(name), *operands, sign=np.float32(sign))
        # Of a JAX whose contexts have other attributes; plain operations give the same.
        except (AttributeError, TypeError) as error:
            _refuse(f"JAX {jax.__version__} lacks what a call needs: {error}")
        _taken["XLA" if found is None else "C"] += 1
        return found

    return _internals.primitive(
        f"logunif_kl_{name}", results, plain, jvp=jvp, batch=batch, called=called
    )


def _suits(context: Any) -> bool:
    return (
        # A program to be exported may have symbols for sizes.
        _internals.for_this_process(context)
        and _internals.size(context) >= LEAST_ELEMENTS
        and _internals.unpartitioned(context)
        and _register()
    )


def _batched(arrays: Any, dims: Any) -> tuple[list[Array], int]:
    """Give all arrays the batch dimension, at one place."""
    if len(set(dims)) == 1:
        return list(arrays), dims[0]
    length = next(x.shape[d] for x, d in zip(arrays, dims, strict=True) if d is not None)
    return [
        jnp.broadcast_to(x, (length, *x.shape)) if d is None else jnp.moveaxis(x, d, 0)
        for x, d in zip(arrays, dims, strict=True)
    ], 0
