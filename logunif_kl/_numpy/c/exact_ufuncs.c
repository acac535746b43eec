/* The exact functions as NumPy ufuncs.
 *
 * The arithmetic is in `exact.h`, which is compiled here once for each instruction set. On import
 * the module chooses the fastest kernels that the processor can run, or the kernels that
 * LOGUNIF_KL_KERNEL names. `exact_strides.h` has the loops that NumPy calls. */

#define PY_SSIZE_T_CLEAN
#include <Python.h>

#include <fenv.h>
#include <float.h>
#include <math.h>
#include <stddef.h>
#include <stdint.h>
#include <string.h>

#include <numpy/ndarrayobject.h>
#include <numpy/ufuncobject.h>

#include "module.h"
#include "targets.h"

#undef I /* complex.h, which NumPy's headers include, defines I */

#include "exact_coefficients.h"

typedef void one_f64(const double *, double *, npy_intp);
typedef void one_f32(const float *, float *, npy_intp);
typedef void two_f64(const double *, const double *, double *const *, npy_intp);
typedef void two_f32(const float *, const float *, float *const *, npy_intp);

typedef struct {
    one_f64 *f64;
    one_f32 *f32;
} one_argument;

typedef struct {
    two_f64 *f64;
    two_f32 *f32;
    int outputs;
} two_arguments;

typedef struct {
    one_argument kl_gap, kl_gap_grad, kl_gap_hess, neg_kl, neg_kl_grad, neg_kl_hess, kl;
    two_arguments neg_kl_normal, neg_kl_normal_value, kl_normal;
} kernels;

/* The indices of the rows of a table of coefficients. */
enum { BOUNDS, CENTRE, BASE_HI, BASE_LO, FIRST };

#ifdef LK_X86

/* The tables again, with a row for each range and an even number of columns, for AVX2. */
#define LK_EVEN(n) ((n) + (n) % 2)
#define LK_TABLES(X)                                                             \
    X(KL_GAP_D) X(KL_GAP_GRAD_D) X(KL_GAP_HESS_D)                                \
    X(NEG_KL_D) X(NEG_KL_GRAD_D) X(NEG_KL_HESS_D)                                \
    X(KL_GAP_S) X(KL_GAP_GRAD_S) X(KL_GAP_HESS_S)                                \
    X(NEG_KL_S) X(NEG_KL_GRAD_S) X(NEG_KL_HESS_S)
#define BY_RANGE(table) \
    static LK_ALIGNED double table##_BY_RANGE[8][LK_EVEN(FIRST + table##_DEGREE)];
LK_TABLES(BY_RANGE)

