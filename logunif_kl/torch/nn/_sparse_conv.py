"""Convolutions for inference that multiply only the weights that are kept."""

# mypy: allow-untyped-calls, no-warn-return-any
from __future__ import annotations

import math
from typing import Any

import torch
from torch.nn import functional as F

from ._posterior import check_input
from ._sparse import SparseLayer

Tensor = torch.Tensor

_MOST = 2**22
"""Elements of the matrix, or of the patches, that a convolution makes at once."""


class SparseConv(SparseLayer):
    """A convolution in one, two or three dimensions with only the weights that are kept.

    `to_sparse` makes it from `VariationalConv1d`, `torch.nn.Conv1d` and so on. For images of one
    size, the weights are unrolled into a sparse matrix from inputs to outputs at the first call. Of
    large images, patches are multiplied instead, with only what a kept weight reads.
    """

    def __init__(self, weight: Tensor, bias: Tensor | None, backend: str, like: Any) -> None:
        super().__init__(weight, bias, backend)
        self.out_channels, self.kernel_size = weight.shape[0], tuple(weight.shape[2:])
        self.in_channels = weight.shape[1] * like.groups
        self.stride, self.dilation, self.groups = like.stride, like.dilation, like.groups
        self.padding, self.padding_mode = like.padding, like.padding_mode
        self._around = list(like._reversed_padding_repeated_twice)

    def forward(self, input: Tensor) -> Tensor:
        """Return the convolution of an input, with or without a dimension of examples."""
        check_input(input)
        places = len(self.kernel_size)
        if input.ndim - places not in (1, 2) or input.shape[-places - 1] != self.in_channels:
            raise ValueError(
                f"input of shape {tuple(input.shape)} was given to a layer of {self.in_channels} "
                f"channels: pass one of {places + 2} dimensions, the second of length "
                f"{self.in_channels}"
            )
        if input.ndim == places + 1:
            return self._product(input.unsqueeze(0)).squeeze(0)
        return self._product(input)

    def _product(self, input: Tensor) -> Tensor:
        places = len(self.kernel_size)
        mode = "constant" if self.padding_mode == "zeros" else self.padding_mode
        padded = F.pad(input, self._around, mode=mode) if any(self._around) else input
        spans = [(k - 1) * d + 1 for k, d in zip(self.kernel_size, self.dilation, strict=True)]
        positions = [
            (length - span) // step + 1
            for length, span, step in zip(padded.shape[2:], spans, self.stride, strict=True)
        ]
        if min(positions) < 1:
            raise ValueError(
                f"input of shape {tuple(input.shape)} is smaller than the kernel "
                f"{self.kernel_size}: pass a larger one"
            )
        if len(self.values) * math.prod(positions) <= _MOST:
            output = self._unrolled(padded, positions)
        else:
            output = self._by_patches(padded, positions, spans)
        if self.bias is not None:
            output = output + self.bias.to(output.dtype).view(-1, *[1] * places)
        return output

    def _unrolled(self, padded: Tensor, positions: list[int]) -> Tensor:
        """Multiply by the matrix from all inputs of an example to all its outputs."""
        shape = tuple(padded.shape[1:])
        if self._made is None or self._made[0] != shape:
            # It is kept, and may be differentiated through by a later call.
            with torch.inference_mode(False):
                self._made = shape, self._unroll(shape, positions)
        outputs = self._times(self._made[1], padded.flatten(1).T)
        return outputs.T.reshape(len(padded), self.out_channels, *positions)

    def _unroll(self, shape: tuple[int, ...], positions: list[int]) -> Any:
        device = self.values.device
        channel, *kernel = torch.unravel_index(
            self._absolute(), (self.in_channels, *self.kernel_size)
        )
        # Where each weight reads at the first position, and how far on at the others.
        first = channel * math.prod(shape[1:])
        shift = torch.zeros((), dtype=torch.long, device=device)
        for axis, count in enumerate(positions):
            stride = math.prod(shape[2 + axis :])
            first = first + kernel[axis] * (self.dilation[axis] * stride)
            steps = torch.arange(count, device=device) * (self.stride[axis] * stride)
            shift = shift.unsqueeze(-1) + steps
        shift = shift.flatten()
        counts = self.row_starts.long().diff().repeat_interleave(len(shift))
        starts = F.pad(counts.cumsum(0), (1, 0))
        row = torch.arange(len(counts), device=device).repeat_interleave(counts)
        within = torch.arange(len(row), device=device) - starts[row]
        weight = self.row_starts.long()[row // len(shift)] + within
        columns = first[weight] + shift[row % len(shift)]
        return self._matrix(starts, columns, self.values[weight], (len(counts), math.prod(shape)))

    def _by_patches(self, padded: Tensor, positions: list[int], spans: list[int]) -> Tensor:
        """Multiply by the weights, for images so large that the matrix would not fit."""
        places = len(positions)
        used, columns = torch.unique(self._absolute(), return_inverse=True)
        read = torch.unravel_index(used, (self.in_channels, *self.kernel_size))
        matrix = self._matrix(self.row_starts, columns, self.values, (self.out_channels, len(used)))
        # From (examples, channels, positions..., kernel...), what the kept weights read.
        order = [1, *range(2 + places, 2 + 2 * places), 0, *range(2, 2 + places)]
        outputs = []
        for part in padded.split(max(_MOST // (len(used) * math.prod(positions)), 1)):
            windows = part
            for axis, span in enumerate(spans):
                windows = windows.unfold(2 + axis, span, self.stride[axis])
                windows = windows[..., :: self.dilation[axis]]
            patches = windows.permute(order)[read].reshape(len(used), -1)
            output = self._times(matrix, patches).view(self.out_channels, len(part), *positions)
            outputs.append(output.transpose(0, 1))
        return torch.cat(outputs)

    def _absolute(self) -> Tensor:
        """The columns of the kept weights among those of all channels, not of a group's alone."""
        if self.groups == 1:
            return self.columns.long()
        rows = torch.arange(self.out_channels, device=self.columns.device)
        first = rows // (self.out_channels // self.groups) * math.prod(self.shape[1:])
        return self.columns.long() + first.repeat_interleave(self.row_starts.long().diff())

    def extra_repr(self) -> str:
        """Show the sizes, and how many weights are kept."""
        sizes = f"{self.in_channels}, {self.out_channels}, kernel_size={self.kernel_size}"
        return f"{sizes}, stride={self.stride}, {self._shown()}"
