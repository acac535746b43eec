"""Layers for inference that hold only nonzero weights, in compressed sparse rows (CSR)."""

# mypy: allow-untyped-calls, no-warn-return-any
from __future__ import annotations

import math
from collections.abc import Callable
from typing import Any

import torch
from torch.nn import functional as F

from ....torch._internals import traced_to_leave
from ..arguments import check_channels, check_features
from ..layers.conv import padding_of
from ..moments.moments import check_input
from ..noise.local import without_autocast
from ..noise.mask import versions_of
from ..shrink.kinds import groups_of
from .matrices import KEPT, Made, of_scipy, of_torch, wide

Tensor = torch.Tensor

BACKENDS = ("torch", "scipy")


class SparseLayer(torch.nn.Module):
    """The base class of the layers that `to_sparse` makes, with weights in compressed sparse rows.

    The weights are buffers, not parameters. The first call makes a matrix from copies of them, and
    later calls make it again after they have changed. But PyTorch does not count changes through
    ``values.data``, NumPy, `torch.distributed` or fused optimizers: assign a new tensor instead.

    Attributes
    ----------
    values : Tensor
        The weights that are kept, row by row.
    columns : Tensor
        The column of each weight, in int16 if the matrix has at most 32767 columns, else in int32.
    row_starts : Tensor
        The start of each row in `values`, and the end of the last row, in int32.
    bias : Tensor or None
    dense_shape : Tensor
        The shape of the dense weights, for `load_sparse`.
    shape : tuple of int
        The same.
    """

    values: Tensor
    columns: Tensor
    row_starts: Tensor
    bias: Tensor | None

    def __init__(self, weight: Tensor, bias: Tensor | None, backend: str) -> None:
        super().__init__()
        self.shape: tuple[int, ...] = tuple(weight.shape)
        self.backend: str = backend
        with torch.inference_mode(False):  # PyTorch counts changes of other tensors only.
            matrix = weight.detach().reshape(weight.shape[0], math.prod(weight.shape[1:]))
            rows, columns = matrix.nonzero(as_tuple=True)
            counts = torch.bincount(rows, minlength=len(matrix))
            starts = F.pad(counts.cumsum(0), (1, 0))
            narrow = torch.int16 if matrix.shape[1] <= 2**15 - 1 else torch.int32
            self.register_buffer("values", matrix[rows, columns])
            self.register_buffer("columns", columns.to(narrow))
            self.register_buffer("row_starts", starts.int())
            self.register_buffer("dense_shape", torch.tensor(self.shape, device=weight.device))
            self.register_buffer("bias", None if bias is None else bias.detach().clone())
        self._made: Made | None = None

    @property
    def weight(self) -> Tensor:
        """The weights as a new dense tensor."""
        rows = self.row_starts.long().diff()
        matrix = self.values.new_zeros(self.shape[0], math.prod(self.shape[1:]))
        at = torch.arange(len(rows), device=rows.device).repeat_interleave(rows)
        matrix[at, self.columns.long()] = self.values
        return matrix.view(self.shape)

    def _refuse_export(self) -> None:
        if traced_to_leave():
            raise RuntimeError(
                f"a {type(self).__name__} is being exported, and exporters have no sparse "
                "matrices: export logunif_kl.torch.nn.to_compact(model), which is dense"
            )

    def _matrix(
        self, starts: Tensor, columns: Tensor, values: Tensor, size: tuple[int, int]
    ) -> Any:
        """Make a sparse matrix of the backend (torch or SciPy) from rows, columns and values."""
        make = of_scipy if self.backend == "scipy" else of_torch
        # Copies, because a backward pass or SciPy reads them when the buffers may have changed.
        starts, columns = (part.to(torch.int32, copy=True) for part in (starts, columns))
        return make(starts, columns, values.to(wide(values.dtype), copy=True), size)

    def _kept_matrix(self, shape: tuple[int, ...], make: Callable[[], Any]) -> Any:
        """Return the matrix for inputs of a shape, made again if it or the buffers have changed."""
        if torch.compiler.is_compiling():  # A graph counts changes of its own copies.
            return torch.compiler.disable(self._kept_matrix)(shape, make)
        made = self._made  # Read this once, because other threads assign it too.
        if made is None or made.shape != shape or not made.is_of(self._buffers):
            before: list[Any] = [self._buffers[name] for name in KEPT]
            versions = versions_of(before)
            # Do not make an inference tensor: a later call may differentiate through the matrix.
            with torch.inference_mode(False):
                made = Made(make(), shape, before, versions, [x.detach() for x in before])
            # The graph of weights that require grad serves one backward pass only.
            self._made = None if versions is None or self.values.requires_grad else made
        return made.matrix

    def _times(self, matrix: Any, columns: Tensor) -> Tensor:
        """Multiply a sparse matrix by a dense one."""
        if self.backend == "torch":
            # Autocast would use half types, in which torch has no sparse product on the CPU.
            with without_autocast(columns.device.type):
                return (matrix @ columns.to(matrix.dtype)).to(columns.dtype)
        if columns.requires_grad and torch.is_grad_enabled():
            raise RuntimeError(
                "an input that requires grad was given to a layer with backend='scipy', which has "
                "no gradients: call the model under torch.no_grad(), or make it with "
                "backend='torch'"
            )
        product = matrix @ columns.detach().to(wide(columns.dtype)).numpy()
        return torch.from_numpy(product).to(columns.dtype)

    def __getstate__(self) -> dict[str, Any]:
        return {**self.__dict__, "_made": None}

    def _apply(self, fn: Any, recurse: bool = True) -> Any:
        """Keep the integers: `torch.nn.Module.type` would round them to a floating type."""
        whole = {name: getattr(self, name) for name in ("columns", "row_starts", "dense_shape")}
        super()._apply(fn, recurse)
        for name, before in whole.items():
            found = getattr(self, name)
            if found.is_floating_point():
                setattr(self, name, before.to(found.device))
        return self

    def _load_from_state_dict(self, state_dict: Any, prefix: str, *args: Any) -> None:
        """Accept any number of kept weights, which differs between models of the same shape."""
        shape = state_dict.get(f"{prefix}dense_shape")
        if isinstance(shape, torch.Tensor) and shape.tolist() != list(self.shape):
            args[-1].append(
                f"{prefix}dense_shape is {tuple(shape.tolist())} in the state_dict, and the layer "
                f"has the shape {self.shape}: pass the state_dict of a network of the same sizes, "
                "or use load_sparse"
            )
            return
        for name in ("values", "columns"):
            found = state_dict.get(prefix + name)
            if isinstance(found, torch.Tensor):
                own = getattr(self, name)
                with torch.inference_mode(False):
                    setattr(self, name, own.new_empty(found.shape))
        super()._load_from_state_dict(state_dict, prefix, *args)

    def _shown(self) -> str:
        return (
            f"bias={self.bias is not None}, kept={len(self.values)}, "
            f"weights={math.prod(self.shape)}, backend={self.backend!r}"
        )


