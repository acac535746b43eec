"""How each operation changes a mean and a variance, without samples.

The rules are from Haussmann et al. (2018), section 2.3: Eqs. 3 and 4 for sums and products of
independent variables, and the identity-delta decomposition for the rectifier and the maximum. A
rule takes the arguments of the torch function that it replaces. Its first argument is a `Moments`,
whose `_variance` is None if the variance is zero.
"""

# mypy: allow-untyped-calls, no-warn-return-any
from __future__ import annotations

import math
from collections.abc import Callable, Sequence
from typing import Any

import torch
from torch.nn import functional as F

from ...moments import product_variance, rectified
from ..noise.local import without_autocast

Tensor = torch.Tensor
Multiply = Callable[[Tensor, Tensor, Tensor | None], Tensor]


def product(
    multiply: Multiply, x: Any, weight: Tensor, bias: Tensor | None, variances: Tensor | None
) -> Any:
    """Return the moments of h = a w + b, for independent inputs a and weights w ~ N(mu, sigma^2).

    These are E[h] = E[a] mu + b and var[h] = E[a]^2 sigma^2 + var[a] (mu^2 + sigma^2), where the
    function `multiply` computes each product: a matrix product or a convolution.
    """
    mean = multiply(x.mean, weight, bias)
    half = mean.dtype == torch.float16
    at: Any = x.mean
    variance: Any = x._variance
    if half:
        # In float16 the square of 256 overflows and the initial variance exp(-10) is subnormal.
        at, variance = at.float(), None if variance is None else variance.float()
        weight, variances = weight.float(), None if variances is None else variances.float()
    with without_autocast(mean.device.type if half else "meta"):
        squares = None
        if variances is not None:
            squares = at * at if variance is None else torch.addcmul(variance, at, at)
        total = product_variance(
            lambda x, weight: multiply(x, weight, None), squares, variance, weight, variances
        )
    if total is None:
        return x._like(mean, None)
    # Clamp, because some convolutions round 0 to a negative number, and inf times 0 would be NaN.
    return x._like(mean, total.clamp(0.0, torch.finfo(total.dtype).max))


def _by(function: Any) -> Any:
    """Return the rule for a torch function that multiplies by constant weights."""

    def rule(
        x: Any, weight: Tensor, bias: Tensor | None = None, *options: Any, **named: Any
    ) -> Any:
        def multiply(x: Tensor, weight: Tensor, bias: Tensor | None) -> Tensor:
            return function(x, weight, bias, *options, **named)

        return product(multiply, x, weight, bias, None)

    return rule


def relu(x: Any, inplace: bool = False) -> Any:
    """Return the moments of a rectifier: see `rectified`."""
    wide = x.mean.float() if x.mean.dtype == torch.float16 else x.mean
    found = rectified(torch, torch.special, x.mean, wide, x._variance, x.steepness)
    if not inplace:
        return x._like(*found)
    x.mean, x._variance = found
    return x


def _maximum(pool: Any, places: int) -> Any:
    """Return the rule for maximum pooling: the moments of the element with the greatest mean."""

    def rule(x: Any, *options: Any, return_indices: bool = False, **named: Any) -> Any:
        mean, at = pool(x.mean, *options, return_indices=True, **named)
        if x._variance is None:
            return x._like(mean, None)
        picked = x._variance.flatten(-places).gather(-1, at.flatten(-places)).view_as(at)
        return x._like(mean, picked)

    return rule


def _average(pool: Any, places: int) -> Any:
    """Return the rule for average pooling: divide the sum of n variances by n^2."""

    def rule(
        x: Any,
        kernel_size: Any,
        stride: Any = None,
        padding: Any = 0,
        ceil_mode: bool = False,
        count_include_pad: bool = True,
        divisor_override: int | None = None,
    ) -> Any:
        if ceil_mode:
            raise ValueError(
                "moments were given to average pooling with ceil_mode=True: pass ceil_mode=False"
            )
        stride = kernel_size if stride is None or stride == [] else stride
        options: list[Any] = [kernel_size, stride, padding, False]
        last = [] if divisor_override is None else [divisor_override]
        mean = pool(x.mean, *options, count_include_pad, *last)
        if x._variance is None:
            return x._like(mean, None)
        n: Any = divisor_override or math.prod(_lengths(kernel_size, places))
        if not count_include_pad and divisor_override is None:
            n = n * pool(torch.ones_like(x._variance), *options, True)
        return x._like(mean, pool(x._variance, *options, count_include_pad, *last) / n)

    return rule


