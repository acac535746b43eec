"""The Triton kernels, which load blocks of elements, compute, and store the results.

Elements are counted from the start of dense memory. Each program takes one block, or several for a
sum. The arithmetic is in float32 for every dtype. UPSTREAM, MU and LOG_SIGMA2 are the steps of the
arguments in memory: 0 for one number that stands for all elements, and 1 otherwise.
"""

# mypy: ignore-errors

import triton
import triton.language as tl

from . import arithmetic
from .elementary import rounded, widened


@triton.jit
def _block(first, size, BLOCK: tl.constexpr):
    """Return the positions within a block, and a mask of the positions that hold elements."""
    place = tl.arange(0, BLOCK)
    return place, place < tl.minimum(size - first, BLOCK).to(tl.int32)


@triton.jit
def _load(pointer, first, place, valid, STEP: tl.constexpr):
    """Load a block as float32, with 0 after the last element. With step 0, load one number."""
    if STEP == 0:
        number = tl.broadcast_to(tl.load(pointer), place.shape)
    else:
        number = tl.load(pointer + first + place, mask=valid, other=0.0)
    return widened(number)


@triton.jit
def value(
    mu, log_sigma2, out, size, MU: tl.constexpr, LOG_SIGMA2: tl.constexpr, BLOCK: tl.constexpr
):
    """Compute -KL of each element."""
    first = tl.program_id(0).to(tl.int64) * BLOCK
    place, valid = _block(first, size, BLOCK)
    m = _load(mu, first, place, valid, MU)
    s = _load(log_sigma2, first, place, valid, LOG_SIGMA2)
    result = arithmetic.value(m, s)
    tl.store(out + first + place, rounded(result, out.dtype.element_ty), mask=valid)


@triton.jit
def value_sum(
    mu,
    log_sigma2,
    partial,
    size,
    MU: tl.constexpr,
    LOG_SIGMA2: tl.constexpr,
    BLOCK: tl.constexpr,
    BLOCKS: tl.constexpr,
):
    """Sum -KL over the ``BLOCKS`` blocks of each program. The host adds up the programs' sums.

    There are no atomic operations, so the additions have the same order in every call.
    """
    begin = tl.program_id(0).to(tl.int64) * (BLOCK * BLOCKS)
    total = tl.zeros([BLOCK], tl.float32)
    for i in range(BLOCKS):
        first = begin + i * BLOCK
        place, valid = _block(first, size, BLOCK)
        m = _load(mu, first, place, valid, MU)
        s = _load(log_sigma2, first, place, valid, LOG_SIGMA2)
        total += tl.where(valid, arithmetic.value(m, s), 0.0)
    tl.store(partial + tl.program_id(0), tl.sum(total, axis=0))


@triton.jit
def gradient(
    upstream,
    mu,
    log_sigma2,
    d_mu,
    d_log_sigma2,
    size,
    UPSTREAM: tl.constexpr,
    MU: tl.constexpr,
    LOG_SIGMA2: tl.constexpr,
    BLOCK: tl.constexpr,
):
    """Compute both derivatives of -KL from mu and log_sigma2, times the upstream gradient."""
    first = tl.program_id(0).to(tl.int64) * BLOCK
    place, valid = _block(first, size, BLOCK)
    g = _load(upstream, first, place, valid, UPSTREAM)
    m = _load(mu, first, place, valid, MU)
    s = _load(log_sigma2, first, place, valid, LOG_SIGMA2)
    in_mu, in_log_sigma2 = arithmetic.gradient(m, s)
    tl.store(d_mu + first + place, rounded(g * in_mu, d_mu.dtype.element_ty), mask=valid)
    result = rounded(g * in_log_sigma2, d_log_sigma2.dtype.element_ty)
    tl.store(d_log_sigma2 + first + place, result, mask=valid)


@triton.jit
def unary(x, out, size, ORDER: tl.constexpr, BLOCK: tl.constexpr):
    """Compute -KL from log_alpha, or its first or second derivative."""
    first = tl.program_id(0).to(tl.int64) * BLOCK
    place, valid = _block(first, size, BLOCK)
    argument = _load(x, first, place, valid, 1)
    if ORDER == 0:
        result = arithmetic.neg_kl(argument)
    elif ORDER == 1:
        result = arithmetic.neg_kl_grad(argument)
    else:
        result = arithmetic.neg_kl_hess(argument)
    tl.store(out + first + place, rounded(result, out.dtype.element_ty), mask=valid)
