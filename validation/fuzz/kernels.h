/* What `kernels.c` and `reference.c` give to the targets. */

#ifndef LOGUNIF_KL_FUZZ_KERNELS_H
#define LOGUNIF_KL_FUZZ_KERNELS_H

#include "logunif_kl/_numpy/c/float32_capsule.h"
#include "logunif_kl/_numpy/c/targets.h"

enum { FUZZ_MOST_KERNELS = 4 };
enum { FUZZ_VALUE, FUZZ_GRADIENT, FUZZ_SUM };

/* Find the kernels that this processor runs; return how many. */
int fuzz_kernels(const lk_float32_kernels **to, const char **names);

/* Call a loop of NumPy: FUZZ_VALUE, FUZZ_GRADIENT or FUZZ_SUM. There are five steps. */
void fuzz_call_loop(int which, const lk_float32_kernels *kernels, char **args,
                    const ptrdiff_t *dimensions, const ptrdiff_t *steps);

/* -KL and both of its derivatives in float64. */
void fuzz_reference(const double *mu, const double *log_sigma2, double *const *out, ptrdiff_t n);

#endif
