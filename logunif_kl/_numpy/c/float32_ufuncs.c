/* -KL of N(mu, sigma^2) computed in float32, as NumPy ufuncs for PyTorch on the CPU.
 *
 * `exact_ufuncs.c` computes float32 results in float64, to less than one unit in the last place.
 * Here separate functions compute the value and the derivatives in float32, several times as fast,
 * to a few units in the last place. `python -m validation.codegen` translates
 * `_arithmetic/normal_float32.py` into the arithmetic in `float32_kernels.h`, which is compiled
 * once for each instruction set. The module uses the same instruction set as `_exact`, which asks
 * the processor and reads LOGUNIF_KL_KERNEL. */

#define PY_SSIZE_T_CLEAN
#include <Python.h>

#include <fenv.h>
#include <math.h>
#include <stdint.h>
#include <string.h>

#include <numpy/ndarrayobject.h>
#include <numpy/ufuncobject.h>

#include "float32_capsule.h"
#include "module.h"
#include "targets.h"

/* The number of registers in one call. The arithmetic runs each step for all registers in turn. */
#ifndef WAYS
#define WAYS 4
#endif
#define SET(name, expression)                                              \
    for (int i = 0; i < WAYS; i++)                                         \
        (name)[i] = (expression)
#define EACH(type, name, expression)                                       \
    type name[WAYS];                                                       \
    SET(name, expression)

#if defined(LK_GNU)
#define LK_NOINLINE __attribute__((noinline))
#define LK_PREFETCH(address) __builtin_prefetch(address)
#elif defined(_MSC_VER)
#define LK_NOINLINE __declspec(noinline)
#else
#define LK_NOINLINE
#endif

#ifndef LK_PREFETCH
#define LK_PREFETCH(address) ((void)(address))
#endif

/* The results that a loop computes. `LOOPS` passes them as a constant. */
enum { VALUE = 1, GRADIENT = 2, SUM = 4 };

#define LK_KERNELS "float32.h"
#ifdef LK_GNU
#define LK_BASELINE_ISA 128
#else
#define LK_BASELINE_ISA 0
#endif
#include "each_target.h"

/* ---- loops --------------------------------------------------------------------------------- */

enum { BLOCK = 512 };

/* Clear the floating-point flags, because unused lanes may have raised some. */
static void
forget_exceptions(void)
{
    feclearexcept(FE_ALL_EXCEPT);
}

static void
scatter(char *to, npy_intp stride, const float *from, npy_intp n)
{
    for (npy_intp i = 0; i < n; i++)
        memcpy(to + i * stride, &from[i], sizeof(float));
}

static void
gather(float *to, const char *from, npy_intp stride, npy_intp n)
{
    for (npy_intp i = 0; i < n; i++)
        memcpy(&to[i], from + i * stride, sizeof(float));
}

/* An argument, copied block by block if it is not contiguous. A scalar fills its block once. */
typedef struct {
    const char *data;
    npy_intp stride;
    float block[BLOCK];
} argument;

static void
begin(argument *a, const char *data, npy_intp stride, npy_intp n)
{
    a->data = data;
    a->stride = stride;
    if (stride == 0)
        gather(a->block, data, 0, n < BLOCK ? n : BLOCK);
}

/* Return n contiguous elements from `start` on. */
static const float *
dense_part(argument *a, npy_intp start, npy_intp n)
{
    const char *from = a->data + start * a->stride;
    if (a->stride == sizeof(float))
        return (const float *)from;
    if (a->stride != 0)
        gather(a->block, from, a->stride, n);
    return a->block;
}

static int
dense(npy_intp const *steps, int count)
{
    for (int i = 0; i < count; i++)
        if (steps[i] != sizeof(float))
            return 0;
    return 1;
}

static void
value_loop(char **args, npy_intp const *dimensions, npy_intp const *steps, void *data)
{
    const lk_float32_kernels *function = data;
    npy_intp n = dimensions[0];
    if (dense(steps, 3)) {
        function->value(1.0f, (float *)args[0], (float *)args[1], (float *)args[2], n);
    } else {
        argument mu, log_sigma2;
        float value[BLOCK];
        begin(&mu, args[0], steps[0], n);
        begin(&log_sigma2, args[1], steps[1], n);
        for (npy_intp start = 0; start < n; start += BLOCK) {
            npy_intp m = n - start < BLOCK ? n - start : BLOCK;
            char *to = args[2] + start * steps[2];
            const float *x = dense_part(&mu, start, m), *y = dense_part(&log_sigma2, start, m);
            if (dense(steps + 2, 1)) {
                function->value(1.0f, x, y, (float *)to, m);
            } else {
                function->value(1.0f, x, y, value, m);
                scatter(to, steps[2], value, m);
            }
        }
    }
    forget_exceptions();
}

