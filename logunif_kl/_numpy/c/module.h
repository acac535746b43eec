/* How each extension is initialised.
 *
 * The modules keep their state in static variables, so they serve one interpreter only. They need
 * no GIL, because only the import and `logunif_kl.torch._kernels` change that state. */

#ifndef LOGUNIF_KL_MODULE_H
#define LOGUNIF_KL_MODULE_H

#include <Python.h>

/* Py_mod_multiple_interpreters and Py_MOD_MULTIPLE_INTERPRETERS_NOT_SUPPORTED, which the headers
 * leave out of the stable ABI of Python 3.11. */
#define LK_ONE_INTERPRETER {3, NULL}

/* The headers of Python 3.15 define Py_mod_gil in the stable ABI of 3.11 too, but not its values. */
#ifdef Py_MOD_GIL_NOT_USED
#define LK_NO_GIL {Py_mod_gil, Py_MOD_GIL_NOT_USED},
#else
#define LK_NO_GIL
#endif

/* Define PyInit_NAME of a module that the function `fill` fills. Python 3.11 does not know the
 * first slot. */
#define LK_MODULE(name, doc, methods, fill)                                                        \
    static PyModuleDef_Slot name##_slots[] = {                                                     \
        LK_ONE_INTERPRETER,                                                                        \
        {Py_mod_exec, fill},                                                                       \
        LK_NO_GIL{0, NULL},                                                                        \
    };                                                                                             \
    static PyModuleDef name##_definition = {                                                       \
        PyModuleDef_HEAD_INIT, #name, doc, 0, methods, name##_slots, NULL, NULL, NULL,             \
    };                                                                                             \
    PyMODINIT_FUNC PyInit_##name(void)                                                             \
    {                                                                                              \
        name##_definition.m_slots = name##_slots + (Py_Version < 0x030c0000);                      \
        return PyModuleDef_Init(&name##_definition);                                               \
    }

#endif
