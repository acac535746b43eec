/* A thin layer over one instruction set: as many doubles as fit a register.
 *
 * `exact.h` includes this file for each instruction set. LK_ISA is 512 (AVX-512), 256 (AVX2 with
 * FMA), LK_NEON (Advanced SIMD of AArch64) or 0 (plain C, one double). Arithmetic uses the
 * operators of C, which GCC and Clang define on vectors; this header has the other operations. The
 * compiler contracts no operations (-ffp-contract=off). MADD is a fused multiply-add, except in
 * plain C, whose results are the same on every processor. product_error is always exact.
 *
 *   V      doubles        M   one truth value per double
 *          vmax(a, b) and vmin(a, b) are b where a or b is NaN
 *   U      their bits     I   an index 0..7 per double, into a row of a table
 *          lookup_two (AVX2) reads two rows; `exact_elementary.h` defines it for the others
 *          below(a, b) compares bits as signed integers, without floating-point exceptions
 *          load_f32_rare and store_f32_rare convert subnormal floats as integers, in units of
 *          2^-149, because an instruction for floats would read or return a subnormal number
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
#define load_f32_rare(p) load_f32_rare_avx512(p)
#define store_f32_rare(p, x) store_f32_rare_avx512(p, x)

LK_INLINE __m512d
load_f32_rare_avx512(const float *p)
{
    __m256i b = _mm256_castps_si256(_mm256_loadu_ps(p));
    __m256i size = _mm256_and_si256(b, _mm256_set1_epi32(0x7fffffff));
    __m256i subnormal = _mm256_cmpgt_epi32(_mm256_set1_epi32(0x00800000), size);
    __m256i units = _mm256_and_si256(subnormal, size);
    __m512d x = _mm512_cvtps_pd(_mm256_castsi256_ps(_mm256_xor_si256(b, units)));
    if (_mm256_testz_si256(units, units))
        return x;
    __m512d low = _mm512_mul_pd(_mm512_cvtepi32_pd(units), _mm512_set1_pd(0x1p-149));
    return (__m512d)_mm512_or_si512((__m512i)x, (__m512i)low);
}

LK_INLINE void
store_f32_rare_avx512(float *p, __m512d x)
{
    __m512d size = _mm512_abs_pd(x), sign = (__m512d)_mm512_xor_si512((__m512i)x, (__m512i)size);
    __mmask8 subnormal = _mm512_cmp_pd_mask(size, _mm512_set1_pd(0x1p-126), _CMP_LT_OQ);
    __m512d low = _mm512_maskz_mul_pd(subnormal, size, _mm512_set1_pd(0x1p149));
    __m256 normal = _mm512_cvtpd_ps(_mm512_mask_mov_pd(x, subnormal, sign));
    __m256i units = _mm512_cvtpd_epi32(low);
    _mm256_storeu_ps(p, _mm256_or_ps(normal, _mm256_castsi256_ps(units)));
}

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
#define load_f32_rare(p) load_f32_rare_avx2(p)
#define store_f32_rare(p, x) store_f32_rare_avx2(p, x)

LK_INLINE __m256d
load_f32_rare_avx2(const float *p)
{
    __m128i b = _mm_castps_si128(_mm_loadu_ps(p));
    __m128i size = _mm_and_si128(b, _mm_set1_epi32(0x7fffffff));
    __m128i subnormal = _mm_cmpgt_epi32(_mm_set1_epi32(0x00800000), size);
    __m128i units = _mm_and_si128(subnormal, size);
    __m256d x = _mm256_cvtps_pd(_mm_castsi128_ps(_mm_xor_si128(b, units)));
    if (_mm_testz_si128(units, units))
        return x;
    return _mm256_or_pd(x, _mm256_mul_pd(_mm256_cvtepi32_pd(units), _mm256_set1_pd(0x1p-149)));
}

LK_INLINE void
store_f32_rare_avx2(float *p, __m256d x)
{
    __m256d sign = _mm256_and_pd(x, _mm256_set1_pd(-0.0)), size = _mm256_xor_pd(x, sign);
    __m256d subnormal = _mm256_cmp_pd(size, _mm256_set1_pd(0x1p-126), _CMP_LT_OQ);
    __m256d low = _mm256_mul_pd(_mm256_and_pd(subnormal, size), _mm256_set1_pd(0x1p149));
    __m128 normal = _mm256_cvtpd_ps(_mm256_blendv_pd(x, sign, subnormal));
    _mm_storeu_ps(p, _mm_or_ps(normal, _mm_castsi128_ps(_mm256_cvtpd_epi32(low))));
}

/* A row fills two registers: permute both as 32-bit halves, and select by bit 2 of the index. */
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

/* One load reads two successive coefficients of a range. `lookup` takes two permutations for each
 * coefficient, and many processors have a single unit for permutations. */
LK_INLINE void
lookup_two_avx2(const double *by_range, int rows, int row, __m256i i, __m256d *first,
                __m256d *second)
{
#define TWO_OF(lane) _mm_load_pd(by_range + row + LK_EVEN(rows) * _mm256_extract_epi64(i, lane))
    __m256d even = _mm256_set_m128d(TWO_OF(2), TWO_OF(0));
    __m256d odd = _mm256_set_m128d(TWO_OF(3), TWO_OF(1));
#undef TWO_OF
    *first = _mm256_unpacklo_pd(even, odd);
    *second = _mm256_unpackhi_pd(even, odd);
}
#define LK_BY_RANGE(table) table##_BY_RANGE[0]
#define lookup_two(table, by_range, rows, row, i, first, second) \
    lookup_two_avx2(by_range, rows, row, i, first, second)

