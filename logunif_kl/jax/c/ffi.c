/* The float32 kernels of `_numpy/c` as custom calls of XLA on the CPU.
 *
 * `logunif_kl.jax._ffi` has a capsule of each handler for `jax.ffi.register_ffi_target`. The name of
 * a handler says what it computes. The arguments are mu and log_sigma2, or log_alpha alone, with the
 * attribute `sign`. All arrays are dense float32 arrays of one size. XLA's pool of threads shares
 * the work. */

#define PY_SSIZE_T_CLEAN
#include <Python.h>

#include <stdlib.h>
#include <string.h>

#include "../../_numpy/c/float32_capsule.h"
#include "../../_numpy/c/module.h"
#include "xla.h"

#ifdef __STDC_NO_ATOMICS__
#define THREADED 0
#else
#define THREADED 1
#include <stdatomic.h>
#ifdef _WIN32
#include <windows.h>
#define give_way() SwitchToThread()
#else
#include <sched.h>
#define give_way() sched_yield()
#endif
#endif

/* Set when the module is imported, before any handler can be registered. */
static const lk_float32_kernels *kernels;

typedef enum { VALUE, GRADIENT, VALUE_AND_GRADIENT } kind;

typedef struct {
    kind kind;
    int number; /* of arguments */
    float sign;
    const float *arguments[2];
    float *results[3];
    ptrdiff_t size;
} work;

/* A kernel gets this many elements of log_alpha at a time, so that its arrays fit the L1 cache. */
enum { PIECE = 1024 };

/* -KL depends only on log_alpha = log_sigma2 - log mu^2: pass mu = 1, log_alpha as log_sigma2. */
static void
compute_of_log_alpha(const work *w, ptrdiff_t start, ptrdiff_t n)
{
    float mu[PIECE], d_mu[PIECE];
    for (int i = 0; i < PIECE; i++)
        mu[i] = 1.0f;
    for (ptrdiff_t end = start + n; start < end; start += PIECE) {
        ptrdiff_t size = end - start < PIECE ? end - start : PIECE;
        const float *log_alpha = w->arguments[0] + start;
        float *first = w->results[0] + start;
        switch (w->kind) {
        case VALUE:
            kernels->value(w->sign, mu, log_alpha, first, size);
            break;
        case GRADIENT:
            kernels->gradient(&w->sign, 0, mu, log_alpha, d_mu, first, size);
            break;
        case VALUE_AND_GRADIENT:
            kernels->value_and_gradient(w->sign, mu, log_alpha, first, d_mu,
                                        w->results[1] + start, size);
            break;
        }
    }
}

static void
compute(const work *w, ptrdiff_t start, ptrdiff_t n)
{
    if (w->number == 1) {
        compute_of_log_alpha(w, start, n);
        return;
    }
    const float *mu = w->arguments[0] + start, *log_sigma2 = w->arguments[1] + start;
    float *first = w->results[0] + start;
    switch (w->kind) {
    case VALUE:
        kernels->value(w->sign, mu, log_sigma2, first, n);
        break;
    case GRADIENT:
        kernels->gradient(&w->sign, 0, mu, log_sigma2, first, w->results[1] + start, n);
        break;
    case VALUE_AND_GRADIENT:
        kernels->value_and_gradient(w->sign, mu, log_sigma2, first, w->results[1] + start,
                                    w->results[2] + start, n);
        break;
    }
}

/* ---- threads ------------------------------------------------------------------------------- */

/* A thread takes this many elements at a time: about 50 us of work, much longer than a wake-up. */
enum { CHUNK = 16384 };

static void
forget_error(const lk_xla_frame *frame, lk_xla_error *error)
{
    if (error != NULL) {
        lk_xla_error_destroy args = {sizeof args, NULL, error};
        frame->api->error_destroy(&args);
    }
}

#if THREADED

/* This struct lives until the last scheduled task has run, which may be after the call. The arrays
 * of `work` live until the call ends. A task that starts later finds no chunk to compute. */
