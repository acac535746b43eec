/* The exact functions as NumPy ufuncs.
 *
 * The arithmetic is in `exact.h`, which is compiled here once for each instruction set. When the
 * module is loaded, it chooses the fastest kernels that the processor can run, or those that
 * LOGUNIF_KL_KERNEL names. This file connects the kernels to NumPy: types, strides, half
 * precision. */

#define PY_SSIZE_T_CLEAN
#include <Python.h>

#include <fenv.h>
#include <math.h>
#include <stdint.h>
#include <string.h>

#include <numpy/ndarrayobject.h>
#include <numpy/ufuncobject.h>

#include "targets.h"

#undef I /* NumPy's headers include complex.h, which defines it */

#include "exact_coefficients.h"

typedef void one_f64(const double *, double *, npy_intp);
typedef void one_f32(const float *, float *, npy_intp);
typedef void two_f64(const double *, const double *, double *, double *, double *, npy_intp);
typedef void two_f32(const float *, const float *, float *, float *, float *, npy_intp);

typedef struct {
    one_f64 *f64;
    one_f32 *f32;
} one_argument;

typedef struct {
    two_f64 *f64;
    two_f32 *f32;
} two_arguments;

typedef struct {
    one_argument kl_gap, kl_gap_grad, kl_gap_hess, neg_kl, neg_kl_grad, neg_kl_hess;
    two_arguments neg_kl_normal;
} kernels;

/* Rows of a table of coefficients. */
enum { BOUNDS, CENTRE, BASE_HI, BASE_LO, FIRST };

#define LK_KERNELS "exact.h"
#define LK_BASELINE_ISA 0
#include "each_target.h"

/* ---- choosing an instruction set ----------------------------------------------------------- */

typedef struct {
    const char *name;
    const kernels *functions;
} variant;

static variant available[3];
static int number_available;

