/* The functions over contiguous arrays, block by block. If all arguments of a block are in a
 * window, the usual form of a kernel computes the block. Otherwise the rare form does. */

#include "exact_windows.h"

/* Prefetch the memory LK_AHEAD bytes ahead. These loops are so fast that the processor's own
 * prefetching comes too late for two arrays. It also stops at the end of each page. */
#ifdef LK_X86
#define AHEAD(p) _mm_prefetch((const char *)((uintptr_t)(p) + LK_AHEAD), _MM_HINT_T0)
#else
#define AHEAD(p) ((void)0)
#endif

/* One form of a kernel, usual or rare. If the last elements do not fill a register, they are copied
 * to a buffer that is filled up with 1s, because both forms can compute the value at 1. */
#define ONE_ARGUMENT_FORM(function, type, load_v, store_v, kernel, rare)                 \
    static void LK_NAME(function)(const type *in, type *out, npy_intp n)                 \
    {                                                                                    \
        npy_intp k = 0;                                                                  \
        for (; k + LANES <= n; k += LANES) {                                             \
            if (k % (64 / (npy_intp)sizeof(type)) == 0) {                                \
                AHEAD(in + k);                                                           \
                AHEAD(out + k);                                                          \
            }                                                                            \
            store_v(out + k, LK_NAME(kernel)(load_v(in + k), rare));                     \
        }                                                                                \
        if (k < n) {                                                                     \
            type rest[LANES];                                                            \
            for (int i = 0; i < LANES; i++)                                              \
                rest[i] = 1;                                                             \
            memcpy(rest, in + k, (size_t)(n - k) * sizeof(type));                        \
            store_v(rest, LK_NAME(kernel)(load_v(rest), rare));                          \
            memcpy(out + k, rest, (size_t)(n - k) * sizeof(type));                       \
        }                                                                                \
    }

