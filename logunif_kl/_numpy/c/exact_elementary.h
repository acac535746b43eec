/* Building blocks of the exact functions on one register, written with `exact_simd.h`: numbers in
 * two words (sums hi + lo that are not rounded), ranges, polynomials, exponentials, logarithms.
 *
 * Each function has up to eight ranges of u. On a range the result is a factor times a polynomial
 * P(v) = base + v (k1 + v (k2 + ...)), where v = u - c or v = 1/u - c. Two functions add a
 * logarithm (see validation/coefficients/functions.py). The code looks up the coefficients by the
 * index of the range, without branches. In float64 the last two steps of the polynomial and every
 * later product are computed in two words and rounded once. The error is about 0.6 ulp, of which
 * 0.5 ulp comes from rounding the result. float32 results are rounded once from float64. */

#define MAGIC 0x1.8p52 /* x + MAGIC holds x, rounded to an integer, in its low bits */
#define PINF INFINITY

typedef struct {
    V hi, lo;
} LK_NAME(pair);
#define pair LK_NAME(pair)

LK_INLINE V
LK_NAME(product_error)(V a, V b, V product)
{
#ifdef LK_UNFUSED
    const U upper = set1_bits(~((1ull << 27) - 1));
    V ah = unbits(bits(a) & upper), al = a - ah;
    V bh = unbits(bits(b) & upper), bl = b - bh;
    return (((ah * bh - product) + ah * bl) + al * bh) + al * bl;
#else
    return MADD(a, b, -product);
#endif
}
#define product_error LK_NAME(product_error)

/* z (hi + lo) for |z| < 2, rounded once. Without FMA, z is scaled to make product_error exact. */
LK_INLINE V
LK_NAME(times)(V z, V hi, V lo)
{
#ifdef LK_UNFUSED
    V scaled = z * set1(0x1p600), product = scaled * hi;
    return (product + (product_error(scaled, hi, product) + scaled * lo)) * set1(0x1p-600);
#else
    return MADD(z, hi, z * lo);
#endif
}
#define times LK_NAME(times)

/* The index of an argument's range: how many of the seven bounds the argument has reached. */
#define REACHED(function, type, reached)                                         \
    LK_INLINE I function(const double (*table)[8], type x)                       \
    {                                                                            \
        I i = index_zero();                                                      \
        for (int k = 0; k < 7; k++)                                              \
            i = index_count(i, reached(x, set1(table[BOUNDS][k])));              \
        return i;                                                                \
    }
#define from_below(x, bound) less_equal(bound, x)
#define from_above(x, bound) less_equal(x, bound)
REACHED(LK_NAME(index_up), V, from_below)
REACHED(LK_NAME(index_down), V, from_above)
#define index_up LK_NAME(index_up)
#define index_down LK_NAME(index_down)

/* The coefficients in two successive rows, which AVX2 reads together; see `exact_simd.h`. */
#ifndef lookup_two
#define LK_BY_RANGE(table) NULL
#define lookup_two(table, by_range, rows, row, i, first, second)    \
    do {                                                            \
        *(first) = lookup((table)[row], i);                         \
        *(second) = lookup((table)[(row) + 1], i);                  \
    } while (0)
#endif

/* k3 + v (k4 + ...) by Horner's rule. Two polynomials in v^2 would be 5 % faster, but would add a
 * quarter of an ulp to the error. */
LK_INLINE V
LK_NAME(horner)(const double (*table)[8], const double *by_range, int degree, I i, V v)
{
    int k = FIRST + degree - 2;
    V s = lookup(table[k + 1], i), even, odd;
    if (degree % 2 == 0) {
        lookup_two(table, by_range, FIRST + degree, k, i, &even, &odd);
        s = MADD(odd, v, even);
        k--;
    }
#pragma GCC unroll 32
    for (; k > FIRST + 2; k -= 2) {
        lookup_two(table, by_range, FIRST + degree, k - 1, i, &even, &odd);
        s = MADD(MADD(s, v, odd), v, even);
    }
    return s;
}
#define horner LK_NAME(horner)

/* P(v) in two words, or P(v) + v_lo P'(v) if v_lo is not NULL. P'(v) is s_hi + p + v^2 s'(v), but
 * the last term is so small that it is left out. */
LK_INLINE pair
LK_NAME(polynomial)(const double (*table)[8], const double *by_range, int degree, I i, V v,
                    const V *v_lo)
{
    V base, base_lo, k1, k2;
    lookup_two(table, by_range, FIRST + degree, BASE_HI, i, &base, &base_lo);
    lookup_two(table, by_range, FIRST + degree, FIRST, i, &k1, &k2);
    V s = MADD(horner(table, by_range, degree, i, v), v, k2);
    V p = v * s;
    V s_hi = k1 + p;
    V s_lo = ((k1 - s_hi) + p) + product_error(v, s, p);
    V q = v * s_hi;
    V q_lo = MADD(v, s_lo, product_error(v, s_hi, q))
             + (v_lo == NULL ? base_lo : MADD(*v_lo, s_hi + p, base_lo));
    pair r;
    r.hi = base + q;
    r.lo = ((base - r.hi) + q) + q_lo;
    return r;
}
#define polynomial(table, ...) LK_NAME(polynomial)(table, LK_BY_RANGE(table), __VA_ARGS__)

/* P(v) as one double, which is enough for float32 results. */
LK_INLINE V
LK_NAME(polynomial_f32)(const double (*table)[8], const double *by_range, int degree, I i, V v)
{
    V k1, k2;
    lookup_two(table, by_range, FIRST + degree, FIRST, i, &k1, &k2);
    V s = MADD(MADD(horner(table, by_range, degree, i, v), v, k2), v, k1);
    return MADD(s, v, lookup(table[BASE_HI], i));
}
#define polynomial_f32(table, ...) LK_NAME(polynomial_f32)(table, LK_BY_RANGE(table), __VA_ARGS__)

