/* Tests whether the arithmetic of `float32_kernels.h` would meet subnormal numbers.
 *
 * An instruction that reads or returns a subnormal number takes as long as a hundred others. For
 * arguments called `usual` here, no instruction does so. `float32_rare.h` computes the results for
 * all other arguments. The tests compare bits as integers, so they read no subnormal number either.
 *
 * The first test tells whether a span of elements is in a box, by three or four integer operations
 * per register. The second estimates the exponents in one register, by about fifteen operations. */

/* ---- operations on bits (U of `float32_simd.h`) as signed integers -------------------------- */

#if LK_ISA == 512
#define below(a, b) _mm512_cmplt_epi32_mask((__m512i)(a), (__m512i)(b))
#define same_bits(a, b) _mm512_cmpeq_epi32_mask((__m512i)(a), (__m512i)(b))
#define to_float(u) _mm512_cvtepi32_ps((__m512i)(u))
#define larger_int(a, b) ((U)_mm512_max_epi32((__m512i)(a), (__m512i)(b)))
#define any(m) ((m) != 0)
#define all(m) ((m) == 0xffff)
#elif LK_ISA
#define below(a, b) ((M)((M)(a) < (M)(b)))
#define same_bits(a, b) ((M)((a) == (b)))
#if LK_ISA == 256
#define to_float(u) _mm256_cvtepi32_ps((__m256i)(u))
#define larger_int(a, b) ((U)_mm256_max_epi32((__m256i)(a), (__m256i)(b)))
#define any(m) (_mm256_movemask_ps((__m256)(m)) != 0)
#else
#define to_float(u) __builtin_convertvector((M)(u), V)
#ifdef LK_X86
#define any(m) (_mm_movemask_ps((__m128)(m)) != 0)
#elif defined(LK_ARM64)
#define any(m) (vmaxvq_u32((uint32x4_t)(m)) != 0)
#else
LK_INLINE int
LK_NAME(any)(M m)
{
    uint64_t half[2];
    memcpy(half, &m, sizeof half);
    return (half[0] | half[1]) != 0;
}
#define any(m) LK_NAME(any)(m)
#endif
#endif
#define all(m) (!any(negated(m)))
#else
#define below(a, b) ((int32_t)(a) < (int32_t)(b))
#define same_bits(a, b) ((a) == (b))
#define to_float(u) ((float)(int32_t)(u))
#define any(m) ((m) != 0)
#define all(m) ((m) != 0)
#endif
#define choose_bits(m, a, b) bits(choose(m, unbits(a), unbits(b)))
#ifndef larger_int
#define larger_int(a, b) choose_bits(below(a, b), b, a)
#endif
#define choose_mask(m, a, b) either(both(m, a), both(negated(m), b))
#define size_bits(x) (bits(x) & set1_bits(0x7fffffff))

/* ---- a box for a span of elements ---------------------------------------------------------- */

/* Let x be the bits of a float. x + WINDOW_FROM(first) has both bits of IN_WINDOW if and only if
 * the float, without its sign, lies in a window of 2^29 numbers (64 binades) from `first` on. The
 * sign of the float does not change these bits. */
#define IN_WINDOW 0x60000000u
#define WINDOW_FROM(first) (IN_WINDOW - (first))
#define WINDOW_BELOW(end) (IN_WINDOW + 0x20000000u - (end))
#define POWER_OF_2(e) ((unsigned)(127 + (e)) << 23)

/* The box: |mu| >= 2^-45 and 2^-60 <= |log_sigma2| < 20, so exp(-log_sigma2) lies between 2^-29 and
 * 2^29. If the derivatives are multiplied by a factor that may be as small as 2^f, the least |mu|
 * is BOX_MU(f). In the box neither u nor its product with the factor is subnormal. Without FMA the
 * box is smaller, so that products of u and the exponential are not subnormal either. */
#ifndef LK_UNFUSED
#define WINDOW_LOG_SIGMA2 WINDOW_BELOW(0x41a00000u) /* 20 */
#define BOX_MU_LEAST -45
#define BOX_MU(f) (-45 - (f) / 2)
#define BOX_FACTOR_LEAST -40
#else
#define WINDOW_LOG_SIGMA2 WINDOW_BELOW(0x41600000u) /* 14 */
#define BOX_MU_LEAST -34
#define BOX_MU(f) BOX_MU_LEAST
#define BOX_FACTOR_LEAST -32
#endif
#define WINDOW_FACTOR WINDOW_FROM(POWER_OF_2(-32))

/* Tell whether all elements are in the box; n is a multiple of STRIDE. `factor` may be NULL. */
LK_INLINE int
LK_NAME(in_box)(const float *factor, const float *mu, const float *log_sigma2, unsigned window,
                ptrdiff_t n)
{
    U found = set1_bits(IN_WINDOW);
    for (ptrdiff_t k = 0; k < n; k += STRIDE)
        for (int i = 0; i < WAYS; i++) {
            ptrdiff_t at = k + i * LANES;
            U a = bits(load(mu + at)) + set1_bits(window);
            U b = bits(load(log_sigma2 + at)) + set1_bits(WINDOW_LOG_SIGMA2);
            found = found & a & b;
            if (factor)
                found = found & (bits(load(factor + at)) + set1_bits(WINDOW_FACTOR));
        }
    return all(same_bits(found, set1_bits(IN_WINDOW)));
}
#define in_box LK_NAME(in_box)