#elif LK_ISA == LK_NEON

#define LK_SUFFIX neon
#define LANES 2
typedef float64x2_t LK_NAME(V);
typedef uint64x2_t LK_NAME(U);
typedef uint64x2_t LK_NAME(M);
typedef uint64x2_t LK_NAME(I);

#define set1(x) vdupq_n_f64(x)
#define load(p) vld1q_f64(p)
#define store(p, x) vst1q_f64(p, x)
#define load_f32(p) vcvt_f64_f32(vld1_f32(p))
#define store_f32(p, x) vst1_f32(p, vcvt_f32_f64(x))
#define MADD(a, b, c) vfmaq_f64(c, a, b)
#define vmax(a, b) vmax_neon(a, b)
#define vmin(a, b) vmin_neon(a, b)
#define bits(x) vreinterpretq_u64_f64(x)
#define unbits(x) vreinterpretq_f64_u64(x)
#define set1_bits(x) vdupq_n_u64(x)
#define less(a, b) vcltq_f64(a, b)
#define less_equal(a, b) vcleq_f64(a, b)
#define equal(a, b) vceqq_f64(a, b)
#define both(m, n) vandq_u64(m, n)
#define either(m, n) vorrq_u64(m, n)
#define choose(m, a, b) vbslq_f64(m, a, b)
#define index_zero() vdupq_n_u64(0)
#define index_count(i, m) vsubq_u64(i, m)
#define index_of_bits(u) vandq_u64(u, vdupq_n_u64(7))
#define lookup(row, i) lookup_neon(row, i)
#define index_is(i, k) vceqq_u64(i, vdupq_n_u64(k))
#define any(m) (vmaxvq_u32(vreinterpretq_u32_u64(m)) != 0)
#define below(a, b) vcltq_s64(vreinterpretq_s64_u64(a), vreinterpretq_s64_u64(b))
#define load_f32_rare(p) load_f32_rare_neon(p)
#define store_f32_rare(p, x) store_f32_rare_neon(p, x)

/* FMAX and FMIN return NaN if an argument is NaN, but vmax and vmin must return b there. */
LK_INLINE float64x2_t
vmax_neon(float64x2_t a, float64x2_t b)
{
    return vbslq_f64(vcgtq_f64(a, b), a, b);
}

LK_INLINE float64x2_t
vmin_neon(float64x2_t a, float64x2_t b)
{
    return vbslq_f64(vcltq_f64(a, b), a, b);
}

/* Two indexed loads are faster than permuting the four registers of a row. */
LK_INLINE float64x2_t
lookup_neon(const double *row, uint64x2_t i)
{
    return vcombine_f64(vld1_f64(row + vgetq_lane_u64(i, 0)), vld1_f64(row + vgetq_lane_u64(i, 1)));
}

LK_INLINE float64x2_t
load_f32_rare_neon(const float *p)
{
    uint32x2_t b = vreinterpret_u32_f32(vld1_f32(p));
    uint32x2_t size = vand_u32(b, vdup_n_u32(0x7fffffff));
    uint32x2_t units = vand_u32(size, vclt_u32(size, vdup_n_u32(0x00800000)));
    float64x2_t x = vcvt_f64_f32(vreinterpret_f32_u32(veor_u32(b, units)));
    float64x2_t low = vmulq_f64(vcvtq_f64_u64(vmovl_u32(units)), vdupq_n_f64(0x1p-149));
    return unbits(vorrq_u64(bits(x), bits(low)));
}

LK_INLINE void
store_f32_rare_neon(float *p, float64x2_t x)
{
    float64x2_t size = vabsq_f64(x), sign = unbits(veorq_u64(bits(x), bits(size)));
    uint64x2_t subnormal = vcltq_f64(size, vdupq_n_f64(0x1p-126));
    float64x2_t low = vmulq_f64(unbits(vandq_u64(subnormal, bits(size))), vdupq_n_f64(0x1p149));
    uint32x2_t normal = vreinterpret_u32_f32(vcvt_f32_f64(vbslq_f64(subnormal, sign, x)));
    uint32x2_t units = vmovn_u64(vcvtnq_u64_f64(low));
    vst1_f32(p, vreinterpret_f32_u32(vorr_u32(normal, units)));
}

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
#define MADD(a, b, c) ((a) * (b) + (c))
#define LK_UNFUSED
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
#define load_f32_rare(p) load_f32_rare_baseline(p)
#define store_f32_rare(p, x) store_f32_rare_baseline(p, x)

LK_INLINE double
load_f32_rare_baseline(const float *p)
{
    uint32_t b;
    memcpy(&b, p, sizeof b);
    uint32_t size = b & 0x7fffffffu;
    if (size == 0 || size >= 0x00800000u)
        return (double)*p;
    double x = (double)size * 0x1p-149;
    return b == size ? x : -x;
}

LK_INLINE void
store_f32_rare_baseline(float *p, double x)
{
    double size = fabs(x);
    if (size < 0x1p-126) {
        uint32_t units = (uint32_t)(size * 0x1p149 + 0x1p52 - 0x1p52);
        units |= signbit(x) ? 0x80000000u : 0;
        memcpy(p, &units, sizeof units);
    } else {
        *p = (float)x;
    }
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