static void
fill_by_range(void)
{
#define FILL(table)                                                              \
    for (int k = 0; k < FIRST + table##_DEGREE; k++)                             \
        for (int range = 0; range < 8; range++)                                  \
            table##_BY_RANGE[range][k] = table[k][range];
    LK_TABLES(FILL)
#undef FILL
}

#endif

/* The bytes of an argument in one block, and the distance in bytes for prefetching. */
enum { LK_BLOCK = 2048, LK_AHEAD = 2048 };

#define LK_KERNELS "exact.h"
#define LK_BASELINE_ISA 0
#include "each_target.h"

#include "exact_strides.h"

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
#ifdef LK_HAS
    __builtin_cpu_init();
#endif
#ifdef LK_X86
    fill_by_range();
#endif
#define FIND(isa, present)                                              \
    if (present)                                                        \
        available[number_available++] = (variant){#isa, &kernels_##isa};
    LK_TARGETS(FIND)
    available[number_available++] = (variant){"baseline", &kernels_baseline};
}

/* Return the variant named `wanted`, or the fastest if it is "", or NULL with an ImportError. */
static const variant *
choose_variant(const char *wanted)
{
    if (wanted == NULL || wanted[0] == '\0')
        return &available[0];
    for (int i = 0; i < number_available; i++)
        if (strcmp(wanted, available[i].name) == 0)
            return &available[i];
    if (strcmp(wanted, "python") == 0)
        PyErr_SetString(PyExc_ImportError,
                        "LOGUNIF_KL_KERNEL='python' asks for the kernel without the C extension: "
                        "unset it to load logunif_kl._numpy._exact");
    else
        PyErr_Format(PyExc_ImportError,
                     "LOGUNIF_KL_KERNEL='%s' cannot run on this processor, whose best kernel is "
                     "'%s': set it to that one or to baseline or python, or unset it",
                     wanted, available[0].name);
    return NULL;
}

/* ---- the module ---------------------------------------------------------------------------- */

static const char one_types[] = {NPY_HALF, NPY_HALF, NPY_FLOAT, NPY_FLOAT, NPY_DOUBLE, NPY_DOUBLE};
static const char two_types[] = {
    NPY_HALF,   NPY_HALF,   NPY_HALF,   /* float16 */
    NPY_FLOAT,  NPY_FLOAT,  NPY_FLOAT,  /* float32 */
    NPY_DOUBLE, NPY_DOUBLE, NPY_DOUBLE, /* float64 */
};
static const char three_results_types[] = {
    NPY_HALF,   NPY_HALF,   NPY_HALF,   NPY_HALF,   NPY_HALF,
    NPY_FLOAT,  NPY_FLOAT,  NPY_FLOAT,  NPY_FLOAT,  NPY_FLOAT,
    NPY_DOUBLE, NPY_DOUBLE, NPY_DOUBLE, NPY_DOUBLE, NPY_DOUBLE,
};

typedef struct {
    const char *name;
    size_t offset; /* in `kernels` */
    int nin, nout;
} ufunc;

static const ufunc UFUNCS[] = {
    {"kl_gap", offsetof(kernels, kl_gap), 1, 1},
    {"kl_gap_grad", offsetof(kernels, kl_gap_grad), 1, 1},
    {"kl_gap_hess", offsetof(kernels, kl_gap_hess), 1, 1},
    {"neg_kl", offsetof(kernels, neg_kl), 1, 1},
    {"neg_kl_grad", offsetof(kernels, neg_kl_grad), 1, 1},
    {"neg_kl_hess", offsetof(kernels, neg_kl_hess), 1, 1},
    {"kl", offsetof(kernels, kl), 1, 1},
    {"neg_kl_normal_and_grad", offsetof(kernels, neg_kl_normal), 2, 3},
    {"neg_kl_normal_value", offsetof(kernels, neg_kl_normal_value), 2, 1},
    {"kl_normal", offsetof(kernels, kl_normal), 2, 1},
};
enum { NUMBER_OF_UFUNCS = sizeof UFUNCS / sizeof UFUNCS[0] };

/* NumPy keeps pointers to these until the process ends. */
static const variant *best;
static kernels chosen;
static void *loop_data[NUMBER_OF_UFUNCS][3];
static PyObject *docs;

static int
add_ufunc(PyObject *module, int index)
{
    const ufunc *u = &UFUNCS[index];
    PyObject *text = PyMapping_GetItemString(docs, u->name); /* docs keeps it alive */
    if (text == NULL)
        return -1;
    const char *doc = PyUnicode_AsUTF8AndSize(text, NULL);
    Py_DECREF(text);
    if (doc == NULL)
        return -1;
    for (int i = 0; i < 3; i++)
        loop_data[index][i] = (char *)&chosen + u->offset;
    const char *types = u->nout == 3 ? three_results_types : u->nin == 2 ? two_types : one_types;
    PyObject *made = PyUFunc_FromFuncAndData(u->nin == 1 ? one_loops : two_loops, loop_data[index],
                                             types, 3, u->nin, u->nout, PyUFunc_None, u->name, doc,
                                             0);
    if (made == NULL)
        return -1;
    int status = PyModule_AddObjectRef(module, u->name, made);
    Py_DECREF(made);
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
        PyTuple_SetItem(names, i, name);
    }
    int status = PyModule_AddObjectRef(module, "available", names);
    Py_DECREF(names);
    return status;
}

/* LOGUNIF_KL_KERNEL from os.environ, which may differ from getenv(); "" if unset, NULL on error. */
static PyObject *
wanted_kernel(void)
{
    PyObject *os = PyImport_ImportModule("os");
    PyObject *wanted = os ? PyObject_CallMethod(os, "getenv", "ss", "LOGUNIF_KL_KERNEL", "") : NULL;
    Py_XDECREF(os);
    return wanted;
}

static int
choose_kernels(void)
{
    find_available();
    PyObject *wanted = wanted_kernel();
    const char *name = wanted ? PyUnicode_AsUTF8AndSize(wanted, NULL) : NULL;
    best = name ? choose_variant(name) : NULL;
    Py_XDECREF(wanted);
    if (best == NULL)
        return -1;
    chosen = *best->functions;
    return 0;
}

