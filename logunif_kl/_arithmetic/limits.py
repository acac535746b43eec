"""-KL at log_alpha with the sign that its zero has in C, over a namespace ``xp``."""

from __future__ import annotations

from typing import Any

from . import functions

Array = Any
Namespace = Any


def neg_kl(xp: Namespace, x: Array) -> Array:
    """-KL at log_alpha = x, and -0.0 where u underflows to 0; KL, its negative, is 0.0 there.

    `functions.neg_kl` has 0.0 there in float64, by the last step of the arithmetic in two words.
    """
    return -xp.abs(functions.neg_kl(xp, x))
