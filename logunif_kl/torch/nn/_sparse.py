"""Layers for inference that keep the weights which are not 0, in compressed sparse rows (CSR)."""

# mypy: allow-untyped-calls, no-warn-return-any
from __future__ import annotations

import math
import warnings
from typing import Any

import torch
from torch.nn import functional as F

from ._local import without_autocast
from ._posterior import check_input

Tensor = torch.Tensor

BACKENDS = ("torch", "scipy")


class SparseLayer(torch.nn.Module):
    """What the layers have in common: the weights as a matrix in compressed sparse rows.

    `to_sparse` makes them. They have no parameters, only buffers.

    Attributes
    ----------
    values : Tensor
        The weights that are kept, row by row.
    columns : Tensor
        The column of each, in int16 where the matrix has at most 32767 columns, else in int32.
    row_starts : Tensor
        Where each row starts in `values`, and the end of the last, in int32.
    bias : Tensor or None
    shape : tuple of int
        Of the weights as a tensor.
    """

    values: Tensor
    columns: Tensor
    row_starts: Tensor
    bias: Tensor | None

    def __init__(self, weight: Tensor, bias: Tensor | None, backend: str) -> None:
        super().__init__()
        self.shape, self.backend = tuple(weight.shape), backend
        matrix = weight.detach().reshape(weight.shape[0], math.prod(weight.shape[1:]))
        rows, columns = matrix.nonzero(as_tuple=True)
        counts = torch.bincount(rows, minlength=len(matrix))
        starts = F.pad(counts.cumsum(0), (1, 0))
        narrow = torch.int16 if matrix.shape[1] <= 2**15 - 1 else torch.int32
        self.register_buffer("values", matrix[rows, columns])
        self.register_buffer("columns", columns.to(narrow))
        self.register_buffer("row_starts", starts.int())
        self.register_buffer("bias", None if bias is None else bias.detach().clone())
        self._forget()

    def _forget(self) -> None:
        """Drop what is made from the buffers at the first call."""
        self._made: Any = None

    @property
    def weight(self) -> Tensor:
        """The weights as a dense tensor, made anew each time."""
        rows = self.row_starts.long().diff()
        matrix = self.values.new_zeros(self.shape[0], math.prod(self.shape[1:]))
        at = torch.arange(len(rows), device=rows.device).repeat_interleave(rows)
        matrix[at, self.columns.long()] = self.values
        return matrix.view(self.shape)

    def _matrix(
        self, starts: Tensor, columns: Tensor, values: Tensor, size: tuple[int, int]
    ) -> Any:
        """Make a matrix as the backend multiplies it."""
        make = _of_scipy if self.backend == "scipy" else _of_torch
        return make(starts.int(), columns.int(), values.to(_wide(values.dtype)), size)

    def _times(self, matrix: Any, columns: Tensor) -> Tensor:
        """Multiply such a matrix and a dense one."""
        if self.backend == "torch":
            # Autocast would have the product in half types, for which torch has none on the CPU.
            with without_autocast(columns.device.type):
                return (matrix @ columns.to(matrix.dtype)).to(columns.dtype)
        if columns.requires_grad and torch.is_grad_enabled():
            raise RuntimeError(
                "an input that requires grad was given to a layer with backend='scipy', which has "
                "no gradients: call the model under torch.no_grad(), or make it with "
                "backend='torch'"
            )
        product = matrix @ columns.detach().to(_wide(columns.dtype)).numpy()
        return torch.from_numpy(product).to(columns.dtype)

    def _apply(self, fn: Any, recurse: bool = True) -> Any:
        self._forget()
        return super()._apply(fn, recurse)

    def __getstate__(self) -> dict[str, Any]:
        return {**self.__dict__, "_made": None}

    def _load_from_state_dict(self, state_dict: Any, prefix: str, *args: Any) -> None:
        """Take any number of kept weights, since another model of the same shape has another."""
        for name in ("values", "columns"):
            found = state_dict.get(prefix + name)
            if isinstance(found, torch.Tensor):
                own = getattr(self, name)
                setattr(self, name, own.new_empty(found.shape))
        self._forget()
        super()._load_from_state_dict(state_dict, prefix, *args)

    def _shown(self) -> str:
        return (
            f"bias={self.bias is not None}, kept={len(self.values)}, "
            f"weights={math.prod(self.shape)}, backend={self.backend!r}"
        )


def _wide(dtype: torch.dtype) -> torch.dtype:
    """The type of the product: these matrices know no half types on the CPU."""
    return torch.float32 if dtype in (torch.float16, torch.bfloat16) else dtype


def _of_torch(starts: Tensor, columns: Tensor, values: Tensor, size: tuple[int, int]) -> Tensor:
    with warnings.catch_warnings():
        # PyTorch warns that these matrices are in beta state.
        warnings.simplefilter("ignore", UserWarning)
        # Indices from a file may be wrong, and are refused here rather than followed.
        return torch.sparse_csr_tensor(starts, columns, values, size, check_invariants=True)


def _of_scipy(starts: Tensor, columns: Tensor, values: Tensor, size: tuple[int, int]) -> Any:
    from scipy.sparse import csr_array

    found = csr_array((values.numpy(), columns.numpy(), starts.numpy()), shape=size)
    found.check_format()
    return found


class SparseLinear(SparseLayer):
    """A linear layer that multiplies only the weights that are kept.

    `to_sparse` makes it from `VariationalLinear` and `torch.nn.Linear`. It computes what they
    compute in evaluation mode without the pruned weights, up to the order of sums.
    """

    def __init__(self, weight: Tensor, bias: Tensor | None, backend: str) -> None:
        super().__init__(weight, bias, backend)
        self.out_features, self.in_features = self.shape

    def forward(self, input: Tensor) -> Tensor:
        """Return ``input @ weight.T + bias``."""
        check_input(input)
        if not input.ndim or input.shape[-1] != self.in_features:
            raise ValueError(
                f"input of shape {tuple(input.shape)} was given to a layer of {self.in_features} "
                f"inputs: pass one whose last length is {self.in_features}"
            )
        rows = input.reshape(input.shape[:-1].numel(), self.in_features)
        if self._made is None:
            size = self.out_features, self.in_features
            # It is kept, and may be differentiated through by a later call.
            with torch.inference_mode(False):
                self._made = self._matrix(self.row_starts, self.columns, self.values, size)
        output = self._times(self._made, rows.T).T
        if self.bias is not None:
            output = output + self.bias.to(output.dtype)
        return output.reshape(*input.shape[:-1], self.out_features)

    def extra_repr(self) -> str:
        """Show the sizes, and how many weights are kept."""
        sizes = f"in_features={self.in_features}, out_features={self.out_features}"
        return f"{sizes}, {self._shown()}"


class SparseEmbedding(SparseLayer):
    """A table of embeddings of which only the weights that are kept are held.

    `to_sparse` makes it from `VariationalEmbedding` and `torch.nn.Embedding`.
    """

    def __init__(self, weight: Tensor, backend: str) -> None:
        super().__init__(weight, None, backend)
        self.num_embeddings, self.embedding_dim = self.shape

    def forward(self, input: Tensor) -> Tensor:
        """Return the rows that are looked up, as dense ones."""
        ids = input.reshape(-1).long()
        if len(ids) and not (int(ids.min()) >= 0 and int(ids.max()) < self.num_embeddings):
            raise IndexError(
                f"input holds a number outside of 0 to {self.num_embeddings - 1}: pass numbers of "
                "rows"
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
