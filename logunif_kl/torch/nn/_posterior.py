"""What a variational layer may be: the posteriors, how alpha is shared, the bound on log alpha.

The functions take no layer. They check options, tell the shape of the second parameter, and compute
a standard deviation from the parameters.
"""

# mypy: allow-untyped-calls, no-warn-return-any
from __future__ import annotations

import math
from collections.abc import Sequence
from typing import Any

import torch
from torch.autograd import Function

from ..._errors import shown, type_name
from ..._layers import finite, one_of
from .._arguments import to_tensor
from .._internals import called_by_compiler
from . import _penalty
from ._local import LARGE, below, largest_log
from ._moments import Moments
from ._prior import NormalPrior

Tensor = torch.Tensor

POSTERIORS = ("additive", "multiplicative")
SHARINGS = ("weight", "output", "input", "layer")
NOISES = ("independent", "correlated")
ESTIMATORS = ("local", "per_example", "per_batch")

_CHOICES = {
    "posterior": POSTERIORS,
    "sharing": SHARINGS,
    "noise": NOISES,
    "estimator": ESTIMATORS,
}

OPTIONS = (*_CHOICES, "initial", "max_log_alpha", "penalty", "generator")

INITIAL = {"additive": -10.0, "multiplicative": -3.0}
"""The initial log sigma^2 and log alpha.

The first is that of Molchanov et al. (2017), section 5. The second is a dropout rate
alpha/(1 + alpha) of 5 %. From a much smaller alpha, the KL term raises log alpha by a gradient of
1/2 at most, so that thousands of steps pass before the noise matters.
"""


def option(name: str, value: Any, posterior: str) -> Any:
    """Return an option of a layer of this posterior, if it is allowed.

    Raises
    ------
    TypeError, ValueError
        If it is not, with what to pass.
    """
    if name in _CHOICES:
        return one_of(name, value, _CHOICES[name])
    if name == "penalty":
        if isinstance(value, NormalPrior) and posterior != "additive":
            raise ValueError(
                f"penalty={value} was given with posterior={posterior!r}: pass posterior='additive'"
            )
        return _penalty.check(value)
    if name == "initial":
        spread = "log_sigma2" if posterior == "additive" else "log_alpha"
        return finite(name, value, f"the initial {spread}")
    if name == "max_log_alpha":
        if value is not None:
            value = finite(name, value, "0.0 for alpha <= 1, or None for no bound")
        return value
    if value is not None and not isinstance(value, torch.Generator):
        raise TypeError(
            f"generator must be a torch.Generator or None, but {type_name(value)} {shown(value)} "
            "was given: pass torch.Generator().manual_seed(...)"
        )
    return value


def check(posterior: str, sharing: str, noise: str, max_log_alpha: float | None) -> None:
    """Raise if the options, each of them allowed, do not go together.

    Raises
    ------
    ValueError
        With what to pass.
    """
    if posterior == "additive":
        for name, value, default in (
            ("sharing", sharing, "weight"),
            ("noise", noise, "independent"),
            ("max_log_alpha", max_log_alpha, None),
        ):
            if value != default:
                raise ValueError(
                    f"{name}={value!r} was given with posterior='additive', where alpha is no "
                    "parameter: pass posterior='multiplicative'"
                )
    if noise == "correlated" and sharing not in ("input", "layer"):
        raise ValueError(
            f"noise='correlated' scales the inputs, but sharing={sharing!r} was given: pass "
            "sharing='input' or sharing='layer'"
        )


def check_input(input: Any) -> None:
    """Raise if the input of a product holds no real numbers.

    Raises
    ------
    TypeError
        If it is no tensor, or holds integers or complex numbers.
    """
    if isinstance(input, Moments):
        raise TypeError(
            "moments were given to a layer that draws noise: use VariationalLinear or "
            "VariationalConv2d"
        )
    if not isinstance(input, torch.Tensor):
        raise TypeError(
            f"input must be a torch.Tensor, but {type_name(input)} was given: " + to_tensor(input)
        )
    if not input.is_floating_point():
        parts = "pass its real and imaginary parts, as by torch.view_as_real"
        raise TypeError(
            f"input must hold real numbers, but a tensor of {input.dtype} was given: "
            f"{parts if input.is_complex() else 'convert it with .float()'}"
        )


def check_of(of: Any, noise: str) -> None:
    """Raise if no KL of these is there: of the weights, or of the scales, under such noise.

    Raises
    ------
    ValueError
        If it is neither, or infinite.
    """
    if of is None:
        return
    one_of("of", of, ("weights", "scales"))
    if noise == "correlated" and of == "weights":
        raise ValueError(
            "the KL of weights under correlated noise is infinite (Hron et al. 2017, section 3): "
            "pass of='scales'"
        )
    if noise == "independent" and of == "scales":
        raise ValueError(
            "there are no scales under independent noise: pass of='weights', or make the layer "
            "with noise='correlated'"
        )


def refuse_fusion(frame: Any, kind: type) -> None:
    """Raise if it is `torch.nn.utils.fusion` that assigns the means of a copy of a layer.

    Raises
    ------
    TypeError
        If it is, since the variances would be those of before.
    """
    if frame.f_globals.get("__name__") == "torch.nn.utils.fusion":
        raise TypeError(
            f"a {kind.__name__} was fused with batch normalisation, which would scale its means "
            "and not its variances: call logunif_kl.torch.nn.to_deterministic first"
        )


