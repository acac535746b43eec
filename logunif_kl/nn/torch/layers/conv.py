"""Variational convolutions in one, two and three dimensions."""

# mypy: allow-untyped-calls, no-warn-return-any, disable-error-code="misc"
from __future__ import annotations

from typing import Any, Unpack

import torch
from torch.nn import functional as F

from ...checks import check_flag
from ..arguments import check_channels, check_dtype
from ..options import VariationalOptions, list_options
from .base import VariationalLayer

Tensor = torch.Tensor

_CONVOLVE: dict[int, Any] = {1: F.conv1d, 2: F.conv2d, 3: F.conv3d}


def padding_of(convolution: Any) -> list[int]:
    """Return the padding of a convolution in the order of `torch.nn.functional.pad`.

    `padding` and `dilation` may have been assigned since it was made. With other values than zeros,
    torch pads as it was made.
    """
    given, places = convolution.padding, len(convolution.kernel_size)
    if convolution.padding_mode != "zeros":
        return [*convolution._reversed_padding_repeated_twice]
    if given == "same":
        found: list[int] = []
        dilation = _each(convolution.dilation, places)
        for step, size in zip(dilation[::-1], convolution.kernel_size[::-1], strict=True):
            span = step * (size - 1)
            found += span // 2, span - span // 2
        return found
    each = _each(0 if given == "valid" else given, places)
    return [side for side in each[::-1] for _ in range(2)]


def _each(given: Any, places: int) -> tuple[int, ...]:
    each = (given,) if isinstance(given, int) else tuple(given)
    return each * places if len(each) == 1 else each


class _VariationalConv(VariationalLayer):
    in_channels: int
    out_channels: int
    groups: int
    padding: Any
    padding_mode: str
    kernel_size: tuple[int, ...]

    @list_options
    def __init__(
        self,
        in_channels: int,
        out_channels: int,
        kernel_size: Any,
        stride: Any = 1,
        padding: Any = 0,
        dilation: Any = 1,
        groups: int = 1,
        bias: bool = True,
        padding_mode: str = "zeros",
        device: Any = None,
        dtype: torch.dtype | None = None,
        **options: Unpack[VariationalOptions],
    ) -> None:
        check_dtype(dtype)
        check_flag("bias", bias)
        super().__init__(
            *(in_channels, out_channels, kernel_size, stride, padding, dilation, groups),
            *(bias, padding_mode, device, dtype),
        )
        self._become_variational(**options)

    def _check_shape(self, input: Any) -> None:
        check_channels(input, self._scales(), self.kernel_size)

    @property
    def _lk_groups(self) -> int:  # type: ignore[override]
        return self.groups

    def _padded(self, input: Tensor) -> Tensor:
        if self.padding_mode == "zeros" and self.padding != "same":
            return input
        mode = "constant" if self.padding_mode == "zeros" else self.padding_mode
        return F.pad(input, padding_of(self), mode=mode)

    def _options(self, groups: int) -> tuple[Any, ...]:
        """Return stride, padding, dilation and groups for an input that `_padded` returned."""
        padded = self.padding_mode != "zeros" or isinstance(self.padding, str)
        padding = 0 if padded else self.padding
        if isinstance(padding, int):
            padding = (padding,) * len(self.kernel_size)
        return self.stride, padding, self.dilation, groups

    def _product(self, input: Tensor, weight: Tensor, bias: Tensor | None) -> Tensor:
        return _CONVOLVE[len(self.kernel_size)](input, weight, bias, *self._options(self.groups))

    def _product_backward(
        self,
        grad: Tensor,
        input: Tensor,
        weight: Tensor,
        wanted: tuple[bool, bool, bool],
        factor: float = 1.0,
    ) -> tuple[Tensor | None, Tensor | None, Tensor | None]:
        stride, padding, dilation, groups = self._options(self.groups)
        batched = self._batched(input)
        if not batched:
            grad, input = grad.unsqueeze(0), input.unsqueeze(0)
        none = [0 for _ in self.kernel_size]
        d_input, d_weight, d_bias = torch.ops.aten.convolution_backward(
            *(grad, input, weight, [len(weight)]),
            *(stride, padding, dilation, False, none, groups, wanted),
        )
        if wanted[1] and factor != 1.0:
            d_weight = d_weight * factor
        return d_input if batched or not wanted[0] else d_input.squeeze(0), d_weight, d_bias

    def _product_each(self, input: Tensor, weights: Tensor) -> Tensor:
        # Each example has its own weights, so treat the examples as groups of one large example.
        examples = input.shape[0]
        outputs = _CONVOLVE[len(self.kernel_size)](
            input.reshape(1, -1, *input.shape[2:]),
            weights.flatten(0, 1),
            None if self.bias is None else self.bias.repeat(examples),
            *self._options(examples * self.groups),
        )
        return outputs.reshape(examples, -1, *outputs.shape[2:])

    def _batched(self, input: Tensor) -> bool:
        return input.ndim > len(self.kernel_size) + 1

    def _scaled(self, input: Tensor) -> Tensor:
        ones = [1 for _ in self.kernel_size]
        shape = (self._scales(), *ones)
        if self._batched(input) and self._lk_estimator != "per_batch":
            shape = (input.shape[0], *shape)
        return input * self._random_scales(shape, input)

    def _random_scales(self, shape: tuple[int, ...], like: Tensor) -> Tensor:
        mean, deviation = self._scale_moments(like.dtype)
        if len(deviation) > 1:
            ones = [1 for _ in self.kernel_size]
            mean, deviation = (x.repeat(self.groups, *ones) for x in (mean, deviation))
        return mean + deviation * self._lk_normals(shape, like)

    def _drawn_scales(self) -> Tensor:
        ones = [1 for _ in self.kernel_size]
        scales = self._random_scales((self._scales(), *ones), self._lk_stored)
        # An output channel reads the input channels of its group.
        by_group = scales.view(self.groups, 1, -1, *ones)
        rows = len(self._lk_stored) // self.groups
        return by_group.repeat(1, rows, *[1 for _ in by_group.shape[2:]]).flatten(0, 1)


