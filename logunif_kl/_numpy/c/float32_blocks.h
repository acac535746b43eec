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

/* The number of elements in one call of the arithmetic, which takes WAYS registers. */
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

#include "float32_magnitudes.h"
#include "float32_rare.h"
#include "float32_tiny.h"

/* ---- the arithmetic for any arguments ------------------------------------------------------ */

/* The value for any arguments, times `sign`. */
LK_INLINE void
LK_NAME(value_of)(float sign, const V *mu, const V *log_sigma2, V *r)
{
    V a[WAYS], b[WAYS];
    M every, usual;
    ways w;
    for (int i = 0; i < WAYS; i++) {
        a[i] = mu[i];
        b[i] = without_tiny(log_sigma2[i]);
        usual = LK_NAME(usual_value)(a[i], b[i]);
        every = i ? both(every, usual) : usual;
    }
    int common = all(every);
    if (!common)
        LK_NAME(find_ways)(&w, NULL, a, b);
    if (common || w.arithmetic)
        LK_NAME(normal_value)(a, b, r);
    else
        SET(r, set1(1.0f));
    times_number(r, sign);
    if (!common && w.others)
        LK_NAME(finish_value)(&w, sign < 0.0f ? 0x80000000u : 0, mu, log_sigma2, r);
}

/* The derivatives times `factor`. `least` is least_exponent(factor). */
LK_INLINE void
LK_NAME(gradient_of)(int each, const V *factor, const V *least, const V *mu, const V *log_sigma2,
                     V *r, V *s)
{
    V a[WAYS], b[WAYS];
    M every, usual;
    ways w;
    for (int i = 0; i < WAYS; i++) {
        a[i] = mu[i];
        b[i] = without_tiny(log_sigma2[i]);
        usual = LK_NAME(usual_gradient)(least[i], a[i], b[i]);
        every = i ? both(every, usual) : usual;
    }
    int common = all(every);
    if (!common)
        LK_NAME(find_ways)(&w, least, a, b);
    if (common || w.arithmetic) {
        LK_NAME(normal_gradient)(a, b, r, s);
    } else {
        SET(r, set1(1.0f));
        SET(s, set1(1.0f));
    }
    if (common || !(w.others || w.products))
        for (int i = 0; i < WAYS; i++) {
            r[i] = factor[i] * r[i];
            s[i] = factor[i] * s[i];
        }
    else
        LK_NAME(finish_gradient)(&w, each, factor, mu, log_sigma2, r, s);
}

/* ---- arrays -------------------------------------------------------------------------------- */

typedef struct {
    float sign;
    int each;
    unsigned window; /* the argument of `in_box`, or 0 if the factor is too small for a box */
    int tiny;        /* whether the factor lies in the range of `float32_tiny.h` */
    const float *factor, *mu, *log_sigma2;
    float *value, *d_mu, *d_log_sigma2;
    /* sums of the normal and of the subnormal values; the latter in units of 2^-149 */
    LK_NAME(sums) total, subnormal;
} LK_NAME(work);
#define work LK_NAME(work)

/* Add values. Add subnormal values as integers, because instructions for floats are slow there. */
LK_INLINE void
LK_NAME(add_any)(work *w, const V *r)
{
    for (int i = 0; i < WAYS; i++) {
        U size = size_bits(r[i]), zero = set1_bits(0);
        M subnormal = below(size, set1_bits(0x00800000));
        LK_NAME(add)(&w->total, choose(subnormal, unbits(zero), r[i]));
        if (any(subnormal))
            LK_NAME(add)(&w->subnormal, -to_float(choose_bits(subnormal, size, zero)));
    }
}

/* Every loop over arrays has three forms, which compute spans of elements from k on, and return the
 * position where they stopped. `usual` stops at an element outside of the box, which is a range of
 * arguments (see `float32_magnitudes.h`). `tiny` goes on while some means are too small for the
 * box, but all else is in it. `rare` computes all other spans, and tests each register for unusual
 * elements. */
enum { LK_NAME(SPAN) = 512 };
#define END_OF_SPAN(k, n) ((n) - (k) < LK_NAME(SPAN) ? (n) : (k) + LK_NAME(SPAN))

