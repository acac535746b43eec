/* The float32 kernels of every instruction set here, for the extensions that are given them. */

#include "logunif_kl/_numpy/c/float32_ufuncs.c"

#include "kernels.h"

int
fuzz_kernels(const lk_float32_kernels **to, const char **names)
{
    int found = 0;
#ifdef LK_X86
    __builtin_cpu_init();
#endif
#define FIND(isa, present)                                              \
    if (present) {                                                      \
        to[found] = &kernels_##isa;                                     \
        names[found++] = #isa;                                          \
    }
    LK_TARGETS(FIND)
    to[found] = &kernels_baseline;
    names[found++] = "baseline";
    return found;
}

void
fuzz_call_loop(int which, const lk_float32_kernels *kernels, char **args,
               const ptrdiff_t *dimensions, const ptrdiff_t *steps)
{
    PyUFuncGenericFunction const loops[] = {value_loop, gradient_loop, sum_loop};
    npy_intp n[2] = {dimensions[0], dimensions[1]}, step[5];
    for (int i = 0; i < 5; i++)
        step[i] = steps[i];
    loops[which](args, n, step, (void *)kernels);
}
