"""What is measured: names, domains, and the arithmetic behind each name of a kernel."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any, NamedTuple

import numpy as np


class Function(NamedTuple):
    """A function under test; ``output`` picks from a ufunc that has several."""

    name: str
    ufunc: str
    arithmetic: str
    domain: str
    range: str
    output: int | None = None

    @property
    def nin(self) -> int:
        """How many arguments it has."""
        return 2 if self.domain == "normal" else 1


_U = ("u", "u in [0, inf]")
_X = ("x", "log_alpha in [-inf, inf]")
_N = ("normal", "mu, log_sigma2 in [-inf, inf]")

FUNCTIONS = {
    f.name: f
    for f in (
        Function("kl_gap", "kl_gap", "gap", *_U),
        Function("kl_gap_grad", "kl_gap_grad", "gap_grad", *_U),
        Function("kl_gap_hess", "kl_gap_hess", "gap_hess", *_U),
        Function("neg_kl", "neg_kl", "neg_kl", *_X),
        Function("neg_kl_grad", "neg_kl_grad", "neg_kl_grad", *_X),
        Function("neg_kl_hess", "neg_kl_hess", "neg_kl_hess", *_X),
        Function("neg_kl_normal", "neg_kl_normal", "neg_kl_normal", *_N, 0),
        Function("neg_kl_normal.dmu", "neg_kl_normal", "neg_kl_normal", *_N, 1),
        Function("neg_kl_normal.dlog_sigma2", "neg_kl_normal", "neg_kl_normal", *_N, 2),
    )
}
UNARY = tuple(f.name for f in FUNCTIONS.values() if f.nin == 1)
OF_FRAMEWORKS = tuple(f.name for f in FUNCTIONS.values() if f.domain != "u")

# A kernel of a framework -> the packages that it takes.
FRAMEWORKS = {
    "torch": ("torch",),
    "inductor": ("torch",),
    "triton": ("torch", "triton"),
    "jax": ("jax",),
    "tensorflow": ("tensorflow",),
}
"""``torch`` is the composite in eager mode, or in float32 from mean and variance C's kernels,
``inductor`` the composite compiled, ``triton`` the kernel for CUDA in Triton's interpreter, ``jax``
the composite jitted, ``tensorflow`` in eager mode."""

COMPILED = ("avx512", "avx2", "baseline")
ARRAYS = "arrays"
"""Among kernels, the name of the way that arrays of the array API take, over array-api-strict."""

Evaluate = Callable[..., Any]


def implementation(function: Function, kernel: str, dtype: str = "float64") -> Evaluate:
    """Return the function of NumPy's arrays of a type that ``kernel`` provides.

    A compiled kernel is the one that this process was started with, or there is an error; the
    others can be had beside it. For bfloat16 the arrays are of float32.
    """
    if kernel in FRAMEWORKS:
        from .frameworks import framework

        return framework(function, kernel, dtype)
    if kernel == ARRAYS:
        return _over_arrays(function)
    from logunif_kl._numpy import ufuncs

    if kernel == "python":
        call = ufuncs.python_ufunc(function.ufunc)
    else:
        if ufuncs.kernel_name() != kernel:
            raise RuntimeError(
                f"this process runs the kernel {ufuncs.kernel_name()!r}, not {kernel!r}: "
                f"start it with LOGUNIF_KL_KERNEL={kernel}"
            )
        call = getattr(ufuncs, function.ufunc)
    if function.output is None:
        return call
    output = function.output
    return lambda *args: call(*args)[output]


def _over_arrays(function: Function) -> Evaluate:
    import array_api_strict

    from logunif_kl._arithmetic import functions
    from logunif_kl._dispatch import Operation, evaluate

    arithmetic = getattr(functions, function.arithmetic)

    def picked(xp: Any, *args: Any) -> Any:
        result = arithmetic(xp, *args)
        return result if function.output is None else result[function.output]

    operation = Operation(picked, picked)

    def call(*args: Any) -> Any:
        arrays = {f"x{i}": array_api_strict.asarray(a) for i, a in enumerate(args)}
        return np.asarray(evaluate(operation, **arrays))

    return call


_FIXED_EDGES = {
    "u": [0.0, 2.0**-1074, 2.0**-1022, 2.0**-149, 2.0**-126, 2.0**127, 2.0**1023, np.inf],
    "x": [0.0, np.inf, -np.inf],
}
# Where exp underflows, or overflows, or leaves the normal numbers, in float32 and float64.
_FIXED_EDGES["x"] += [s * v for v in (87.34, 88.72, 103.97, 708.4, 709.78, 745.13) for s in (1, -1)]


def edges(domain: str) -> list[float]:
    """Breakpoints of the kernels' ranges in a domain, ``u`` or ``x``, of every table in it."""
    from logunif_kl._arithmetic.coefficients import INFLECTION_HI, TABLES

    names = {f.name for f in FUNCTIONS.values() if f.domain == domain}
    bounds = {r.bound for (name, _), table in TABLES.items() if name in names for r in table}
    if domain == "x":
        bounds.add(INFLECTION_HI)
    return sorted(bounds | set(_FIXED_EDGES[domain]))
