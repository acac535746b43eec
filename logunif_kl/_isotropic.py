"""-KL of an isotropic Gaussian in k dimensions to the prior C/|w|^k, for all backends.

-KL is a constant minus F(u), where F is F_k of `logunif_kl.isotropic` and u = 1/(2 alpha). For a
complex weight k is None. Then sigma^2 is the sum of both coordinates' variances, and u = 1/alpha.
"""

from __future__ import annotations

import math
from functools import lru_cache
from typing import Any

from ._arithmetic.isotropic import complex_weights, vector
from ._convention import additive_constant
from ._errors import real_number, shown
from ._numpy.blocked import BlockedUFunc, in_float64

LEAST, LARGEST = 0.5, 10000.0
# `_rule` takes equal steps in y between these ends. Beyond the ends, weights are below 1e-21.
_FIRST, _LAST = -3.875, 4.0
_TERMS = 60
_COMPLEX_CONSTANT = 2.721945550750933  # 1 + log(pi) + gamma, rounded once
_PREFIX = "derivative_"


def dimensions(k: Any) -> float:
    """Check that the number of dimensions is a real number from `LEAST` to `LARGEST`."""
    value = real_number("k", k)
    if not LEAST <= value <= LARGEST:
        raise ValueError(
            f"k must be a number of dimensions from {LEAST:g} to {LARGEST:g}, but {shown(k)} was "
            "given: pass the number of weights in a group"
        )
    return value


@lru_cache(maxsize=64)
def _rule(k: float) -> vector.Rule:
    """Compute the nodes of the quadrature and the coefficients of the series that `vector` uses."""
    from scipy.special import digamma

    half = 0.5 * k
    # The variable T of `vector` is 1 - exp(-S/half) with S ~ Exp(1). With S = exp(y - exp(-y)) and
    # equal steps in y, nodes near 0 have as small a relative error as the other nodes.
    each = 8 if k >= 2.0 else 16  # points per unit of y
    nodes, weights = [], []
    for n in range(int(_LAST * each), int(_FIRST * each) - 1, -1):
        y = n / each
        s = math.exp(y - math.exp(-y))
        nodes.append(-math.expm1(-s / half))
        weights.append(math.exp(-s) * s * (1.0 + math.exp(-y)))
    total = math.fsum(weights)
    bound = max(45.0, k)
    tail, term = [], half
    for n in range(1, _TERMS + 1):
        term *= (n - half) / bound
        tail.append(term)
    return vector.Rule(
        half=half,
        digamma=float(digamma(half)),
        nodes=tuple(nodes),
        weights=tuple(w / total for w in weights),
        bound=bound,
        tail=tuple(tail),
    )


def derivative(xp: Any, x: Any, k: float | None, order: int) -> Any:
    """Compute the derivative of -F(u) in x = log alpha, of any order. Order 0 gives -F(u)."""
    if k is None:
        return complex_weights.derivative(xp, x, order)
    return vector.derivative(xp, x, _rule(k), order)


def constant(k: float | None, zero_at: Any, log_c: Any) -> float:
    """Compute the constant to be added to -F.

    The constant is F at alpha = ``zero_at``, or k/2 (1 + log(pi) - psi(k/2)) + ``log_c``. Raise the
    errors of `logunif_kl._convention.additive_constant`.
    """
    checked = additive_constant(zero_at, log_c)
    if log_c is None:
        return 0.0 if checked == 0.0 else -float(ufunc(k, 0)(math.log(zero_at)))
    if k is None:
        return _COMPLEX_CONSTANT + float(log_c)
    return 0.5 * k * (1.0 + math.log(math.pi) - _rule(k).digamma) + float(log_c)


def ufunc(k: float | None, order: int) -> BlockedUFunc:
    """Return `derivative` as a ufunc of log alpha."""
    # pickle looks the name up as an attribute of this module, so the name must not contain a dot.
    return _ufunc(f"{_PREFIX}{order}_{k if k is None else k.hex()}".replace(".", ","))


@lru_cache(maxsize=256)
def _ufunc(name: str) -> BlockedUFunc:
    order, text = name.removeprefix(_PREFIX).replace(",", ".").split("_")
    k, n = None if text == "None" else float.fromhex(text), int(order)
    arithmetic = in_float64(lambda xp, x: derivative(xp, x, k, n))
    return BlockedUFunc(name, arithmetic, module=__name__, nin=1)


complex_normal = BlockedUFunc(
    "complex_normal", in_float64(complex_weights.neg_kl_normal), module=__name__, nin=2
)


def __getattr__(name: str) -> Any:
    if name.startswith(_PREFIX):
        return _ufunc(name)
    raise AttributeError(f"module {__name__!r} has no attribute {name!r}")
