/* The functions in float64, which results in float32 are compared with. */

#include "logunif_kl/_numpy/c/exact_ufuncs.c"

void fuzz_reference(const double *mu, const double *log_sigma2, double *const *out, ptrdiff_t n);

/* -KL and both of its derivatives */
void
fuzz_reference(const double *mu, const double *log_sigma2, double *const *out, ptrdiff_t n)
{
    kernels_baseline.neg_kl_normal.f64(mu, log_sigma2, out, n);
}
