"""The usual implementation of Molchanov's approximation from mu and log sigma^2, to be timed."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

from ...methods._molchanov import K1, K2, K3

EPSILON = 1e-8
CLAMP = 8.0


def molchanov_sum(xp: Any, sigmoid: Callable[[Any], Any], mu: Any, log_sigma2: Any) -> Any:
    """Compute the sum of Molchanov's -KL, with the epsilon and the clamp that it needs.

    Written as in the published implementations, over a namespace that has NumPy's names.
    """
    log_alpha = xp.clip(log_sigma2 - xp.log(mu * mu + EPSILON), -CLAMP, CLAMP)
    neg_kl = K1 * sigmoid(K2 + K3 * log_alpha) - 0.5 * xp.log1p(xp.exp(-log_alpha)) - K1
    return neg_kl.sum()
