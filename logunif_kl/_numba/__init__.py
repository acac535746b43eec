"""The functions of users and of `logunif_kl.special` in code that numba compiles.

numba calls `init` by the entry point ``numba_extensions`` before it compiles the first function.
Compiled code calls the kernels in C by names, whose addresses `init` tells LLVM: numba may keep the
code in a file, and addresses differ from process to process. Without the C extension, the kernels
call Python.
"""

from __future__ import annotations

import ctypes
import math
from functools import partial
from inspect import signature
from typing import Any

import llvmlite.binding
import numpy as np
from numba import types, vectorize
from numba.core.registry import cpu_target
from numba.extending import overload, register_jitable

from .. import _api, _errors, special
from .._convention import HALF_GAMMA_LOG_2, PROPER_CONSTANT
from .._numpy import ufuncs

# The data of each loop of a ufunc in C are the addresses of the kernels for float64 and float32.
_DATA = ctypes.POINTER(ctypes.POINTER(ctypes.c_void_p * 2))
_OFFSET = object.__basicsize__ + 4 * ctypes.sizeof(ctypes.c_int) + ctypes.sizeof(ctypes.c_void_p)
_first = vectorize(lambda x, y: x)
_kept: list[Any] = []


def _declare(name: str, ufunc: Any) -> None:
    """Tell LLVM the addresses of the kernels of a ufunc."""
    for i, kind in enumerate((ctypes.c_double, ctypes.c_float)):
        if isinstance(ufunc, np.ufunc):
            address = _DATA.from_address(id(ufunc) + _OFFSET)[0].contents[i]
        else:
            _kept.append(_in_python(ufunc, kind))
            address = ctypes.cast(_kept[-1], ctypes.c_void_p).value
        llvmlite.binding.add_symbol(f"logunif_kl_{name}_{np.dtype(kind)}", address)


def _in_python(ufunc: Any, kind: Any) -> Any:
    @ctypes.CFUNCTYPE(None, *[ctypes.c_void_p] * (ufunc.nin + 1), ctypes.c_ssize_t)
    def kernel(*pointers_and_n: int) -> None:
        *inputs, out, n = pointers_and_n
        outputs = [out] if ufunc.nin == 1 else (ctypes.c_void_p * ufunc.nout).from_address(out)
        at = [(kind * n).from_address(pointer) for pointer in (*inputs, *outputs)]
        ufunc(*map(np.ctypeslib.as_array, at))

    return kernel


def _filled(x: Any, y: Any, dtype: Any, ndim: int, copy: bool) -> Any:
    """Return a function that broadcasts x against y, into a contiguous array of a dtype."""
    broadcast = register_jitable(lambda x, y: np.ascontiguousarray(_first(x, y)).astype(dtype))
    alone = register_jitable(lambda x, y: np.ascontiguousarray(x).astype(dtype))
    either = register_jitable(lambda x, y: alone(x, y) if x.shape == y.shape else broadcast(x, y))
    if not copy and x == types.Array(dtype, ndim, "C"):
        alone = register_jitable(lambda x, y: x)
    if not ndim:
        return register_jitable(lambda x, y: np.full(1, dtype(_first(x, y))))
    if not isinstance(x, types.Array):
        return register_jitable(lambda x, y: np.full(y.shape, dtype(x)))
    if not isinstance(y, types.Array):
        return alone
    return either if x.ndim == y.ndim else broadcast


