/* The functions of libtorch that `library.c` calls: a few of its stable C shims.
 *
 * They are declared in torch/csrc/inductor/aoti_torch/c/shim.h and torch/csrc/stable/c/shim.h, and
 * PyTorch keeps their signatures. Neither the headers nor the library is needed to build: Python
 * finds the functions in the loaded libtorch by name (`logunif_kl.torch._kernels`). Functions that
 * return `Error` return 0 unless they fail. */

#ifndef LOGUNIF_KL_SHIMS_H
#define LOGUNIF_KL_SHIMS_H

#include <stdbool.h>
#include <stdint.h>

typedef int32_t Error;
typedef struct AtenTensorOpaque *Tensor;
typedef struct TorchLibraryOpaque *Library;
/* An argument or a result of an operator: a tensor's handle, or the bits of a number. */
typedef uint64_t Value;
typedef void (*Boxed)(Value *stack, uint64_t arguments, uint64_t results);
typedef void (*Range)(int64_t begin, int64_t end, void *context);

/* SHIM(result, name, parameters) */
#define SHIMS(SHIM)                                                                                \
    SHIM(Error, aoti_torch_library_init_impl,                                                      \
         (const char *name, const char *key, const char *file, uint32_t line, Library *made))      \
    SHIM(Error, aoti_torch_library_impl, (Library library, const char *name, Boxed function))      \
    SHIM(Error, torch_parallel_for,                                                                \
         (int64_t begin, int64_t end, int64_t grain, Range function, void *context))               \
    SHIM(Error, aoti_torch_get_data_ptr, (Tensor tensor, void **found))                            \
    SHIM(Error, aoti_torch_get_numel, (Tensor tensor, int64_t *found))                             \
    SHIM(Error, aoti_torch_get_dim, (Tensor tensor, int64_t *found))                               \
    SHIM(Error, aoti_torch_get_sizes, (Tensor tensor, int64_t **found))                            \
    SHIM(Error, aoti_torch_get_storage_offset, (Tensor tensor, int64_t *found))                    \
    SHIM(Error, aoti_torch_get_storage_size, (Tensor tensor, int64_t *found))                      \
    SHIM(Error, aoti_torch_get_dtype, (Tensor tensor, int32_t *found))                             \
    SHIM(Error, aoti_torch_get_device_type, (Tensor tensor, int32_t *found))                       \
    SHIM(Error, aoti_torch_is_contiguous, (Tensor tensor, bool *found))                            \
    SHIM(Error, aoti_torch_empty_strided,                                                          \
         (int64_t dim, const int64_t *sizes, const int64_t *strides, int32_t dtype,                \
          int32_t device_type, int32_t device_index, Tensor *made))                                \
    SHIM(Error, aoti_torch_delete_tensor_object, (Tensor tensor))                                  \
    SHIM(int32_t, aoti_torch_dtype_float32, (void))                                                \
    SHIM(int32_t, aoti_torch_device_type_cpu, (void))                                              \
    SHIM(void, aoti_torch_check,                                                                   \
         (bool condition, const char *function, const char *file, uint32_t line,                   \
          const char *message))

typedef struct {
#define FIELD(result, name, parameters) result(*name) parameters;
    SHIMS(FIELD)
#undef FIELD
} Shims;

/* DLPack 1 describes a Python tensor. `torch.Tensor.__dlpack_c_exchange_api__` is a capsule named
 * DLPACK_EXCHANGE that points to an `Exchange`. ATen/dlpack.h declares these structures. */
#define DLPACK_EXCHANGE "dlpack_exchange_api"
enum { DLPACK_MAJOR = 1, DLPACK_CPU = 1, DLPACK_FLOAT = 2 };

typedef struct {
    void *data;
    int32_t device_type, device_id, ndim;
    uint8_t code, bits;
    uint16_t lanes;
    int64_t *shape, *strides;
    uint64_t byte_offset;
} DLTensor;

typedef struct {
    uint32_t major, minor;
    void *older, *allocate, *share, *receive;
    int (*look)(void *tensor, DLTensor *found); /* returns 0, or sets an exception */
} Exchange;

#endif
