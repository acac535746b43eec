"""-KL at log_alpha with the sign that its zero has in C, over a namespace ``xp``."""

from __future__ import annotations

from typing import Any

from . import functions

Array = Any
Namespace = Any


def neg_kl(xp: Namespace, x: Array) -> Array:
    """Compute -KL at log_alpha = x; it is -0.0 where u is 0 or underflows to 0.

    There `functions.neg_kl` gives 0.0 in float64: the last step of the arithmetic in two words adds
    -0.0 and 0.0.
    """
    return -xp.abs(functions.neg_kl(xp, x))
