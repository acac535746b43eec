"""Each kernel's implementation of a function, by the kernel's name."""

from functools import partial
from typing import Any

import numpy as np

from validation.output import Record

from .frameworks import framework
from .functions import ARRAYS, COMPLEX, FRAMEWORKS, ISOTROPIC, Evaluate, Function, arithmetic_of


def implementation(function: Function, kernel: str, dtype: str = "float64") -> Evaluate:
    """Return the function that ``kernel`` provides for NumPy arrays of a type.

    A compiled kernel must be the one that this process was started with; the others are always
    available. For bfloat16 the arrays are float32.
    """
    if kernel in FRAMEWORKS:
        return framework(function, kernel, dtype)
    if kernel == ARRAYS:
        return _over_arrays(function)
    if function.name in ISOTROPIC:
        return _of_isotropic(function)
    call = ufunc(function.ufunc, kernel)
    if function.output is None:
        return call
    output = function.output
    return lambda *args: call(*args)[output]


def ufunc(name: str, kernel: str) -> Evaluate:
    from logunif_kl._numpy import ufuncs

    if kernel == "python":
        return ufuncs.python_ufunc(name)
    if ufuncs.kernel_name() != kernel:
        raise RuntimeError(
            f"this process runs the kernel {ufuncs.kernel_name()!r}, not {kernel!r}: "
            f"start it with LOGUNIF_KL_KERNEL={kernel}"
        )
    found: Evaluate = getattr(ufuncs, name)
    return found


def _of_isotropic(function: Function) -> Evaluate:
    import logunif_kl

    public: Evaluate = getattr(logunif_kl, function.ufunc)
    if function.ufunc == COMPLEX:
        return lambda re, im, s: public(re + np.array(1j, f"complex{16 * re.itemsize}") * im, s)
    return partial(public, k=function.k) if function.k else public


def _over_arrays(function: Function) -> Evaluate:
    import array_api_strict

    from logunif_kl._dispatch import Operation, evaluate

    arithmetic = arithmetic_of(function.arithmetic)

    def picked(xp: Any, *args: Any) -> Any:
        result = arithmetic(xp, *args)
        return result if function.output is None else result[function.output]

    operation = Operation(picked, picked)

    def call(*args: Any) -> Any:
        arrays: Record = {f"x{i}": array_api_strict.asarray(a) for i, a in enumerate(args)}
        return np.asarray(evaluate(operation, **arrays))

    return call
