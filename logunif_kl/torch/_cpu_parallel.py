"""Run ufuncs on the memory of plain CPU tensors, in blocks and on several threads.

How elements are divided into blocks depends only on their number, and the sums of blocks are added
in order in float64. A result therefore does not depend on the number of threads.
"""

from __future__ import annotations

import os
from collections.abc import Callable
from concurrent.futures import ThreadPoolExecutor
from functools import partial
from itertools import pairwise
from typing import Any

import numpy as np
import torch

from ._memory import look_at

Tensor = torch.Tensor

# The temporaries of one block fit into the L2 cache. For fewer elements than a block, starting a
# thread takes longer than the computation.
_BLOCK = 32768
# The half types are not in this table, because they are computed in float32.
_KINDS: dict[torch.dtype, Any] = {torch.float32: np.float32, torch.float64: np.float64}
_pool: ThreadPoolExecutor | None = None
_pool_size = 0


def _forget_pool() -> None:
    """Forget the threads, which do not survive a fork."""
    global _pool, _pool_size
    _pool, _pool_size = None, 0


if hasattr(os, "register_at_fork"):
    os.register_at_fork(after_in_child=_forget_pool)


def empty(like: Tensor) -> Tensor:
    """Allocate a contiguous tensor of the shape, dtype and device of `like`."""
    # Passing memory_format takes as long as checking three tensors, so do it only if needed.
    if like.is_contiguous():
        return torch.empty_like(like)
    return torch.empty_like(like, memory_format=torch.contiguous_format)


def laid_out(*tensors: Tensor) -> tuple[tuple[Tensor, ...], Callable[[Tensor], Tensor]]:
    """Return the arguments in memory order, and a function that permutes a result back.

    If one permutation of the axes makes all arguments contiguous, they are permuted. Otherwise they
    are copied. An argument that is one number expanded to many elements (all strides 0) is not
    copied, unless all arguments are such numbers. Raise the errors of `look_at`.
    """
    look_at(*tensors)
    if not tensors[0].is_cpu:
        raise TypeError(
            f"a kernel for the CPU was given a tensor on {tensors[0].device}: pass one on the CPU"
        )
    inputs = tuple([x.detach() if x.requires_grad else x for x in tensors])
    if all(x.is_contiguous() for x in inputs):
        return inputs, _as_it_is
    repeated = [not any(x.stride()) for x in inputs]
    if all(repeated):
        repeated = [False for _ in inputs]
    dense = [x for x, again in zip(inputs, repeated, strict=True) if not again]
    strides = dense[0].stride()
    order = sorted(range(len(strides)), key=lambda axis: -strides[axis])
    if all(x.permute(order).is_contiguous() for x in dense):
        inverse = [order.index(axis) for axis in range(len(order))]
        return tuple(x.permute(order) for x in inputs), lambda result: result.permute(inverse)
    return (
        tuple(x if again else x.contiguous() for x, again in zip(inputs, repeated, strict=True)),
        _as_it_is,
    )


def _as_it_is(result: Tensor) -> Tensor:
    return result


def run(ufunc: Any, inputs: tuple[Tensor, ...], outs: tuple[Tensor | None, ...]) -> None:
    """Run the ufunc with the outputs `outs`. An output that is None goes to a scratch block."""
    wanted = [out for out in outs if out is not None]
    whole = len(wanted) == len(outs) and inputs[-1].dtype in _KINDS
    n = inputs[-1].numel()
    if whole and _threads(n) < 2:
        # For few elements, blocks, views and threads would take longer than the work.
        ufunc(*map(_array, inputs), out=tuple([out.numpy() for out in wanted]))
        return
    _threaded(_job(ufunc, inputs, outs, False), n)


def sum_of(ufunc: Any, inputs: tuple[Tensor, ...], outs: tuple[Tensor | None, ...]) -> Tensor:
    """Run the ufunc as `run` does, and sum its first output, in float32 for the half types."""
    return _added(_threaded(_job(ufunc, inputs, outs, True), inputs[0].numel()), inputs[0].dtype)


def in_blocks(ufunc: Any, inputs: tuple[Tensor, ...]) -> Tensor:
    """Return the sum over all blocks. The generalized ufunc computes the sum of each block."""
    views = [_array(x).reshape(-1) for x in inputs]

    def work(start: int, stop: int) -> list[float]:
        whole = stop - (stop - start) % _BLOCK
        rest = [] if whole == stop else [float(ufunc(*[v[whole:stop] for v in views]))]
        if whole == start:
            return rest
        return ufunc(*[v[start:whole].reshape(-1, _BLOCK) for v in views]).tolist() + rest

    return _added(_threaded(work, inputs[0].numel()), inputs[0].dtype)