static void
find_available(void)
{
    number_available = 0;
#ifdef LK_X86
    __builtin_cpu_init();
#endif
#define FIND(isa, present)                                              \
    if (present)                                                        \
        available[number_available++] = (variant){#isa, &kernels_##isa};
    LK_TARGETS(FIND)
    available[number_available++] = (variant){"baseline", &kernels_baseline};
}

/* The variant named `wanted`, the best one for "", or NULL with an ImportError set. */
static const variant *
choose_variant(const char *wanted)
{
    if (wanted == NULL || wanted[0] == '\0')
        return &available[0];
    for (int i = 0; i < number_available; i++)
        if (strcmp(wanted, available[i].name) == 0)
            return &available[i];
    PyErr_Format(PyExc_ImportError,
                 "LOGUNIF_KL_KERNEL='%s' cannot run on this processor, whose best kernel is '%s': "
                 "set it to that one or to baseline or python, or unset it",
                 wanted, available[0].name);
    return NULL;
}

/* ---- half precision ------------------------------------------------------------------------ */

static float
float_from_half(npy_half h)
{
    uint32_t sign = (uint32_t)(h & 0x8000u) << 16, rest = h & 0x7fffu, bits;
    float value;
    if (rest >= 0x7c00u) {
        bits = 0x7f800000u | (rest << 13);
        memcpy(&value, &bits, sizeof value);
    } else if (rest >= 0x0400u) {
        bits = (rest << 13) + ((127u - 15u) << 23);
        memcpy(&value, &bits, sizeof value);
    } else {
        value = (float)rest * 0x1p-24f;
    }
    memcpy(&bits, &value, sizeof bits);
    bits |= sign;
    memcpy(&value, &bits, sizeof value);
    return value;
}

/* Round to nearest, ties to even. */
static npy_half
half_from_float(float value)
{
    uint32_t bits;
    memcpy(&bits, &value, sizeof bits);
    uint32_t sign = (bits >> 16) & 0x8000u, rest = bits & 0x7fffffffu;
    if (rest > 0x7f800000u) /* NaN, with the upper bits of its payload */
        return (npy_half)(sign | 0x7e00u | ((rest >> 13) & 0x03ffu));
    if (rest >= 0x477ff000u) /* 65520 and above */
        return (npy_half)(sign | 0x7c00u);
    if (rest < 0x38800000u) { /* below 2^-14: adding 0.5 rounds to a multiple of 2^-24 */
        float magnitude;
        memcpy(&magnitude, &rest, sizeof magnitude);
        magnitude += 0.5f;
        memcpy(&rest, &magnitude, sizeof rest);
        return (npy_half)(sign | (rest - 0x3f000000u));
    }
    rest += 0xfffu + ((rest >> 13) & 1u);
    return (npy_half)(sign | ((rest - ((127u - 15u) << 23)) >> 13));
}

/* ---- loops --------------------------------------------------------------------------------- */

enum { BLOCK = 512 };

/* Clear the floating-point flags: lanes that belong to no element may have raised some. */
static void
forget_exceptions(void)
{
    feclearexcept(FE_ALL_EXCEPT);
}

#define READ(type, to, from, stride, n)                                 \
    for (npy_intp i_ = 0; i_ < (n); i_++)                               \
        memcpy(&(to)[i_], (from) + i_ * (stride), sizeof(type))
#define WRITE(type, to, stride, from, n)                                \
    for (npy_intp i_ = 0; i_ < (n); i_++)                               \
        memcpy((to) + i_ * (stride), &(from)[i_], sizeof(type))

#define ONE_ARGUMENT_LOOP(name, type, field)                                             \
    static void name(char **args, npy_intp const *dimensions, npy_intp const *steps,     \
                     void *data)                                                         \
    {                                                                                    \
        const one_argument *function = data;                                             \
        npy_intp n = dimensions[0];                                                      \
        if (steps[0] == sizeof(type) && steps[1] == sizeof(type)) {                      \
            function->field((const type *)args[0], (type *)args[1], n);                  \
        } else {                                                                         \
            type block[BLOCK];                                                           \
            for (npy_intp start = 0; start < n; start += BLOCK) {                        \
                npy_intp m = n - start < BLOCK ? n - start : BLOCK;                      \
                READ(type, block, args[0] + start * steps[0], steps[0], m);              \
                function->field(block, block, m);                                        \
                WRITE(type, args[1] + start * steps[1], steps[1], block, m);             \
            }                                                                            \
        }                                                                                \
        forget_exceptions();                                                             \
    }

ONE_ARGUMENT_LOOP(one_f64_loop, double, f64)
ONE_ARGUMENT_LOOP(one_f32_loop, float, f32)

static void
one_f16_loop(char **args, npy_intp const *dimensions, npy_intp const *steps, void *data)
{
    const one_argument *function = data;
    npy_intp n = dimensions[0];
    float block[BLOCK];
    for (npy_intp start = 0; start < n; start += BLOCK) {
        npy_intp m = n - start < BLOCK ? n - start : BLOCK;
        for (npy_intp i = 0; i < m; i++) {
            npy_half h;
            memcpy(&h, args[0] + (start + i) * steps[0], sizeof h);
            block[i] = float_from_half(h);
        }
        function->f32(block, block, m);
        for (npy_intp i = 0; i < m; i++) {
            npy_half h = half_from_float(block[i]);
            memcpy(args[1] + (start + i) * steps[1], &h, sizeof h);
        }
    }
    forget_exceptions();
}

#define TWO_ARGUMENTS_LOOP(name, type, field)                                            \
    static void name(char **args, npy_intp const *dimensions, npy_intp const *steps,     \
                     void *data)                                                         \
    {                                                                                    \
        const two_arguments *function = data;                                            \
        npy_intp n = dimensions[0];                                                      \
        const npy_intp size = sizeof(type);                                              \
        if (steps[0] == size && steps[1] == size && steps[2] == size &&                  \
            steps[3] == size && steps[4] == size) {                                      \
            function->field((const type *)args[0], (const type *)args[1],                \
                            (type *)args[2], (type *)args[3], (type *)args[4], n);       \
            forget_exceptions();                                                         \
            return;                                                                      \
        }                                                                                \
        type mu[BLOCK], log_sigma2[BLOCK], d[BLOCK];                                     \
        for (npy_intp start = 0; start < n; start += BLOCK) {                            \
            npy_intp m = n - start < BLOCK ? n - start : BLOCK;                          \
            READ(type, mu, args[0] + start * steps[0], steps[0], m);                     \
            READ(type, log_sigma2, args[1] + start * steps[1], steps[1], m);             \
            function->field(mu, log_sigma2, d, mu, log_sigma2, m);                       \
            WRITE(type, args[2] + start * steps[2], steps[2], d, m);                     \
            WRITE(type, args[3] + start * steps[3], steps[3], mu, m);                    \
            WRITE(type, args[4] + start * steps[4], steps[4], log_sigma2, m);            \
        }                                                                                \
        forget_exceptions();                                                             \
    }

TWO_ARGUMENTS_LOOP(two_f64_loop, double, f64)
TWO_ARGUMENTS_LOOP(two_f32_loop, float, f32)

static void
two_f16_loop(char **args, npy_intp const *dimensions, npy_intp const *steps, void *data)
{
    const two_arguments *function = data;
    npy_intp n = dimensions[0];
    float in[2][BLOCK], out[3][BLOCK];
    for (npy_intp start = 0; start < n; start += BLOCK) {
        npy_intp m = n - start < BLOCK ? n - start : BLOCK;
        for (int k = 0; k < 2; k++)
            for (npy_intp i = 0; i < m; i++) {
                npy_half h;
                memcpy(&h, args[k] + (start + i) * steps[k], sizeof h);
                in[k][i] = float_from_half(h);
            }
        function->f32(in[0], in[1], out[0], out[1], out[2], m);
        for (int k = 0; k < 3; k++)
            for (npy_intp i = 0; i < m; i++) {
                npy_half h = half_from_float(out[k][i]);
                memcpy(args[2 + k] + (start + i) * steps[2 + k], &h, sizeof h);
            }
    }
    forget_exceptions();
}

/* ---- the module ---------------------------------------------------------------------------- */

static PyUFuncGenericFunction one_loops[] = {one_f16_loop, one_f32_loop, one_f64_loop};
static PyUFuncGenericFunction two_loops[] = {two_f16_loop, two_f32_loop, two_f64_loop};
static const char one_types[] = {NPY_HALF, NPY_HALF, NPY_FLOAT, NPY_FLOAT, NPY_DOUBLE, NPY_DOUBLE};
static const char two_types[] = {
    NPY_HALF,   NPY_HALF,   NPY_HALF,   NPY_HALF,   NPY_HALF,
    NPY_FLOAT,  NPY_FLOAT,  NPY_FLOAT,  NPY_FLOAT,  NPY_FLOAT,
    NPY_DOUBLE, NPY_DOUBLE, NPY_DOUBLE, NPY_DOUBLE, NPY_DOUBLE,
};

/* NumPy keeps pointers to these until the process ends. */
static kernels chosen;
static void *loop_data[7][3];
static PyObject *docs;

static int
add_ufunc(PyObject *module, const char *name, int index, void *function, int nin, int nout)
{
    PyObject *text = PyMapping_GetItemString(docs, name); /* docs keeps it alive */
    if (text == NULL)
        return -1;
    const char *doc = PyUnicode_AsUTF8(text);
    Py_DECREF(text);
    if (doc == NULL)
        return -1;
    for (int i = 0; i < 3; i++)
        loop_data[index][i] = function;
    PyObject *ufunc = PyUFunc_FromFuncAndData(
        nin == 1 ? one_loops : two_loops, loop_data[index], nin == 1 ? one_types : two_types, 3,
        nin, nout, PyUFunc_None, name, doc, 0);
    if (ufunc == NULL)
        return -1;
    int status = PyModule_AddObjectRef(module, name, ufunc);
    Py_DECREF(ufunc);
    return status;
}

static int
add_names(PyObject *module, const char *chosen_name)
{
    if (PyModule_AddStringConstant(module, "isa", chosen_name) < 0)
        return -1;
    PyObject *names = PyTuple_New(number_available);
    if (names == NULL)
        return -1;
    for (int i = 0; i < number_available; i++) {
        PyObject *name = PyUnicode_FromString(available[i].name);
        if (name == NULL) {
            Py_DECREF(names);
            return -1;
        }
        PyTuple_SET_ITEM(names, i, name);
    }
    int status = PyModule_AddObjectRef(module, "available", names);
    Py_DECREF(names);
    return status;
}

/* LOGUNIF_KL_KERNEL as Python sees it now (os.environ), "" if unset; NULL on error. */
static PyObject *
wanted_kernel(void)
{
    PyObject *os = PyImport_ImportModule("os");
    PyObject *wanted = os ? PyObject_CallMethod(os, "getenv", "ss", "LOGUNIF_KL_KERNEL", "") : NULL;
    Py_XDECREF(os);
    return wanted;
}

static int
fill(PyObject *module)
{
    find_available();
    PyObject *wanted = wanted_kernel();
    if (wanted == NULL)
        return -1;
    const char *name = PyUnicode_AsUTF8(wanted);
    const variant *best = name ? choose_variant(name) : NULL;
    Py_DECREF(wanted);
    if (best == NULL)
        return -1;
    chosen = *best->functions;
    PyObject *texts = PyImport_ImportModule("logunif_kl._numpy.docs");
    if (texts == NULL)
        return -1;
    Py_XSETREF(docs, PyObject_GetAttrString(texts, "DOCS"));
    Py_DECREF(texts);
    if (docs == NULL)
        return -1;
    if (add_names(module, best->name) < 0 ||
        add_ufunc(module, "kl_gap", 0, &chosen.kl_gap, 1, 1) < 0 ||
        add_ufunc(module, "kl_gap_grad", 1, &chosen.kl_gap_grad, 1, 1) < 0 ||
        add_ufunc(module, "kl_gap_hess", 2, &chosen.kl_gap_hess, 1, 1) < 0 ||
        add_ufunc(module, "neg_kl", 3, &chosen.neg_kl, 1, 1) < 0 ||
        add_ufunc(module, "neg_kl_grad", 4, &chosen.neg_kl_grad, 1, 1) < 0 ||
        add_ufunc(module, "neg_kl_hess", 5, &chosen.neg_kl_hess, 1, 1) < 0 ||
        add_ufunc(module, "neg_kl_normal", 6, &chosen.neg_kl_normal, 2, 3) < 0)
        return -1;
    return 0;
}

static struct PyModuleDef definition = {
    PyModuleDef_HEAD_INIT,
    .m_name = "_exact",
    .m_doc = "The exact functions as NumPy ufuncs, for the instruction set that `isa` names.",
    .m_size = -1,
};

PyMODINIT_FUNC
PyInit__exact(void)
{
    import_array();
    import_umath();
    PyObject *module = PyModule_Create(&definition);
    if (module != NULL && fill(module) < 0)
        Py_CLEAR(module);
    return module;
}
