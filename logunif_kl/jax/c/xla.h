/* The part of XLA's FFI that the handlers use, declared in C11.
 *
 * XLA keeps the layout of these structs (`xla/ffi/api/c_api.h` in the include folder of jaxlib) and
 * only appends members. So one binary works with every jaxlib, and the build does not need JAX. The
 * declarations end at the last member that is used. `tests/jax/test_xla_header.py` compares them
 * with jaxlib's header. */

#ifndef LOGUNIF_KL_XLA_H
#define LOGUNIF_KL_XLA_H

#include <stddef.h>
#include <stdint.h>

/* The oldest version of the interface that has these members. */
enum { LK_XLA_MAJOR = 0, LK_XLA_MINOR = 1 };

enum {
    LK_XLA_METADATA = 1,         /* a type of extension */
    LK_XLA_BUFFER = 1,           /* the type of arguments and results */
    LK_XLA_SCALAR = 3,           /* the type of attributes */
    LK_XLA_F32 = 11,             /* the type of elements */
    LK_XLA_INVALID_ARGUMENT = 3, /* an error code */
    LK_XLA_EXECUTE = 3           /* a stage of execution */
};

typedef struct lk_xla_error lk_xla_error;

typedef struct lk_xla_extension {
    size_t struct_size;
    int type;
    struct lk_xla_extension *next;
} lk_xla_extension;

typedef struct {
    size_t struct_size;
    lk_xla_extension *extensions;
    int major, minor;
} lk_xla_version;

typedef struct {
    size_t struct_size;
    lk_xla_version version;
    uint32_t traits;
} lk_xla_metadata;

typedef struct {
    lk_xla_extension base;
    lk_xla_metadata *metadata;
} lk_xla_metadata_extension;

typedef struct {
    size_t struct_size;
    lk_xla_extension *extensions;
    int dtype;
    void *data;
    int64_t rank;
    int64_t *dims;
} lk_xla_buffer;

typedef struct {
    const char *text;
    size_t length;
} lk_xla_span;

typedef struct {
    int dtype;
    void *value;
} lk_xla_scalar;

typedef struct {
    size_t struct_size;
    lk_xla_extension *extensions;
    int64_t size;
    int *types;
    void **values;
} lk_xla_buffers; /* all arguments of a call, or all its results */

typedef struct {
    size_t struct_size;
    lk_xla_extension *extensions;
    int64_t size;
    int *types;
    lk_xla_span **names;
    void **values;
} lk_xla_attributes;

typedef struct {
    size_t struct_size;
    lk_xla_extension *extensions;
    const char *message;
    int code;
} lk_xla_error_create;

typedef struct {
    size_t struct_size;
    lk_xla_extension *extensions;
    lk_xla_error *error;
} lk_xla_error_destroy;

typedef struct {
    size_t struct_size;
    lk_xla_extension *extensions;
    void *context;
    void (*task)(void *);
    void *data;
} lk_xla_schedule;

typedef struct {
    size_t struct_size;
    lk_xla_extension *extensions;
    void *context;
    int64_t *num_threads;
} lk_xla_num_threads;

typedef struct {
    size_t struct_size;
    lk_xla_extension *extensions;
    lk_xla_version version;
    const void *internal;
    lk_xla_error *(*error_create)(lk_xla_error_create *);
    void *error_message;
    void (*error_destroy)(lk_xla_error_destroy *);
    void *others[8];
    lk_xla_error *(*schedule)(lk_xla_schedule *);
    lk_xla_error *(*num_threads)(lk_xla_num_threads *);
} lk_xla_api;

typedef struct {
    size_t struct_size;
    lk_xla_extension *extensions;
    const lk_xla_api *api;
    void *context;
    int stage;
    lk_xla_buffers arguments, results;
    lk_xla_attributes attributes;
} lk_xla_frame;

#define LK_XLA_AT(type, member, offset)                                    \
    _Static_assert(offsetof(type, member) == (offset), #type "." #member)
_Static_assert(sizeof(void *) == 8 && sizeof(size_t) == 8 && sizeof(int) == 4, "a 64-bit machine");
LK_XLA_AT(lk_xla_extension, next, 16);
LK_XLA_AT(lk_xla_version, minor, 20);
LK_XLA_AT(lk_xla_metadata, traits, 32);
LK_XLA_AT(lk_xla_metadata_extension, metadata, 24);
LK_XLA_AT(lk_xla_buffer, dims, 40);
LK_XLA_AT(lk_xla_scalar, value, 8);
LK_XLA_AT(lk_xla_buffers, values, 32);
LK_XLA_AT(lk_xla_attributes, values, 40);
LK_XLA_AT(lk_xla_error_create, code, 24);
LK_XLA_AT(lk_xla_schedule, data, 32);
LK_XLA_AT(lk_xla_num_threads, num_threads, 24);
LK_XLA_AT(lk_xla_api, error_create, 48);
LK_XLA_AT(lk_xla_api, schedule, 136);
LK_XLA_AT(lk_xla_api, num_threads, 144);
LK_XLA_AT(lk_xla_frame, arguments, 40);
LK_XLA_AT(lk_xla_frame, results, 80);
LK_XLA_AT(lk_xla_frame, attributes, 120);
#undef LK_XLA_AT

#endif
