"""Local reparameterisation: each output has its own Gaussian (Kingma et al. 2015, Eq. 6).

`sample_output` has two implementations. `composite` uses ordinary operations of torch, and supports
compilers, transforms and DTensors. `_Fused` takes only plain tensors, and reads and writes them
half as often. It keeps the input, as a deterministic layer does, and one tensor like the output.
"""

# mypy: allow-untyped-calls, no-warn-return-any
from __future__ import annotations

import math
from collections.abc import Callable
from contextlib import nullcontext
from typing import Any, Literal, Protocol

import torch
from torch.autograd import Function

from ....torch._internals import concrete, observed, pushed

Tensor = torch.Tensor
Draw = Callable[[Tensor], Tensor]
Form = Literal["variance", "log variance", "log alpha"]


class Product(Protocol):
    """A layer that multiplies inputs by weights. `factor` multiplies the weight's gradient."""

    def _product(self, input: Tensor, weight: Tensor, bias: Tensor | None) -> Tensor: ...

    def _product_backward(
        self,
        grad: Tensor,
        input: Tensor,
        weight: Tensor,
        wanted: tuple[bool, bool, bool],
        factor: float = 1.0,
    ) -> tuple[Tensor | None, Tensor | None, Tensor | None]: ...


def sample_output(
    layer: Product,
    input: Tensor,
    weight: Tensor,
    bias: Tensor | None,
    given: Tensor,
    form: Form,
    draw: Draw,
) -> Tensor:
    """Sample an output: its mean plus noise times the square root of its variance.

    `given` has the variances of the weights in this form. ``draw(mean)`` returns noise with the
    shape, dtype and device of ``mean``.
    """
    if _fusible(input, weight, bias, given):
        return _Fused.apply(layer, input, weight, bias, given, form, draw)
    return composite(layer, input, weight, bias, given, form, draw)


def composite(
    layer: Product,
    input: Tensor,
    weight: Tensor,
    bias: Tensor | None,
    given: Tensor,
    form: Form,
    draw: Draw,
) -> Tensor:
    """Sample an output as `sample_output` does, by ordinary operations of torch."""
    mean = layer._product(input, weight, bias)
    variances = variances_of(weight, given, form)
    if mean.dtype != torch.float16:
        variance = layer._product(input * input, variances.to(input.dtype), None)
    else:
        with without_autocast(mean.device.type):
            squares, variances = _squares(input, mean.dtype), variances.to(_second(mean.dtype))
            variance = layer._product(squares, variances, None)
    return with_noise(mean, variance, draw(mean))


def _second(dtype: torch.dtype) -> torch.dtype:
    """Return the dtype of the product of squares and variances.

    In float16 the square of 256 overflows and the initial variance exp(-10) is subnormal. bfloat16
    has enough range.
    """
    return torch.bfloat16 if dtype == torch.float16 else dtype


def _squares(input: Tensor, dtype: torch.dtype) -> Tensor:
    x = wide(input)
    return _cast(x * x, _second(dtype))


_LARGEST = {torch.float64: 600.0, torch.float16: 18.0}


def clamped(log_variance: Tensor) -> Tensor:
    """Limit log sigma^2 or log alpha to 60 (float64: 600, float16: 18).

    The variances are then finite. With an infinite variance, a zero input would give 0 times
    infinity, which is NaN. Gradients that are multiplied by the variance do not overflow either.
    """
    return log_variance.clamp(max=_LARGEST.get(log_variance.dtype, 60.0))


def exponential(log_variances: Tensor) -> Tensor:
    """Compute finite variances from their logarithms. For float16 the result is float32."""
    return wide(clamped(log_variances)).exp()


def variances_of(weight: Tensor, given: Tensor, form: Form) -> Tensor:
    """Return the variances of weights that have these means, from what is given."""
    if form == "log alpha":
        deviations = wide(weight) * _half_exponential(given)
        return deviations * deviations
    return given if form == "variance" else exponential(given)


def _half_exponential(given: Tensor) -> Tensor:
    """Compute sigma or sqrt(alpha) from log sigma^2 or log alpha."""
    return (0.5 * wide(clamped(given))).exp()


def wide(x: Tensor) -> Tensor:
    """Convert float16 to float32, because the initial variance exp(-10) is subnormal in float16."""
    return x.float() if x.dtype == torch.float16 else x


def _cast(x: Tensor, dtype: torch.dtype) -> Tensor:
    """Return ``x.to(dtype)``; a call of `to` that does nothing would take a microsecond."""
    return x if x.dtype == dtype else x.to(dtype)


