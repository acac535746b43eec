"""A check of tensors before a kernel reads their memory, in addition to the callers' checks."""

from __future__ import annotations

import torch

Tensor = torch.Tensor


def look_at(*tensors: Tensor) -> None:
    """Raise if tensors cannot be read together.

    ValueError means that the shapes differ. TypeError means that types or devices differ, or that
    the negative bit of a tensor is set. RuntimeError means that a tensor's memory was freed.
    """
    first = tensors[0]
    for x in tensors:
        if x is not first:
            if x.shape != first.shape:
                raise ValueError(
                    f"a kernel was given tensors of shapes {tuple(first.shape)} and "
                    f"{tuple(x.shape)}: pass tensors of one shape"
                )
            if x.dtype is not first.dtype or x.device != first.device:
                raise TypeError(
                    f"a kernel was given tensors of {first.dtype} on {first.device} and of "
                    f"{x.dtype} on {x.device}: pass tensors of one type on one device"
                )
        if x.is_neg():
            raise TypeError(
                "a kernel was given a tensor x whose negative bit is set (x.is_neg()): pass "
                "x.resolve_neg()"
            )
        # Most tensors fill their storage from its beginning without gaps. For these, compare sizes.
        whole = x.is_contiguous() and not x.storage_offset()
        if x.nbytes > x.untyped_storage().nbytes() if whole else not _is_held(x):
            raise RuntimeError(
                f"a tensor of shape {tuple(x.shape)} was given, but its memory was freed, as FSDP "
                "does with a sharded parameter: pass it while it is gathered"
            )


def _is_held(x: Tensor) -> bool:
    last = sum([(n - 1) * step for n, step in zip(x.shape, x.stride(), strict=True)])
    end = (x.storage_offset() + last + 1) * x.itemsize
    return not x.numel() or end <= x.untyped_storage().nbytes()