/* 2^n for an integer -1023 < n < 1024. The argument is n + MAGIC. */
LK_INLINE V
LK_NAME(power_of_two)(V n_magic)
{
    return unbits((bits(n_magic) + set1_bits(1023)) << 52);
}
#define power_of_two LK_NAME(power_of_two)

/* x 2^n for an integer n, rounded once even if the result is subnormal. */
LK_INLINE V
LK_NAME(scale)(V x, V n)
{
    V clamped = vmin(vmax(n, set1(-2044.0)), set1(2044.0));
    V half = MADD(clamped, set1(0.5), set1(MAGIC));
    V rest = clamped - (half - set1(MAGIC));
    return x * power_of_two(half) * power_of_two(rest + set1(MAGIC));
}
#define scale LK_NAME(scale)

/* exp(t) = (hi + lo) 2^n for |t| < 2^15. */
LK_INLINE pair
LK_NAME(exponential)(V t, V *n)
{
    V k_magic = MADD(t, set1(EIGHTHS_PER_LOG2), set1(MAGIC));
    V k = k_magic - set1(MAGIC);
    V r = (t - k * set1(EIGHTH_LOG2_HI)) - k * set1(EIGHTH_LOG2_LO);
    U eighths = bits(k_magic) & set1_bits(7);
    I j = index_of_bits(eighths);
    V s = set1(EXP_D[EXP_D_DEGREE - 2]);
#pragma GCC unroll 32
    for (int i = EXP_D_DEGREE - 3; i >= 0; i--)
        s = MADD(s, r, set1(EXP_D[i]));
    V power = lookup(EXP2_EIGHTHS[0], j);
    V more = power * MADD(r * r, s, r);
    pair y;
    y.hi = power + more;
    y.lo = ((power - y.hi) + more) + lookup(EXP2_EIGHTHS[1], j);
    *n = (k - (unbits(eighths | set1_bits(0x4330000000000000)) - set1(0x1p52))) * set1(0.125);
    return y;
}
#define exponential LK_NAME(exponential)

/* exp(t) for float32 results, |t| < 700. */
LK_INLINE V
LK_NAME(exponential_f32)(V t)
{
    V k_magic = MADD(t, set1(EIGHTHS_PER_LOG2), set1(MAGIC));
    V k = k_magic - set1(MAGIC);
    V r = MADD(k, set1(-EIGHTH_LOG2), t);
    V s = set1(EXP_S[EXP_S_DEGREE - 2]);
#pragma GCC unroll 32
    for (int i = EXP_S_DEGREE - 3; i >= 0; i--)
        s = MADD(s, r, set1(EXP_S[i]));
    V power = lookup(EXP2_EIGHTHS[0], index_of_bits(bits(k_magic) & set1_bits(7)));
    V whole = unbits(((bits(k_magic) >> 3) + set1_bits(1023)) << 52);
    return MADD(power, MADD(r * r, s, r), power) * whole;
}
#define exponential_f32 LK_NAME(exponential_f32)

/* log(m 2^n)/2 for a normal m. `hi` is exact, because its terms are multiples of 2^-42. */
LK_INLINE pair
LK_NAME(half_log)(V m, V n)
{
    const U mantissa = set1_bits(0x000fffffffffffff), one = set1_bits(0x3ff0000000000000);
    U b = bits(m);
    V f = unbits((b & mantissa) | one);
    V exponent = unbits((b >> 52) | set1_bits(0x4330000000000000)) - set1(0x1p52 + 1023.0);
    V k = exponent + n;
    I j = index_of_bits(b >> 49);
    V c = lookup(LOG_EIGHTHS[0], j);
#ifdef LK_UNFUSED
    V f_hi = unbits(bits(f) & set1_bits(~((1ull << 27) - 1)));
    V r = (f_hi * c - set1(1.0)) + (f - f_hi) * c;
#else
    V r = MADD(f, c, set1(-1.0));
#endif
    V s = set1(LOG1P_D[LOG1P_D_DEGREE - 2]);
#pragma GCC unroll 32
    for (int i = LOG1P_D_DEGREE - 3; i >= 0; i--)
        s = MADD(s, r, set1(LOG1P_D[i]));
    pair y;
    y.hi = k * set1(HALF_LOG2_HI) + lookup(LOG_EIGHTHS[1], j);
    y.lo = set1(0.5) * MADD(r * r, s, r) + MADD(k, set1(HALF_LOG2_LO), lookup(LOG_EIGHTHS[2], j));
    return y;
}
#define half_log LK_NAME(half_log)

LK_INLINE V
LK_NAME(half_log_f32)(V m)
{
    const U mantissa = set1_bits(0x000fffffffffffff), one = set1_bits(0x3ff0000000000000);
    U b = bits(m);
    V k = unbits((b >> 52) | set1_bits(0x4330000000000000)) - set1(0x1p52 + 1023.0);
    I j = index_of_bits(b >> 49);
    V r = MADD(unbits((b & mantissa) | one), lookup(LOG_EIGHTHS[0], j), set1(-1.0));
    V s = set1(LOG1P_S[LOG1P_S_DEGREE - 2]);
#pragma GCC unroll 32
    for (int i = LOG1P_S_DEGREE - 3; i >= 0; i--)
        s = MADD(s, r, set1(LOG1P_S[i]));
    return MADD(k, set1(HALF_LOG2_HI), lookup(LOG_EIGHTHS[1], j)) +
           set1(0.5) * MADD(r * r, s, r);
}
#define half_log_f32 LK_NAME(half_log_f32)