def spread_shape(sharing: str, weight: Sequence[int], units: dict[str, int]) -> tuple[int, ...]:
    """The shape of log sigma^2, or of log alpha, for weights of a shape.

    `units` tells which dimension of the weight is that of the units in ``"input"`` and
    ``"output"``. The result has as many dimensions as the weight. It is never a scalar, which
    `torch.distributed.fsdp.fully_shard` refuses.
    """
    if sharing == "weight":
        return tuple(weight)
    kept = units.get(sharing)
    return tuple(length if i == kept else 1 for i, length in enumerate(weight))


def aligned(name: str, spread: Tensor, weight: Tensor, own: Sequence[int], scales: bool) -> Tensor:
    """The second parameter with as many dimensions as the weight, as PyTorch would broadcast it.

    `own` is the shape that the layer gives it. Under correlated noise (`scales`) it may not have
    more elements than that.

    Raises
    ------
    ValueError
        If it does not broadcast, with the shape to assign.
    TypeError
        If it is not of floating-point numbers, or on another device.
    """
    if not spread.is_floating_point() or spread.device != weight.device:
        raise TypeError(
            f"{name} is of {spread.dtype} on {spread.device}, and the weight of {weight.dtype} on "
            f"{weight.device}: assign a floating-point torch.nn.Parameter on the same device"
        )
    given, to = tuple(spread.shape), tuple(own if scales else weight.shape)
    if given in (to, tuple(own)):
        return spread
    shape = (1,) * (len(to) - len(given)) + given
    if len(shape) != len(to) or any(a not in (1, b) for a, b in zip(shape, to, strict=True)):
        raise ValueError(
            f"{name} of shape {given} does not broadcast to {to}, the shape of the "
            f"{'scales' if scales else 'weight'}: assign a torch.nn.Parameter of shape "
            f"{tuple(own)} to {name}"
        )
    return spread.reshape(shape)


def wide(x: Tensor) -> Tensor:
    """In float32 instead of float16, in which exp(-10) is subnormal."""
    return x.float() if x.dtype == torch.float16 else x


def single(x: Tensor) -> Tensor:
    """In float32 instead of half types, in which a sum over many weights overflows or stops."""
    return x.float() if x.dtype in (torch.float16, torch.bfloat16) else x


_LARGEST_ROOT = {torch.float64: 700.0, torch.float16: 11.0}


def root(log_variance: Tensor, tame: bool = False) -> Tensor:
    """exp(log_variance/2), finite also after multiplication by normal noise, but for float16."""
    half = 0.5 * log_variance
    most = _LARGEST_ROOT.get(half.dtype, 86.0)
    return half.exp() if tame or below(half, most) else half.clamp(max=most).exp()


def multiplied(mean: Tensor, log_alpha: Tensor) -> Tensor:
    """The variances alpha theta^2 of the multiplicative posterior, which are finite."""
    log_alpha = wide(log_alpha)
    tame = below(log_alpha, LARGE)
    deviations = wide(mean) * root(log_alpha, tame)
    if not tame:
        most = math.exp(0.5 * largest_log(deviations.dtype))
        deviations = deviations.clamp(-most, most)
    return deviations * deviations


def in_range(x: Tensor) -> Tensor:
    """In float16, in which noise overflows, clamp to the largest number: 0 times it is 0."""
    most = torch.finfo(torch.float16).max
    return x.clamp(-most, most) if x.dtype == torch.float16 else x


def kept(mask: Tensor, units: dict[str, int], scales: int | None) -> Tensor:
    """Count the weights that a mask keeps, or the scales of inputs that have some.

    ``scales`` is their number in all. The counts are of float64, which holds those of any layer.
    """
    mask = mask.double()
    if scales is None:
        return mask
    found = (mask.sum_to_size(spread_shape("input", mask.shape, units)) > 0).double()
    return found * (scales // max(found.numel(), 1))


class Bounded(Function):
    """min(x, bound), whose gradient is that of a projected descent.

    Where x is at the bound or above, a gradient passes if a step against it decreases x, and is 0
    otherwise. So a parameter leaves the bound when the loss asks for it, and stays there otherwise.
    """

    generate_vmap_rule = True

    @staticmethod
    def forward(x: Tensor, bound: float) -> Tensor:
        return x.clamp(max=bound)

    @staticmethod
    def setup_context(ctx: Any, inputs: Any, output: Tensor) -> None:
        x, bound = inputs
        inside = x < bound
        ctx.save_for_backward(inside)
        ctx.save_for_forward(inside)

    @staticmethod
    def backward(ctx: Any, grad: Tensor) -> tuple[Tensor, None]:
        (inside,) = ctx.saved_tensors
        return grad.masked_fill(~(inside | (grad > 0)), 0.0), None

    @staticmethod
    def jvp(ctx: Any, tangent: Tensor, _: None) -> Tensor:
        (inside,) = ctx.saved_tensors
        return tangent.masked_fill(~(inside | (tangent < 0)), 0.0)


def bounded(log_alpha: Tensor, bound: float | None) -> Tensor:
    """Log alpha as the layer uses it."""
    if bound is None:
        return log_alpha
    if torch.compiler.is_compiling():
        _allow()
    return _projected(log_alpha, bound)


# A compiler puts this into its graph as it is. It would refuse the rule for the forward mode, or
# lose the one for the backward inside a transform.
def _projected(log_alpha: Tensor, bound: float) -> Tensor:
    return Bounded.apply(log_alpha, bound)


@called_by_compiler
def _allow() -> bool:
    torch.compiler.allow_in_graph(_projected)
    return True
