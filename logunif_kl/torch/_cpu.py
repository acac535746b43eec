"""The C ufuncs on the memory of plain CPU tensors, over torch's number of threads.

An accelerator of the same contract as the arithmetic over torch, and never what a compiler or a
transform of `torch.func` sees: `takes` says for which tensors it stands in.

The work is cut into blocks whose ends depend on the number of elements alone, and their sums are
added in their order in float64, so that a result does not depend on the number of threads.
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

from .._numpy import ufuncs

Tensor = torch.Tensor

# A block's temporaries stay in the second cache; a thread for less than one is not worth waking.
_BLOCK = 32768
_PLAIN = (torch.Tensor, torch.nn.Parameter)
_BY_ORDER = (ufuncs.neg_kl, ufuncs.neg_kl_grad, ufuncs.neg_kl_hess)
# The half types are computed in float32.
_KINDS: dict[torch.dtype, Any] = {torch.float32: np.float32, torch.float64: np.float64}
# Tells a batch of gradients (`is_grads_batched`), whose type is that of a plain tensor.
batched = torch._C._functorch.is_legacy_batchedtensor
_pool: ThreadPoolExecutor | None = None
_pool_size = 0


def _forget_pool() -> None:
    """Threads do not survive a fork."""
    global _pool, _pool_size
    _pool, _pool_size = None, 0


if hasattr(os, "register_at_fork"):
    os.register_at_fork(after_in_child=_forget_pool)


def plain(*tensors: Tensor) -> bool:
    """Tell whether these are tensors with a memory, that nobody traces or transforms."""
    if torch._C._len_torch_dispatch_stack() or torch._C._get_tracing_state() is not None:
        return False
    for x in tensors:
        if type(x) not in _PLAIN or torch._is_functional_tensor(x):
            return False
        if torch._C._functorch.is_functorch_wrapped_tensor(x) or batched(x):
            return False
    return True


def takes(*tensors: Tensor) -> bool:
    """Tell whether the functions below serve these tensors, all of one shape and type."""
    for x in tensors:
        if not x.is_cpu or x.layout is not torch.strided or x.is_neg():
            return False
    return plain(*tensors)


def derivative(x: Tensor, order: int) -> Tensor:
    """-KL at log_alpha = x (order 0), or its first or second derivative."""
    inputs, back = laid_out(x)
    out = empty(inputs[0])
    run(_BY_ORDER[order], inputs, (out,))
    return back(out)


def total(x: Tensor) -> Tensor:
    """The sum of -KL at log_alpha = x, without an array of the size of x."""
    return sum_of(ufuncs.neg_kl, laid_out(x)[0], (None,))


def normal(mu: Tensor, log_sigma2: Tensor) -> tuple[Tensor, Tensor, Tensor]:
    """-KL from the mean and the variance, and its two derivatives."""
    inputs, back = laid_out(mu, log_sigma2)
    outs = empty(inputs[0]), empty(inputs[0]), empty(inputs[0])
    run(ufuncs.neg_kl_normal, inputs, outs)
    return back(outs[0]), back(outs[1]), back(outs[2])


def normal_value(mu: Tensor, log_sigma2: Tensor) -> Tensor:
    """-KL from the mean and the variance alone."""
    inputs, back = laid_out(mu, log_sigma2)
    out = empty(inputs[0])
    run(ufuncs.neg_kl_normal, inputs, (out, None, None))
    return back(out)


def normal_total(mu: Tensor, log_sigma2: Tensor) -> Tensor:
    """The sum of -KL, without an array of the size of the arguments."""
    return sum_of(ufuncs.neg_kl_normal, laid_out(mu, log_sigma2)[0], (None, None, None))


def normal_total_and_gradients(mu: Tensor, log_sigma2: Tensor) -> tuple[Tensor, Tensor, Tensor]:
    """The sum of -KL, and the derivatives of each element."""
    inputs, back = laid_out(mu, log_sigma2)
    outs = empty(inputs[0]), empty(inputs[0])
    value = sum_of(ufuncs.neg_kl_normal, inputs, (None, *outs))
    return value, back(outs[0]), back(outs[1])


def empty(like: Tensor) -> Tensor:
    # The device is said, for the default may be another.
    return torch.empty(like.shape, dtype=like.dtype, device="cpu")


def laid_out(*tensors: Tensor) -> tuple[tuple[Tensor, ...], Callable[[Tensor], Tensor]]:
    """Bring the arguments into the order of their memory, or copy them.

    Returns contiguous tensors, beside one of which one number that is repeated may stay one number,
    and the way back for a result.
    """
    inputs = tuple([x.detach() for x in tensors])
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
    """Fill the outputs; those that are None are computed and dropped block by block."""
    wanted = [out for out in outs if out is not None]
    whole = len(wanted) == len(outs) and inputs[-1].dtype in _KINDS
    if whole and _threads(inputs[-1].numel()) < 2:
        # As they are, which takes the least time for few elements.
        ufunc(*[x.numpy() for x in inputs], out=tuple([out.numpy() for out in wanted]))
        return
    _threaded(_job(ufunc, inputs, outs, False), inputs[0].numel())


def sum_of(ufunc: Any, inputs: tuple[Tensor, ...], outs: tuple[Tensor | None, ...]) -> Tensor:
    """Fill the outputs, and add up the first; in float32 for the half types."""
    return _added(_threaded(_job(ufunc, inputs, outs, True), inputs[0].numel()), inputs[0].dtype)


def in_blocks(ufunc: Any, inputs: tuple[Tensor, ...]) -> Tensor:
    """Add up what a ufunc makes of each block as a whole, whose core dimension is its length."""
    views = [x.numpy().reshape(-1) for x in inputs]

    def work(start: int, stop: int) -> list[float]:
        whole = stop - (stop - start) % _BLOCK
        rest = [] if whole == stop else [float(ufunc(*[v[whole:stop] for v in views]))]
        if whole == start:
            return rest
        return ufunc(*[v[start:whole].reshape(-1, _BLOCK) for v in views]).tolist() + rest

    return _added(_threaded(work, inputs[0].numel()), inputs[0].dtype)


def _added(sums: list[float], dtype: torch.dtype) -> Tensor:
    kind = torch.float64 if dtype is torch.float64 else torch.float32
    return torch.tensor(sum(sums), dtype=kind, device="cpu")


def _job(
    ufunc: Any, inputs: tuple[Tensor, ...], outs: tuple[Tensor | None, ...], adding: bool
) -> Callable[[int, int], list[float]]:
    """Make the function that works from one element to another, and returns the blocks' sums."""
    kind = _KINDS.get(inputs[-1].dtype)
    if kind is None:
        return _half_job(ufunc, inputs, outs, adding)
    views = [x.numpy().reshape(-1) for x in inputs]
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
    """Make the same for types that are converted block by block."""
    flat_inputs = [x.reshape(-1) for x in inputs]
    flat_outs = [None if out is None else out.view(-1) for out in outs]
    inference = torch.is_inference_mode_enabled()

    def work(start: int, stop: int) -> list[float]:
        scratch = np.empty((len(outs), min(_BLOCK, stop - start)), np.float32)
        sums = []
        # Of a thread, and other threads are to write here.
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


def _block_sum(block: np.ndarray) -> float:
    with np.errstate(all="ignore"):
        return float(np.add.reduce(block, dtype=np.float64))


def _threads(n: int) -> int:
    """How many threads share so many elements."""
    return 1 if n <= _BLOCK else min(torch.get_num_threads(), -(-n // _BLOCK))


def _threaded(work: Callable[[int, int], list[float]], n: int) -> list[float]:
    """Share the blocks out; the sums come back in the order of the blocks."""
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
    """Have a piece done by another thread, and return what gives its sums."""
    try:
        return pool.submit(work, *piece).result
    except RuntimeError:
        # While the interpreter goes down there are no other threads.
        return partial(work, *piece)
