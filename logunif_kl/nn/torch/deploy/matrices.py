"""Matrices in compressed sparse rows (CSR), made of the buffers of a layer."""

# mypy: allow-untyped-calls, no-warn-return-any
from __future__ import annotations

import warnings
from functools import cache
from threading import Lock
from typing import Any, NamedTuple

import torch
from torch.nn import functional as F

Tensor = torch.Tensor


class Made(NamedTuple):
    """The matrix of a layer for inputs of one shape, and what it was made from."""

    matrix: Any
    shape: tuple[int, ...]
    buffers: list[Any]
    versions: int | None
    """How often the buffers were changed in place."""
    views: list[Tensor]
    """The buffers as they were, because `torch.utils.swap_tensors` keeps the objects."""

    def is_of(self, given: dict[str, Any]) -> bool:
        """Whether the matrix was made from these buffers, which have not changed since."""
        values, columns, starts = self.buffers
        return (
            given["values"] is values
            and given["columns"] is columns
            and given["row_starts"] is starts
            and not values.requires_grad
            and all(map(torch.Tensor.is_set_to, self.buffers, self.views))
            and values._version + columns._version + starts._version == self.versions
        )


KEPT = ("values", "columns", "row_starts")


def wide(dtype: torch.dtype) -> torch.dtype:
    """Return the dtype in which to multiply: float32 for half types, otherwise the given dtype."""
    return torch.float32 if dtype in (torch.float16, torch.bfloat16) else dtype


def of_torch(starts: Tensor, columns: Tensor, values: Tensor, size: tuple[int, int]) -> Tensor:
    with _first:
        _tell_once()
    # Check the indices, because a file may hold wrong indices.
    given: dict[str, Any] = {"device": values.device, "check_invariants": True}
    return torch.sparse_csr_tensor(starts, columns, values, size, **given)


_first = Lock()


@cache
def _tell_once() -> None:
    """Make a first matrix, for which alone PyTorch warns that such matrices are in beta state.

    Later calls need no filter, which would hide the warnings of other threads.
    """
    with warnings.catch_warnings():
        warnings.simplefilter("ignore", UserWarning)
        none = torch.zeros(0, dtype=torch.int32, device="cpu")
        torch.sparse_csr_tensor(F.pad(none, (0, 1)), none, none.float(), (0, 0), device="cpu")


def of_scipy(starts: Tensor, columns: Tensor, values: Tensor, size: tuple[int, int]) -> Any:
    from scipy.sparse import csr_array

    found = csr_array((values.numpy(), columns.numpy(), starts.numpy()), shape=size)
    found.check_format()
    return found