#define ONE_ARGUMENT(function, type, window, load_v, store_v, load_r, store_r, kernel)   \
    ONE_ARGUMENT_FORM(function##_usual, type, load_v, store_v, kernel, 0)                \
    ONE_ARGUMENT_FORM(function##_rare, type, load_r, store_r, kernel, 1)                 \
    static void LK_NAME(function)(const type *in, type *out, npy_intp n)                 \
    {                                                                                    \
        const npy_intp block = LK_BLOCK / (npy_intp)sizeof(type);                        \
        for (npy_intp k = 0; k < n; k += block) {                                        \
            npy_intp m = n - k < block ? n - k : block;                                  \
            if (LK_NAME(window)(in + k, m))                                              \
                LK_NAME(function##_usual)(in + k, out + k, m);                           \
            else                                                                         \
                LK_NAME(function##_rare)(in + k, out + k, m);                            \
        }                                                                                \
    }

#define ONE_F64(name, window) \
    ONE_ARGUMENT(name##_f64, double, window##_f64, load, store, load, store, name##_d)
#define ONE_F32(name, window)                                                            \
    ONE_ARGUMENT(name##_f32, float, window##_f32, load_f32, store_f32, load_f32_rare,    \
                 store_f32_rare, name##_s)

ONE_F64(kl_gap, u)
ONE_F64(kl_gap_grad, u)
ONE_F64(kl_gap_hess, u)
ONE_F64(neg_kl, x)
ONE_F64(kl, x)
ONE_F64(neg_kl_grad, x)
ONE_F64(neg_kl_hess, x)
ONE_F32(kl_gap, u)
ONE_F32(kl_gap_grad, u)
ONE_F32(kl_gap_hess, u)
ONE_F32(neg_kl, x)
ONE_F32(kl, x)
ONE_F32(neg_kl_grad, x)
ONE_F32(neg_kl_hess, x)

/* One form of a kernel with two arguments, and with one output (the value) or three. */
#define TWO_ARGUMENTS_FORM(function, type, load_v, store_v, kernel, outputs, rare)       \
    static void LK_NAME(function)(const type *mu, const type *log_sigma2,                \
                                  type *const *out, npy_intp start, npy_intp n)          \
    {                                                                                    \
        type *value = out[0], *d_mu = outputs == 3 ? out[1] : NULL;                      \
        type *d_log_sigma2 = outputs == 3 ? out[2] : NULL;                               \
        npy_intp k = start;                                                              \
        for (; k + LANES <= start + n; k += LANES) {                                     \
            normal r = LK_NAME(kernel)(load_v(mu + k), load_v(log_sigma2 + k), rare);    \
            store_v(value + k, r.value);                                                \
            if (outputs == 3) {                                                          \
                store_v(d_mu + k, r.d_mu);                                             \
                store_v(d_log_sigma2 + k, r.d_log_sigma2);                                     \
            }                                                                            \
        }                                                                                \
        if (k < start + n) {                                                             \
            size_t bytes = (size_t)(start + n - k) * sizeof(type);                       \
            type a[LANES], b[LANES];                                                     \
            for (int i = 0; i < LANES; i++)                                              \
                a[i] = b[i] = 1;                                                         \
            memcpy(a, mu + k, bytes);                                                    \
            memcpy(b, log_sigma2 + k, bytes);                                            \
            normal r = LK_NAME(kernel)(load_v(a), load_v(b), rare);                      \
            store_v(a, r.value);                                                         \
            memcpy(value + k, a, bytes);                                                \
            if (outputs == 3) {                                                          \
                store_v(a, r.d_mu);                                                      \
                memcpy(d_mu + k, a, bytes);                                            \
                store_v(a, r.d_log_sigma2);                                              \
                memcpy(d_log_sigma2 + k, a, bytes);                                            \
            }                                                                            \
        }                                                                                \
    }

#define TWO_ARGUMENTS(function, type, window, load_v, store_v, load_r, store_r, kernel, outputs) \
    TWO_ARGUMENTS_FORM(function##_usual, type, load_v, store_v, kernel, outputs, 0)      \
    TWO_ARGUMENTS_FORM(function##_rare, type, load_r, store_r, kernel, outputs, 1)       \
    static void LK_NAME(function)(const type *mu, const type *log_sigma2,                \
                                  type *const *out, npy_intp n)                          \
    {                                                                                    \
        const npy_intp block = LK_BLOCK / (npy_intp)sizeof(type);                        \
        for (npy_intp k = 0; k < n; k += block) {                                        \
            npy_intp m = n - k < block ? n - k : block;                                  \
            if (LK_NAME(mu_##window)(mu + k, m) && LK_NAME(ls_##window)(log_sigma2 + k, m)) \
                LK_NAME(function##_usual)(mu, log_sigma2, out, k, m);                    \
            else                                                                         \
                LK_NAME(function##_rare)(mu, log_sigma2, out, k, m);                     \
        }                                                                                \
    }

#define TWO(name, kernel, outputs)                                                       \
    TWO_ARGUMENTS(name##_f64, double, f64, load, store, load, store, kernel##_d, outputs) \
    TWO_ARGUMENTS(name##_f32, float, f32, load_f32, store_f32, load_f32_rare,            \
                  store_f32_rare, kernel##_s, outputs)

TWO(neg_kl_normal, neg_kl_normal, 3)
TWO(neg_kl_normal_value, neg_kl_normal, 1)
TWO(kl_normal, kl_normal, 1)

#define IN_BOTH_TYPES(name) .name = {LK_NAME(name##_f64), LK_NAME(name##_f32)}
#define WITH_OUTPUTS(name, outputs) .name = {LK_NAME(name##_f64), LK_NAME(name##_f32), outputs}

static const kernels LK_NAME(kernels) = {
    IN_BOTH_TYPES(kl_gap),
    IN_BOTH_TYPES(kl_gap_grad),
    IN_BOTH_TYPES(kl_gap_hess),
    IN_BOTH_TYPES(neg_kl),
    IN_BOTH_TYPES(kl),
    IN_BOTH_TYPES(neg_kl_grad),
    IN_BOTH_TYPES(neg_kl_hess),
    WITH_OUTPUTS(neg_kl_normal, 3),
    WITH_OUTPUTS(neg_kl_normal_value, 1),
    WITH_OUTPUTS(kl_normal, 1),
};
