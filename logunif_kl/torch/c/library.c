/* The float32 kernels for PyTorch on the CPU: on its threads, and as operators for its compiler.
 *
 * PyTorch is not needed to build this module, and importing it imports none. `connect` is
 * given the addresses of the functions of `shims.h`. `register_operators` then adds the CPU
 * kernels of the operators, which `logunif_kl.torch._operators` defines. The other functions take
 * the addresses of memory, and serve eager mode. */

#define PY_SSIZE_T_CLEAN
#include <Python.h>

#include "boxed.h"

static PyObject *
connect(PyObject *Py_UNUSED(module), PyObject *given)
{
    Shims found;
    int i = 0;
    PyObject *addresses, *capsule;
    if (!PyArg_ParseTuple(given, "O!O", &PyTuple_Type, &addresses, &capsule))
        return NULL;
    if (PyTuple_GET_SIZE(addresses) != (Py_ssize_t)(sizeof(Shims) / sizeof(void (*)(void)))) {
        PyErr_SetString(PyExc_ValueError, "connect takes an address for each name in `shims`");
        return NULL;
    }
    const lk_float32_kernels *others = PyCapsule_GetPointer(capsule, LK_FLOAT32_CAPSULE);
    if (others == NULL)
        return NULL;
    /* ISO C has no conversion from void * to a pointer to a function. */
#define TAKE(result, name, parameters)                                                             \
    {                                                                                              \
        void *address = PyLong_AsVoidPtr(PyTuple_GET_ITEM(addresses, i++));                        \
        if (address == NULL) {                                                                     \
            if (!PyErr_Occurred())                                                                 \
                PyErr_SetString(PyExc_ValueError, "connect was given 0 for " #name);               \
            return NULL;                                                                           \
        }                                                                                          \
        memcpy(&found.name, &address, sizeof address);                                             \
    }
    SHIMS(TAKE)
    torch = found;
    kernels = others;
    Py_RETURN_NONE;
}

static int
connected(void)
{
    if (kernels == NULL)
        PyErr_SetString(PyExc_RuntimeError, "connect must be called before");
    return kernels != NULL;
}

/* The library is never deleted: that would take the operators back. */
static PyObject *
register_operators(PyObject *Py_UNUSED(module), PyObject *Py_UNUSED(none))
{
    Library library;
    if (!connected())
        return NULL;
    if (torch.aoti_torch_library_init_impl("logunif_kl", "CPU", __FILE__, __LINE__, &library) ||
        torch.aoti_torch_library_impl(library, "value", boxed_value) ||
        torch.aoti_torch_library_impl(library, "value_sum", boxed_value_sum) ||
        torch.aoti_torch_library_impl(library, "gradient", boxed_gradient)) {
        PyErr_SetString(PyExc_RuntimeError, "PyTorch refused the kernels of an operator");
        return NULL;
    }
    Py_RETURN_NONE;
}

static PyObject *
after_fork(PyObject *Py_UNUSED(module), PyObject *Py_UNUSED(none))
{
    forked = 1;
    Py_RETURN_NONE;
}

/* Read addresses, and for each whether it is that of a number. */
static int
read_arguments(PyObject *const *from, Argument *to, int count)
{
    for (int i = 0; i < count; i++) {
        to[i].data = PyLong_AsVoidPtr(from[2 * i]);
        to[i].number = PyObject_IsTrue(from[2 * i + 1]);
    }
    return PyErr_Occurred() ? -1 : 0;
}

static int
check_count(Py_ssize_t given, Py_ssize_t wanted)
{
    if (given != wanted)
        PyErr_Format(PyExc_TypeError, "%zd arguments are taken, and %zd were given", wanted, given);
    return given == wanted && connected();
}

/* (mu, number, log_sigma2, number, result, n, sign) */
static int
read_value(PyObject *const *arguments, Py_ssize_t count, Work *work)
{
    Argument streams[2];
    if (!check_count(count, 7) || read_arguments(arguments, streams, 2) < 0)
        return -1;
    work->mu = streams[0];
    work->log_sigma2 = streams[1];
    work->first = PyLong_AsVoidPtr(arguments[4]);
    work->n = PyLong_AsLongLong(arguments[5]);
    work->sign = (float)PyFloat_AsDouble(arguments[6]);
    return PyErr_Occurred() ? -1 : 0;
}

static PyObject *
value(PyObject *Py_UNUSED(module), PyObject *const *arguments, Py_ssize_t count)
{
    Work work = {0};
    if (read_value(arguments, count, &work) < 0)
        return NULL;
    Py_BEGIN_ALLOW_THREADS;
    run_value(&work);
    Py_END_ALLOW_THREADS;
    Py_RETURN_NONE;
}

static PyObject *
value_sum(PyObject *Py_UNUSED(module), PyObject *const *arguments, Py_ssize_t count)
{
    Work work = {0};
    int status;
    if (read_value(arguments, count, &work) < 0)
        return NULL;
    Py_BEGIN_ALLOW_THREADS;
    status = run_sum(&work);
    Py_END_ALLOW_THREADS;
    if (status < 0)
        return PyErr_NoMemory();
    Py_RETURN_NONE;
}

/* (factor, number, mu, number, log_sigma2, number, d_mu, d_log_sigma2, n, sign) */
static PyObject *
gradient(PyObject *Py_UNUSED(module), PyObject *const *arguments, Py_ssize_t count)
{
    Argument streams[3];
    Work work = {0};
    if (!check_count(count, 10) || read_arguments(arguments, streams, 3) < 0)
        return NULL;
    work.factor = streams[0];
    work.mu = streams[1];
    work.log_sigma2 = streams[2];
    work.first = PyLong_AsVoidPtr(arguments[6]);
    work.second = PyLong_AsVoidPtr(arguments[7]);
    work.n = PyLong_AsLongLong(arguments[8]);
    work.sign = (float)PyFloat_AsDouble(arguments[9]);
    if (PyErr_Occurred())
        return NULL;
    Py_BEGIN_ALLOW_THREADS;
    run_gradient(&work);
    Py_END_ALLOW_THREADS;
    Py_RETURN_NONE;
}

/* ISO C has no conversion between types of functions but by void (*)(void). */
#define METHOD(function) (PyCFunction)(void (*)(void))(function)

static PyMethodDef methods[] = {
    {"connect", connect, METH_VARARGS,
     "Take the addresses of the functions that `shims` names, and the capsule of the kernels."},
    {"register_operators", register_operators, METH_NOARGS,
     "Add the CPU kernels of the operators to PyTorch."},
    {"after_fork", after_fork, METH_NOARGS,
     "Start no threads from now on: those of PyTorch do not survive a fork."},
    {"value", METHOD(value), METH_FASTCALL,
     "(mu, number, log_sigma2, number, result, n, sign): -KL times the sign."},
    {"value_sum", METHOD(value_sum), METH_FASTCALL,
     "(mu, number, log_sigma2, number, result, n, sign): the sum of -KL times the sign."},
    {"gradient", METHOD(gradient), METH_FASTCALL,
     "(factor, number, mu, number, log_sigma2, number, d_mu, d_log_sigma2, n, sign): the "
     "derivatives of -KL times the factor and the sign."},
    {NULL, NULL, 0, NULL},
};

static struct PyModuleDef definition = {
    PyModuleDef_HEAD_INIT,
    .m_name = "_library",
    .m_doc = "The float32 kernels on PyTorch's threads, and as its operators.",
    .m_size = -1,
    .m_methods = methods,
};

PyMODINIT_FUNC
PyInit__library(void)
{
    PyObject *module = PyModule_Create(&definition);
    if (module == NULL)
        return NULL;
#define NAME(result, name, parameters) #name,
    const char *const names[] = {SHIMS(NAME)};
    Py_ssize_t count = (Py_ssize_t)(sizeof names / sizeof *names);
    PyObject *shims = PyTuple_New(count);
    for (Py_ssize_t i = 0; shims != NULL && i < count; i++) {
        PyObject *name = PyUnicode_FromString(names[i]);
        if (name == NULL)
            Py_CLEAR(shims);
        else
            PyTuple_SET_ITEM(shims, i, name);
    }
    if (shims == NULL || PyModule_AddObjectRef(module, "shims", shims) < 0)
        Py_CLEAR(module);
    Py_XDECREF(shims);
    return module;
}
