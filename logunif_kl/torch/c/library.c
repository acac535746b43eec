/* Run the float32 kernels on PyTorch's threads, and register them as operators for its compiler.
 *
 * This module is built and imported without PyTorch. `connect` takes the addresses of the functions
 * of `shims.h`. `register_operators` then adds the CPU kernels of the operators that
 * `logunif_kl.torch._operators` defines. The other functions serve eager mode. They take tensors,
 * not addresses, and check each tensor even if their callers have done so. */

#define PY_SSIZE_T_CLEAN
#include <Python.h>

#include "../../_numpy/c/module.h"
#include "boxed.h"

static const Exchange *exchange;
static PyObject *name_untyped_storage, *name_data_ptr, *name_nbytes;

static PyObject *
connect(PyObject *Py_UNUSED(module), PyObject *given)
{
    Shims found;
    int i = 0;
    PyObject *addresses, *capsule, *looking;
    if (!PyArg_ParseTuple(given, "O!OO", &PyTuple_Type, &addresses, &capsule, &looking))
        return NULL;
    if (PyTuple_Size(addresses) != (Py_ssize_t)(sizeof(Shims) / sizeof(void (*)(void)))) {
        PyErr_SetString(PyExc_ValueError, "connect takes an address for each name in `shims`");
        return NULL;
    }
    const lk_float32_kernels *others = PyCapsule_GetPointer(capsule, LK_FLOAT32_CAPSULE);
    const Exchange *dlpack = others ? PyCapsule_GetPointer(looking, DLPACK_EXCHANGE) : NULL;
    if (dlpack == NULL)
        return NULL;
    if (dlpack->major != DLPACK_MAJOR || dlpack->look == NULL) {
        PyErr_SetString(PyExc_ValueError, "connect takes DLPack of version 1 that looks at tensors");
        return NULL;
    }
    /* Copy the bytes, because ISO C does not convert void * to a pointer to a function. */
#define TAKE(result, name, parameters)                                                             \
    {                                                                                              \
        void *address = PyLong_AsVoidPtr(PyTuple_GetItem(addresses, i++));                         \
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
    exchange = dlpack;
    Py_RETURN_NONE;
}

static int
connected(void)
{
    if (kernels == NULL)
        PyErr_SetString(PyExc_RuntimeError, "connect must be called before");
    return kernels != NULL;
}

/* The library is never deleted, because that would unregister the operators. */
static PyObject *
register_operators(PyObject *Py_UNUSED(module), PyObject *Py_UNUSED(none))
{
    Library library;
    if (!connected())
        return NULL;
    if (torch.aoti_torch_library_init_impl("logunif_kl", "CPU", __FILE__, __LINE__, &library) ||
        torch.aoti_torch_library_impl(library, "value", boxed_value) ||
        torch.aoti_torch_library_impl(library, "value_sum", boxed_value_sum) ||
        torch.aoti_torch_library_impl(library, "gradient", boxed_gradient) ||
        torch.aoti_torch_library_impl(library, "log_alpha_gradient", boxed_log_alpha_gradient)) {
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

/* Call a method that returns a number. If it raises, return 0 with the exception set. */
static uintptr_t
number_from(PyObject *of, PyObject *method)
{
    PyObject *found = of ? PyObject_CallMethodObjArgs(of, method, NULL) : NULL;
    uintptr_t number = found ? PyLong_AsSize_t(found) : 0;
    Py_XDECREF(found);
    return PyErr_Occurred() ? 0 : number;
}

/* Whether a tensor's storage holds all its elements in memory. */
static int
is_held(PyObject *tensor, const float *data, int64_t elements)
{
    PyObject *storage = PyObject_CallMethodObjArgs(tensor, name_untyped_storage, NULL);
    uintptr_t first = number_from(storage, name_data_ptr), at = (uintptr_t)data;
    uintptr_t bytes = first > 0 ? number_from(storage, name_nbytes) : 0;
    Py_XDECREF(storage);
    /* The difference is unsigned, so it is huge if the data begins before the storage. */
    return at - first <= bytes &&
           (uintptr_t)elements <= (bytes - (at - first)) / sizeof(float);
}

/* Read the properties of a Python tensor. Return 0, or -1 with an exception. */
static int
look_at(PyObject *tensor, Looked *to)
{
    DLTensor found;
    int whole = 1, number = 1;
    if (exchange->look(tensor, &found) || found.device_type != DLPACK_CPU ||
        found.code != DLPACK_FLOAT || found.bits != 32 || found.lanes != 1) {
        PyErr_SetString(PyExc_TypeError, BAD_TENSOR);
        return -1;
    }
    to->n = 1;
    for (int32_t i = found.ndim - 1; i >= 0; i--) {
        if (found.shape[i] != 1) {
            whole &= found.strides[i] == to->n;
            number &= found.strides[i] == 0;
        }
        to->n *= found.shape[i];
    }
    whole |= to->n == 0;
    if (!whole && !number) {
        PyErr_SetString(PyExc_TypeError, BAD_TENSOR);
        return -1;
    }
    to->argument = (Argument){(float *)((char *)found.data + found.byte_offset),
                              found.ndim == 0 || !whole};
    to->dim = found.ndim;
    to->sizes = found.shape;
    if (to->n == 0 || is_held(tensor, to->argument.data, whole ? to->n : 1))
        return 0;
    if (!PyErr_Occurred())
        PyErr_SetString(PyExc_RuntimeError, BAD_MEMORY);
    return -1;
}

/* Read the tensors into `work`, and compare their shapes. Return 0, or -1 with an exception. */
static int
read_work(PyObject *const *given, Py_ssize_t count, int arguments, int results, int summed,
          Work *work)
{
    Looked looked[5];
    const Looked *like;
    int tensors = arguments + results;
    if (count != tensors) {
        PyErr_Format(PyExc_TypeError, "%d arguments are taken, and %zd were given", tensors, count);
        return -1;
    }
    if (!connected())
        return -1;
    for (int i = 0; i < tensors; i++)
        if (look_at(given[i], &looked[i]) < 0)
            return -1;
    const char *wrong = compare_shapes(looked, arguments, &like);
    for (int i = arguments; i < tensors; i++)
        if (summed ? looked[i].dim > 0
                   : (looked[i].argument.number && like->dim > 0) || !same_shape(&looked[i], like))
            wrong = BAD_SHAPES;
    if (wrong != NULL) {
        PyErr_SetString(PyExc_ValueError, wrong);
        return -1;
    }
    if (arguments == 3)
        work->factor = looked[0].argument;
    work->mu = looked[arguments - 2].argument;
    work->log_sigma2 = looked[arguments - 1].argument;
    work->first = (float *)looked[arguments].argument.data;
    work->second = (float *)looked[tensors - 1].argument.data;
    work->n = like->n;
    return 0;
}

static PyObject *
value(PyObject *Py_UNUSED(module), PyObject *const *given, Py_ssize_t count)
{
    Work work = {0};
    if (read_work(given, count, 2, 1, 0, &work) < 0)
        return NULL;
    Py_BEGIN_ALLOW_THREADS;
    run_value(&work);
    Py_END_ALLOW_THREADS;
    Py_RETURN_NONE;
}

static PyObject *
value_sum(PyObject *Py_UNUSED(module), PyObject *const *given, Py_ssize_t count)
{
    Work work = {0};
    int status;
    if (read_work(given, count, 2, 1, 1, &work) < 0)
        return NULL;
    Py_BEGIN_ALLOW_THREADS;
    status = run_sum(&work);
    Py_END_ALLOW_THREADS;
    if (status < 0)
        return PyErr_NoMemory();
    Py_RETURN_NONE;
}

static PyObject *
gradient(PyObject *Py_UNUSED(module), PyObject *const *given, Py_ssize_t count)
{
    Work work = {0};
    if (read_work(given, count, 3, 2, 0, &work) < 0)
        return NULL;
    Py_BEGIN_ALLOW_THREADS;
    run_gradient(&work);
    Py_END_ALLOW_THREADS;
    Py_RETURN_NONE;
}

/* Compilers warn of a direct cast to PyCFunction, but not of one by way of void (*)(void). */
#define METHOD(function) (PyCFunction)(void (*)(void))(function)

static PyMethodDef methods[] = {
    {"connect", connect, METH_VARARGS,
     "Take the addresses of the functions that `shims` names, the capsule of the kernels, and that "
     "of DLPack's exchange."},
    {"register_operators", register_operators, METH_NOARGS,
     "Add the CPU kernels of the operators to PyTorch."},
    {"after_fork", after_fork, METH_NOARGS,
     "Start no threads from now on: those of PyTorch do not survive a fork."},
    {"value", METHOD(value), METH_FASTCALL, "(mu, log_sigma2, result): -KL."},
    {"value_sum", METHOD(value_sum), METH_FASTCALL, "(mu, log_sigma2, result): the sum of -KL."},
    {"gradient", METHOD(gradient), METH_FASTCALL,
     "(factor, mu, log_sigma2, d_mu, d_log_sigma2): the derivatives of -KL times the factor."},
    {NULL, NULL, 0, NULL},
};

static int
fill_module(PyObject *module)
{
    name_untyped_storage = PyUnicode_InternFromString("untyped_storage");
    name_data_ptr = PyUnicode_InternFromString("data_ptr");
    name_nbytes = PyUnicode_InternFromString("nbytes");
    if (name_untyped_storage == NULL || name_data_ptr == NULL || name_nbytes == NULL)
        return -1;
#define NAME(result, name, parameters) #name,
    const char *const names[] = {SHIMS(NAME)};
    Py_ssize_t count = (Py_ssize_t)(sizeof names / sizeof *names);
    PyObject *shims = PyTuple_New(count);
    for (Py_ssize_t i = 0; shims != NULL && i < count; i++) {
        PyObject *name = PyUnicode_FromString(names[i]);
        if (name == NULL)
            Py_CLEAR(shims);
        else
            PyTuple_SetItem(shims, i, name);
    }
    int status = shims ? PyModule_AddObjectRef(module, "shims", shims) : -1;
    Py_XDECREF(shims);
    return status;
}

LK_MODULE(_library, "The float32 kernels on PyTorch's threads, and as its operators.", methods,
          fill_module)
