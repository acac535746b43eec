"""Elementary functions that Triton lacks, or computes with too large an error."""

# mypy: ignore-errors

import triton
import triton.language as tl


@triton.jit
def nearest(x):
    """Round to the nearest integer, ties to even, or if |x| >= 2^22 to an integer within 1 of x."""
    return (x + 12582912.0) - 12582912.0


@triton.jit
def divide(a, b):
    """Return ``a/b`` rounded once. The error of Triton's ``/`` in float32 can be 2 ulp."""
    return tl.math.div_rn(a, b)


@triton.jit
def minimum(a, b):
    """Return the smaller number, or NaN if one of them is NaN."""
    return tl.minimum(a, b, propagate_nan=tl.PropagateNan.ALL)


@triton.jit
def maximum(a, b):
    """Return the larger number, or NaN if one of them is NaN."""
    return tl.maximum(a, b, propagate_nan=tl.PropagateNan.ALL)


@triton.jit
def bits(x):
    """Return the bits of a float32 number as an int32 number."""
    return x.to(tl.int32, bitcast=True)


@triton.jit
def unbits(n):
    """Return the float32 number whose bits are those of an int32 number."""
    return n.to(tl.float32, bitcast=True)


@triton.jit
def from_integer(n):
    """Convert an integer to the nearest float32."""
    return n.to(tl.float32)


@triton.jit
def left(n, by: tl.constexpr):
    """Shift the bits to the left, and drop the bits above the 32nd."""
    return n << by


@triton.jit
def right(n, by: tl.constexpr):
    """Shift the bits of a non-negative number to the right."""
    return n >> by


# Triton's exponential multiplies x by log2(e) in float32. Its error at x = 80 is 20 ulp. The error
# of libdevice's exponential is at most 1 ulp. Triton's interpreter uses NumPy, without libdevice.
if isinstance(nearest, triton.JITFunction):
    from triton.language.extra import libdevice

    @triton.jit
    def exp(x):
        """Return the exponential, within 1 ulp."""
        return libdevice.exp(x)

    @triton.jit
    def log(x):
        """Return the natural logarithm, within 1 ulp."""
        return libdevice.log(x)

    @triton.jit
    def inverse(x):
        """Return ``1/x`` within 1 ulp, where neither x nor 1/x is subnormal."""
        return tl.inline_asm_elementwise(
            "rcp.approx.ftz.f32 $0, $1;", "=f,f", [x], dtype=tl.float32, is_pure=True, pack=1
        )

    @triton.jit
    def quotient(a, b):
        """Return ``a/b`` within 1 ulp, for a finite a, where neither b nor a/b is subnormal."""
        r = inverse(b)
        rough = a * r
        better = rough + (a - b * rough) * r
        return tl.where(better == better, better, rough)

    @triton.jit
    def widened(x):
        """Convert to float32."""
        return x.to(tl.float32)

    @triton.jit
    def rounded(x, dtype: tl.constexpr):
        """Round to another type."""
        return x.to(dtype)

else:

    @triton.jit
    def inverse(x):
        return 1.0 / x

    @triton.jit
    def quotient(a, b):
        return a / b

    @triton.jit
    def exp(x):
        return tl.exp(x)

    @triton.jit
    def log(x):
        return tl.log(x)

    # Triton's interpreter truncates to bfloat16 instead of rounding, and lacks bfloat16 subnormals.

    @triton.jit
    def widened(x):
        """Convert to float32."""
        if x.dtype == tl.bfloat16:
            return (x.to(tl.uint16, bitcast=True).to(tl.uint32) << 16).to(tl.float32, bitcast=True)
        return x.to(tl.float32)

    @triton.jit
    def rounded(x, dtype: tl.constexpr):
        """Round to another type, ties to even."""
        if dtype != tl.bfloat16:
            return x.to(dtype)
        bits = x.to(tl.uint32, bitcast=True)
        bits = tl.where(x == x, bits + (0x7FFF + ((bits >> 16) & 1)), 0x7FC00000)
        return (bits >> 16).to(tl.uint16).to(tl.bfloat16, bitcast=True)
