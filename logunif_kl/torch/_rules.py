"""The functions with rules of differentiation, and the choice of the rules in mean and variance.

These functions are put into a compiler's graph as they are (`logunif_kl.torch._compiling`). Dynamo
would trace through them, and lose the rules inside a transform of `torch.func`.
"""

# mypy: allow-untyped-calls, no-warn-return-any
from __future__ import annotations

import torch

from . import _backends
from ._autograd_recompute import recomputing
from ._autograd_saved import keeping
from ._internals import pushed_forward
from ._rules_log_alpha import of_log_alpha, sum_of_log_alpha

__all__ = ["of_log_alpha", "of_normal", "sum_of_log_alpha"]

Tensor = torch.Tensor


def of_normal(mu: Tensor, log_sigma2: Tensor, added: bool, sign: float) -> Tensor:
    """-KL from the mean and the variance, in their type; or the sum, in float32 for half types.

    A `sign` of -1.0 gives KL.
    """
    way = _backends.before_rules(mu, log_sigma2)
    if way is None:
        # In the forward mode, `keeping` would compute tangents of the derivatives too.
        rules = recomputing if pushed_forward() else keeping
        return rules(mu, log_sigma2, added, sign, None)
    if way.plain and not (
        (mu.requires_grad or log_sigma2.requires_grad) and torch.is_grad_enabled()
    ):
        return (way.value_sum if added else way.value)(mu, log_sigma2, sign)
    rules = recomputing if way.recomputes else keeping
    return rules(mu, log_sigma2, added, sign, way)
