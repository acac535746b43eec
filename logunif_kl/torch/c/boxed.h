/* The operators in the form that PyTorch's dispatcher calls.
 *
 * Each function replaces the arguments on a stack by its results. It owns the argument tensors, so
 * it releases them. */

#ifndef LOGUNIF_KL_BOXED_H
#define LOGUNIF_KL_BOXED_H

#include <string.h>

#include "work.h"

enum { DIMENSIONS = 64 };

typedef struct {
    Argument argument;
    int64_t n, dim; /* elements and dimensions of the tensor, even if it is one expanded number */
    const int64_t *sizes;
} Looked;

#define BAD_TENSOR                                                                                 \
    "logunif_kl: the kernels take contiguous CPU tensors of float32, and another was given: call " \
    "the functions of logunif_kl.torch, which take every tensor"
#define BAD_SHAPES                                                                                 \
    "logunif_kl: the kernels take tensors of one shape and tensors of no dimensions, and other "   \
    "shapes were given: call the functions of logunif_kl.torch, which broadcast"
#define BAD_MEMORY                                                                                 \
    "logunif_kl: a tensor was given whose memory was freed, as that of a parameter that is "       \
    "sharded: pass it while it is gathered"
#define NO_MEMORY "logunif_kl: there is no memory for the results: pass fewer elements at once"

static Tensor
tensor_of(Value value)
{
    return (Tensor)(uintptr_t)value;
}

/* Read the properties of a tensor. Return an error message, or NULL. */
static const char *
look(Value value, Looked *to)
{
    Tensor tensor = tensor_of(value);
    int32_t dtype, device;
    int64_t *sizes, offset, bytes;
    bool contiguous;
    void *data;
    if (torch.aoti_torch_get_dtype(tensor, &dtype) ||
        torch.aoti_torch_get_device_type(tensor, &device) ||
        torch.aoti_torch_is_contiguous(tensor, &contiguous))
        return BAD_TENSOR;
    if (dtype != torch.aoti_torch_dtype_float32() ||
        device != torch.aoti_torch_device_type_cpu() || !contiguous)
        return BAD_TENSOR;
    if (torch.aoti_torch_get_data_ptr(tensor, &data) ||
        torch.aoti_torch_get_numel(tensor, &to->n) || torch.aoti_torch_get_dim(tensor, &to->dim) ||
        torch.aoti_torch_get_sizes(tensor, &sizes) ||
        torch.aoti_torch_get_storage_offset(tensor, &offset) ||
        torch.aoti_torch_get_storage_size(tensor, &bytes))
        return BAD_TENSOR;
    if (to->n > 0 && (data == NULL || offset + to->n > bytes / (int64_t)sizeof(float)))
        return BAD_MEMORY;
    to->argument = (Argument){data, to->dim == 0};
    to->sizes = sizes;
    return to->dim > DIMENSIONS ? BAD_SHAPES : NULL;
}

static int
same_shape(const Looked *a, const Looked *b)
{
    return a->dim == b->dim &&
           (a->dim == 0 || memcmp(a->sizes, b->sizes, (size_t)a->dim * sizeof(int64_t)) == 0);
}

/* Set `like` to an argument with the shape of the results. Return an error message, or NULL. */
static const char *
compare_shapes(const Looked *looked, int count, const Looked **like)
{
    /* The last two arguments are mu and log_sigma2. */
    *like = &looked[count - (looked[count - 2].argument.number ? 1 : 2)];
    for (int i = 0; i < count; i++)
        if (looked[i].argument.number ? looked[i].dim > 0 && looked[i].n != (*like)->n
                                      : !same_shape(&looked[i], *like))
            return BAD_SHAPES;
    return NULL;
}

static const char *
look_at_all(const Value *stack, int count, Looked *looked, const Looked **like)
{
    for (int i = 0; i < count; i++) {
        const char *wrong = look(stack[i], &looked[i]);
        if (wrong != NULL)
            return wrong;
    }
    return compare_shapes(looked, count, like);
}

/* Make a contiguous tensor of this shape, and get a pointer to its memory. Return 0, or -1. */
static int
make(int64_t dim, const int64_t *sizes, Tensor *made, float **data)
{
    int64_t strides[DIMENSIONS + 1], stride = 1;
    void *found = NULL;
    for (int64_t i = dim - 1; i >= 0; i--) {
        strides[i] = stride;
        stride *= sizes[i] > 1 ? sizes[i] : 1;
    }
    if (torch.aoti_torch_empty_strided(dim, sizes, strides, torch.aoti_torch_dtype_float32(),
                                       torch.aoti_torch_device_type_cpu(), 0, made))
        return -1;
    if (torch.aoti_torch_get_data_ptr(*made, &found)) {
        torch.aoti_torch_delete_tensor_object(*made);
        return -1;
    }
    *data = found;
    return 0;
}