class VariationalConv1d(_VariationalConv, torch.nn.Conv1d):
    """`torch.nn.Conv1d` with a Gaussian posterior over its weights: see `VariationalConv2d`.

    Examples
    --------
    >>> import torch
    >>> from logunif_kl.torch import nn
    >>> layer = nn.VariationalConv1d(2, 4, 3, posterior=nn.Multiplicative("output"))
    >>> layer.log_alpha.shape
    torch.Size([4, 1, 1])
    >>> layer(torch.ones(5, 2, 6)).shape
    torch.Size([5, 4, 4])
    """

    _lk_plain = torch.nn.Conv1d


class VariationalConv2d(_VariationalConv, torch.nn.Conv2d):
    r"""`torch.nn.Conv2d` with a Gaussian posterior over its weights.

    The ``"local"`` estimator (Kingma et al. 2015, Eq. 6) draws each output from its own Gaussian.
    For an input a, with * the convolution:

    .. math::

        b = a * \mu + \mathrm{bias} + \sqrt{a^2 * \sigma^2}\; \zeta, \qquad
        \zeta \sim \mathcal N(0, 1)

    A single element of b has the same distribution as with sampled weights. Elements at different
    positions share weights, but get independent noise. The other estimators sample the weights, so
    these elements are dependent. See `VariationalLinear` for everything else.

    Parameters
    ----------
    in_channels, out_channels, kernel_size, stride, padding, dilation, groups, bias, padding_mode
        As for `torch.nn.Conv2d`, which also explains `device` and `dtype`.
    posterior, estimator, penalty, generator
        As for `VariationalLinear`, but the units are channels. A parameter of the posterior has the
        shape of `weight`, but length 1 in each dimension along which it is shared. With `groups`,
        input channels at the same position in their groups share their parameters. With
        `Correlated` and `Scaled`, each input channel of an example has one random scale.

    Raises
    ------
    ValueError, TypeError, RuntimeError
        The errors of `VariationalLinear` and of `torch.nn.Conv2d`.

    Examples
    --------
    >>> import torch
    >>> from logunif_kl.torch import nn
    >>> layer = nn.VariationalConv2d(
    ...     2, 4, 3, padding=1, posterior=nn.Multiplicative("output")
    ... )
    >>> layer.log_alpha.shape
    torch.Size([4, 1, 1, 1])
    >>> layer(torch.ones(5, 2, 6, 6)).shape
    torch.Size([5, 4, 6, 6])
    >>> bool(layer.kl() > 0)
    True
    """

    _lk_plain = torch.nn.Conv2d


class VariationalConv3d(_VariationalConv, torch.nn.Conv3d):
    """`torch.nn.Conv3d` with a Gaussian posterior over its weights: see `VariationalConv2d`.

    Examples
    --------
    >>> import torch
    >>> from logunif_kl.torch import nn
    >>> layer = nn.VariationalConv3d(2, 4, 3, posterior=nn.Multiplicative("output"))
    >>> layer.log_alpha.shape
    torch.Size([4, 1, 1, 1, 1])
    >>> layer(torch.ones(5, 2, 6, 6, 6)).shape
    torch.Size([5, 4, 4, 4, 4])
    """

    _lk_plain = torch.nn.Conv3d
