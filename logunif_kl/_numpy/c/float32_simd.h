/* A thin layer over one instruction set: as many floats as fit a register, and exp and log of them.
 *
 * `float32.h` includes it for each instruction set, with LK_ISA set to 512 (AVX-512), 256 (AVX2 with
 * FMA), 128 (the vectors of the compiler, which every processor of this architecture has) or 0 (one
 * float). The compiler contracts no operations (-ffp-contract=off). MADD is a fused multiply-add
 * where there is FMA.
 *
 *   V      floats         M   one truth value per float
 *   U      their bits
 *          maximum(a, b) and minimum(a, b) are NaN where a is NaN; b must not be NaN
 */

#if LK_ISA == 512

#define LK_SUFFIX avx512
#define LANES 16
typedef __m512 LK_NAME(V);
typedef unsigned LK_NAME(U) __attribute__((vector_size(64)));
typedef __mmask16 LK_NAME(M);
#define V LK_NAME(V)
#define U LK_NAME(U)
#define M LK_NAME(M)

#define set1(x) _mm512_set1_ps(x)
#define load(p) _mm512_loadu_ps(p)
#define store(p, x) _mm512_storeu_ps(p, x)
#define bits(x) ((U)(x))
#define unbits(x) ((V)(x))
#define set1_bits(x) ((U)_mm512_set1_epi32((int)(x)))
#define MADD(a, b, c) _mm512_fmadd_ps(a, b, c)
#define maximum(a, b) _mm512_max_ps(b, a)
#define minimum(a, b) _mm512_min_ps(b, a)
#define less(a, b) _mm512_cmp_ps_mask(a, b, _CMP_LT_OQ)
#define less_equal(a, b) _mm512_cmp_ps_mask(a, b, _CMP_LE_OQ)
#define equal(a, b) _mm512_cmp_ps_mask(a, b, _CMP_EQ_OQ)
#define not_equal(a, b) _mm512_cmp_ps_mask(a, b, _CMP_NEQ_UQ)
#define both(m, n) ((M)((m) & (n)))
#define either(m, n) ((M)((m) | (n)))
#define negated(m) ((M)~(m))
#define choose(m, a, b) _mm512_mask_blend_ps(m, b, a)

#elif LK_ISA

#if LK_ISA == 256
#define LK_SUFFIX avx2
#define LANES 8
typedef __m256 LK_NAME(V);
#else
#define LK_SUFFIX baseline
#define LANES 4
typedef float LK_NAME(V) __attribute__((vector_size(16)));
#endif
typedef unsigned LK_NAME(U) __attribute__((vector_size(4 * LANES)));
typedef int LK_NAME(M) __attribute__((vector_size(4 * LANES)));
#define V LK_NAME(V)
#define U LK_NAME(U)
#define M LK_NAME(M)

#define bits(x) ((U)(x))
#define unbits(x) ((V)(x))
#define set1_bits(x) ((U){0} + (unsigned)(x))
#define less(a, b) ((M)((a) < (b)))
#define less_equal(a, b) ((M)((a) <= (b)))
#define equal(a, b) ((M)((a) == (b)))
#define not_equal(a, b) ((M)((a) != (b)))
#define both(m, n) ((m) & (n))
#define either(m, n) ((m) | (n))
#define negated(m) (~(m))

#if LK_ISA == 256
#define set1(x) _mm256_set1_ps(x)
#define load(p) _mm256_loadu_ps(p)
#define store(p, x) _mm256_storeu_ps(p, x)
#define MADD(a, b, c) _mm256_fmadd_ps(a, b, c)
#define maximum(a, b) _mm256_max_ps(b, a)
#define minimum(a, b) _mm256_min_ps(b, a)
#define choose(m, a, b) _mm256_blendv_ps(b, a, (V)(m))
#else
#define set1(x) ((V){(x), (x), (x), (x)})
#define MADD(a, b, c) ((a) * (b) + (c))
#define maximum(a, b) choose(less(a, b), b, a)
#define minimum(a, b) choose(less(b, a), b, a)
#define choose(m, a, b) ((V)(((M)(a) & (m)) | ((M)(b) & ~(m))))

LK_INLINE V
LK_NAME(load)(const float *p)
{
    V x;
    memcpy(&x, p, sizeof x);
    return x;
}
#define load LK_NAME(load)

LK_INLINE void
LK_NAME(store)(float *p, V x)
{
    memcpy(p, &x, sizeof x);
}
#define store LK_NAME(store)
#endif

#else

#define LK_SUFFIX baseline
#define LANES 1
typedef float LK_NAME(V);
typedef uint32_t LK_NAME(U);
typedef int LK_NAME(M);
#define V LK_NAME(V)
#define U LK_NAME(U)
#define M LK_NAME(M)

