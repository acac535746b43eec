"""Elementary functions that Triton lacks, or computes less accurately than the arithmetic needs."""

# mypy: ignore-errors

import triton
import triton.language as tl


@triton.jit
def nearest(x):
    """The nearest integer, of two the even one, for |x| < 2^22; beyond, one within 1 of it."""
    return (x + 12582912.0) - 12582912.0


@triton.jit
def divide(a, b):
    """``a/b`` rounded once; Triton's ``/`` in float32 has an error of up to 2 ulp."""
    return tl.math.div_rn(a, b)


@triton.jit
def minimum(a, b):
    """The smaller; NaN if either is."""
    return tl.minimum(a, b, propagate_nan=tl.PropagateNan.ALL)


@triton.jit
def maximum(a, b):
    """The larger; NaN if either is."""
    return tl.maximum(a, b, propagate_nan=tl.PropagateNan.ALL)


# Triton's exponential multiplies by log2(e) in one word, and loses 20 ulp at 80. That of the device
# library is within 1 ulp. The interpreter runs NumPy, and has no device library.
if isinstance(nearest, triton.JITFunction):
    from triton.language.extra import libdevice

    @triton.jit
    def exp(x):
        """The exponential, within 1 ulp."""
        return libdevice.exp(x)

    @triton.jit
    def log(x):
        """The natural logarithm, within 1 ulp."""
        return libdevice.log(x)

    @triton.jit
    def widened(x):
        """In float32."""
        return x.to(tl.float32)

    @triton.jit
    def rounded(x, dtype: tl.constexpr):
        """The nearest number of another type."""
        return x.to(dtype)

else:

    @triton.jit
    def exp(x):
        """The exponential, by NumPy."""
        return tl.exp(x)

    @triton.jit
    def log(x):
        """The natural logarithm, by NumPy."""
        return tl.log(x)

    # The interpreter truncates to bfloat16, and has no subnormal numbers of it.

    @triton.jit
    def widened(x):
        """In float32."""
        if x.dtype == tl.bfloat16:
            return (x.to(tl.uint16, bitcast=True).to(tl.uint32) << 16).to(tl.float32, bitcast=True)
        return x.to(tl.float32)

    @triton.jit
    def rounded(x, dtype: tl.constexpr):
        """The nearest number of another type, of two the even one."""
        if dtype != tl.bfloat16:
            return x.to(dtype)
        bits = x.to(tl.uint32, bitcast=True)
        bits = tl.where(x == x, bits + (0x7FFF + ((bits >> 16) & 1)), 0x7FC00000)
        return (bits >> 16).to(tl.uint16).to(tl.bfloat16, bitcast=True)