def _compiled(
    function: Any, name: str, sign: float, given: Any, options: Any = (None, None, "none")
) -> Any:
    """Return a function for arguments of these types, which numba compiles.

    The dtype and the dimensions of its result are those of a ufunc in compiled code.
    """
    zero_at, log_c, how = options
    given = [types.unliteral(type_) for type_ in given]
    for argument, type_ in zip(signature(function).parameters, given, strict=False):
        number = type_.dtype if isinstance(type_, types.Array) else type_
        if not isinstance(number, (types.Float, types.Integer)) or number == types.float16:
            raise _errors.not_real(argument, type_, number)
    context, ends = cpu_target.typing_context, (given[0], given[-1])
    found = context.resolve_value_type(np.arctan2).get_call_type(context, ends, {}).return_type
    dtype, ndim = getattr(found, "dtype", found), getattr(found, "ndim", 0)
    pointers, symbol = [types.voidptr] * (len(given) + 1), f"logunif_kl_{name}_{dtype}"
    kernel = types.ExternalFunction(symbol, types.void(*pointers, types.intp))
    three = function is special.neg_kl_normal_and_grad
    fill = _filled(*ends, dtype, ndim, True)
    fill_other = _filled(*ends[::-1], dtype, ndim, three)
    _errors.check_reduction(reduction := getattr(how, "literal_value", how))
    shifts = isinstance(zero_at, types.Type) or log_c not in (None, types.none)
    reduces, of_mean = reduction != "none", reduction == "mean"

    @register_jitable
    def finish(x, zero_at, log_c):
        flat, total = x.reshape(-1), 0.0
        if shifts:
            flat += dtype(sign * _constant(zero_at, log_c))
        if reduces:
            for start in range(0, flat.size, 512):  # numba adds one element after the other
                total += np.sum(flat[start : start + 512].astype(np.float64))
            return dtype(np.divide(total, flat.size if of_mean else 1))
        return x if ndim else x[0]

    def one(log_alpha, zero_at=math.inf, log_c=None, reduction="none"):
        value = fill(log_alpha, log_alpha)
        kernel(value.ctypes, value.ctypes, value.size)
        return finish(value, zero_at, log_c)

    def two(mu, log_sigma2, zero_at=math.inf, log_c=None, reduction="none"):
        value, other = fill(mu, log_sigma2), fill_other(log_sigma2, mu)
        third = np.empty_like(value) if three else value
        addresses = np.array([value.ctypes.data, other.ctypes.data, third.ctypes.data])
        kernel(value.ctypes, other.ctypes, addresses.ctypes, value.size)
        if three:
            return finish(value, 0, 0), finish(other, 0, 0), finish(third, 0, 0)
        return finish(value, zero_at, log_c)

    return (one, two)[len(given) - 1]


@register_jitable
def _constant(zero_at, log_c):
    if log_c is not None:
        if zero_at != math.inf or not math.isfinite(log_c):
            raise ValueError("log_c must be finite and given without zero_at: pass math.log(C)")
        return PROPER_CONSTANT + log_c
    if not zero_at > 0.0:
        raise ValueError("zero_at must be a positive alpha = sigma^2/mu^2, or infinity")
    u = 0.5 / zero_at
    return special.kl_gap(u) if u < math.inf else HALF_GAMMA_LOG_2 - 0.5 * math.log(zero_at)


def _register(function: Any, name: str, sign: float = 0.0) -> None:
    """Tell numba of a function. It has options if it has a sign.

    The code does not inherit a caller's ``fastmath``, by which a compiler forgets infinities.
    """
    ufunc = getattr(ufuncs, name)
    _declare(name, ufunc)
    of = partial(_compiled, function, name, sign)

    def one(log_alpha, zero_at=math.inf, log_c=None, reduction="none"):
        return of((log_alpha,), (zero_at, log_c, reduction))

    def two(mu, log_sigma2, zero_at=math.inf, log_c=None, reduction="none"):
        return of((mu, log_sigma2), (zero_at, log_c, reduction))

    alone = (lambda log_alpha: of((log_alpha,)), lambda mu, log_sigma2: of((mu, log_sigma2)))
    form = ((one, two) if sign else alone)[ufunc.nin - 1]
    overload(function, {"fastmath": False}, strict=False, prefer_literal=True, target="cpu")(form)


def init() -> None:
    """Tell numba of all functions."""
    _register(_api.neg_kl, "neg_kl", 1.0)
    _register(_api.kl, "kl", -1.0)
    _register(_api.neg_kl_normal, "neg_kl_normal_value", 1.0)
    _register(_api.kl_normal, "kl_normal", -1.0)
    of_u = (special.kl_gap, special.kl_gap_grad, special.kl_gap_hess)
    for function in (_api.neg_kl_grad, _api.neg_kl_hess, *of_u, special.neg_kl_normal_and_grad):
        _register(function, function.__name__)