class SparseLinear(SparseLayer):
    """A linear layer that multiplies only the weights that are kept.

    `to_sparse` makes it from `VariationalLinear` and `torch.nn.Linear`. Except for rounding, it
    computes what the original layer computes in evaluation mode with its pruned weights set to 0.
    """

    def __init__(self, weight: Tensor, bias: Tensor | None, backend: str) -> None:
        super().__init__(weight, bias, backend)
        self.out_features: int
        self.in_features: int
        self.out_features, self.in_features = self.shape

    def forward(self, input: Tensor) -> Tensor:
        """Return ``input @ weight.T + bias``."""
        check_input(input)
        self._refuse_export()
        check_features(input, self.in_features)
        rows = input.reshape(input.shape[:-1].numel(), self.in_features)
        size = self.out_features, self.in_features
        matrix = self._kept_matrix(
            size, lambda: self._matrix(self.row_starts, self.columns, self.values, size)
        )
        output = self._times(matrix, rows.T).T.contiguous()
        bias = self.bias
        if bias is not None:
            output = output + bias.to(output.dtype)
        return output.reshape(*input.shape[:-1], self.out_features)

    def extra_repr(self) -> str:
        """Show the sizes, and how many weights are kept."""
        sizes = f"in_features={self.in_features}, out_features={self.out_features}"
        return f"{sizes}, {self._shown()}"


class SparseEmbedding(SparseLayer):
    """An embedding that holds only the weights that are kept.

    `to_sparse` makes it from `VariationalEmbedding` and `torch.nn.Embedding`.
    """

    def __init__(self, weight: Tensor, backend: str) -> None:
        super().__init__(weight, None, backend)
        self.num_embeddings: int = self.shape[0]
        self.embedding_dim: int = self.shape[1]

    def forward(self, input: Tensor) -> Tensor:
        """Return the looked-up rows as a dense tensor."""
        self._refuse_export()
        ids = input.reshape(-1).long()
        if len(ids) and not (int(ids.min()) >= 0 and int(ids.max()) < self.num_embeddings):
            raise IndexError(
                f"input holds a number outside of 0 to {self.num_embeddings - 1}: pass the indices "
                "of rows"
            )
        starts = self.row_starts.long()
        counts = starts[ids + 1] - starts[ids]
        row = torch.arange(len(ids), device=ids.device).repeat_interleave(counts)
        first = counts.cumsum(0) - counts
        at = torch.arange(len(row), device=ids.device) + (starts[ids] - first)[row]
        output = self.values.new_zeros(len(ids), self.embedding_dim)
        output[row, self.columns[at].long()] = self.values[at]
        return output.view(*input.shape, self.embedding_dim)

    def extra_repr(self) -> str:
        """Show the sizes, and how many weights are kept."""
        return f"{self.num_embeddings}, {self.embedding_dim}, kept={len(self.values)}"


