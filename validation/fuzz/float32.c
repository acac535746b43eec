/* The loops and kernels of `_numpy/c/float32_ufuncs.c`, for every instruction set.
 *
 * A call is compared bit for bit with the kernel over dense arrays, and with it over one element
 * alone; and with the functions in float64. A mode of the processor that flushes subnormal numbers
 * changes no result. Compiled by GCC, no kernel takes or makes one. Clang leaves out the choice of
 * another argument where the result is not chosen: that is slower, and changes no result. */

#include "kernels.h"

#include "fuzz.h"

/* tests/numpy/test_float32_magnitudes.py holds the kernels to these; the second with a factor. */
static const double MOST_ULP = 4.0, MOST_ULP_OF_PRODUCT = 5.0;

enum { VALUE_AND_GRADIENT = FUZZ_SUM + 1, CALLS };

static const lk_float32_kernels *kernels[FUZZ_MOST_KERNELS];
static const char *names[FUZZ_MOST_KERNELS];
static int number_of_kernels;

/* A call: what it computes, by the loop of NumPy or by the kernel, and its arrays. */
typedef struct {
    int what, loop, each;
    const lk_float32_kernels *kernels;
    float sign;
    unsigned mode;
    fuzz_layout l;
} fuzz_call;

#ifdef __clang__
enum { LOOKED_FOR = 0 };
#else
enum { LOOKED_FOR = FUZZ_SUBNORMAL };
#endif

static void
check_flags(unsigned flags)
{
    if (flags & LOOKED_FOR)
        fuzz_fail("an instruction took or made a subnormal number: flags %#x", flags);
}

static void
call_kernel(const fuzz_call *c, char **a, ptrdiff_t n, unsigned mode)
{
    float *f[FUZZ_MOST];
    for (int j = 0; j < c->l.count; j++)
        f[j] = (float *)a[j];
    fuzz_mode(mode);
    if (c->what == FUZZ_VALUE)
        c->kernels->value(c->sign, f[0], f[1], f[2], n);
    else if (c->what == FUZZ_GRADIENT)
        c->kernels->gradient(f[0], c->each, f[1], f[2], f[3], f[4], n);
    else
        c->kernels->value_and_gradient(c->sign, f[0], f[1], f[2], f[3], f[4], n);
    unsigned flags = fuzz_flags();
    fuzz_mode(0);
    check_flags(flags);
}

static void
call_loop(const fuzz_call *c, char **args, const ptrdiff_t *dimensions, const ptrdiff_t *steps)
{
    fuzz_mode(c->mode);
    fuzz_call_loop(c->what, c->kernels, args, dimensions, steps);
    unsigned left = fuzz_flags();
    fuzz_mode(0);
    if (left & ~(unsigned)FUZZ_SUBNORMAL)
        fuzz_fail("the flags %#x are left", left);
    check_flags(left);
}

/* ---- what is compared ---------------------------------------------------------------------- */

static void
compare_alone(fuzz_input *in, const fuzz_call *c, char **dense)
{
    for (int k = 0; k < 4 && c->l.n > 0; k++) {
        float results[3];
        char *args[FUZZ_MOST];
        ptrdiff_t i = (ptrdiff_t)fuzz_take(in, 2) % c->l.n;
        for (int j = 0; j < c->l.count; j++)
            args[j] = j < c->l.inputs ? dense[j] + 4 * i : (char *)&results[j - c->l.inputs];
        if (c->what == FUZZ_GRADIENT && !c->each)
            args[0] = dense[0];
        call_kernel(c, args, 1, 0);
        for (int j = c->l.inputs; j < c->l.count; j++)
            if (!fuzz_same(args[j], dense[j] + 4 * i, FUZZ_F32))
                fuzz_fail("output %d is %a at %td of %td, but %a alone", j - c->l.inputs,
                          fuzz_double(dense[j] + 4 * i, FUZZ_F32), i, c->l.n,
                          fuzz_double(args[j], FUZZ_F32));
    }
}

/* A product with a factor, where float64 has it with all its bits. */
static void
compare_product(const char *got, double factor, double slope)
{
    if (!isfinite(factor))
        return;
    if (isnan(slope) || (fabs(slope) > 1e-290 && factor != 0.0))
        fuzz_close("a derivative", got, FUZZ_F32, factor * slope,
                   factor == 1.0 ? MOST_ULP : MOST_ULP_OF_PRODUCT);
}

