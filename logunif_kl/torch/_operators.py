"""Operators of the library ``logunif_kl``, for compilers' graphs.

A graph of AOTAutograd calls an operator where eager mode would call a float32 C kernel. The
operators need no differentiation rule, because this package's autograd Functions call them in the
forward and in the backward. Their kernels are in the extension of `_kernels.library`. The operators
are registered when PyTorch's compiler first traces a function of this package.
"""

# mypy: allow-untyped-calls
from __future__ import annotations

from functools import cache
from typing import Any

import torch

from ._composite import Composite
from ._internals import being_compiled, hint, is_number
from ._kernels import library, refuse

Tensor = torch.Tensor

_SCHEMAS = {
    "value": "(Tensor mu, Tensor log_sigma2) -> Tensor",
    "value_sum": "(Tensor mu, Tensor log_sigma2) -> Tensor",
    "gradient": "(Tensor factor, Tensor mu, Tensor log_sigma2) -> (Tensor, Tensor)",
    "log_alpha_gradient": "(Tensor factor, Tensor log_alpha) -> Tensor",
}
# With these tags, a compiler keeps the layouts that the arguments had when they were traced.
_TAGS = ("pt2_compliant_tag", "needs_exact_strides")


# For fewer elements, the composite is faster, because a compiler fuses it with other operations.
_LEAST = 32_000


def takes(*tensors: Tensor) -> bool:
    """Whether the operators take these tensors. Last come mu and log_sigma2, or only log_alpha.

    The operators take plain float32 CPU tensors while AOTAutograd traces a differentiation rule
    under `torch.compile`. `torch.export` gets torch's own operations, which run anywhere.
    """
    if not being_compiled(*tensors):
        return False
    for x in tensors:
        if x.dtype is not torch.float32 or x.device.type != "cpu" or x.layout is not torch.strided:
            return False
    if all(is_number(x) for x in tensors[-2:]) or hint(tensors[-1].numel()) < _LEAST:
        return False
    if not all(is_number(x) or x.is_contiguous() for x in tensors[-2:]):
        return False
    return registered() is not None


@cache
def registered() -> Any:
    """Register the operators, and return their namespace.

    If there are no kernels or PyTorch raises an error, return None, and the composite computes.
    """
    extension = library()
    if extension is None:
        return None
    tags = tuple([getattr(torch.Tag, name) for name in _TAGS if hasattr(torch.Tag, name)])
    try:
        # The operators exist as long as this object.
        made = torch.library.Library("logunif_kl", "FRAGMENT")
        for name, schema in _SCHEMAS.items():
            made.define(name + schema, tags=tags)
        extension.register_operators()
        fakes: list[Any] = [_like, _value_sum, _gradient, _like]
        for name, fake in zip(_SCHEMAS, fakes, strict=True):
            torch.library.register_fake(f"logunif_kl::{name}", fake, lib=made)
    except Exception as error:
        refuse(f"PyTorch {torch.__version__} refused the operators: {error}")
        return None
    _kept.append(made)
    return torch.ops.logunif_kl


_kept: list[Any] = []


class Operators(Composite):
    """The backend that puts calls of the operators into a compiler's graph."""

    recomputes = True

    # -KL depends only on log_alpha = log_sigma2 - log mu^2, so pass mu = 1 and log_sigma2 = x. The
    # composite computes -KL of each log_alpha, because a compiler fuses that with what follows.
    def sum_of_log_alpha(self, x: Tensor) -> Tensor:
        return self.value_sum(x.new_ones(()), x)

    def value(self, mu: Tensor, log_sigma2: Tensor) -> Tensor:
        found: Tensor = registered().value(_argument(mu), _argument(log_sigma2))
        return found

    def value_sum(self, mu: Tensor, log_sigma2: Tensor) -> Tensor:
        found: Tensor = registered().value_sum(_argument(mu), _argument(log_sigma2))
        return found

    def gradient(
        self, grad_output: Tensor, mu: Tensor, log_sigma2: Tensor
    ) -> tuple[Tensor, Tensor]:
        inputs = _factor(grad_output), _argument(mu), _argument(log_sigma2)
        d_mu, d_log_sigma2 = registered().gradient(*inputs)
        return d_mu, d_log_sigma2


def gradient_of_log_alpha(grad_output: Tensor, x: Tensor) -> Tensor:
    """Compute the derivative in log_alpha = x, times `grad_output`."""
    found: Tensor = registered().log_alpha_gradient(_factor(grad_output), _argument(x))
    return found


def _argument(x: Tensor) -> Tensor:
    """Turn one number that was expanded to many elements into a 0-d tensor."""
    return x.as_strided((), ()) if x.ndim and is_number(x) else x


def _factor(grad_output: Tensor) -> Tensor:
    factor = _argument(grad_output)
    return factor.contiguous() if factor.ndim else factor


def _like(mu: Tensor, log_sigma2: Tensor) -> Tensor:
    like = mu if mu.ndim else log_sigma2
    return like.new_empty(like.shape)


def _value_sum(mu: Tensor, log_sigma2: Tensor) -> Tensor:
    return mu.new_empty(())


def _gradient(factor: Tensor, mu: Tensor, log_sigma2: Tensor) -> tuple[Tensor, Tensor]:
    return _like(mu, log_sigma2), _like(mu, log_sigma2)