_MOST = 2**22
"""The largest number of elements of a matrix, or of patches, that a convolution makes at once."""


class SparseConv(SparseLayer):
    """A convolution in one, two or three dimensions with only the weights that are kept.

    `to_sparse` makes it from `VariationalConv1d`, `torch.nn.Conv1d` and so on. For each new size of
    images, a call makes a sparse matrix that maps all inputs of an image to all its outputs. For
    large images, the layer instead gathers and multiplies the inputs that kept weights read.
    """

    def __init__(self, weight: Tensor, bias: Tensor | None, backend: str, like: Any) -> None:
        super().__init__(weight, bias, backend)
        self.groups: int = groups_of(like, weight)
        self.out_channels: int = weight.shape[0]
        self.in_channels: int = weight.shape[1] * self.groups
        self.kernel_size: tuple[int, ...] = tuple(weight.shape[2:])
        self.stride: tuple[int, ...] = like.stride
        self.padding: tuple[int, ...] | str = like.padding
        self.dilation: tuple[int, ...] = like.dilation
        self.padding_mode: str = like.padding_mode
        self._reversed_padding_repeated_twice = [*like._reversed_padding_repeated_twice]

    def forward(self, input: Tensor) -> Tensor:
        """Return the convolution of an input, with or without a batch dimension."""
        check_input(input)
        self._refuse_export()
        check_channels(input, self.in_channels, self.kernel_size)
        if input.ndim == len(self.kernel_size) + 1:
            return self._product(input.unsqueeze(0)).squeeze(0)
        return self._product(input)

    def _product(self, input: Tensor) -> Tensor:
        mode = "constant" if self.padding_mode == "zeros" else self.padding_mode
        around = padding_of(self)
        padded = F.pad(input, around, mode=mode) if any(around) else input
        spans = [(k - 1) * d + 1 for k, d in zip(self.kernel_size, self.dilation, strict=True)]
        positions = [
            (length - span) // step + 1
            for length, span, step in zip(padded.shape[2:], spans, self.stride, strict=True)
        ]
        if min(positions) < 1:
            raise ValueError(
                f"input of shape {tuple(input.shape)} is smaller than the kernel "
                f"{self.kernel_size}: pass a larger input"
            )
        if len(self.values) * math.prod(positions) <= _MOST:
            output = self._unrolled(padded, positions)
        else:
            output = self._by_patches(padded, positions, spans)
        bias = self.bias
        if bias is not None:
            output = output + bias.to(output.dtype).view(-1, *(1 for _ in positions))
        return output

    def _unrolled(self, padded: Tensor, positions: list[int]) -> Tensor:
        """Multiply by one matrix that maps all inputs of an example to all its outputs."""
        shape = tuple(padded.shape[1:])
        given = *shape, *self.stride, *self.dilation
        matrix = self._kept_matrix(given, lambda: self._unroll(shape, positions))
        outputs = self._times(matrix, padded.flatten(1).T)
        # Contiguous as the output of torch.nn.Conv2d is, so that the next module may view it.
        return outputs.T.reshape(len(padded), self.out_channels, *positions).contiguous()

    def _unroll(self, shape: tuple[int, ...], positions: list[int]) -> Any:
        device = self.values.device
        channel, *kernel = torch.unravel_index(
            self._absolute(), (self.in_channels, *self.kernel_size)
        )
        # For each output position, a weight reads the input position `first` plus a shift.
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
        """Multiply patches of the input, for images whose matrix would be too large."""
        places = len(positions)
        used, columns = torch.unique(self._absolute(), return_inverse=True)
        read = torch.unravel_index(used, (self.in_channels, *self.kernel_size))
        matrix = self._matrix(self.row_starts, columns, self.values, (self.out_channels, len(used)))
        # The shape of `windows` is (examples, channels, positions..., kernel...).
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
        """Return the columns of the kept weights, counted over the channels of all groups."""
        if self.groups == 1:
            return self.columns.long()
        rows = torch.arange(self.out_channels, device=self.columns.device)
        first = rows // (self.out_channels // self.groups) * math.prod(self.shape[1:])
        return self.columns.long() + first.repeat_interleave(self.row_starts.long().diff())

    def extra_repr(self) -> str:
        """Show the sizes, and how many weights are kept."""
        sizes = f"{self.in_channels}, {self.out_channels}, kernel_size={self.kernel_size}"
        return f"{sizes}, stride={self.stride}, {self._shown()}"