static int
find_docs(void)
{
    PyObject *texts = PyImport_ImportModule("logunif_kl._numpy.docs");
    docs = texts ? PyObject_GetAttrString(texts, "DOCS") : NULL;
    Py_XDECREF(texts);
    return docs ? 0 : -1;
}

/* A second import keeps what the ufuncs of the first one point to. */
static int
fill(PyObject *module)
{
    if ((best == NULL && choose_kernels() < 0) || (docs == NULL && find_docs() < 0))
        return -1;
    if (PyArray_ImportNumPyAPI() < 0 || PyUFunc_ImportUFuncAPI() < 0)
        return -1;
    if (add_names(module, best->name) < 0)
        return -1;
    for (int i = 0; i < NUMBER_OF_UFUNCS; i++)
        if (add_ufunc(module, i) < 0)
            return -1;
    return 0;
}

/* ---- which floating-point exceptions a function raises ----------------------------------- */

#ifdef LK_X86

/* exceptions(kernel, ufunc, arrays): run a loop over one-dimensional arrays of one type, first the
 * inputs and then the outputs, and return the flags of MXCSR that the loop raised. */
static PyObject *
exceptions(PyObject *module, PyObject *args)
{
    const char *kernel, *name;
    PyObject *arrays;
    (void)module;
    if (!PyArg_ParseTuple(args, "ssO!", &kernel, &name, &PyTuple_Type, &arrays))
        return NULL;
    const ufunc *u = NULL;
    for (int i = 0; i < NUMBER_OF_UFUNCS; i++)
        if (strcmp(name, UFUNCS[i].name) == 0)
            u = &UFUNCS[i];
    const variant *v = NULL;
    for (int i = 0; i < number_available; i++)
        if (strcmp(kernel, available[i].name) == 0)
            v = &available[i];
    if (u == NULL || v == NULL || PyTuple_Size(arrays) != u->nin + u->nout)
        return PyErr_Format(PyExc_ValueError,
                            "exceptions takes a kernel, a ufunc and a tuple of its inputs and "
                            "outputs, but '%s', '%s' and %zd arrays were given: see `available`",
                            kernel, name, PyTuple_Size(arrays));
    char *data[2 + MOST_OUTPUTS];
    npy_intp steps[2 + MOST_OUTPUTS], n = 0;
    int type = NPY_NOTYPE;
    for (int j = 0; j < u->nin + u->nout; j++) {
        PyObject *given = PyTuple_GetItem(arrays, j);
        PyArrayObject *array = (PyArrayObject *)given;
        int good = PyArray_Check(given) && PyArray_NDIM(array) == 1 && PyArray_ISALIGNED(array) &&
                   (j < u->nin || PyArray_ISWRITEABLE(array));
        if (good && j == 0) {
            n = PyArray_DIM(array, 0);
            type = PyArray_TYPE(array);
        }
        if (!good || PyArray_DIM(array, 0) != n || PyArray_TYPE(array) != type)
            return PyErr_Format(PyExc_ValueError,
                                "array %d must be one-dimensional, aligned, and of the length and "
                                "the type of the first: pass such an array",
                                j);
        data[j] = PyArray_BYTES(array);
        steps[j] = PyArray_STRIDE(array, 0);
    }
    int loop = type == NPY_HALF ? 0 : type == NPY_FLOAT ? 1 : type == NPY_DOUBLE ? 2 : -1;
    if (loop < 0)
        return PyErr_Format(PyExc_TypeError, "the arrays must be of float16, float32 or float64, "
                                             "but have the type number %d: convert them",
                            type);
    PyUFuncGenericFunction run = u->nin == 1 ? one_loops[loop] : two_loops[loop];
    forget_exceptions();
    run(data, &n, steps, (char *)v->functions + u->offset);
    return PyLong_FromUnsignedLong(exceptions_seen);
}

#endif

static PyMethodDef functions[] = {
#ifdef LK_X86
    {"exceptions", exceptions, METH_VARARGS,
     "The flags of MXCSR that a kernel raises: 2 and 16 are for subnormal numbers."},
#endif
    {NULL, NULL, 0, NULL},
};

LK_MODULE(_exact, "The exact functions as NumPy ufuncs, for the instruction set that `isa` names.",
          functions, fill)
