"""Compute the mean and the variance of a network's outputs in one pass, without samples.

Pass `Moments` to a network instead of a tensor. Layers of this package, and functions of torch with
a rule in `rules`, return the moments of their outputs. All other functions raise an error.
"""

# mypy: allow-untyped-calls, no-warn-return-any, disable-error-code="empty-body"
from __future__ import annotations

import math
from collections.abc import Iterable, Iterator
from dataclasses import make_dataclass
from functools import wraps
from typing import Any

import torch
from torch.utils import _pytree as pytree

from ...._display import described_briefly
from ...._errors import real_number
from ..arguments import check_real
from . import rules as rules

Tensor = torch.Tensor


def _arranged(method: Any) -> Any:
    """Make a method of tensors that rearranges elements a method of `Moments`."""
    function = rules.arranged(method.__name__)

    @wraps(method)
    def arrange(self: Moments, *args: Any, **kwargs: Any) -> Moments:
        return function(self, *args, **kwargs)

    arrange.__doc__ = f"Apply `torch.Tensor.{method.__name__}` to the mean and the variance."
    return arrange


class Moments:
    """The mean and the variance of each element of a tensor.

    If you pass `Moments` instead of a tensor, a network returns the mean and the variance of its
    outputs under the posterior over its weights: see `moments`. ``mean, variance = moments``
    unpacks `Moments`. `Moments` have `shape`, `ndim`, `dtype`, `device`, and the methods of tensors
    that rearrange elements, such as `view`. You can add constants, and multiply by constants.

    Parameters
    ----------
    mean : Tensor
        Of a floating type.
    variance : Tensor, optional
        Of the same shape; zero by default. Negative variances are not detected.
    steepness : float
        As for `moments`.

    Attributes
    ----------
    mean, variance : Tensor
        Of the same shape. If the mean is float16, the variance is float32.
    steepness : float

    Raises
    ------
    TypeError
        If `mean` or `variance` is not a real tensor, or `steepness` is not a number.
    ValueError
        If the shapes differ, or `steepness` is not positive.

    Examples
    --------
    >>> import torch
    >>> from logunif_kl.torch import nn
    >>> x = nn.Moments(torch.tensor([[3.0, -1.0]]), torch.tensor([[0.5, 0.5]]))
    >>> mean, variance = torch.nn.functional.relu(x)
    >>> mean, variance
    (tensor([[3., 0.]]), tensor([[0.5000, 0.0000]]))
    """

    def __init__(
        self, mean: Tensor, variance: Tensor | None = None, *, steepness: float = math.inf
    ) -> None:
        check_tensor("mean", mean, "pass real numbers")
        if variance is not None:
            check_tensor("variance", variance, "pass real numbers")
            if variance.shape != mean.shape:
                raise ValueError(
                    f"variance of shape {tuple(variance.shape)} was given with a mean of shape "
                    f"{tuple(mean.shape)}: pass a variance of the same shape"
                )
        self.mean: Tensor = mean
        self._variance: Tensor | None = variance
        self.steepness: float = check_steepness(steepness)

    @property
    def variance(self) -> Tensor:
        """The variances, which are zeros by default."""
        return torch.zeros_like(self.mean) if self._variance is None else self._variance

    def __iter__(self) -> Iterator[Tensor]:
        """Unpack the mean and the variance."""
        yield self.mean
        yield self.variance

    def __repr__(self) -> str:
        """Show the dtypes and shapes of the mean and the variance."""
        mean, variance = map(described_briefly, self)
        return f"Moments(mean={mean}, variance={variance})"

    def _like(self, mean: Tensor, variance: Tensor | None) -> Moments:
        """Return new moments with the same steepness, without checks."""
        found = object.__new__(type(self))
        found.mean, found._variance, found.steepness = mean, variance, self.steepness
        return found

    @property
    def shape(self) -> torch.Size:
        """The shape of the mean."""
        return self.mean.shape

    @property
    def ndim(self) -> int:
        """The number of dimensions."""
        return self.mean.ndim

    @property
    def dtype(self) -> torch.dtype:
        """The type of the mean."""
        return self.mean.dtype

    @property
    def device(self) -> torch.device:
        """The device of the mean."""
        return self.mean.device

    def size(self, dim: int | None = None) -> Any:
        """Return the shape, or its length in one dimension."""
        return self.mean.shape if dim is None else self.mean.shape[dim]

    def dim(self) -> int:
        """Return the number of dimensions."""
        return self.mean.ndim

    def relu(self) -> Moments:
        """Apply the rule of the rectifier: see `moments`."""
        return rules.relu(self)

    @_arranged
    def flatten(self, start_dim: int = 0, end_dim: int = -1) -> Moments: ...

    @_arranged
    def reshape(self, *shape: Any) -> Moments: ...

    @_arranged
    def view(self, *shape: Any) -> Moments: ...

    @_arranged
    def unflatten(self, dim: int, sizes: Any) -> Moments: ...

    @_arranged
    def squeeze(self, dim: Any = None) -> Moments: ...

    @_arranged
    def unsqueeze(self, dim: int) -> Moments: ...

    @_arranged
    def permute(self, *dims: Any) -> Moments: ...

    @_arranged
    def transpose(self, dim0: int, dim1: int) -> Moments: ...

    @_arranged
    def movedim(self, source: Any, destination: Any) -> Moments: ...

    @_arranged
    def contiguous(self) -> Moments: ...

    def __getitem__(self, at: Any) -> Moments:
        """Index the mean and the variance."""
        return rules.arranged("__getitem__")(self, at)

    def __add__(self, other: Any) -> Moments:
        """Add a constant."""
        _check_constant("added to", other)
        return rules.shift(self, other)

    def __sub__(self, other: Any) -> Moments:
        """Subtract a constant."""
        _check_constant("subtracted from", other)
        return rules.shift(self, -other)

    def __mul__(self, other: Any) -> Moments:
        """Multiply by a constant."""
        _check_constant("multiplied by", other)
        return rules.scale(self, other)

    def __truediv__(self, other: Any) -> Moments:
        """Divide by a constant."""
        _check_constant("divided by", other)
        return rules.scale(self, 1.0 / other)

    def __radd__(self, other: Any) -> Moments:
        """Add to a constant."""
        return self + other

    def __rmul__(self, other: Any) -> Moments:
        """Multiply a constant."""
        return self * other

    @classmethod
    def __torch_function__(
        cls, function: Any, types: Any, args: Any = (), kwargs: Any = None
    ) -> Any:
        """Apply the rule for a torch function, in place of the function."""
        rule = rules.RULES.get(function)
        others = [*args[1:], *(kwargs or {}).values()]
        first = bool(args) and isinstance(args[0], Moments)
        if rule is None or not first or any(isinstance(x, Moments) for x in others):
            name = getattr(function, "__name__", str(function))
            raise _no_rule(f"torch's {name!r}")
        return rule(*args, **(kwargs or {}))

    def __getattr__(self, name: str) -> Any:
        """Raise an error for a tensor method that has no rule, or an unknown attribute."""
        if not name.startswith("_") and hasattr(Tensor, name):
            # The error is also an AttributeError, so that `hasattr` returns False.
            raise _NoMethod(str(_no_rule(f"the method {name!r} of tensors")))
        raise AttributeError(f"{type(self).__name__!r} object has no attribute {name!r}")

    def __neg__(self) -> Moments:
        """Change the sign."""
        return rules.scale(self, -1.0)

    def __matmul__(self, other: Any) -> Moments:
        """Raise, because a matrix product needs a layer."""
        raise _no_rule("the operator '@'")


