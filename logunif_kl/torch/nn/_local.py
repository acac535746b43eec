"""Local reparameterisation: an output is drawn from its own Gaussian (Kingma et al. 2015, Eq. 6).

There are two forms of the same function. `composite` is made of plain operations. It serves
compilers, transforms, autocast, half types, and tensors of other types such as DTensors. `_Fused`
serves plain tensors of float32 and float64. It passes over the tensors half as often, and keeps two
tensors of the size of the activations and one of the size of the weights for the backward.
"""

# mypy: allow-untyped-calls, no-warn-return-any
from __future__ import annotations

import math
from collections.abc import Callable
from contextlib import nullcontext
from typing import Any, Protocol

import torch
import torch.nn.functional as F
from torch.autograd import Function

from .._internals import called_by_compiler, plain, transformed

Tensor = torch.Tensor
Draw = Callable[[Tensor], Tensor]


class Product(Protocol):
    """The product of a layer, and its derivatives, that in the weight times a factor."""

    def _product(self, input: Tensor, weight: Tensor, bias: Tensor | None) -> Tensor: ...

    def _product_backward(
        self,
        grad: Tensor,
        input: Tensor,
        weight: Tensor,
        wanted: tuple[bool, bool, bool],
        factor: float = 1.0,
    ) -> tuple[Tensor | None, Tensor | None, Tensor | None]: ...


def drawn(
    layer: Product,
    input: Tensor,
    weight: Tensor,
    bias: Tensor | None,
    spread: Tensor,
    log: bool,
    draw: Draw,
) -> Tensor:
    """Draw an output: its mean plus the root of its variance times the noise.

    Parameters
    ----------
    layer : Product
        How inputs and weights are multiplied.
    input, weight, bias : Tensor
        The inputs, the means of the weights, and the bias, which has no variance.
    spread : Tensor
        The variances of the weights; if `log`, their logarithms.
    draw : callable
        From the mean of the output to noise of its shape, type and device.
    """
    if _fusible(input, weight, bias, spread):
        return _Fused.apply(layer, input, weight, bias, spread, log, draw)
    return composite(layer, input, weight, bias, spread, log, draw)


def composite(
    layer: Product,
    input: Tensor,
    weight: Tensor,
    bias: Tensor | None,
    spread: Tensor,
    log: bool,
    draw: Draw,
) -> Tensor:
    """Draw an output by plain operations."""
    mean = layer._product(input, weight, bias)
    tame = below(spread, LARGE if log else math.exp(LARGE))
    variances = exponential(spread, tame) if log else spread
    square = torch.square if tame else squared
    if mean.dtype != torch.float16:
        variance = layer._product(square(input), variances, None)
    else:
        # In float16 the square of 256 overflows and exp(-10) is subnormal. bfloat16 has the range.
        with without_autocast(mean.device.type):
            squares = square(input.float()).bfloat16()
            variance = layer._product(squares, variances.bfloat16(), None)
    return with_noise(mean, variance, draw(mean))


def largest_log(dtype: torch.dtype) -> float:
    """The log of a variance that counts as the largest, also after a conversion to bfloat16."""
    return 709.78 if dtype == torch.float64 else 88.71


LARGE = 60.0
"""Above this log of a variance, a clamp keeps it finite, and gradients with it may overflow."""


def below(x: Tensor, most: float) -> bool:
    """Whether no number is above another, where a CPU can tell. It is faster than a clamp."""
    if torch.compiler.is_compiling() or transformed() or not plain(x) or not x.is_cpu:
        return False
    return not x.numel() or not x.detach().amax().item() > most


def exponential(log_variances: Tensor, tame: bool = False) -> Tensor:
    """Variances that are finite, so that a zero input has no noise; in float32 for float16."""
    x = log_variances.float() if log_variances.dtype == torch.float16 else log_variances
    return (x if tame else x.clamp(max=largest_log(x.dtype))).exp()


class _Squared(Function):
    """x^2, whose gradient is finite where the product with large variances overflows.

    The input is 0 there, or almost.
    """

    generate_vmap_rule = True

    @staticmethod
    def forward(x: Tensor) -> Tensor:
        return x * x

    @staticmethod
    def setup_context(ctx: Any, inputs: Any, output: Tensor) -> None:
        ctx.save_for_backward(*inputs)
        ctx.save_for_forward(*inputs)

    @staticmethod
    def backward(ctx: Any, grad: Tensor) -> Tensor:
        (x,) = ctx.saved_tensors
        return 2.0 * (grad.nan_to_num() * x)

    @staticmethod
    def jvp(ctx: Any, tangent: Tensor) -> Tensor:
        (x,) = ctx.saved_tensors
        return 2.0 * (tangent * x)