/* Prefetch the elements of the next span. */
LK_INLINE void
LK_NAME(fetch_ahead)(const work *w, ptrdiff_t k)
{
    for (int i = 0; i < STRIDE; i += 16) {
        LK_PREFETCH(w->mu + k + LK_NAME(SPAN) + i);
        LK_PREFETCH(w->log_sigma2 + k + LK_NAME(SPAN) + i);
        if (w->each)
            LK_PREFETCH(w->factor + k + LK_NAME(SPAN) + i);
    }
}

LK_INLINE int
LK_NAME(is_usual)(int what, const work *w, ptrdiff_t k, ptrdiff_t end)
{
    const float *factor = what & GRADIENT && w->each ? w->factor + k : NULL;
    return w->window != 0 && in_box(factor, w->mu + k, w->log_sigma2 + k, w->window, end - k);
}

LK_INLINE int
LK_NAME(is_tiny)(int what, const work *w, ptrdiff_t k, ptrdiff_t end)
{
    const float *factor = what & GRADIENT && w->each ? w->factor + k : NULL;
    return w->tiny && LK_NAME(in_tiny_box)(factor, w->mu + k, w->log_sigma2 + k, end - k);
}

LK_INLINE ptrdiff_t
LK_NAME(usual)(int what, work *state, ptrdiff_t k, ptrdiff_t n)
{
    work w = *state;
    V a[WAYS], b[WAYS], f[WAYS], r[WAYS], s[WAYS], t[WAYS];
    if (what & GRADIENT)
        for (int i = 0; i < WAYS; i++)
            f[i] = set1(*w.factor);
    while (k < n) {
        ptrdiff_t end = END_OF_SPAN(k, n);
        if (!LK_NAME(is_usual)(what, &w, k, end))
            break;
        for (; k < end; k += STRIDE) {
            LK_NAME(fetch_ahead)(&w, k);
            load_ways(a, w.mu + k);
            load_ways(b, w.log_sigma2 + k);
            if (what & (VALUE | SUM))
                LK_NAME(normal_value)(a, b, r);
            if (what & SUM)
                for (int i = 0; i < WAYS; i++)
                    LK_NAME(add)(&w.total, r[i]);
            if (what & GRADIENT) {
                if (w.each)
                    load_ways(f, w.factor + k);
                LK_NAME(normal_gradient)(a, b, s, t);
                for (int i = 0; i < WAYS; i++) {
                    s[i] = f[i] * s[i];
                    t[i] = f[i] * t[i];
                }
                store_ways(w.d_mu + k, s);
                store_ways(w.d_log_sigma2 + k, t);
            }
            if (what & VALUE) {
                times_number(r, w.sign);
                store_ways(w.value + k, r);
            }
        }
    }
    if (what & SUM)
        state->total = w.total;
    return k;
}

LK_INLINE ptrdiff_t
LK_NAME(tiny)(int what, work *w, ptrdiff_t k, ptrdiff_t n)
{
    V a[WAYS], b[WAYS], f[WAYS], r[WAYS], s[WAYS], t[WAYS];
    U power[WAYS], twice[WAYS];
    if (what & GRADIENT)
        for (int i = 0; i < WAYS; i++)
            f[i] = set1(*w->factor);
    while (k < n) {
        ptrdiff_t end = END_OF_SPAN(k, n);
        if (LK_NAME(is_usual)(what, w, k, end) || !LK_NAME(is_tiny)(what, w, k, end))
            break;
        for (; k < end; k += STRIDE) {
            LK_NAME(fetch_ahead)(w, k);
            load_ways(a, w->mu + k);
            load_ways(b, w->log_sigma2 + k);
            LK_NAME(raise)(a, power);
            for (int i = 0; i < WAYS; i++)
                twice[i] = power[i] + power[i];
            if (what & (VALUE | SUM)) {
                LK_NAME(normal_value)(a, b, r);
                LK_NAME(lower)(r, twice);
            }
            if (what & SUM)
                LK_NAME(add_any)(w, r);
            if (what & GRADIENT) {
                if (w->each)
                    load_ways(f, w->factor + k);
                LK_NAME(normal_gradient)(a, b, s, t);
                for (int i = 0; i < WAYS; i++) {
                    s[i] = f[i] * s[i];
                    t[i] = f[i] * t[i];
                }
                LK_NAME(lower)(s, power);
                LK_NAME(lower)(t, twice);
                store_ways(w->d_mu + k, s);
                store_ways(w->d_log_sigma2 + k, t);
            }
            if (what & VALUE) {
                for (int i = 0; i < WAYS; i++)
                    r[i] = unbits(bits(r[i]) ^ set1_bits(w->sign < 0.0f ? 0x80000000u : 0));
                store_ways(w->value + k, r);
            }
        }
    }
    return k;
}

