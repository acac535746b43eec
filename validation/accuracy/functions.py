"""The functions, kernels, domains and edges of domains that are measured."""

from collections.abc import Callable
from typing import Any, NamedTuple

import numpy as np


class Function(NamedTuple):
    """A function under test: a ufunc, or the result numbered ``output`` if it has several."""

    name: str
    ufunc: str
    arithmetic: str
    domain: str
    range: str
    output: int | None = None
    k: float = 0.0

    @property
    def nin(self) -> int:
        return {"normal": 2, "complex": 3}.get(self.domain, 1)


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
        Function("neg_kl_normal", "neg_kl_normal_and_grad", "neg_kl_normal", *_N, 0),
        Function("neg_kl_normal.dmu", "neg_kl_normal_and_grad", "neg_kl_normal", *_N, 1),
        Function("neg_kl_normal.dlog_sigma2", "neg_kl_normal_and_grad", "neg_kl_normal", *_N, 2),
    )
}
# Functions of complex weights, whose mean is in two parts, and of groups of weights.
COMPLEX = "neg_kl_complex_normal"
SLOPES = tuple(f"{COMPLEX}, {name}" for name in ("d_im", "d_log_sigma2", "d_re"))
COMPLEX_UNARY = ("neg_kl_complex", "neg_kl_complex_grad", "neg_kl_complex_hess")
_VECTOR = {
    f"{name}, k={k:g}": (name, k)
    for name in ("neg_kl_vector", "neg_kl_vector_grad")
    for k in (0.5, 0.7, 1.0, 3.0, 9.0, 64.0, 1000.0)
}
VECTOR = tuple(_VECTOR)
ISOTROPIC = {
    f.name: f
    for f in (
        Function(SLOPES[0], COMPLEX, COMPLEX, "complex", "all", 2),
        Function(SLOPES[1], COMPLEX, COMPLEX, "complex", "all", 3),
        Function(SLOPES[2], COMPLEX, COMPLEX, "complex", "all", 1),
        *(Function(name, name, name, "log_alpha", "all") for name in COMPLEX_UNARY),
        Function(COMPLEX, COMPLEX, COMPLEX, "complex", "all", 0),
        *(Function(f, n, n, "log_alpha", "all", k=k) for f, (n, k) in _VECTOR.items()),
    )
}
"""In the order of the claims. ``ufunc`` names the public function."""
ALL = {**FUNCTIONS, **ISOTROPIC}

UNARY = tuple(f.name for f in FUNCTIONS.values() if f.nin == 1)
OF_FRAMEWORKS = tuple(f.name for f in FUNCTIONS.values() if f.domain != "u")

# A kernel of a framework -> the packages that it needs.
FRAMEWORKS = {
    "torch": ("torch",),
    "inductor": ("torch",),
    "triton": ("torch", "triton"),
    "jax": ("jax",),
    "tensorflow": ("tensorflow",),
}
"""``torch`` is the composite in eager mode, but in float32 from mean and variance C kernels.
``inductor`` is the composite compiled, ``triton`` the program for CUDA in Triton's interpreter,
``jax`` the composite jitted, ``tensorflow`` the public functions in eager mode."""

COMPILED = ("avx512", "avx2", "neon", "baseline")
EMULATED = ("neon",)
"""Those of another architecture. Each has a report of its own, made under emulation."""
ARRAYS = "arrays"
"""The name, among kernels, of the composite over arrays of array-api-strict."""

Evaluate = Callable[..., Any]


def arithmetic_of(name: str) -> Callable[..., Any]:
    from logunif_kl._arithmetic import functions, limits

    found: Callable[..., Any] = getattr(limits if hasattr(limits, name) else functions, name)
    return found


_FIXED_EDGES = {
    "u": [0.0, 2.0**-1074, 2.0**-1022, 2.0**-149, 2.0**-126, 2.0**127, 2.0**1023, np.inf],
    "x": [0.0, np.inf, -np.inf],
}
# The points where exp underflows, overflows or becomes subnormal, in float32 and float64.
_FIXED_EDGES["x"] += [s * v for v in (87.34, 88.72, 103.97, 708.4, 709.78, 745.13) for s in (1, -1)]


def edges(domain: str) -> list[float]:
    """Return the breakpoints of every table of coefficients in a domain, ``u`` or ``x``."""
    from logunif_kl._arithmetic.coefficients import INFLECTION_HI, TABLES

    names = {f.name for f in FUNCTIONS.values() if f.domain == domain}
    bounds = {r.bound for (name, _), table in TABLES.items() if name in names for r in table}
    if domain == "x":
        bounds.add(INFLECTION_HI)
    return sorted(bounds | set(_FIXED_EDGES[domain]))
