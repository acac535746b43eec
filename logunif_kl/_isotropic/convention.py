"""The additive constant of -KL in k dimensions, from ``zero_at`` or ``log_c``.

The prior is p(w) = C/|w|^k. With F the divergence less its least value,

    zero_at = a:    -KL = F(at alpha = a) - F
    log_c = log C:  -KL = k/2 (1 + log(pi) - psi(k/2)) + log C - F

of which k = 1 is that of `logunif_kl._convention`.
"""

from __future__ import annotations

import math
from typing import Any

from .._convention import additive_constant
from . import ufuncs
from .nodes import rule

# 1 + log(pi) + gamma, rounded once.
_COMPLEX = 2.721945550750933


def complex_constant(zero_at: Any, log_c: Any) -> float:
    """Compute the constant to be added to -Ein(u), u = 1/alpha.

    Raises
    ------
    TypeError, ValueError
        As `logunif_kl._convention.additive_constant`.
    """
    checked = additive_constant(zero_at, log_c)
    if log_c is not None:
        return _COMPLEX + float(log_c)
    if checked == 0.0:
        return 0.0
    return -float(ufuncs.neg_kl_complex(math.log(zero_at)))


def vector_constant(k: float, zero_at: Any, log_c: Any) -> float:
    """Compute the constant to be added to -F_k(u), u = 1/(2 alpha).

    Raises
    ------
    TypeError, ValueError
        As `logunif_kl._convention.additive_constant`.
    """
    checked = additive_constant(zero_at, log_c)
    if log_c is not None:
        digamma = rule(k).digamma
        return 0.5 * k * (1.0 + math.log(math.pi) - digamma) + float(log_c)
    if checked == 0.0:
        return 0.0
    return -float(ufuncs.of_vector(k, 0)(math.log(zero_at)))