def squared(x: Tensor) -> Tensor:
    if torch.compiler.is_compiling():
        _allow()
    return _squared(x)


# As for `_posterior.bounded`.
def _squared(x: Tensor) -> Tensor:
    return _Squared.apply(x)


@called_by_compiler
def _allow() -> bool:
    torch.compiler.allow_in_graph(_squared)
    return True


def with_noise(mean: Tensor, variance: Tensor, noise: Tensor) -> Tensor:
    """Compute mean + sqrt(variance) noise, in the type of the mean.

    A variance that is not positive counts as zero: there the result is the mean, and the derivative
    in the variance is zero. Some convolutions round a zero to a small negative number.
    """
    none = variance <= 0.0
    deviation = variance.masked_fill(none, 1.0).sqrt().masked_fill(none, 0.0)
    return mean + deviation.to(mean.dtype) * noise


def without_autocast(device: str) -> Any:
    if device == "meta" or not torch.is_autocast_enabled(device):
        return nullcontext()
    return torch.autocast(device, enabled=False)


def _fusible(*tensors: Tensor | None) -> bool:
    if torch.compiler.is_compiling() or transformed():
        return False
    given = [x for x in tensors if x is not None]
    dtype = given[0].dtype
    return (
        dtype in (torch.float32, torch.float64)
        and all(x.dtype == dtype for x in given)
        and plain(*given)
        and not given[0].is_meta
        and not torch.is_autocast_enabled(given[0].device.type)
    )


class _Fused(Function):
    """The same with few passes: no result that an operation below owns is copied."""

    @staticmethod
    def forward(  # type: ignore[override]
        ctx: Any,
        layer: Product,
        input: Tensor,
        weight: Tensor,
        bias: Tensor | None,
        spread: Tensor,
        log: bool,
        draw: Draw,
    ) -> Tensor:
        ctx.tame = below(spread, LARGE if log else math.exp(LARGE))
        variances = exponential(spread, ctx.tame) if log else spread
        squares = input * input
        output = layer._product(input, weight, bias)
        noise = draw(output)
        deviation = layer._product(squares, variances, None).clamp_(min=0.0).sqrt_()
        # A view that an operation returns could not be changed in place by what comes next.
        if output._is_view():
            output = torch.addcmul(output, deviation, noise)
        else:
            output.addcmul_(deviation, noise)
        # Below this bound the gradients of all that the variance is made of are zero.
        noise.div_(F.threshold(deviation, _least(deviation), math.inf, inplace=True))
        ctx.save_for_backward(input, weight, bias, spread, squares, variances, noise)
        ctx.layer, ctx.log = layer, log
        return output

    @staticmethod
    def backward(ctx: Any, grad: Tensor) -> Any:  # type: ignore[override]
        input, weight, bias, spread, squares, variances, ratio = ctx.saved_tensors
        needed = ctx.needs_input_grad[1:5]
        if torch.is_grad_enabled():
            return _twice(ctx, grad, (input, weight, bias, spread), ratio, needed)
        for_input, for_weight, for_bias, for_spread = needed
        backward = ctx.layer._product_backward
        d_input, d_weight, d_bias = backward(grad, input, weight, (for_input, for_weight, for_bias))
        d_spread = None
        if for_input or for_spread:
            d_squares, d_spread, _ = backward(
                grad * ratio, squares, variances, (for_input, for_spread, False), 0.5
            )
            if for_input:
                d_squares = d_squares if ctx.tame else d_squares.nan_to_num_()
                d_input = d_input.addcmul_(d_squares, input)
            if for_spread and ctx.log:
                d_spread = d_spread.mul_(variances)
        return None, d_input, d_weight, d_bias, d_spread, None, None


def _least(deviation: Tensor) -> float:
    return torch.finfo(deviation.dtype).tiny ** 0.5


def _twice(ctx: Any, grad: Tensor, given: Any, ratio: Tensor, needed: Any) -> Any:
    """Compute gradients that can be differentiated again, by the plain operations."""
    layer, log = ctx.layer, ctx.log
    input, _, _, spread = given

    def draw(mean: Tensor) -> Tensor:
        with torch.no_grad():
            variances = exponential(spread) if log else spread
            variance = layer._product(input * input, variances, None).clamp_(min=0.0)
            return ratio * variance.sqrt_()

    # A graph of its own begins at these, whose gradients are the answer.
    views: Any = [x if x is None else x.view_as(x) for x in given]
    output = composite(layer, views[0], views[1], views[2], views[3], log, draw)
    wanted: Any = [x for x, n in zip(views, needed, strict=True) if n]
    found = iter(torch.autograd.grad(output, wanted, grad, create_graph=True))
    return None, *[next(found) if n else None for n in needed], None, None
