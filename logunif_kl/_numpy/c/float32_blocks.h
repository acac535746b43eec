/* The kernels over blocks of dense memory, for the instruction set of `float32_simd.h`. */

/* Partial sums in float64. */
#if LK_ISA == 512
typedef struct {
    __m512d low, high;
} LK_NAME(sums);
#elif LK_ISA == 256
typedef struct {
    __m256d low, high;
} LK_NAME(sums);
#else
typedef struct {
    double lane[LANES];
} LK_NAME(sums);
#endif

LK_INLINE void
LK_NAME(add)(LK_NAME(sums) * total, V x)
{
#if LK_ISA == 512
    __m256 upper = (__m256)_mm512_extractf64x4_pd((__m512d)x, 1);
    total->low += _mm512_cvtps_pd(_mm512_castps512_ps256(x));
    total->high += _mm512_cvtps_pd(upper);
#elif LK_ISA == 256
    total->low += _mm256_cvtps_pd(_mm256_castps256_ps128(x));
    total->high += _mm256_cvtps_pd(_mm256_extractf128_ps(x, 1));
#else
    float lanes[LANES];
    store(lanes, x);
    for (int i = 0; i < LANES; i++)
        total->lane[i] += (double)lanes[i];
#endif
}

/* The elements of WAYS registers, which one call of the arithmetic takes. */
enum { LK_NAME(STRIDE) = WAYS * LANES };
#define STRIDE LK_NAME(STRIDE)

LK_INLINE void
LK_NAME(load_ways)(V *to, const float *from)
{
    for (int i = 0; i < WAYS; i++)
        to[i] = load(from + i * LANES);
}
#define load_ways LK_NAME(load_ways)

LK_INLINE void
LK_NAME(store_ways)(float *to, const V *from)
{
    for (int i = 0; i < WAYS; i++)
        store(to + i * LANES, from[i]);
}
#define store_ways LK_NAME(store_ways)

LK_INLINE void
LK_NAME(times_number)(V *x, float factor)
{
    for (int i = 0; i < WAYS; i++)
        x[i] = x[i] * set1(factor);
}
#define times_number LK_NAME(times_number)

/* The last elements, fewer than STRIDE, go through a buffer: the code is the same for all. */
#define REST(name, from)                                                   \
    float name[STRIDE] = {0};                                              \
    memcpy(name, (from) + k, (size_t)(n - k) * sizeof(float))

static void
LK_NAME(value)(float sign, const float *mu, const float *log_sigma2, float *value, ptrdiff_t n)
{
    ptrdiff_t k = 0;
    V a[WAYS], b[WAYS], r[WAYS];
    for (; k + STRIDE <= n; k += STRIDE) {
        load_ways(a, mu + k);
        load_ways(b, log_sigma2 + k);
        LK_NAME(normal_value)(a, b, r);
        times_number(r, sign);
        store_ways(value + k, r);
    }
    if (k < n) {
        REST(c, mu);
        REST(d, log_sigma2);
        load_ways(a, c);
        load_ways(b, d);
        LK_NAME(normal_value)(a, b, r);
        times_number(r, sign);
        store_ways(c, r);
        memcpy(value + k, c, (size_t)(n - k) * sizeof(float));
    }
}

static void
LK_NAME(value_and_gradient)(float sign, const float *mu, const float *log_sigma2, float *value,
                            float *d_mu, float *d_log_sigma2, ptrdiff_t n)
{
    ptrdiff_t k = 0;
    V a[WAYS], b[WAYS], r[WAYS], s[WAYS], t[WAYS];
    for (; k + STRIDE <= n; k += STRIDE) {
        load_ways(a, mu + k);
        load_ways(b, log_sigma2 + k);
        LK_NAME(normal_value)(a, b, r);
        LK_NAME(normal_gradient)(a, b, s, t);
        times_number(r, sign);
        times_number(s, sign);
        times_number(t, sign);
        store_ways(value + k, r);
        store_ways(d_mu + k, s);
        store_ways(d_log_sigma2 + k, t);
    }
    if (k < n) {
        size_t bytes = (size_t)(n - k) * sizeof(float);
        float e[STRIDE];
        REST(c, mu);
        REST(d, log_sigma2);
        load_ways(a, c);
        load_ways(b, d);
        LK_NAME(normal_value)(a, b, r);
        LK_NAME(normal_gradient)(a, b, s, t);
        times_number(r, sign);
        times_number(s, sign);
        times_number(t, sign);
        store_ways(c, r);
        store_ways(d, s);
        store_ways(e, t);
        memcpy(value + k, c, bytes);
        memcpy(d_mu + k, d, bytes);
        memcpy(d_log_sigma2 + k, e, bytes);
    }
}

static double
LK_NAME(sum)(const float *mu, const float *log_sigma2, ptrdiff_t n)
{
    LK_NAME(sums) total = {0};
    ptrdiff_t k = 0;
    V a[WAYS], b[WAYS], r[WAYS];
    for (; k + STRIDE <= n; k += STRIDE) {
        load_ways(a, mu + k);
        load_ways(b, log_sigma2 + k);
        LK_NAME(normal_value)(a, b, r);
        for (int i = 0; i < WAYS; i++)
            LK_NAME(add)(&total, r[i]);
    }
    if (k < n) { /* the rest of the buffer is mu = 0, where the value is 0 */
        REST(c, mu);
        REST(d, log_sigma2);
        load_ways(a, c);
        load_ways(b, d);
        LK_NAME(normal_value)(a, b, r);
        for (int i = 0; i < WAYS; i++)
            LK_NAME(add)(&total, r[i]);
    }
    double lane[LANES], result = 0.0;
    memcpy(lane, &total, sizeof lane);
    for (int i = 0; i < LANES; i++)
        result += lane[i];
    return result;
}

/* Each derivative times `factor`: one number for all elements, or one for each. */
static void
LK_NAME(gradient)(const float *factor, int each, const float *mu, const float *log_sigma2,
                  float *d_mu, float *d_log_sigma2, ptrdiff_t n)
{
    ptrdiff_t k = 0;
    V a[WAYS], b[WAYS], f[WAYS], r[WAYS], s[WAYS];
    for (int i = 0; i < WAYS; i++)
        f[i] = set1(*factor);
    for (; k + STRIDE <= n; k += STRIDE) {
        load_ways(a, mu + k);
        load_ways(b, log_sigma2 + k);
        if (each)
            load_ways(f, factor + k);
        LK_NAME(normal_gradient)(a, b, r, s);
        for (int i = 0; i < WAYS; i++) {
            r[i] = f[i] * r[i];
            s[i] = f[i] * s[i];
        }
        store_ways(d_mu + k, r);
        store_ways(d_log_sigma2 + k, s);
    }
    if (k < n) {
        size_t bytes = (size_t)(n - k) * sizeof(float);
        REST(c, mu);
        REST(d, log_sigma2);
        load_ways(a, c);
        load_ways(b, d);
        if (each) {
            REST(e, factor);
            load_ways(f, e);
        }
        LK_NAME(normal_gradient)(a, b, r, s);
        for (int i = 0; i < WAYS; i++) {
            r[i] = f[i] * r[i];
            s[i] = f[i] * s[i];
        }
        store_ways(c, r);
        store_ways(d, s);
        memcpy(d_mu + k, c, bytes);
        memcpy(d_log_sigma2 + k, d, bytes);
    }
}

static const lk_float32_kernels LK_NAME(kernels) = {
    LK_NAME(value),
    LK_NAME(gradient),
    LK_NAME(value_and_gradient),
    LK_NAME(sum),
};
