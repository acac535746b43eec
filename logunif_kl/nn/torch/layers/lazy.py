"""Layers that take the number of their inputs from the first batch."""

# mypy: allow-untyped-calls, no-warn-return-any, disable-error-code="misc"
from __future__ import annotations

from typing import Any, Unpack

import torch
from torch.nn import UninitializedParameter
from torch.nn.parameter import is_lazy

from ...checks import check_flag
from ...terms import Given
from ..arguments import check_dtype, no_shape
from ..options import VariationalOptions, list_options
from .base import VariationalLayer
from .conv import VariationalConv1d, VariationalConv2d, VariationalConv3d
from .linear import VariationalLinear

Tensor = torch.Tensor

_uninitialized: Any = UninitializedParameter


class _Lazy(VariationalLayer):
    """A layer whose `log_sigma2` or `log_alpha` has no shape before the first batch."""

    def _make_log_variance(self) -> None:
        for name in self._shapes(()):
            lazy = _uninitialized(device=self.weight.device, dtype=self.weight.dtype)
            self.register_parameter(name, lazy)

    def reset_parameters(self) -> None:
        """Initialise the parameters if their shapes are known."""
        if not self.has_uninitialized_params():  # type: ignore[operator]
            super().reset_parameters()

    def initialize_parameters(self, input: Tensor) -> None:
        """Infer the parameters' shapes from an input, and initialise the parameters."""
        initial = self._lk_initial_values()
        for name, shape in self._shapes(self._weight_shape(input)).items():
            parameter: Any = self._parameters[name]
            if is_lazy(parameter):
                with torch.no_grad():
                    parameter.materialize(shape)
                    parameter.fill_(initial[name])  # also if the means have been loaded
        super().initialize_parameters(input)  # type: ignore[misc]

    def _weight_shape(self, input: Tensor) -> tuple[int, ...]:
        raise NotImplementedError

    def _lk_given(self, name: str = "weight") -> Given:
        if self.has_uninitialized_params():  # type: ignore[operator]
            raise no_shape("a layer", self)
        return super()._lk_given()


class LazyVariationalLinear(_Lazy, torch.nn.LazyLinear, VariationalLinear):
    """A `VariationalLinear` that takes `in_features` from the first input.

    Parameters
    ----------
    out_features, bias, device, dtype
        As for `torch.nn.LazyLinear`.
    posterior, estimator, penalty, generator
        As for `VariationalLinear`.

    Examples
    --------
    >>> import torch, warnings
    >>> from logunif_kl.torch import nn
    >>> with warnings.catch_warnings(action="ignore"):
    ...     layer = nn.LazyVariationalLinear(2)
    >>> _ = layer(torch.ones(4, 3))
    >>> layer
    VariationalLinear(in_features=3, out_features=2, bias=True)
    """

    cls_to_become: type[Any] = VariationalLinear

    @list_options
    def __init__(
        self,
        out_features: int,
        bias: bool = True,
        device: Any = None,
        dtype: torch.dtype | None = None,
        **options: Unpack[VariationalOptions],
    ) -> None:
        check_dtype(dtype)
        check_flag("bias", bias)
        super().__init__(out_features, bias, device, dtype)
        self._become_variational(**options)

    def _weight_shape(self, input: Tensor) -> tuple[int, ...]:
        return self.out_features, input.shape[-1]


class _LazyConv(_Lazy):
    groups: int
    out_channels: int
    kernel_size: tuple[int, ...]

    @list_options
    def __init__(
        self,
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
            *(out_channels, kernel_size, stride, padding, dilation, groups, bias, padding_mode),
            *(device, dtype),
        )
        self._become_variational(**options)

    def _weight_shape(self, input: Tensor) -> tuple[int, ...]:
        channels = self._get_in_channels(input)  # type: ignore[operator]
        return self.out_channels, channels // self.groups, *self.kernel_size


class LazyVariationalConv1d(_LazyConv, torch.nn.LazyConv1d, VariationalConv1d):
    """A `VariationalConv1d` that takes `in_channels` from the first input.

    See `LazyVariationalConv2d`.
    """

    cls_to_become: type[Any] = VariationalConv1d


class LazyVariationalConv2d(_LazyConv, torch.nn.LazyConv2d, VariationalConv2d):
    """A `VariationalConv2d` that takes `in_channels` from the first input.

    Parameters
    ----------
    out_channels, kernel_size, stride, padding, dilation, groups, bias, padding_mode
        As for `torch.nn.LazyConv2d`, which also explains `device` and `dtype`.
    posterior, estimator, penalty, generator
        As for `VariationalConv2d`.

    Examples
    --------
    >>> import torch, warnings
    >>> from logunif_kl.torch import nn
    >>> with warnings.catch_warnings(action="ignore"):
    ...     layer = nn.LazyVariationalConv2d(2, 1)
    >>> layer(torch.ones(4, 3, 5, 5)).shape
    torch.Size([4, 2, 5, 5])
    """

    cls_to_become: type[Any] = VariationalConv2d


class LazyVariationalConv3d(_LazyConv, torch.nn.LazyConv3d, VariationalConv3d):
    """A `VariationalConv3d` that takes `in_channels` from the first input.

    See `LazyVariationalConv2d`.
    """

    cls_to_become: type[Any] = VariationalConv3d
