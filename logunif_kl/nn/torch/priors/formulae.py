"""-KL from priors whose values and derivatives have formulae, for `torch.autograd`."""

# mypy: allow-untyped-calls, no-warn-return-any
from __future__ import annotations

from collections.abc import Callable
from functools import partial
from typing import Any

import torch
from torch.autograd import Function

from ...._priors import horseshoe, student
from ....torch._internals import apply, called_by_compiler, plain
from ....torch._sharded import distributed, on_shards

Tensor = torch.Tensor

_BLOCK = {"student": 2**13, "horseshoe": 2**10}  # weights; of the horseshoe, each at many nodes
_FORMULAE: dict[str, Any] = {"student": student, "horseshoe": horseshoe}


class _ByFormulae(Function):
    """-KL from a prior, with its derivatives by formulae."""

    generate_vmap_rule = True

    @staticmethod
    def forward(mu: Tensor, log_sigma2: Tensor, name: str, parameters: tuple[float, ...]) -> Tensor:
        formula = _FORMULAE[name].neg_kl
        (found,) = _by_blocks(
            lambda m, s: (formula(torch, m, s, *parameters),), mu, log_sigma2, block=_BLOCK[name]
        )
        return found

    @staticmethod
    def setup_context(ctx: Any, inputs: Any, output: Tensor) -> None:
        *tensors, ctx.name, ctx.parameters = inputs
        ctx.save_for_backward(*tensors)
        ctx.save_for_forward(*tensors)

    @staticmethod
    def backward(ctx: Any, grad: Tensor) -> tuple[Tensor, Tensor, None, None]:
        d_mu, d_log_sigma2 = _ByFormulae.slopes(ctx)
        return grad * d_mu, grad * d_log_sigma2, None, None

    @staticmethod
    def jvp(ctx: Any, along_mu: Any, along_log_sigma2: Any, *_: None) -> Any:
        terms = zip(_ByFormulae.slopes(ctx), (along_mu, along_log_sigma2), strict=True)
        return sum(slope * along for slope, along in terms if along is not None)

    @staticmethod
    def slopes(ctx: Any) -> tuple[Tensor, ...]:
        formula = _FORMULAE[ctx.name].neg_kl_slopes
        return _by_blocks(
            lambda m, s: formula(torch, m, s, *ctx.parameters),
            *ctx.saved_tensors,
            block=_BLOCK[ctx.name],
        )


def _by_blocks(
    function: Callable[..., tuple[Tensor, ...]], *given: Tensor, block: int
) -> tuple[Tensor, ...]:
    """On a CPU, compute block by block, so that the operations stay in its cache."""
    if distributed(*given):
        return on_shards(partial(_by_blocks, function, block=block))(*given)
    if given[0].device.type != "cpu" or given[0].numel() <= block or not plain(*given):
        return function(*given)
    blocks = zip(*(x.reshape(-1).split(block) for x in given), strict=True)
    found = zip(*(function(*each) for each in blocks), strict=True)
    return tuple(torch.cat(parts).reshape(given[0].shape) for parts in found)


# torch.compile puts this function into its graph without tracing it, because tracing would fail at
# `jvp`.
def _of(mu: Tensor, log_sigma2: Tensor, name: str, parameters: tuple[float, ...]) -> Tensor:
    return apply(_ByFormulae, mu, log_sigma2, name, parameters)


def by_formulae(mu: Tensor, log_sigma2: Tensor, name: str, parameters: tuple[float, ...]) -> Tensor:
    """Return -KL of each weight from the prior of this name."""
    mu, log_sigma2 = torch.broadcast_tensors(mu, log_sigma2)
    if torch.compiler.is_compiling():
        _allow()
    return _of(mu, log_sigma2, name, parameters)


@called_by_compiler
def _allow() -> bool:
    torch.compiler.allow_in_graph(_of)
    return True
