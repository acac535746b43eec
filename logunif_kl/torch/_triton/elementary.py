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


@triton.jit
def bits(x):
    """The bits of float32 as int32."""
    return x.to(tl.int32, bitcast=True)


@triton.jit
def unbits(n):
    """The float32 of these bits."""
    return n.to(tl.float32, bitcast=True)


@triton.jit
def from_integer(n):
    """The nearest float32."""
    return n.to(tl.float32)


@triton.jit
def left(n, by: tl.constexpr):
    """The bits moved to the left, without those that leave the 32."""
    return n << by


@triton.jit
def right(n, by: tl.constexpr):
    """The bits moved to the right, of a number that is not negative."""
    return n >> by


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
    def inverse(x):
        """``1/x`` within 1 ulp, for x that is no subnormal number and has no subnormal inverse."""
        return tl.inline_asm_elementwise(
            "rcp.approx.ftz.f32 $0, $1;", "=f,f", [x], dtype=tl.float32, is_pure=True, pack=1
        )

    @triton.jit
    def quotient(a, b):
        """``a/b`` within 1 ulp, for a finite a, where neither b nor the quotient is subnormal."""
        r = inverse(b)
        rough = a * r
        better = rough + (a - b * rough) * r
        return tl.where(better == better, better, rough)

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
    def inverse(x):
        """``1/x``, by NumPy."""
        return 1.0 / x

    @triton.jit
    def quotient(a, b):
        """``a/b``, by NumPy."""
        return a / b

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