typedef struct {
    work work;
    ptrdiff_t chunks;
    atomic_ptrdiff_t next, done;
    atomic_int holders;
} shared;

static void
release(shared *s)
{
    if (atomic_fetch_sub(&s->holders, 1) == 1)
        free(s);
}

/* Take chunks until all are taken. */
static void
take_part(shared *s)
{
    for (;;) {
        ptrdiff_t i = atomic_fetch_add(&s->next, 1), start = i * CHUNK;
        if (i >= s->chunks)
            return;
        compute(&s->work, start, i + 1 < s->chunks ? CHUNK : s->work.size - start);
        atomic_fetch_add(&s->done, 1);
    }
}

static void
help(void *data)
{
    take_part(data);
    release(data);
}

static int64_t
threads_of(const lk_xla_frame *frame)
{
    int64_t found = 1;
    lk_xla_num_threads args = {sizeof args, NULL, frame->context, &found};
    lk_xla_error *error = frame->api->num_threads(&args);
    if (error == NULL)
        return found;
    forget_error(frame, error);
    return 1;
}

/* The calling thread may be the pool's only thread, so it must not wait for a task to start. It
 * takes chunks itself until all are taken, and then waits until the tasks have computed theirs. */
static void
run(const lk_xla_frame *frame, const work *w)
{
    ptrdiff_t chunks = (w->size + CHUNK - 1) / CHUNK;
    int64_t helpers = chunks > 1 ? threads_of(frame) - 1 : 0;
    shared *s = helpers > 0 ? malloc(sizeof *s) : NULL;
    if (s == NULL) {
        compute(w, 0, w->size);
        return;
    }
    if (helpers > chunks - 1)
        helpers = chunks - 1;
    s->work = *w;
    s->chunks = chunks;
    atomic_init(&s->next, 0);
    atomic_init(&s->done, 0);
    atomic_init(&s->holders, 1);
    for (int64_t i = 0; i < helpers; i++) {
        lk_xla_schedule args = {sizeof args, NULL, frame->context, help, s};
        atomic_fetch_add(&s->holders, 1);
        lk_xla_error *error = frame->api->schedule(&args);
        if (error != NULL) {
            forget_error(frame, error);
            release(s);
            break;
        }
    }
    take_part(s);
    while (atomic_load(&s->done) < chunks)
        give_way();
    release(s);
}

#else

static void
run(const lk_xla_frame *frame, const work *w)
{
    (void)frame;
    compute(w, 0, w->size);
}

#endif

/* ---- the call ------------------------------------------------------------------------------ */

/* If XLA asks for the version, as at registration, write it and return 1. Otherwise return 0. */
static int
answered(const lk_xla_frame *frame)
{
    for (lk_xla_extension *e = frame->extensions; e != NULL; e = e->next)
        if (e->type == LK_XLA_METADATA) {
            lk_xla_metadata *metadata = ((lk_xla_metadata_extension *)e)->metadata;
            metadata->version.major = LK_XLA_MAJOR;
            metadata->version.minor = LK_XLA_MINOR;
            metadata->traits = 0;
            return 1;
        }
    return 0;
}

static lk_xla_error *
refuse(const lk_xla_frame *frame, const char *message)
{
    lk_xla_error_create args = {sizeof args, NULL, message, LK_XLA_INVALID_ARGUMENT};
    return frame->api->error_create(&args);
}

/* Return the memory of a float32 array of `*size` elements, or NULL for any other array. First, if
 * `*size` is negative, set it to the number of elements. */
static float *
array(const lk_xla_buffers *of, int64_t i, ptrdiff_t *size)
{
    const lk_xla_buffer *buffer = of->values[i];
    if (of->types[i] != LK_XLA_BUFFER || buffer->dtype != LK_XLA_F32)
        return NULL;
    ptrdiff_t n = 1;
    for (int64_t d = 0; d < buffer->rank; d++) {
        if (buffer->dims[d] < 0)
            return NULL;
        n *= (ptrdiff_t)buffer->dims[d];
    }
    if (*size < 0)
        *size = n;
    /* An empty array may have no memory. */
    static float none;
    return n != *size ? NULL : n == 0 ? &none : buffer->data;
}