static void
compare_float64(const fuzz_call *c, char **dense)
{
    size_t bytes = (size_t)c->l.n * sizeof(double) + 1;
    int first = c->what == FUZZ_GRADIENT; /* of the arguments */
    double *mu = malloc(bytes), *log_sigma2 = malloc(bytes);
    double *out[] = {malloc(bytes), malloc(bytes), malloc(bytes)};
    for (ptrdiff_t i = 0; i < c->l.n; i++) {
        mu[i] = fuzz_double(dense[first] + 4 * i, FUZZ_F32);
        log_sigma2[i] = fuzz_double(dense[first + 1] + 4 * i, FUZZ_F32);
    }
    fuzz_reference(mu, log_sigma2, out, c->l.n);
    for (ptrdiff_t i = 0; i < c->l.n; i++) {
        double sign = (double)c->sign;
        if (c->what != FUZZ_GRADIENT)
            fuzz_close("a value", dense[2] + 4 * i, FUZZ_F32, sign * out[0][i], MOST_ULP);
        if (c->what == FUZZ_GRADIENT)
            sign = fuzz_double(dense[0] + (c->each ? 4 * i : 0), FUZZ_F32);
        if (c->what != FUZZ_VALUE) {
            compare_product(dense[3] + 4 * i, sign, out[1][i]);
            compare_product(dense[4] + 4 * i, sign, out[2][i]);
        }
    }
    for (int k = 0; k < 3; k++)
        free(out[k]);
    free(mu);
    free(log_sigma2);
}

/* Compare a sum with that of the values, added up in some other order. */
static void
compare_sum(double sum, const lk_float32_kernels *k, const float *mu, const float *log_sigma2,
            ptrdiff_t n)
{
    float *value = malloc((size_t)n * sizeof(float) + 1);
    double total = 0.0, size = 0.0;
    k->value(1.0f, mu, log_sigma2, value, n);
    for (ptrdiff_t i = 0; i < n; i++) {
        total += (double)value[i];
        size += fabs((double)value[i]);
    }
    free(value);
    if (isnan(total) != isnan(sum) || isinf(total) != isinf(sum) ||
        (isfinite(sum) && !(fabs(sum - total) <= (double)n * 0x1p-52 * size)))
        fuzz_fail("the sum of %td values is %a, and not %a", n, sum, total);
}

/* ---- calls --------------------------------------------------------------------------------- */

static void
try_elements(fuzz_input *in, fuzz_call *c)
{
    fuzz_layout *l = &c->l;
    char *dense[FUZZ_MOST], *args[FUZZ_MOST];
    ptrdiff_t steps[FUZZ_MOST], dimensions[2] = {l->n, 0};
    l->inputs = c->what == FUZZ_GRADIENT ? 3 : 2;
    l->count = c->what == FUZZ_VALUE ? 3 : 5;
    for (int j = 0; j < l->count; j++)
        l->op[j].type = FUZZ_F32;
    fuzz_place(in, l);
    if (!c->loop) { /* dense arrays, of which an output may be an input */
        for (int j = 0; j < l->count; j++) {
            l->op[j].stride = 4;
            l->op[j].start = 0;
        }
        if (l->way == fuzz_ways[FUZZ_INTERLEAVED])
            for (int j = 0; j < l->count; j++)
                l->op[j].group = j;
    }
    if (c->what == FUZZ_GRADIENT) {
        c->each = c->loop ? l->op[0].stride != 0 : (int)fuzz_below(in, 2);
        if (!c->each && l->op[0].group == 0) /* one number, which no output overwrites */
            for (int j = l->inputs; j < l->count; j++)
                l->op[j].group = l->op[j].group == 0 ? j : l->op[j].group;
    }
    fuzz_make(in, l);
    for (int j = 0; j < l->inputs; j++)
        fuzz_fill(in, l->op[j].at, l->op[j].stride, FUZZ_F32, l->n);
    if (c->what == FUZZ_GRADIENT && fuzz_below(in, 4) == 0 && l->op[0].group == 0) {
        const float one = 1.0f;
        for (ptrdiff_t i = 0; i < l->n; i++)
            memcpy(l->op[0].at + i * l->op[0].stride, &one, sizeof one);
    }
    fuzz_copy(l, dense);
    call_kernel(c, dense, l->n, 0);
    for (int j = 0; j < l->count; j++) {
        args[j] = l->op[j].at;
        steps[j] = l->op[j].stride;
    }
    if (c->loop)
        call_loop(c, args, dimensions, steps);
    else
        call_kernel(c, args, l->n, c->mode);
    fuzz_compare(l, dense);
    compare_alone(in, c, dense);
    compare_float64(c, dense);
    fuzz_give_back(l, dense);
}

