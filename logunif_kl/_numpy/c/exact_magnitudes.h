/* Numbers that are too small or too large for the usual arithmetic, on one register.
 *
 * An instruction that reads or returns a subnormal number may take as long as a hundred others.
 * Each function therefore has two forms, which the constant `rare` of its kernel selects. The usual
 * form is for arguments in a window (`exact_windows.h`) where all intermediate results are normal.
 * The rare form is for all arguments, and takes a third longer. It classifies arguments by their
 * bits, and computes significands and exponents separately, until it joins and rounds the result.
 * The rare form skips steps that no lane of a register needs. Inside the window both forms return
 * the same bits. */

#define SIGN set1_bits(1ull << 63)
#define SMALLEST_NORMAL set1_bits(1ull << 52)
#define LOW 0x1p-300 /* for u or 1/u below LOW each function equals the first term of its series */
#define HIGH 0x1p300

LK_INLINE V
LK_NAME(magnitude)(V x)
{
    return unbits(bits(x) & ~SIGN);
}
#define magnitude LK_NAME(magnitude)

/* m and e of a normal number x = +-m 2^e, 1 <= m < 2. */
LK_INLINE V
LK_NAME(mantissa)(V x)
{
    return unbits((bits(x) & set1_bits(0x000fffffffffffff)) | set1_bits(0x3ff0000000000000));
}
#define mantissa LK_NAME(mantissa)

LK_INLINE V
LK_NAME(exponent)(V x)
{
    U biased = (bits(x) >> 52) & set1_bits(0x7ff);
    return unbits(biased | set1_bits(0x4330000000000000)) - set1(0x1p52 + 1023.0);
}
#define exponent LK_NAME(exponent)

/* x, or +-1 for a subnormal x: a number of the same sign and kind (zero, finite, infinite, NaN). */
LK_INLINE V
LK_NAME(of_the_kind)(V x)
{
    U size = bits(x) & ~SIGN;
    M subnormal = both(below(set1_bits(0), size), below(size, SMALLEST_NORMAL));
    return choose(subnormal, unbits((bits(x) & SIGN) | bits(set1(1.0))), x);
}
#define of_the_kind LK_NAME(of_the_kind)

/* x, or 0 where x is so small that exp(x), in two words, is 1. */
LK_INLINE V
LK_NAME(zero_if_tiny)(V x)
{
    return choose(below(bits(magnitude(x)), bits(set1(0x1p-150))), set1(0.0), x);
}
#define zero_if_tiny LK_NAME(zero_if_tiny)

/* u, clipped to [LOW, HIGH]. A negative number and -NaN give LOW, and NaN gives HIGH. */
LK_INLINE V
LK_NAME(within)(V u)
{
    V raised = choose(below(bits(u), bits(set1(LOW))), set1(LOW), u);
    return choose(below(bits(set1(HIGH)), bits(u)), set1(HIGH), raised);
}
#define within LK_NAME(within)

/* Whether a number is negative, -0, infinite or NaN. */
LK_INLINE M
LK_NAME(beyond)(V u)
{
    return either(below(bits(u), set1_bits(0)), below(bits(set1(DBL_MAX)), bits(u)));
}
#define beyond LK_NAME(beyond)

/* The bits of (hi + lo) s, rounded once to a subnormal number or zero, for hi + lo > 0. `unit` is
 * a power of two, and the last bit of `unit`, times s, is 2^-1074. Adding `unit` rounds hi + lo
 * and leaves the bits of the result at the low end of the sum. */
LK_INLINE U
LK_NAME(subnormal_of)(V hi, V lo, V unit)
{
    V first = unit + hi;
    V rounded = first + ((hi - (first - unit)) + lo);
    return bits(rounded) - bits(unit);
}
#define subnormal_of LK_NAME(subnormal_of)

/* (hi + lo) 2^n for an integer |n| < 2^15 and 2^-20 < |hi| < 2^20. `sum` is hi + lo, rounded. */
LK_INLINE V
LK_NAME(assemble)(V sum, V hi, V lo, V n)
{
    U sign = bits(sum) & SIGN;
    V binade = exponent(sum) + n;
    V scaled = unbits(bits(sum) + (bits(n + set1(MAGIC)) << 52));
    V power = power_of_two(vmin(vmax(n + set1(900.0), set1(-200.0)), set1(0.0)) + set1(MAGIC));
    V size = unbits(bits(hi) ^ sign) * power, rest = unbits(bits(lo) ^ sign) * power;
    V subnormal = unbits(subnormal_of(size, rest, set1(0x1p-122)) | sign);
    V result = choose(less(binade, set1(-1022.0)), subnormal, scaled);
    result = choose(less(set1(1023.0), binade), unbits(bits(set1(PINF)) | sign), result);
    return choose(equal(sum, sum), result, sum);
}
#define assemble LK_NAME(assemble)