/* Return the sign, or 0 if the attributes are wrong. */
static float
sign_of(const lk_xla_attributes *of)
{
    if (of->size != 1 || of->types[0] != LK_XLA_SCALAR || of->names[0]->length != 4 ||
        memcmp(of->names[0]->text, "sign", 4) != 0)
        return 0.0f;
    const lk_xla_scalar *scalar = of->values[0];
    float sign = 0.0f;
    if (scalar->dtype == LK_XLA_F32)
        memcpy(&sign, scalar->value, sizeof sign);
    return sign;
}

static lk_xla_error *
call(lk_xla_frame *frame, kind kind, int number, int64_t results)
{
    if (answered(frame))
        return NULL;
    if (frame->stage != LK_XLA_EXECUTE)
        return NULL;
    if (frame->arguments.size != number || frame->results.size != results)
        return refuse(frame, "logunif_kl: mu and log_sigma2, or log_alpha, must be given, and room "
                             "for what is computed, but other numbers of arrays were given");
    work w = {kind, number, sign_of(&frame->attributes), {NULL}, {NULL}, -1};
    if (w.sign == 0.0f)
        return refuse(frame, "logunif_kl: one attribute must be given, sign, of float32 and not 0");
    int fine = 1;
    for (int64_t i = 0; i < number; i++)
        fine &= (w.arguments[i] = array(&frame->arguments, i, &w.size)) != NULL;
    for (int64_t i = 0; i < results; i++)
        fine &= (w.results[i] = array(&frame->results, i, &w.size)) != NULL;
    if (!fine)
        return refuse(frame, "logunif_kl: arguments and results must be arrays of float32 of one "
                             "size, but others were given");
    run(frame, &w);
    return NULL;
}

#define HANDLER(name, kind, number, results)  \
    static lk_xla_error *name(lk_xla_frame *frame) \
    {                                              \
        return call(frame, kind, number, results); \
    }
HANDLER(value, VALUE, 2, 1)
HANDLER(gradient, GRADIENT, 2, 2)
HANDLER(value_and_gradient, VALUE_AND_GRADIENT, 2, 3)
HANDLER(log_alpha_value, VALUE, 1, 1)
HANDLER(log_alpha_gradient, GRADIENT, 1, 1)
HANDLER(log_alpha_value_and_gradient, VALUE_AND_GRADIENT, 1, 2)

/* ---- the module ---------------------------------------------------------------------------- */

static int
add(PyObject *module, const char *name, lk_xla_error *(*handler)(lk_xla_frame *))
{
    void *pointer;
    memcpy(&pointer, &handler, sizeof pointer);
    PyObject *capsule = PyCapsule_New(pointer, NULL, NULL);
    int status = capsule ? PyModule_AddObjectRef(module, name, capsule) : -1;
    Py_XDECREF(capsule);
    return status;
}

static int
fill(PyObject *module)
{
    PyObject *others = PyImport_ImportModule("logunif_kl._numpy._float32");
    PyObject *capsule = others ? PyObject_GetAttrString(others, "kernels") : NULL;
    Py_XDECREF(others);
    kernels = capsule ? PyCapsule_GetPointer(capsule, LK_FLOAT32_CAPSULE) : NULL;
    Py_XDECREF(capsule);
#define ADD(name) add(module, #name, name) < 0
    if (kernels == NULL || ADD(value) || ADD(gradient) || ADD(value_and_gradient) ||
        ADD(log_alpha_value) || ADD(log_alpha_gradient) || ADD(log_alpha_value_and_gradient))
        return -1;
    return PyModule_AddIntConstant(module, "chunk", CHUNK);
}

LK_MODULE(_ffi, "Capsules of handlers of XLA's FFI: -KL of N(mu, sigma^2) and its derivatives.", NULL,
          fill)