#define set1(x) (x)
#define load(p) (*(p))
#define store(p, x) (*(p) = (x))
#define set1_bits(x) ((uint32_t)(x))
#define MADD(a, b, c) ((a) * (b) + (c))
#define maximum(a, b) ((a) < (b) ? (b) : (a))
#define minimum(a, b) ((b) < (a) ? (b) : (a))
#define less(a, b) ((a) < (b))
#define less_equal(a, b) ((a) <= (b))
#define equal(a, b) ((a) == (b))
#define not_equal(a, b) ((a) != (b))
#define both(m, n) ((m) && (n))
#define either(m, n) ((m) || (n))
#define negated(m) (!(m))
#define choose(m, a, b) ((m) ? (a) : (b))

LK_INLINE uint32_t
LK_NAME(bits)(float x)
{
    uint32_t u;
    memcpy(&u, &x, sizeof u);
    return u;
}
#define bits LK_NAME(bits)

LK_INLINE float
LK_NAME(unbits)(uint32_t u)
{
    float x;
    memcpy(&x, &u, sizeof x);
    return x;
}
#define unbits LK_NAME(unbits)

#endif

/* The number of an integer, not negative, that is at hand as bits. */
#if LK_ISA == 512
#define from_bits(n) _mm512_cvtepi32_ps((__m512i)(n))
#elif LK_ISA == 256
#define from_bits(n) _mm256_cvtepi32_ps((__m256i)(n))
#elif LK_ISA
#define from_bits(n) __builtin_convertvector((M)(n), V)
#else
#define from_bits(n) ((float)(int32_t)(n))
#endif
#define inverse(x) (set1(1.0f) / (x))
#define greater(a, b) less(b, a)
#define greater_equal(a, b) less_equal(b, a)
#define magnitude(x) unbits(bits(x) & set1_bits(0x7fffffff))

/* Adding it to a number below 2^22 rounds this to an integer, which is then in the lowest bits. */
#define MAGIC 0x1.8p23f
#define MAGIC_BITS 0x4b400000u
/* The nearest integer for |x| < 2^22, ties to even; for larger |x|, an integer within 1 of x. */
#define nearest(x) ((x) + set1(MAGIC) - set1(MAGIC))

/* exp(x), within 1 ulp. */
LK_INLINE V
LK_NAME(exponential)(V x)
{
    x = minimum(maximum(x, set1(-105.0f)), set1(90.0f));
    V k_magic = MADD(x, set1(PER_LOG2_F), set1(MAGIC));
    V k = k_magic - set1(MAGIC);
    V r = MADD(k, set1(-LOG2_F_HI), x);
    r = MADD(k, set1(-LOG2_F_LO), r);
    V s = set1(EXP_F[EXP_F_TERMS - 1]);
#pragma GCC unroll 8
    for (int i = EXP_F_TERMS - 2; i >= 0; i--)
        s = MADD(s, r, set1(EXP_F[i]));
    s = set1(1.0f) + MADD(r * r, s, r);
#if LK_ISA == 512
    return _mm512_scalef_ps(s, k);
#else
    /* Two factors 2^a and 2^b, so that only the last product can be subnormal or infinite. k is
     * between -152 and 130; 256 is added to it, so that it can be shifted as an unsigned number. */
    U n = bits(k_magic) - set1_bits(MAGIC_BITS - 256);
    U first = n >> 1;
    V a = unbits((first + set1_bits(127 - 128)) << 23);
    V b = unbits((n - first + set1_bits(127 - 128)) << 23);
    return s * a * b;
#endif
}
#define exponential LK_NAME(exponential)

/* log(x), within 1 ulp, also of subnormal and infinite x; -inf for 0, and NaN for x < 0. */
LK_INLINE V
LK_NAME(logarithm)(V x)
{
    /* x = m 2^k with 3/4 <= m < 3/2 */
#if LK_ISA == 512
    V m = _mm512_getmant_ps(x, _MM_MANT_NORM_p75_1p5, _MM_MANT_SIGN_nan);
    V k = _mm512_getexp_ps(x) - _mm512_getexp_ps(m);
#else
    M tiny = less(x, set1(0x1p-126f));
    U b = bits(choose(tiny, x * set1(0x1p23f), x)) - set1_bits(0x3f400000);
    V m = unbits((b & set1_bits(0x007fffff)) + set1_bits(0x3f400000));
    /* the exponent plus 256, in the last bits of a float */
    V k = unbits(((b + set1_bits(0x80000000)) >> 23) + set1_bits(MAGIC_BITS)) -
          choose(tiny, set1(MAGIC + 256.0f + 23.0f), set1(MAGIC + 256.0f));
#endif
    V r = m - set1(1.0f);
    V s = set1(LOG_F[LOG_F_TERMS - 1]);
#pragma GCC unroll 16
    for (int i = LOG_F_TERMS - 2; i >= 0; i--)
        s = MADD(s, r, set1(LOG_F[i]));
    V square = r * r;
    V rest = MADD(square, MADD(s, r, set1(-0.5f)), k * set1(LOG2_F_LO));
    V result = MADD(k, set1(LOG2_F_HI), r) + rest;
#if LK_ISA != 512
    result = choose(less(x, set1(INFINITY)), result, x);
    result = choose(less(set1(0.0f), x), result,
                    choose(equal(x, set1(0.0f)), set1(-INFINITY), set1(NAN)));
#endif
    return result;
}
#define logarithm LK_NAME(logarithm)