def with_noise(mean: Tensor, variance: Tensor, noise: Tensor) -> Tensor:
    """Compute mean + sqrt(variance) noise, in the dtype of the mean.

    If a variance is not positive, the result is the mean, and the variance gets no gradient.
    Variances may be negative, because some convolutions round 0 to a small negative number.
    """
    none = variance <= 0.0
    deviation = variance.masked_fill(none, 1.0).sqrt().masked_fill(none, 0.0)
    return mean + deviation.to(mean.dtype) * noise


def without_autocast(device: str) -> Any:
    if device == "meta" or not torch.is_autocast_enabled(device):
        return nullcontext()
    return torch.autocast(device, enabled=False)


def _fusible(*tensors: Tensor | None) -> bool:
    given = [x for x in tensors if x is not None]
    # A mode, or a level of forward mode, may be open in only one of the two runs of a checkpoint.
    if torch.compiler.is_compiling() or pushed(*given) or given[0].is_meta or not concrete(*given):
        return False
    found = {x.dtype for x in given}
    if torch.is_autocast_enabled(given[0].device.type):
        return found <= {torch.float32, torch.bfloat16, torch.float16}
    return len(found) == 1 and given[0].is_floating_point()


_FEW = 2**15
"""Up to how many elements of variances and of squared inputs are kept for the backward pass."""


class _Fused(Function):
    """Compute what `composite` computes, in place, with fewer passes over the tensors.

    Autocast is off within, because its cache would keep weights that have no graph.
    """

    @staticmethod
    def forward(  # type: ignore[override]
        ctx: Any,
        layer: Product,
        input: Tensor,
        weight: Tensor,
        bias: Tensor | None,
        given: Tensor,
        form: Form,
        draw: Draw,
    ) -> Tensor:
        device = input.device.type
        autocast = torch.is_autocast_enabled(device)
        dtype = torch.get_autocast_dtype(device) if autocast else input.dtype
        with without_autocast(device) if autocast else nullcontext():
            x, w, b = _to(dtype, input, weight, bias) if autocast else (input, weight, bias)
            output = layer._product(x, w, b)
            noise = draw(output)
            variances = _cast(variances_of(weight, given, form), _second(dtype))
            squares = _squares(input, dtype)
            variance = layer._product(squares, variances, None)
            ratio = _cast(noise, variance.dtype)
            # Divide by inf where the deviation is at most `least`, so that its gradient is 0 there.
            least = torch.finfo(variance.dtype).tiny ** 0.5
            # Change nothing in place if a selective checkpoint may keep it, or if it is a view.
            seen = observed()
            deviation = variance.clamp(min=0.0).sqrt() if seen else _root(variance)
            add = torch.addcmul if seen or output._is_view() else Tensor.addcmul_
            output = add(output, _cast(deviation, dtype), noise)
            bounded = (torch.threshold if seen else torch.threshold_)(deviation, least, math.inf)
            ratio = ratio / bounded if seen else ratio.div_(bounded)
        few = variances.dtype == x.dtype == weight.dtype and dtype.itemsize > 2
        few = few and variances.numel() + squares.numel() <= _FEW
        ctx.save_for_backward(x, weight, bias, given, ratio, *((variances, squares) if few else ()))
        ctx.layer, ctx.form, ctx.dtype = layer, form, dtype
        return output

    @staticmethod
    def backward(ctx: Any, grad: Tensor) -> Any:  # type: ignore[override]
        input, weight, bias, given, ratio, *kept = ctx.saved_tensors
        needed = ctx.needs_input_grad[1:5]
        with without_autocast(grad.device.type):
            if torch.is_grad_enabled():
                return _twice(ctx, grad, (input, weight, bias, given), ratio, needed)
            found = _gradients(ctx, grad, input, weight, given, ratio, kept, needed)
            return None, *found, None, None