def _adaptive_average(pool: Any, places: int) -> Any:
    """Return the rule for adaptive average pooling, whose windows may differ in size."""

    def rule(x: Any, output_size: Any) -> Any:
        mean = pool(x.mean, output_size)
        if x._variance is None:
            return x._like(mean, None)
        n = x._variance.new_ones(())
        for length, outputs in zip(x.mean.shape[-places:], mean.shape[-places:], strict=True):
            ends = [-(-(i + 1) * length // outputs) - i * length // outputs for i in range(outputs)]
            n = n.unsqueeze(-1) * n.new_tensor(ends)
        return x._like(mean, pool(x._variance, output_size) / n)

    return rule


def _lengths(given: Any, places: int) -> Sequence[int]:
    lengths = tuple(given) if isinstance(given, (tuple, list)) else (given,)
    return lengths * places if len(lengths) == 1 else lengths


def arranged(name: str) -> Any:
    """Return the rule for a tensor method that rearranges elements."""

    def rule(x: Any, *options: Any, **named: Any) -> Any:
        variance = None if x._variance is None else getattr(x._variance, name)(*options, **named)
        return x._like(getattr(x.mean, name)(*options, **named), variance)

    return rule


def _pad(x: Any, pad: Any, mode: str = "constant", value: float | None = None) -> Any:
    def padded(t: Tensor, value: float | None) -> Tensor:
        return F.pad(t, pad, mode, value)

    variance = None if x._variance is None else padded(x._variance, None)  # a constant has none
    return x._like(padded(x.mean, value), variance)


def _dropout(x: Any, p: float = 0.5, training: bool = True, inplace: bool = False) -> Any:
    if training and p:
        raise ValueError(
            f"dropout with p={p} draws noise, which moments do not support: call model.eval()"
        )
    return x


def shift(x: Any, constant: Any) -> Any:
    """Add a constant."""
    return x._like(x.mean + constant, _as_wide_as(x, x.mean + constant))


def scale(x: Any, constant: Any) -> Any:
    """Multiply by a constant."""
    mean = x.mean * constant
    variance = _as_wide_as(x, mean)
    # Multiply twice, because the constant's square may overflow (in float16, the square of 300).
    return x._like(mean, None if variance is None else variance * constant * constant)


def _as_wide_as(x: Any, mean: Tensor) -> Tensor | None:
    return None if x._variance is None else x._variance.expand(mean.shape)


ARRANGING = (
    "flatten",
    "reshape",
    "view",
    "unflatten",
    "squeeze",
    "unsqueeze",
    "permute",
    "transpose",
    "movedim",
    "contiguous",
)
"""Methods of tensors that rearrange elements. Most are also functions of torch."""

RULES: dict[Any, Any] = {
    F.linear: _by(F.linear),
    **{f: _by(f) for f in (F.conv1d, F.conv2d, F.conv3d)},
    F.relu: relu,
    torch.relu: relu,
    **dict.fromkeys((F.relu_, torch.relu_), lambda x: relu(x, inplace=True)),
    F.pad: _pad,
    **dict.fromkeys((F.dropout, F.dropout1d, F.dropout2d, F.dropout3d), _dropout),
    **{getattr(torch, name): arranged(name) for name in ARRANGING if hasattr(torch, name)},
}
for _n in (1, 2, 3):
    for _name, _rule in (("max", _maximum), ("adaptive_max", _maximum), ("avg", _average)):
        _pool = getattr(F, f"{_name}_pool{_n}d")
        RULES[_pool] = _rule(_pool, _n)
    _pool = getattr(F, f"adaptive_avg_pool{_n}d")
    RULES[_pool] = _adaptive_average(_pool, _n)