static void
gradient_loop(char **args, npy_intp const *dimensions, npy_intp const *steps, void *data)
{
    const lk_float32_kernels *function = data;
    npy_intp n = dimensions[0];
    int each = steps[0] != 0;
    if (dense(steps + 1, 4) && (!each || dense(steps, 1))) {
        function->gradient((float *)args[0], each, (float *)args[1], (float *)args[2],
                           (float *)args[3], (float *)args[4], n);
    } else {
        argument factor, mu, log_sigma2;
        float d_mu[BLOCK], d_log_sigma2[BLOCK];
        begin(&factor, args[0], steps[0], 1);
        begin(&mu, args[1], steps[1], n);
        begin(&log_sigma2, args[2], steps[2], n);
        for (npy_intp start = 0; start < n; start += BLOCK) {
            npy_intp m = n - start < BLOCK ? n - start : BLOCK;
            char *to = args[3] + start * steps[3], *to_2 = args[4] + start * steps[4];
            const float *f = dense_part(&factor, start, m);
            const float *x = dense_part(&mu, start, m), *y = dense_part(&log_sigma2, start, m);
            if (dense(steps + 3, 2)) {
                function->gradient(f, each, x, y, (float *)to, (float *)to_2, m);
            } else {
                function->gradient(f, each, x, y, d_mu, d_log_sigma2, m);
                scatter(to, steps[3], d_mu, m);
                scatter(to_2, steps[4], d_log_sigma2, m);
            }
        }
    }
    forget_exceptions();
}

/* The loop of a generalised ufunc with the signature (n),(n)->(). */
static void
sum_loop(char **args, npy_intp const *dimensions, npy_intp const *steps, void *data)
{
    const lk_float32_kernels *function = data;
    npy_intp n = dimensions[1];
    argument mu, log_sigma2;
    for (npy_intp row = 0; row < dimensions[0]; row++) {
        char *a = args[0] + row * steps[0], *b = args[1] + row * steps[1];
        double total = 0.0;
        if (dense(steps + 3, 2)) {
            total = function->sum((float *)a, (float *)b, n);
        } else {
            begin(&mu, a, steps[3], n);
            begin(&log_sigma2, b, steps[4], n);
            for (npy_intp start = 0; start < n; start += BLOCK) {
                npy_intp m = n - start < BLOCK ? n - start : BLOCK;
                total += function->sum(dense_part(&mu, start, m),
                                       dense_part(&log_sigma2, start, m), m);
            }
        }
        memcpy(args[2] + row * steps[2], &total, sizeof total);
    }
    forget_exceptions();
}

/* ---- the module ---------------------------------------------------------------------------- */

/* NumPy keeps pointers to these until the process ends. */
static lk_float32_kernels chosen;
static void *loop_data[] = {&chosen};
static PyUFuncGenericFunction value_loops[] = {value_loop};
static PyUFuncGenericFunction gradient_loops[] = {gradient_loop};
static PyUFuncGenericFunction sum_loops[] = {sum_loop};
static const char value_types[] = {NPY_FLOAT, NPY_FLOAT, NPY_FLOAT};
static const char gradient_types[] = {NPY_FLOAT, NPY_FLOAT, NPY_FLOAT, NPY_FLOAT, NPY_FLOAT};
static const char sum_types[] = {NPY_FLOAT, NPY_FLOAT, NPY_DOUBLE};