def _gradients(
    ctx: Any,
    grad: Tensor,
    input: Tensor,
    weight: Tensor,
    given: Tensor,
    ratio: Tensor,
    kept: list[Tensor],
    needed: tuple[bool, bool, bool, bool],
) -> tuple[Tensor | None, Tensor | None, Tensor | None, Tensor | None]:
    for_input, for_weight, for_bias, for_given = needed
    for_variances = for_given or (for_weight and ctx.form == "log alpha")
    backward = ctx.layer._product_backward
    wanted = for_input, for_weight, for_bias
    d_input, d_weight, d_bias = backward(grad, input, _cast(weight, ctx.dtype), wanted)
    if not (for_input or for_variances):
        return d_input, d_weight, d_bias, None
    # Unless they are small, computing these two again takes less time than their memory is worth.
    variances, squares = kept or (variances_of(weight, given, ctx.form), _squares(input, ctx.dtype))
    d_squares, d_variances, _ = backward(
        *(
            _cast(grad, ratio.dtype) * ratio,
            squares,
            _cast(variances, ratio.dtype),
            (for_input, for_variances, False),
            0.5,
        )
    )
    if for_input:
        d_input = d_input.addcmul_(_cast(d_squares, input.dtype), input)
    if not for_variances:
        return d_input, d_weight, d_bias, None
    d_given = _cast(d_variances, variances.dtype)
    if ctx.form == "log variance":
        d_given = d_given.mul_(variances)
    elif ctx.form == "log alpha":
        root = _half_exponential(given)
        d_deviations = d_given.mul_(wide(weight) * root)
        if for_given:
            d_given = (d_deviations * weight).sum_to_size(given.shape).mul_(root)
        if for_weight:
            d_weight = torch.addcmul(d_weight, d_deviations, root, value=2)
    return d_input, d_weight, d_bias, d_given


def _to(dtype: torch.dtype, *given: Tensor | None) -> list[Any]:
    return [x if x is None else _cast(x, dtype) for x in given]


def _root(variance: Tensor) -> Tensor:
    return variance.clamp_(min=0.0).sqrt_()


def _twice(ctx: Any, grad: Tensor, given: Any, ratio: Tensor, needed: Any) -> Any:
    """Compute the gradients of `_Fused` by `composite`, so that they can be differentiated."""
    layer, form, dtype = ctx.layer, ctx.form, ctx.dtype

    def draw(mean: Tensor) -> Tensor:
        with torch.no_grad():
            variances = variances_of(given[1], given[3], form).to(ratio.dtype)
            root = _root(layer._product(_squares(given[0], dtype), variances, None))
            return (ratio * root).to(dtype)

    # Differentiate `composite` at views of the arguments, so that the new graph begins there.
    views: Any = [x if x is None else x.view_as(x) for x in given]
    x, w, b = _to(dtype, *views[:3])
    output = composite(layer, x, w, b, views[3], form, draw)
    wanted: Any = [x for x, n in zip(views, needed, strict=True) if n]
    found = iter(torch.autograd.grad(output, wanted, grad, create_graph=True))
    return None, *[next(found) if n else None for n in needed], None, None


def draw_weights(mean: Tensor, given: Tensor, form: Form, noise: Tensor) -> Tensor:
    """Draw weights with these means, and with log sigma^2 or log alpha: mean + sigma noise."""
    if mean.dtype != torch.float16 and _fusible(mean, given):
        return _Weights.apply(mean, given, form, noise)
    return _finite(_with_sigma(mean, _typed_root(mean, given), form, noise))


def _finite(weights: Tensor) -> Tensor:
    """Limit sampled weights in float16, where they may overflow.

    An infinite weight times a zero input would be NaN.
    """
    if weights.dtype != torch.float16:
        return weights
    most = torch.finfo(weights.dtype).max
    return weights.clamp(-most, most)


def _typed_root(mean: Tensor, given: Tensor) -> Tensor:
    return _cast((0.5 * clamped(given)).exp(), mean.dtype)


def _with_sigma(mean: Tensor, root: Tensor, form: Form, noise: Tensor) -> Tensor:
    return mean + (mean * root if form == "log alpha" else root) * noise


class _Weights(Function):
    """Compute `draw_weights`, and keep one tensor of the weights' size."""

    @staticmethod
    def forward(  # type: ignore[override]
        ctx: Any, mean: Tensor, given: Tensor, form: Form, noise: Tensor
    ) -> Tensor:
        root = _typed_root(mean, given)
        drawn = _with_sigma(mean, root, form, noise)
        ctx.save_for_backward(mean, given, root * noise)
        ctx.form = form
        return drawn

    @staticmethod
    def backward(ctx: Any, grad: Tensor) -> Any:  # type: ignore[override]
        mean, given, noise = ctx.saved_tensors
        for_mean, for_given = ctx.needs_input_grad[:2]
        if torch.is_grad_enabled():
            # A factor of 1 that has the derivative of the noise in log sigma^2 or log alpha.
            noise = noise * (0.5 * (given - given.detach())).exp().to(noise.dtype)
        d_mean = d_given = None
        if for_mean:
            d_mean = grad + grad * noise if ctx.form == "log alpha" else grad
            d_mean = d_mean.sum_to_size(mean.shape)
        if for_given:
            d_given = grad * noise
            if ctx.form == "log alpha":
                d_given = d_given * mean
            d_given = 0.5 * d_given.sum_to_size(given.shape)
        return d_mean, d_given, None, None
