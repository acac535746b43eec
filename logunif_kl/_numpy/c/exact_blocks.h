/* The seven functions over contiguous arrays. */

/* The last elements, too few for a register, go through a buffer: the code is the same for all. */
#define ONE_ARGUMENT(function, type, load_v, store_v, kernel)                  \
    static void LK_NAME(function)(const type *in, type *out, npy_intp n)       \
    {                                                                          \
        npy_intp k = 0;                                                        \
        for (; k + LANES <= n; k += LANES)                                     \
            store_v(out + k, LK_NAME(kernel)(load_v(in + k)));                 \
        if (k < n) {                                                           \
            type rest[LANES] = {0};                                            \
            memcpy(rest, in + k, (size_t)(n - k) * sizeof(type));              \
            store_v(rest, LK_NAME(kernel)(load_v(rest)));                      \
            memcpy(out + k, rest, (size_t)(n - k) * sizeof(type));             \
        }                                                                      \
    }

ONE_ARGUMENT(kl_gap_f64, double, load, store, kl_gap_d)
ONE_ARGUMENT(kl_gap_grad_f64, double, load, store, kl_gap_grad_d)
ONE_ARGUMENT(kl_gap_hess_f64, double, load, store, kl_gap_hess_d)
ONE_ARGUMENT(neg_kl_f64, double, load, store, neg_kl_d)
ONE_ARGUMENT(neg_kl_grad_f64, double, load, store, neg_kl_grad_d)
ONE_ARGUMENT(neg_kl_hess_f64, double, load, store, neg_kl_hess_d)
ONE_ARGUMENT(kl_gap_f32, float, load_f32, store_f32, kl_gap_s)
ONE_ARGUMENT(kl_gap_grad_f32, float, load_f32, store_f32, kl_gap_grad_s)
ONE_ARGUMENT(kl_gap_hess_f32, float, load_f32, store_f32, kl_gap_hess_s)
ONE_ARGUMENT(neg_kl_f32, float, load_f32, store_f32, neg_kl_s)
ONE_ARGUMENT(neg_kl_grad_f32, float, load_f32, store_f32, neg_kl_grad_s)
ONE_ARGUMENT(neg_kl_hess_f32, float, load_f32, store_f32, neg_kl_hess_s)

#define TWO_ARGUMENTS(function, type, load_v, store_v, kernel)                              \
    static void LK_NAME(function)(const type *mu, const type *log_sigma2, type *value,      \
                                  type *d_mu, type *d_log_sigma2, npy_intp n)               \
    {                                                                                       \
        npy_intp k = 0;                                                                     \
        for (; k + LANES <= n; k += LANES) {                                                \
            normal r = LK_NAME(kernel)(load_v(mu + k), load_v(log_sigma2 + k));             \
            store_v(value + k, r.value);                                                    \
            store_v(d_mu + k, r.d_mu);                                                      \
            store_v(d_log_sigma2 + k, r.d_log_sigma2);                                      \
        }                                                                                   \
        if (k < n) {                                                                        \
            size_t bytes = (size_t)(n - k) * sizeof(type);                                  \
            type a[LANES] = {0}, b[LANES] = {0}, c[LANES];                                  \
            memcpy(a, mu + k, bytes);                                                       \
            memcpy(b, log_sigma2 + k, bytes);                                               \
            normal r = LK_NAME(kernel)(load_v(a), load_v(b));                               \
            store_v(a, r.value);                                                            \
            store_v(b, r.d_mu);                                                             \
            store_v(c, r.d_log_sigma2);                                                     \
            memcpy(value + k, a, bytes);                                                    \
            memcpy(d_mu + k, b, bytes);                                                     \
            memcpy(d_log_sigma2 + k, c, bytes);                                             \
        }                                                                                   \
    }

TWO_ARGUMENTS(neg_kl_normal_f64, double, load, store, neg_kl_normal_d)
TWO_ARGUMENTS(neg_kl_normal_f32, float, load_f32, store_f32, neg_kl_normal_s)

static const kernels LK_NAME(kernels) = {
    {LK_NAME(kl_gap_f64), LK_NAME(kl_gap_f32)},
    {LK_NAME(kl_gap_grad_f64), LK_NAME(kl_gap_grad_f32)},
    {LK_NAME(kl_gap_hess_f64), LK_NAME(kl_gap_hess_f32)},
    {LK_NAME(neg_kl_f64), LK_NAME(neg_kl_f32)},
    {LK_NAME(neg_kl_grad_f64), LK_NAME(neg_kl_grad_f32)},
    {LK_NAME(neg_kl_hess_f64), LK_NAME(neg_kl_hess_f32)},
    {LK_NAME(neg_kl_normal_f64), LK_NAME(neg_kl_normal_f32)},
};