LK_INLINE ptrdiff_t
LK_NAME(rare)(int what, work *w, ptrdiff_t k, ptrdiff_t n)
{
    V a[WAYS], b[WAYS], f[WAYS], least[WAYS], r[WAYS], s[WAYS], t[WAYS];
    if (what & GRADIENT)
        for (int i = 0; i < WAYS; i++) {
            f[i] = set1(*w->factor);
            least[i] = least_exponent(f[i]);
        }
    do {
        ptrdiff_t end = END_OF_SPAN(k, n);
        for (; k < end; k += STRIDE) {
            LK_NAME(fetch_ahead)(w, k);
            load_ways(a, w->mu + k);
            load_ways(b, w->log_sigma2 + k);
            if (what & (VALUE | SUM))
                LK_NAME(value_of)(w->sign, a, b, r);
            if (what & SUM && !w->value)
                LK_NAME(add_any)(w, r);
            if (what & GRADIENT) {
                if (w->each)
                    for (int i = 0; i < WAYS; i++) {
                        f[i] = load(w->factor + k + i * LANES);
                        least[i] = least_exponent(f[i]);
                    }
                LK_NAME(gradient_of)(w->each, f, least, a, b, s, t);
                store_ways(w->d_mu + k, s);
                store_ways(w->d_log_sigma2 + k, t);
            }
            if (what & VALUE || (what & SUM && w->value)) /* `take` adds the last terms of a sum */
                store_ways(w->value + k, r);
        }
    } while (k < n && !LK_NAME(is_usual)(what, w, k, END_OF_SPAN(k, n)) &&
             !LK_NAME(is_tiny)(what, w, k, END_OF_SPAN(k, n)));
    return k;
}

