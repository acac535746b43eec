"""Compute -KL at log_alpha for an array namespace ``xp``, with zeros signed as in the C kernels."""

from __future__ import annotations

from typing import Any

from . import functions

Array = Any
Namespace = Any


def neg_kl(xp: Namespace, x: Array) -> Array:
    """Compute -KL at log_alpha = x. The result is -0.0 where u is 0 or underflows to 0.

    `functions.neg_kl` would return 0.0 in float64, because its last step adds -0.0 and 0.0.
    """
    return -xp.abs(functions.neg_kl(xp, x))
