/* A thin layer over one instruction set: as many doubles as fit a register.
 *
 * `exact.h` includes it for each instruction set, with LK_ISA set to 512 (AVX-512), 256 (AVX2 with
 * FMA) or 0 (plain C, one double). Arithmetic is written with the operators of C, which GCC and
 * Clang define on vectors. What has no operator is here. The compiler contracts no operations
 * (-ffp-contract=off). MADD is a fused multiply-add where there is FMA. Where exactness matters
 * product_error is used, which is exact with and without FMA.
 *
 *   V      doubles        M   one truth value per double
 *          vmax(a, b) and vmin(a, b) are b where either is NaN
 *   U      their bits     I   an index 0..7 per double, into a row of a table
 *          below(a, b) compares bits as signed integers, and raises no exception
 *          load_bits_f32 and store_bits_f32 move the bits of as many floats, bits_f32 rounds to one
 */

#if LK_ISA == 512

#define LK_SUFFIX avx512
#define LANES 8
typedef __m512d LK_NAME(V);
typedef unsigned long long LK_NAME(U) __attribute__((vector_size(64)));
typedef __mmask8 LK_NAME(M);
typedef __m512i LK_NAME(I);

#define set1(x) _mm512_set1_pd(x)
#define load(p) _mm512_loadu_pd(p)
#define store(p, x) _mm512_storeu_pd(p, x)
#define load_f32(p) _mm512_cvtps_pd(_mm256_loadu_ps(p))
#define store_f32(p, x) _mm256_storeu_ps(p, _mm512_cvtpd_ps(x))
#define MADD(a, b, c) _mm512_fmadd_pd(a, b, c)
#define vmax(a, b) _mm512_max_pd(a, b)
#define vmin(a, b) _mm512_min_pd(a, b)
#define bits(x) ((U)(x))
#define unbits(x) ((V)(x))
#define set1_bits(x) ((U)_mm512_set1_epi64((long long)(x)))
#define less(a, b) _mm512_cmp_pd_mask(a, b, _CMP_LT_OQ)
#define less_equal(a, b) _mm512_cmp_pd_mask(a, b, _CMP_LE_OQ)
#define equal(a, b) _mm512_cmp_pd_mask(a, b, _CMP_EQ_OQ)
#define both(m, n) ((M)((m) & (n)))
#define either(m, n) ((M)((m) | (n)))
#define choose(m, a, b) _mm512_mask_blend_pd(m, b, a)
#define index_zero() _mm512_setzero_si512()
#define index_count(i, m) _mm512_mask_add_epi64(i, m, i, _mm512_set1_epi64(1))
#define index_of_bits(u) ((__m512i)(u)) /* the permutation reads the low three bits */
#define lookup(row, i) _mm512_permutexvar_pd(i, _mm512_loadu_pd(row))
#define index_is(i, k) _mm512_cmpeq_epi64_mask(i, _mm512_set1_epi64(k))
#define any(m) ((m) != 0)
#define below(a, b) _mm512_cmplt_epi64_mask((__m512i)(a), (__m512i)(b))
#define load_bits_f32(p) \
    ((U)_mm512_cvtepu32_epi64(_mm256_loadu_si256((const __m256i *)(const void *)(p))))
#define store_bits_f32(p, u) \
    _mm256_storeu_si256((__m256i *)(void *)(p), _mm512_cvtepi64_epi32((__m512i)(u)))
#define bits_f32(x) ((U)_mm512_cvtepu32_epi64(_mm256_castps_si256(_mm512_cvtpd_ps(x))))

#elif LK_ISA == 256

#define LK_SUFFIX avx2
#define LANES 4
typedef __m256d LK_NAME(V);
typedef unsigned long long LK_NAME(U) __attribute__((vector_size(32)));
typedef __m256d LK_NAME(M);
typedef __m256i LK_NAME(I);

#define set1(x) _mm256_set1_pd(x)
#define load(p) _mm256_loadu_pd(p)
#define store(p, x) _mm256_storeu_pd(p, x)
#define load_f32(p) _mm256_cvtps_pd(_mm_loadu_ps(p))
#define store_f32(p, x) _mm_storeu_ps(p, _mm256_cvtpd_ps(x))
#define MADD(a, b, c) _mm256_fmadd_pd(a, b, c)
#define vmax(a, b) _mm256_max_pd(a, b)
#define vmin(a, b) _mm256_min_pd(a, b)
#define bits(x) ((U)(x))
#define unbits(x) ((V)(x))
#define set1_bits(x) ((U)_mm256_set1_epi64x((long long)(x)))
#define less(a, b) _mm256_cmp_pd(a, b, _CMP_LT_OQ)
#define less_equal(a, b) _mm256_cmp_pd(a, b, _CMP_LE_OQ)
#define equal(a, b) _mm256_cmp_pd(a, b, _CMP_EQ_OQ)
#define both(m, n) _mm256_and_pd(m, n)
#define either(m, n) _mm256_or_pd(m, n)
#define choose(m, a, b) _mm256_blendv_pd(b, a, m)
#define index_zero() _mm256_setzero_si256()
#define index_count(i, m) _mm256_sub_epi64(i, (__m256i)(m))
#define index_of_bits(u) ((__m256i)(u))
#define index_is(i, k) ((__m256d)_mm256_cmpeq_epi64(i, _mm256_set1_epi64x(k)))
#define any(m) (_mm256_movemask_pd(m) != 0)
#define below(a, b) ((__m256d)_mm256_cmpgt_epi64((__m256i)(b), (__m256i)(a)))
#define load_bits_f32(p) \
    ((U)_mm256_cvtepu32_epi64(_mm_loadu_si128((const __m128i *)(const void *)(p))))