def _parts(found: Moments) -> tuple[list[Any], float]:
    given = [found.mean] if found._variance is None else [found.mean, found._variance]
    return given, found.steepness


def _of_parts(parts: Iterable[Any], steepness: Any) -> Moments:
    found = object.__new__(Moments)
    found.mean, *others = parts
    found._variance, found.steepness = others[0] if others else None, steepness
    return found


# DistributedDataParallel looks for the tensors of an output in trees and in dataclasses, and FSDP2
# in dataclasses.
pytree.register_pytree_node(
    Moments, _parts, _of_parts, serialized_type_name="logunif_kl.torch.nn.Moments"
)
Moments.__dataclass_fields__ = make_dataclass(  # type: ignore[attr-defined]
    "Moments", ["mean", "variance", "steepness"]
).__dataclass_fields__


class _NoMethod(TypeError, AttributeError):
    """The error for a method of tensors that has no rule."""


def _no_rule(what: str) -> TypeError:
    return TypeError(
        f"moments do not pass through {what}: use linear layers, convolutions, ReLU and pooling, "
        "or draw samples"
    )


def check_tensor(name: str, given: Any, instead: str) -> None:
    """Raise if an argument is `Moments`, or is not a tensor of real numbers."""
    if isinstance(given, Moments):
        raise TypeError(
            f"{name} must be a tensor, but Moments were given: pass their mean and their variance"
        )
    check_real(name, given, instead)


def check_input(input: Any) -> None:
    """Raise if the input of a layer is `Moments`, or is not a tensor of real numbers."""
    if isinstance(input, Tensor) and input.is_floating_point():
        return
    if isinstance(input, Moments):
        raise TypeError(
            "moments were given to a layer that has no rule for moments: use VariationalLinear or "
            "VariationalConv2d"
        )
    parts = "pass its real and imaginary parts, as by torch.view_as_real"
    is_complex = isinstance(input, Tensor) and input.is_complex()
    check_real("input", input, parts if is_complex else "convert it with .float()")


def _check_constant(how: str, other: Any) -> None:
    if isinstance(other, Moments):
        raise TypeError(
            f"moments were {how} moments, which needs their covariance: draw samples instead"
        )


def check_steepness(given: Any) -> float:
    """Return the steepness if it is a positive number, otherwise raise an error."""
    value = real_number("steepness", given)
    if not value > 0.0:
        raise ValueError(f"steepness must be positive, but {value} was given: pass math.inf")
    return value
