/* The loops of `_numpy/c/exact_ufuncs.c`: every function, type and instruction set.
 *
 * A call is compared bit for bit with the same loop over dense arrays, and with it over one element
 * alone; with the kernels of another instruction set; and in float16 and float32 with the same
 * function in float64. */

#include "logunif_kl/_numpy/c/exact_ufuncs.c"

#include "fuzz.h"

/* By type, the most numbers that the results of two kernels may be apart: by the claims of
 * `logunif_kl.accuracy`, each is 0.505 ulp wrong at most, and in float64 1.971. */
static const uint64_t MOST_APART[] = {1, 1, 4};
static const double MOST_ULP = 0.506; /* of a result that is rounded once: claimed are 0.505 */

static void
know_limits(void)
{
    static int known;
    if (known)
        return;
    known = 1;
    find_available();
#define KNOW(table) fuzz_add_limits(table[BOUNDS], 8);
    KNOW(KL_GAP_D) KNOW(KL_GAP_GRAD_D) KNOW(KL_GAP_HESS_D)
    KNOW(NEG_KL_D) KNOW(NEG_KL_GRAD_D) KNOW(NEG_KL_HESS_D)
    KNOW(KL_GAP_S) KNOW(KL_GAP_GRAD_S) KNOW(KL_GAP_HESS_S)
    KNOW(NEG_KL_S) KNOW(NEG_KL_GRAD_S) KNOW(NEG_KL_HESS_S)
}

static void
call(const ufunc *u, const variant *v, int type, char **args, ptrdiff_t n, const npy_intp *steps,
     unsigned mode)
{
    PyUFuncGenericFunction run = u->nin == 1 ? one_loops[type] : two_loops[type];
    npy_intp count = n;
    fuzz_mode(mode);
    run(args, &count, steps, (char *)v->functions + u->offset);
    unsigned left = fuzz_flags();
    fuzz_mode(0);
    if (left)
        fuzz_fail("the flags %#x are left", left);
#ifdef LK_X86
    if (exceptions_seen & FUZZ_SUBNORMAL)
        fuzz_fail("an instruction took or made a subnormal number: flags %#x", exceptions_seen);
#endif
}

static void
call_dense(const ufunc *u, const variant *v, int type, char **args, ptrdiff_t n)
{
    npy_intp steps[FUZZ_MOST];
    for (int j = 0; j < u->nin + u->nout; j++)
        steps[j] = (npy_intp)fuzz_item[type];
    call(u, v, type, args, n, steps, 0);
}

/* The results of some elements, each computed by itself. */
static void
compare_alone(fuzz_input *in, const ufunc *u, const variant *v, const fuzz_layout *l, char **dense)
{
    int type = l->op[0].type;
    ptrdiff_t item = (ptrdiff_t)fuzz_item[type];
    for (int k = 0; k < 4; k++) {
        char results[3][8], *args[FUZZ_MOST];
        ptrdiff_t i = (ptrdiff_t)fuzz_take(in, 2) % l->n;
        for (int j = 0; j < l->count; j++)
            args[j] = j < u->nin ? dense[j] + i * item : results[j - u->nin];
        call_dense(u, v, type, args, 1);
        for (int j = u->nin; j < l->count; j++)
            if (!fuzz_same(args[j], dense[j] + i * item, type))
                fuzz_fail("output %d is %a at %td of %td, but %a alone", j - u->nin,
                          fuzz_double(dense[j] + i * item, type), i, l->n,
                          fuzz_double(args[j], type));
    }
}

static void
compare_kernels(const ufunc *u, const variant *other, const fuzz_layout *l, char **dense)
{
    int type = l->op[0].type;
    ptrdiff_t item = (ptrdiff_t)fuzz_item[type];
    char *args[FUZZ_MOST];
    for (int j = 0; j < l->count; j++)
        args[j] = j < u->nin ? dense[j] : fuzz_allocate((size_t)(l->n * item), 0);
    call_dense(u, other, type, args, l->n);
    for (int j = u->nin; j < l->count; j++) {
        for (ptrdiff_t i = 0; i < l->n; i++)
            fuzz_near("the results of two kernels", dense[j] + i * item, args[j] + i * item, type,
                      MOST_APART[type]);
        fuzz_free(args[j], 0);
    }
}

static void
compare_types(const ufunc *u, const variant *v, const fuzz_layout *l, char **dense)
{
    int type = l->op[0].type;
    ptrdiff_t item = (ptrdiff_t)fuzz_item[type];
    char *args[FUZZ_MOST];
    for (int j = 0; j < l->count; j++) {
        double *wide = malloc((size_t)l->n * sizeof(double));
        for (ptrdiff_t i = 0; j < u->nin && i < l->n; i++)
            wide[i] = fuzz_double(dense[j] + i * item, type);
        args[j] = (char *)wide;
    }
    call_dense(u, v, FUZZ_F64, args, l->n);
    for (int j = 0; j < l->count; j++) {
        for (ptrdiff_t i = 0; j >= u->nin && i < l->n; i++) {
            double exact = ((double *)args[j])[i];
            /* kl_gap_hess(inf) is 0.0 in float64, and -0.0 in the other types. */
            if (u->offset == offsetof(kernels, kl_gap_hess) && ((double *)args[0])[i] == INFINITY)
                exact = -exact;
            fuzz_close("a result", dense[j] + i * item, type, exact, MOST_ULP);
        }
    }
    for (int j = 0; j < l->count; j++)
        free(args[j]);
}

static void
fuzz_one(fuzz_input *in)
{
    know_limits();
    const ufunc *u = &UFUNCS[fuzz_below(in, NUMBER_OF_UFUNCS)];
    const variant *v = &available[fuzz_below(in, (unsigned)number_available)];
    const variant *other = &available[fuzz_below(in, (unsigned)number_available)];
    int type = (int)fuzz_below(in, 3);
    unsigned mode = fuzz_below(in, 4) ? 0 : FUZZ_FLUSH;
    fuzz_layout l = {.inputs = u->nin, .count = u->nin + u->nout, .n = fuzz_length(in, 1)};
    char *dense[FUZZ_MOST], *args[FUZZ_MOST];
    npy_intp steps[FUZZ_MOST];
    snprintf(fuzz_about, sizeof fuzz_about, "%s, float%d, %s and %s, mode %#x", u->name,
             16 << type, v->name, other->name, mode);
    for (int j = 0; j < l.count; j++)
        l.op[j].type = type;
    fuzz_place(in, &l);
    fuzz_make(in, &l);
    for (int j = 0; j < l.inputs; j++)
        fuzz_fill(in, l.op[j].at, l.op[j].stride, type, l.n);
    fuzz_copy(&l, dense);
    call_dense(u, v, type, dense, l.n);
    for (int j = 0; j < l.count; j++) {
        args[j] = l.op[j].at;
        steps[j] = l.op[j].stride;
    }
    call(u, v, type, args, l.n, steps, mode);
    fuzz_compare(&l, dense);
    compare_alone(in, u, v, &l, dense);
    if (other != v)
        compare_kernels(u, other, &l, dense);
    if (type != FUZZ_F64)
        compare_types(u, v, &l, dense);
    fuzz_give_back(&l, dense);
}