def _added(sums: list[float], dtype: torch.dtype) -> Tensor:
    kind = torch.float64 if dtype is torch.float64 else torch.float32
    return torch.scalar_tensor(sum(sums), dtype=kind, device="cpu")


def _job(
    ufunc: Any, inputs: tuple[Tensor, ...], outs: tuple[Tensor | None, ...], adding: bool
) -> Callable[[int, int], list[float]]:
    """Make a function that computes a range of elements. If `adding`, it returns the block sums."""
    kind = _KINDS.get(inputs[-1].dtype)
    if kind is None:
        return _half_job(ufunc, inputs, outs, adding)
    views = [_array(x).reshape(-1) for x in inputs]
    targets = [None if out is None else out.numpy().reshape(-1) for out in outs]
    missing = sum(out is None for out in outs)
    whole = not adding and not missing

    def work(start: int, stop: int) -> list[float]:
        step = stop - start if whole else _BLOCK
        scratch = np.empty((missing, min(step, stop - start)), kind)
        sums = []
        for low in range(start, stop, step or 1):
            high = min(low + step, stop)
            spare = iter(scratch)
            results = tuple(
                [next(spare)[: high - low] if t is None else t[low:high] for t in targets]
            )
            ufunc(*[view[low:high] for view in views], out=results)
            if adding:
                sums.append(_block_sum(results[0]))
        return sums

    return work


def _half_job(
    ufunc: Any, inputs: tuple[Tensor, ...], outs: tuple[Tensor | None, ...], adding: bool
) -> Callable[[int, int], list[float]]:
    """Make a function as `_job` does, which converts half types to float32 block by block."""
    flat_inputs = [x.reshape(-1) for x in inputs]
    flat_outs = [None if out is None else out.view(-1) for out in outs]
    inference = torch.is_inference_mode_enabled()

    def work(start: int, stop: int) -> list[float]:
        scratch = np.empty((len(outs), min(_BLOCK, stop - start)), np.float32)
        sums = []
        # A new thread is not in inference mode, and would not be allowed to write to these tensors.
        with torch.inference_mode(inference):
            for low in range(start, stop, _BLOCK):
                high = min(low + _BLOCK, stop)
                results = tuple(scratch[:, : high - low])
                ufunc(*[x[low:high].float().numpy() for x in flat_inputs], out=results)
                for out, result in zip(flat_outs, results, strict=True):
                    if out is not None:
                        out[low:high].copy_(torch.from_numpy(result))
                if adding:
                    sums.append(_block_sum(results[0]))
        return sums

    return work


def _array(x: Tensor) -> np.ndarray:
    """Return an argument from `laid_out` as an array that shares its memory.

    After `Tensor.numpy`, FSDP could no longer resize a parameter's storage, so avoid that method.
    """
    return np.from_dlpack(x)


def _block_sum(block: np.ndarray) -> float:
    with np.errstate(all="ignore"):
        return float(np.add.reduce(block, dtype=np.float64))


def _threads(n: int) -> int:
    return 1 if n <= _BLOCK else min(torch.get_num_threads(), -(-n // _BLOCK))


def _threaded(work: Callable[[int, int], list[float]], n: int) -> list[float]:
    """Distribute the blocks over threads, and return the block sums in the order of the blocks."""
    global _pool, _pool_size
    threads = _threads(n)
    if threads < 2:
        return work(0, n)
    if _pool is None or _pool_size < threads - 1:
        _pool, _pool_size = ThreadPoolExecutor(threads - 1, "logunif_kl"), threads - 1
    blocks = -(-n // _BLOCK)
    ends = [min(n, _BLOCK * (blocks * i // threads)) for i in range(threads + 1)]
    (first, *others) = pairwise(ends)
    pending = [_begun(_pool, work, piece) for piece in others]
    sums = work(*first)
    return sums + [each for result in pending for each in result()]


def _begun(
    pool: ThreadPoolExecutor, work: Callable[[int, int], list[float]], piece: tuple[int, int]
) -> Callable[[], list[float]]:
    """Start `work` on a range in another thread, and return a function that waits for its sums."""
    try:
        return pool.submit(work, *piece).result
    except RuntimeError:
        # No thread can start while the interpreter shuts down.
        return partial(work, *piece)