/* ---- a register ---------------------------------------------------------------------------- */

/* If |log_sigma2| is below TINY_LOG_SIGMA2, exp(-log_sigma2) is 1. */
#define TINY_LOG_SIGMA2 POWER_OF_2(-61)
#define PER_LOG2 0x1.715476p+0f

LK_INLINE V
LK_NAME(without_tiny)(V log_sigma2)
{
    M tiny = below(size_bits(log_sigma2), set1_bits(TINY_LOG_SIGMA2));
    return unbits(choose_bits(tiny, set1_bits(0), bits(log_sigma2)));
}
#define without_tiny LK_NAME(without_tiny)

/* Estimates of exponents, at most 0.3 too small: of u, of d_mu for small u, and of d_mu for large u
 * (that is, of 1/mu). `size` holds the bits of a normal |mu|, or a result of `extended`. */
typedef struct {
    V u, small, large;
} LK_NAME(exponents);

LK_INLINE LK_NAME(exponents)
LK_NAME(exponents_of)(U size, V log_sigma2)
{
    V h = to_float(size);
    V e = log_sigma2 * set1(-PER_LOG2);
    LK_NAME(exponents) x = {
        MADD(h, set1(0x1p-22f), e + set1(-255.0f)),
        MADD(h, set1(0x1p-23f), e + set1(-127.0f)),
        MADD(h, set1(-0x1p-23f), set1(127.0f)),
    };
    return x;
}
#define exponents_of LK_NAME(exponents_of)

/* The range of exponents in which the arithmetic meets no subnormal number, and the exponent of u
 * below which F(u) is u. */
#define LEAST_EXPONENT -123.5f
#ifndef LK_UNFUSED
#define MOST_EXPONENT 125.0f
#else
#define MOST_EXPONENT 80.0f
#endif
#define LINEAR_EXPONENT -27.0f

/* Lanes where u is so small that F(u) = u, and where u or a product of u would be subnormal. */
LK_INLINE M
LK_NAME(is_small)(const LK_NAME(exponents) *x, V log_sigma2, int gradient)
{
    V least = gradient ? minimum(x->u, x->small) : x->u;
#ifndef LK_UNFUSED
    (void)log_sigma2;
#else
    /* Without FMA, products of u with a coefficient or exp(-log_sigma2) must not be subnormal.
     * The 0.25 and LEAST_EXPONENT leave 2.75 binades for the 1/6 in u exp(-log_sigma2) / 6. */
    V other = maximum(magnitude(log_sigma2) * set1(PER_LOG2), set1(22.0f));
    least = minimum(least, x->u - other - set1(0.25f));
#endif
    return both(less(least, set1(LEAST_EXPONENT)), less(x->u, set1(LINEAR_EXPONENT)));
}
#define is_small LK_NAME(is_small)

/* Lanes where the arithmetic of the value meets no subnormal number, if log_sigma2 is not tiny. */
LK_INLINE M
LK_NAME(usual_value)(V mu, V log_sigma2)
{
    U size = size_bits(mu);
    LK_NAME(exponents) x = exponents_of(size, log_sigma2);
    /* One comparison of signed integers tests 2^-126 <= |mu| < infinity. */
    M regular = below(size + set1_bits(0x7f800000), set1_bits(0xff000000));
    M known = both(less_equal(x.u, set1(MOST_EXPONENT)), regular);
    return both(known, negated(is_small(&x, log_sigma2, 0)));
}

/* The least exponent of a derivative whose product with `factor` is not subnormal. */
LK_INLINE V
LK_NAME(least_exponent)(V factor)
{
    U size = size_bits(factor);
    V f = MADD(to_float(size), set1(0x1p-23f), set1(-127.0f));
    f = choose(same_bits(size, set1_bits(0)), set1(0.0f), f);
    return set1(LEAST_EXPONENT) - minimum(f, set1(0.0f));
}
#define least_exponent LK_NAME(least_exponent)

/* Lanes where neither the gradient nor its product with a factor needs a subnormal number.
 * `least` is least_exponent(factor). */
LK_INLINE M
LK_NAME(usual_gradient)(V least, V mu, V log_sigma2)
{
    U size = size_bits(mu);
    LK_NAME(exponents) x = exponents_of(size, log_sigma2);
    V found = minimum(minimum(minimum(x.u, x.small), x.large), set1(-1.0f));
    M usual = both(both(less_equal(x.u, set1(MOST_EXPONENT)), less_equal(least, found)),
                   below(set1_bits(0x007fffff), size));
#ifdef LK_UNFUSED
    usual = both(usual, negated(is_small(&x, log_sigma2, 1)));
#endif
    return usual;
}