/* Choose the kernels for the instruction set that `_exact` uses. */
static int
choose_kernels(PyObject *module)
{
    PyObject *others = PyImport_ImportModule("logunif_kl._numpy._exact");
    PyObject *isa = others ? PyObject_GetAttrString(others, "isa") : NULL;
    Py_XDECREF(others);
    const char *name = isa ? PyUnicode_AsUTF8AndSize(isa, NULL) : NULL;
    int status = name ? PyModule_AddObjectRef(module, "isa", isa) : -1;
    if (status == 0 && chosen.value == NULL) {
        chosen = kernels_baseline;
#define CHOOSE(isa, present)                                            \
    if (strcmp(name, #isa) == 0)                                        \
        chosen = kernels_##isa;
        LK_TARGETS(CHOOSE)
    }
    Py_XDECREF(isa);
    return status;
}

/* Add an object to the module, taking over the reference, or fail if the object is NULL. */
static int
add(PyObject *module, const char *name, PyObject *ufunc)
{
    int status = ufunc ? PyModule_AddObjectRef(module, name, ufunc) : -1;
    Py_XDECREF(ufunc);
    return status;
}

static int
fill(PyObject *module)
{
    if (PyArray_ImportNumPyAPI() < 0 || PyUFunc_ImportUFuncAPI() < 0 || choose_kernels(module) < 0 ||
        add(module, "value",
            PyUFunc_FromFuncAndData(value_loops, loop_data, value_types, 1, 2, 1, PyUFunc_None,
                                    "value", "-KL from (mu, log_sigma2).", 0)) < 0 ||
        add(module, "gradient",
            PyUFunc_FromFuncAndData(gradient_loops, loop_data, gradient_types, 1, 3, 2,
                                    PyUFunc_None, "gradient",
                                    "The derivatives in mu and in log_sigma2, each times the "
                                    "first of (factor, mu, log_sigma2).",
                                    0)) < 0 ||
        add(module, "value_sum",
            PyUFunc_FromFuncAndDataAndSignature(sum_loops, loop_data, sum_types, 1, 2, 1,
                                                PyUFunc_None, "value_sum",
                                                "The sum of -KL over the last axis, in float64.",
                                                0, "(n),(n)->()")) < 0 ||
        add(module, "kernels", PyCapsule_New(&chosen, LK_FLOAT32_CAPSULE, NULL)) < 0)
        return -1;
    return 0;
}

#ifdef LK_X86
PyDoc_STRVAR(trial_doc, "trial(mode, factor, mu, log_sigma2)\n--\n\n"
             "Run the kernels with bits set in the register MXCSR, for tests.\n\n"
             "The arguments are 1-d arrays of one length; `factor` may have length 1. The results "
             "are those of the kernels `value` with the sign 1, `gradient`, `value_and_gradient` "
             "with the sign -1 and `sum`, and the flags that each of the four left.");

static PyObject *
trial(PyObject *Py_UNUSED(module), PyObject *args)
{
    unsigned mode, flags[4], before = _mm_getcsr();
    PyObject *given[3], *results = NULL;
    PyArrayObject *in[3] = {NULL}, *out[6] = {NULL};
    if (!PyArg_ParseTuple(args, "IOOO", &mode, &given[0], &given[1], &given[2]))
        return NULL;
    for (int i = 0; i < 3; i++) {
        in[i] = (PyArrayObject *)PyArray_FROMANY(given[i], NPY_FLOAT, 1, 1, NPY_ARRAY_IN_ARRAY);
        if (in[i] == NULL)
            goto end;
    }
    npy_intp n = PyArray_DIM(in[1], 0), factors = PyArray_DIM(in[0], 0);
    if (PyArray_DIM(in[2], 0) != n || (factors != n && factors != 1)) {
        PyErr_SetString(PyExc_ValueError, "the arrays are of different lengths");
        goto end;
    }
    for (int i = 0; i < 6; i++) {
        out[i] = (PyArrayObject *)PyArray_SimpleNew(1, &n, NPY_FLOAT);
        if (out[i] == NULL)
            goto end;
    }
    const float *f = PyArray_DATA(in[0]), *mu = PyArray_DATA(in[1]), *ls = PyArray_DATA(in[2]);
    float *to[6];
    for (int i = 0; i < 6; i++)
        to[i] = PyArray_DATA(out[i]);
    _mm_setcsr((before & ~0x3fu) | mode);
    chosen.value(1.0f, mu, ls, to[0], n);
    flags[0] = _mm_getcsr() & 0x3f;
    _mm_setcsr((before & ~0x3fu) | mode);
    chosen.gradient(f, factors != 1 || n == 1, mu, ls, to[1], to[2], n);
    flags[1] = _mm_getcsr() & 0x3f;
    _mm_setcsr((before & ~0x3fu) | mode);
    chosen.value_and_gradient(-1.0f, mu, ls, to[3], to[4], to[5], n);
    flags[2] = _mm_getcsr() & 0x3f;
    _mm_setcsr((before & ~0x3fu) | mode);
    double sum = chosen.sum(mu, ls, n);
    flags[3] = _mm_getcsr() & 0x3f;
    _mm_setcsr(before);
    results = Py_BuildValue("OOOOOOd(IIII)", out[0], out[1], out[2], out[3], out[4], out[5], sum,
                            flags[0], flags[1], flags[2], flags[3]);
end:
    for (int i = 0; i < 3; i++)
        Py_XDECREF((PyObject *)in[i]);
    for (int i = 0; i < 6; i++)
        Py_XDECREF((PyObject *)out[i]);
    return results;
}
#endif

static PyMethodDef methods[] = {
#ifdef LK_X86
    {"trial", trial, METH_VARARGS, trial_doc},
#endif
    {NULL, NULL, 0, NULL},
};

LK_MODULE(_float32, "-KL of N(mu, sigma^2) in float32, for the instruction set that `isa` names.",
          methods, fill)