#define store_bits_f32(p, u) _mm_storeu_ps(p, lower_halves_avx2((__m256)(u)))
#define bits_f32(x) ((U)_mm256_cvtepu32_epi64(_mm_castps_si128(_mm256_cvtpd_ps(x))))

LK_INLINE __m128
lower_halves_avx2(__m256 u)
{
    __m128 low = _mm256_castps256_ps128(u), high = _mm256_extractf128_ps(u, 1);
    return _mm_shuffle_ps(low, high, _MM_SHUFFLE(2, 0, 2, 0));
}

/* A row of eight doubles takes two registers: permute both by 32-bit halves, and choose by bit 2. */
LK_INLINE __m256d
lookup_avx2(const double *row, __m256i i)
{
    __m256i even = _mm256_slli_epi64(_mm256_and_si256(i, _mm256_set1_epi64x(3)), 1);
    __m256i odd = _mm256_slli_epi64(_mm256_add_epi64(even, _mm256_set1_epi64x(1)), 32);
    __m256i halves = _mm256_or_si256(even, odd);
    __m256 low = _mm256_permutevar8x32_ps((__m256)_mm256_loadu_pd(row), halves);
    __m256 high = _mm256_permutevar8x32_ps((__m256)_mm256_loadu_pd(row + 4), halves);
    return _mm256_blendv_pd((__m256d)low, (__m256d)high, (__m256d)_mm256_slli_epi64(i, 61));
}
#define lookup(row, i) lookup_avx2(row, i)

#else

#define LK_SUFFIX baseline
#define LANES 1
typedef double LK_NAME(V);
typedef uint64_t LK_NAME(U);
typedef int LK_NAME(M);
typedef unsigned LK_NAME(I);

#define set1(x) (x)
#define load(p) (*(p))
#define store(p, x) (*(p) = (x))
#define load_f32(p) ((double)*(p))
#define store_f32(p, x) (*(p) = (float)(x))
#ifdef __FP_FAST_FMA
#define MADD(a, b, c) fma(a, b, c)
#else
#define MADD(a, b, c) ((a) * (b) + (c))
#define LK_UNFUSED
#endif
#define vmax(a, b) ((a) > (b) ? (a) : (b))
#define vmin(a, b) ((a) < (b) ? (a) : (b))
#define set1_bits(x) ((uint64_t)(x))
#define less(a, b) ((a) < (b))
#define less_equal(a, b) ((a) <= (b))
#define equal(a, b) ((a) == (b))
#define both(m, n) ((m) && (n))
#define either(m, n) ((m) || (n))
#define choose(m, a, b) ((m) ? (a) : (b))
#define index_zero() 0u
#define index_count(i, m) ((i) + (unsigned)(m))
#define index_of_bits(u) ((unsigned)((u) & 7))
#define lookup(row, i) ((row)[i])
#define index_is(i, k) ((i) == (k))
#define any(m) (m)
#define below(a, b) ((int64_t)(a) < (int64_t)(b))
#define load_bits_f32(p) load_bits_f32_baseline(p)
#define store_bits_f32(p, u) store_bits_f32_baseline(p, u)
#define bits_f32(x) bits_f32_baseline(x)

LK_INLINE uint64_t
load_bits_f32_baseline(const float *p)
{
    uint32_t u;
    memcpy(&u, p, sizeof u);
    return u;
}

LK_INLINE void
store_bits_f32_baseline(float *p, uint64_t u)
{
    uint32_t low = (uint32_t)u;
    memcpy(p, &low, sizeof low);
}

LK_INLINE uint64_t
bits_f32_baseline(double x)
{
    float rounded = (float)x;
    return load_bits_f32_baseline(&rounded);
}

LK_INLINE uint64_t
bits(double x)
{
    uint64_t u;
    memcpy(&u, &x, sizeof u);
    return u;
}

LK_INLINE double
unbits(uint64_t u)
{
    double x;
    memcpy(&x, &u, sizeof x);
    return x;
}

#endif

#define V LK_NAME(V)
#define U LK_NAME(U)
#define M LK_NAME(M)
#define I LK_NAME(I)