#define LOOPS(name, what)                                                  \
    static LK_NOINLINE ptrdiff_t                                           \
    LK_NAME(name##_usual)(work *w, ptrdiff_t k, ptrdiff_t n)               \
    {                                                                      \
        return LK_NAME(usual)(what, w, k, n);                              \
    }                                                                      \
    static LK_NOINLINE ptrdiff_t                                           \
    LK_NAME(name##_tiny)(work *w, ptrdiff_t k, ptrdiff_t n)                \
    {                                                                      \
        return LK_NAME(tiny)(what, w, k, n);                               \
    }                                                                      \
    static LK_NOINLINE ptrdiff_t                                           \
    LK_NAME(name##_rare)(work *w, ptrdiff_t k, ptrdiff_t n)                \
    {                                                                      \
        return LK_NAME(rare)(what, w, k, n);                               \
    }
LOOPS(value, VALUE)
LOOPS(gradient, GRADIENT)
LOOPS(value_and_gradient, VALUE | GRADIENT)
LOOPS(sum, SUM)

typedef ptrdiff_t (*LK_NAME(loop))(work *w, ptrdiff_t k, ptrdiff_t n);

/* Compute all elements. If fewer than STRIDE remain at the end, a buffer pads them with 1s. */
static void
LK_NAME(take)(LK_NAME(loop) usual, LK_NAME(loop) tiny, LK_NAME(loop) rare, work *w, ptrdiff_t n)
{
    ptrdiff_t k = 0, whole = n - n % STRIDE;
    while (k < whole) {
        ptrdiff_t before = usual(w, k, whole);
        k = tiny(w, before, whole);
        if (k == before && k < whole)
            k = rare(w, k, whole);
    }
    if (k == n)
        return;
    float factor[STRIDE], mu[STRIDE], log_sigma2[STRIDE], value[STRIDE];
    size_t bytes = (size_t)(n - k) * sizeof(float);
    work rest = *w;
    for (int i = 0; i < STRIDE; i++)
        factor[i] = mu[i] = log_sigma2[i] = 1.0f;
    memcpy(mu, w->mu + k, bytes);
    memcpy(log_sigma2, w->log_sigma2 + k, bytes);
    rest.mu = rest.d_mu = mu;
    rest.log_sigma2 = rest.d_log_sigma2 = log_sigma2;
    rest.value = value;
    if (w->each) {
        memcpy(factor, w->factor + k, bytes);
        rest.factor = factor;
    }
    rare(&rest, 0, STRIDE);
    if (w->value)
        memcpy(w->value + k, value, bytes);
    if (w->d_mu) {
        memcpy(w->d_mu + k, mu, bytes);
        memcpy(w->d_log_sigma2 + k, log_sigma2, bytes);
    }
    if (usual == LK_NAME(sum_usual)) {
        V r[WAYS];
        memset(value + (n - k), 0, sizeof value - bytes);
        load_ways(r, value);
        LK_NAME(add_any)(w, r);
    }
}

/* ---- the functions of `float32_capsule.h` -------------------------------------------------- */

#define WINDOW_VALUE WINDOW_FROM(POWER_OF_2(BOX_MU_LEAST))

static unsigned
LK_NAME(window_for)(const float *factor, int each)
{
    if (each)
        return WINDOW_FROM(POWER_OF_2(BOX_MU(-32)));
    uint32_t b;
    memcpy(&b, factor, sizeof b);
    int exponent = (int)(b >> 23 & 0xff) - 127;
    if ((b & 0x7fffffff) == 0 || exponent > 0)
        exponent = 0;
    if (exponent < BOX_FACTOR_LEAST)
        return 0;
    return WINDOW_FROM(POWER_OF_2(BOX_MU(exponent)));
}

static int
LK_NAME(tiny_allowed)(float factor)
{
    uint32_t b;
    memcpy(&b, &factor, sizeof b);
    unsigned size = b & 0x7fffffff;
    return POWER_OF_2(-32) <= size && size < POWER_OF_2(32);
}

static void
LK_NAME(value)(float sign, const float *mu, const float *log_sigma2, float *value, ptrdiff_t n)
{
    work w = {.sign = sign, .mu = mu, .log_sigma2 = log_sigma2, .value = value};
    w.window = WINDOW_VALUE;
    w.tiny = 1;
    LK_NAME(take)(LK_NAME(value_usual), LK_NAME(value_tiny), LK_NAME(value_rare), &w, n);
}

/* Each derivative times `factor`, one number for all elements or one number for each. */
static void
LK_NAME(gradient)(const float *factor, int each, const float *mu, const float *log_sigma2,
                  float *d_mu, float *d_log_sigma2, ptrdiff_t n)
{
    work w = {.factor = factor, .each = each, .mu = mu, .log_sigma2 = log_sigma2};
    w.d_mu = d_mu;
    w.d_log_sigma2 = d_log_sigma2;
    w.window = n ? LK_NAME(window_for)(factor, each) : 0;
    w.tiny = each || (n && LK_NAME(tiny_allowed)(*factor));
    LK_NAME(take)(LK_NAME(gradient_usual), LK_NAME(gradient_tiny), LK_NAME(gradient_rare), &w, n);
}

static void
LK_NAME(value_and_gradient)(float sign, const float *mu, const float *log_sigma2, float *value,
                            float *d_mu, float *d_log_sigma2, ptrdiff_t n)
{
    work w = {.sign = sign, .factor = &sign, .mu = mu, .log_sigma2 = log_sigma2};
    w.value = value;
    w.d_mu = d_mu;
    w.d_log_sigma2 = d_log_sigma2;
    w.window = WINDOW_VALUE;
    w.tiny = 1;
    LK_NAME(take)(LK_NAME(value_and_gradient_usual), LK_NAME(value_and_gradient_tiny),
                  LK_NAME(value_and_gradient_rare), &w, n);
}

static double
LK_NAME(sum)(const float *mu, const float *log_sigma2, ptrdiff_t n)
{
    work w = {.sign = 1.0f, .mu = mu, .log_sigma2 = log_sigma2};
    double lane[LANES], subnormal[LANES], result = 0.0;
    w.window = WINDOW_VALUE;
    w.tiny = 1;
    LK_NAME(take)(LK_NAME(sum_usual), LK_NAME(sum_tiny), LK_NAME(sum_rare), &w, n);
    memcpy(lane, &w.total, sizeof lane);
    memcpy(subnormal, &w.subnormal, sizeof subnormal);
    for (int i = 0; i < LANES; i++)
        result += lane[i] + 0x1p-149 * subnormal[i];
    return result;
}

static const lk_float32_kernels LK_NAME(kernels) = {
    LK_NAME(value),
    LK_NAME(gradient),
    LK_NAME(value_and_gradient),
    LK_NAME(sum),
};
