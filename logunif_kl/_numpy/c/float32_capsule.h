/* The float32 kernels as functions of contiguous arrays, for other extensions.
 *
 * The capsule `logunif_kl._numpy._float32.kernels` points to this struct, filled in for the
 * instruction set in use. The functions need no GIL and may run in several threads at once. A
 * result may overwrite an argument in place. The functions may leave floating-point flags set.
 *
 * `sign` is 1.0f for -KL and its derivatives, and -1.0f for KL and its derivatives. */

#ifndef LOGUNIF_KL_FLOAT32_CAPSULE_H
#define LOGUNIF_KL_FLOAT32_CAPSULE_H

#include <stddef.h>

#define LK_FLOAT32_CAPSULE "logunif_kl._numpy._float32.kernels"

typedef struct {
    /* value[i] from (mu[i], log_sigma2[i]) */
    void (*value)(float sign, const float *mu, const float *log_sigma2, float *value, ptrdiff_t n);
    /* The two derivatives of -KL, each times *factor, or times factor[i] where `each` is not 0. */
    void (*gradient)(const float *factor, int each, const float *mu, const float *log_sigma2,
                     float *d_mu, float *d_log_sigma2, ptrdiff_t n);
    void (*value_and_gradient)(float sign, const float *mu, const float *log_sigma2, float *value,
                               float *d_mu, float *d_log_sigma2, ptrdiff_t n);
    /* The sum of -KL, added up in float64. */
    double (*sum)(const float *mu, const float *log_sigma2, ptrdiff_t n);
} lk_float32_kernels;

#endif
