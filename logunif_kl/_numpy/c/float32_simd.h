/* A thin layer over one instruction set: as many floats as fit a register.
 *
 * `float32.h` includes this file for each instruction set. LK_ISA is 512 (AVX-512), 256 (AVX2 with
 * FMA), LK_NEON (Advanced SIMD of AArch64), 128 (the vectors of the compiler, which every processor
 * of this architecture has) or 0 (one float). The compiler contracts no operations
 * (-ffp-contract=off). MADD is a fused multiply-add, except for 128 and 0, which define LK_UNFUSED.
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
#elif LK_ISA == LK_NEON
#define LK_SUFFIX neon
#define LANES 4
typedef float32x4_t LK_NAME(V);
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
#elif LK_ISA == LK_NEON
#define set1(x) vdupq_n_f32(x)
#define load(p) vld1q_f32(p)
#define store(p, x) vst1q_f32(p, x)
#define MADD(a, b, c) vfmaq_f32(c, a, b)
#define maximum(a, b) vmaxq_f32(a, b)
#define minimum(a, b) vminq_f32(a, b)
#define choose(m, a, b) vbslq_f32((uint32x4_t)(m), a, b)
#else
#define LK_UNFUSED
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
#define LK_UNFUSED
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

/* Convert a non-negative integer, given as bits, to a float. */
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
#define greater_equal(a, b) less_equal(b, a)
#define magnitude(x) unbits(bits(x) & set1_bits(0x7fffffff))