/* Release the arguments. Then put the results on the stack, or raise a C++ exception. */
static void
finish(Value *stack, int tensors, const Tensor *results, int count, const char *wrong)
{
    for (int i = 0; i < tensors; i++)
        torch.aoti_torch_delete_tensor_object(tensor_of(stack[i]));
    if (wrong != NULL) {
        torch.aoti_torch_check(false, "logunif_kl", __FILE__, __LINE__, wrong);
        return;
    }
    for (int i = 0; i < count; i++)
        stack[i] = (Value)(uintptr_t)results[i];
}

/* value(Tensor mu, Tensor log_sigma2) -> Tensor */
static void
boxed_value(Value *stack, uint64_t arguments, uint64_t results)
{
    Looked looked[2];
    const Looked *like;
    Tensor result = NULL;
    Work work = {0};
    const char *wrong = look_at_all(stack, 2, looked, &like);
    (void)arguments, (void)results;
    if (wrong == NULL && make(like->dim, like->sizes, &result, &work.first) < 0)
        wrong = NO_MEMORY;
    if (wrong == NULL) {
        work.mu = looked[0].argument;
        work.log_sigma2 = looked[1].argument;
        work.n = like->n;
        run_value(&work);
    }
    finish(stack, 2, &result, 1, wrong);
}

/* value_sum(Tensor mu, Tensor log_sigma2) -> Tensor */
static void
boxed_value_sum(Value *stack, uint64_t arguments, uint64_t results)
{
    Looked looked[2];
    const Looked *like;
    Tensor result = NULL;
    Work work = {0};
    const char *wrong = look_at_all(stack, 2, looked, &like);
    (void)arguments, (void)results;
    if (wrong == NULL && make(0, NULL, &result, &work.first) < 0)
        wrong = NO_MEMORY;
    if (wrong == NULL) {
        work.mu = looked[0].argument;
        work.log_sigma2 = looked[1].argument;
        work.n = like->n;
        if (run_sum(&work) < 0) {
            torch.aoti_torch_delete_tensor_object(result);
            wrong = NO_MEMORY;
        }
    }
    finish(stack, 2, &result, 1, wrong);
}

/* gradient(Tensor factor, Tensor mu, Tensor log_sigma2) -> (Tensor, Tensor) */
static void
boxed_gradient(Value *stack, uint64_t arguments, uint64_t results)
{
    Looked looked[3];
    const Looked *like;
    Tensor made[2] = {NULL, NULL};
    Work work = {0};
    const char *wrong = look_at_all(stack, 3, looked, &like);
    (void)arguments, (void)results;
    if (wrong == NULL && make(like->dim, like->sizes, &made[0], &work.first) < 0)
        wrong = NO_MEMORY;
    if (wrong == NULL && make(like->dim, like->sizes, &made[1], &work.second) < 0) {
        torch.aoti_torch_delete_tensor_object(made[0]);
        wrong = NO_MEMORY;
    }
    if (wrong == NULL) {
        work.factor = looked[0].argument;
        work.mu = looked[1].argument;
        work.log_sigma2 = looked[2].argument;
        work.n = like->n;
        run_gradient(&work);
    }
    finish(stack, 3, made, 2, wrong);
}

/* log_alpha_gradient(Tensor factor, Tensor log_alpha) -> Tensor, with mu = 1 */
static void
boxed_log_alpha_gradient(Value *stack, uint64_t arguments, uint64_t results)
{
    static const float one = 1.0f;
    Looked looked[2];
    const Looked *like;
    Tensor made = NULL;
    Work work = {0};
    const char *wrong = look_at_all(stack, 2, looked, &like);
    (void)arguments, (void)results;
    if (wrong == NULL && make(like->dim, like->sizes, &made, &work.second) < 0)
        wrong = NO_MEMORY;
    if (wrong == NULL) {
        work.factor = looked[0].argument;
        work.mu = (Argument){&one, 1};
        work.log_sigma2 = looked[1].argument;
        work.n = like->n;
        run_gradient(&work);
    }
    finish(stack, 2, &made, 1, wrong);
}

#endif