/* Rows of sums, each of which is written beside its arguments. */
static void
try_sum(fuzz_input *in, const fuzz_call *c)
{
    ptrdiff_t n = fuzz_length(in, 0), rows = c->loop ? 1 + (ptrdiff_t)fuzz_below(in, 3) : 1;
    fuzz_layout l = {.inputs = 2, .count = 2, .n = n};
    ptrdiff_t steps[5], dimensions[2] = {rows, n};
    double sums[3], dense_sum;
    char *args[3], *dense[FUZZ_MOST];
    l.op[0].type = l.op[1].type = FUZZ_F32;
    fuzz_place(in, &l);
    for (int j = 0; j < 2 && !c->loop; j++)
        l.op[j] = (fuzz_operand){.stride = 4, .type = FUZZ_F32, .group = j};
    fuzz_make(in, &l);
    for (int j = 0; j < 2; j++)
        fuzz_fill(in, l.op[j].at, l.op[j].stride, FUZZ_F32, n);
    fuzz_copy(&l, dense);
    fuzz_mode(c->mode);
    dense_sum = c->kernels->sum((float *)dense[0], (float *)dense[1], n);
    unsigned flags = fuzz_flags();
    fuzz_mode(0);
    check_flags(flags);
    compare_sum(dense_sum, c->kernels, (float *)dense[0], (float *)dense[1], n);
    if (c->loop) {
        /* The rows are the same numbers, or all but the first ones. */
        int shifted = n >= rows && fuzz_below(in, 2);
        for (int j = 0; j < 2; j++) {
            args[j] = l.op[j].at;
            steps[j] = shifted ? l.op[j].stride : 0;
            steps[3 + j] = l.op[j].stride;
        }
        args[2] = (char *)sums;
        steps[2] = sizeof(double);
        dimensions[1] = shifted ? n - rows + 1 : n;
        call_loop(c, args, dimensions, steps);
        for (ptrdiff_t row = 0; row < rows; row++)
            compare_sum(sums[row], c->kernels, (float *)dense[0] + (shifted ? row : 0),
                        (float *)dense[1] + (shifted ? row : 0), dimensions[1]);
    }
    for (int j = 0; j < 2; j++)
        fuzz_free(dense[j], 0);
    for (int g = 0; g < 2; g++) {
        if (l.memory[g] != NULL && memcmp(l.memory[g], l.expected[g], l.size[g]) != 0)
            fuzz_fail("a sum wrote into its arguments");
        fuzz_free(l.memory[g], l.lead[g]);
        free(l.expected[g]);
    }
}

static void
fuzz_one(fuzz_input *in)
{
    static const char *const calls[] = {"value", "gradient", "sum", "value and gradient"};
    if (number_of_kernels == 0)
        number_of_kernels = fuzz_kernels(kernels, names);
    unsigned kernel = fuzz_below(in, (unsigned)number_of_kernels);
    fuzz_call c = {.what = (int)fuzz_below(in, CALLS), .kernels = kernels[kernel], .each = 1};
    c.loop = c.what != VALUE_AND_GRADIENT && fuzz_below(in, 2);
    c.sign = !c.loop && fuzz_below(in, 2) ? -1.0f : 1.0f;
    c.mode = fuzz_below(in, 4) ? 0 : FUZZ_FLUSH;
    snprintf(fuzz_about, sizeof fuzz_about, "%s %s, %s, sign %g, mode %#x",
             c.loop ? "loop" : "kernel", calls[c.what], names[kernel], (double)c.sign, c.mode);
    if (c.what == FUZZ_SUM) {
        try_sum(in, &c);
    } else {
        c.l.n = fuzz_length(in, c.loop);
        try_elements(in, &c);
    }
}
