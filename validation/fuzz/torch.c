/* The operators of `torch/c`, with stubs in place of libtorch.
 *
 * Tensors are of any shape, and some of another type or place, not contiguous, or of other shapes.
 * Work is split into pieces as PyTorch's threads would. Results are compared bit for bit with those
 * of the kernel over dense arrays. Every tensor must be given up once, and a refusal be said. */

#include "logunif_kl/torch/c/library.c"

#include "kernels.h"

#include "fuzz.h"

enum { FLOAT32 = 6, CPU = 0, MOST_DIMENSIONS = 66, MOST_TENSORS = 8 };

typedef struct {
    float *data;
    int64_t dim, n, sizes[MOST_DIMENSIONS];
    int32_t dtype, device;
    int contiguous, alive, lost; /* elements that its storage does not hold */
} stub;

/* What libtorch holds, and how it answers. */
static stub tensors[MOST_TENSORS];
static int number_of_tensors, memory_for, pieces, thread_fails;
static const char *refusal;
static uint64_t order;

static stub *
at_handle(Tensor tensor)
{
    stub *found = (stub *)(void *)tensor;
    if (found < tensors || found >= tensors + number_of_tensors || !found->alive)
        fuzz_fail("a tensor is used that is none");
    return found;
}

static stub *
new_tensor(int64_t dim, const int64_t *sizes)
{
    stub *made = &tensors[number_of_tensors++];
    *made = (stub){.dim = dim, .n = 1, .dtype = FLOAT32, .device = CPU};
    made->contiguous = made->alive = 1;
    for (int64_t i = 0; i < dim; i++) {
        made->sizes[i] = sizes[i];
        made->n *= sizes[i];
    }
    made->data = (float *)fuzz_allocate((size_t)made->n * sizeof(float), 4 * (order % 16));
    return made;
}

#define STUB(name, field, type)                                            \
    static Error                                                           \
    name(Tensor tensor, type *found)                                       \
    {                                                                      \
        *found = at_handle(tensor)->field;                                 \
        return 0;                                                          \
    }
STUB(stub_data, data, void *)
STUB(stub_numel, n, int64_t)
STUB(stub_dim, dim, int64_t)
STUB(stub_sizes, sizes, int64_t *)
STUB(stub_dtype, dtype, int32_t)
STUB(stub_device, device, int32_t)
STUB(stub_contiguous, contiguous, bool)

static Error
stub_offset(Tensor tensor, int64_t *found)
{
    *found = at_handle(tensor)->lost;
    return 0;
}

static Error
stub_bytes(Tensor tensor, int64_t *found)
{
    *found = at_handle(tensor)->n * (int64_t)sizeof(float);
    return 0;
}

static Error
stub_empty(int64_t dim, const int64_t *sizes, const int64_t *strides, int32_t dtype, int32_t device,
           int32_t index, Tensor *made)
{
    int64_t stride = 1;
    if (dtype != FLOAT32 || device != CPU || index != 0)
        fuzz_fail("a tensor of another kind is made");
    for (int64_t i = dim - 1; i >= 0; i--) {
        if (strides[i] != stride)
            fuzz_fail("a tensor is made that is not contiguous");
        stride *= sizes[i] > 1 ? sizes[i] : 1;
    }
    if (memory_for-- <= 0)
        return 1;
    *made = (Tensor)(void *)new_tensor(dim, sizes);
    return 0;
}

static Error
stub_delete(Tensor tensor)
{
    stub *found = at_handle(tensor);
    found->alive = 0;
    fuzz_free((char *)found->data, 4 * (order % 16));
    found->data = NULL;
    return 0;
}

static Error
stub_parallel(int64_t begin, int64_t end, int64_t grain, Range function, void *context)
{
    int64_t ends[5] = {begin, begin, begin, begin, end};
    if (grain <= 0 || end - begin <= grain)
        fuzz_fail("threads are asked for %lld elements", (long long)(end - begin));
    if (thread_fails)
        return 1;
    for (int i = 1; i < pieces; i++)
        ends[i] = begin + (end - begin) * i / pieces;
    for (int i = pieces; i < 4; i++)
        ends[i] = end;
    for (int i = 3; i >= 0; i--)
        if (ends[i] < ends[i + 1])
            function(ends[i], ends[i + 1], context);
    return 0;
}

static int32_t
stub_float32(void)
{
    return FLOAT32;
}

static int32_t
stub_cpu(void)
{
    return CPU;
}

static void
stub_check(bool condition, const char *function, const char *file, uint32_t line,
           const char *message)
{
    (void)function, (void)file, (void)line;
    if (condition || refusal != NULL)
        fuzz_fail("a refusal is none, or said twice");
    refusal = message;
}

static void
connect_stubs(void)
{
    torch = (Shims){
        .torch_parallel_for = stub_parallel,
        .aoti_torch_get_data_ptr = stub_data,
        .aoti_torch_get_numel = stub_numel,
        .aoti_torch_get_dim = stub_dim,
        .aoti_torch_get_sizes = stub_sizes,
        .aoti_torch_get_storage_offset = stub_offset,
        .aoti_torch_get_storage_size = stub_bytes,
        .aoti_torch_get_dtype = stub_dtype,
        .aoti_torch_get_device_type = stub_device,
        .aoti_torch_is_contiguous = stub_contiguous,
        .aoti_torch_empty_strided = stub_empty,
        .aoti_torch_delete_tensor_object = stub_delete,
        .aoti_torch_dtype_float32 = stub_float32,
        .aoti_torch_device_type_cpu = stub_cpu,
        .aoti_torch_check = stub_check,
    };
}

/* ---- arguments ----------------------------------------------------------------------------- */

/* A shape: of one dimension, or with dimensions of size 1 or 0, or of too many. */
static int64_t
choose_shape(fuzz_input *in, int64_t *sizes)
{
    unsigned way = fuzz_below(in, 16);
    int64_t dim = way == 0 ? 60 + fuzz_below(in, 6) : 1 + fuzz_below(in, 3);
    for (int64_t i = 0; i < dim; i++)
        sizes[i] = 1;
    sizes[dim - 1] = fuzz_length(in, way == 1 ? 0 : 1);
    if (way == 2) /* more than one piece for each of several threads */
        sizes[dim - 1] = 32768 + (int64_t)fuzz_take(in, 2);
    else if (dim > 1)
        sizes[0] = way == 1 ? 0 : 1 + fuzz_below(in, 3);
    return dim;
}

/* Make an argument, and tell whether an operator takes such a tensor of some shape. */
static int
choose_tensor(fuzz_input *in, int64_t dim, const int64_t *sizes)
{
    int64_t others[MOST_DIMENSIONS] = {0};
    memcpy(others, sizes, (size_t)dim * sizeof *sizes);
    unsigned way = fuzz_below(in, 24);
    int64_t given = fuzz_below(in, 4) == 0 ? 0 : dim; /* one number, or an array */
    if (way == 0 && given > 0)
        others[fuzz_below(in, (unsigned)given)] += 1;
    stub *made = new_tensor(given, others);
    made->dtype = way == 1 ? 7 : FLOAT32;
    made->device = way == 2 ? 1 : CPU;
    made->contiguous = way != 3;
    made->lost = way == 4 && made->n > 0;
    fuzz_fill(in, (char *)made->data, sizeof(float), FUZZ_F32, (ptrdiff_t)made->n);
    return way == 0 || (way > 3 && !made->lost);
}

/* A tensor's element, or the number that it is. */
static float
element(const float *data, const stub *of, int64_t i)
{
    return data[of->dim == 0 ? 0 : i];
}

/* ---- what is compared ---------------------------------------------------------------------- */

static void
compare_results(Boxed operator, int count, float *const *data, const stub *arguments,
                const stub *results, int64_t n)
{
    float *dense[5];
    for (int j = 0; j < 5; j++)
        dense[j] = malloc((size_t)n * sizeof(float) + 1);
    for (int64_t i = 0; i < n; i++)
        for (int j = 0; j < count; j++)
            dense[j][i] = element(data[j], &arguments[j], i);
    if (operator == boxed_gradient) {
        kernels->gradient(dense[0], 1, dense[1], dense[2], dense[3], dense[4], (ptrdiff_t)n);
    } else {
        kernels->value(1.0f, dense[0], dense[1], dense[3], (ptrdiff_t)n);
    }
    if (operator == boxed_value_sum) {
        double total = 0.0, size = 0.0;
        for (int64_t i = 0; i < n; i++) {
            total += (double)dense[3][i];
            size += fabs((double)dense[3][i]);
        }
        double got = (double)results[0].data[0], exact = total;
        double rounding = fabs(exact) * 0x1p-24 + 0x1p-149 + (double)n * 0x1p-52 * size;
        if (isnan(got) != isnan(exact) || (isfinite(got) && !(fabs(got - exact) <= rounding)) ||
            (isinf(got) && fabs(exact) < (double)FLT_MAX))
            fuzz_fail("the sum of %lld values is %a, not %a", (long long)n, got, exact);
    } else {
        for (int k = 0; k < (operator == boxed_gradient ? 2 : 1); k++)
            for (int64_t i = 0; i < n; i++)
                if (!fuzz_same((char *)&results[k].data[i], (char *)&dense[3 + k][i], FUZZ_F32))
                    fuzz_fail("result %d is %a at %lld of %lld, but %a by the kernel", k,
                              (double)results[k].data[i], (long long)i, (long long)n,
                              (double)dense[3 + k][i]);
    }
    for (int j = 0; j < 5; j++)
        free(dense[j]);
}

static void
fuzz_one(fuzz_input *in)
{
    static const lk_float32_kernels *known[FUZZ_MOST_KERNELS];
    static const char *names[FUZZ_MOST_KERNELS];
    static int number;
    static const Boxed operators[] = {boxed_value, boxed_value_sum, boxed_gradient};
    static const char *const said[] = {"value", "value_sum", "gradient"};
    if (number == 0) {
        number = fuzz_kernels(known, names);
        connect_stubs();
    }
    unsigned kernel = fuzz_below(in, (unsigned)number), which = fuzz_below(in, 3);
    int count = which == 2 ? 3 : 2, wanted = which == 2 ? 2 : 1;
    int64_t sizes[MOST_DIMENSIONS], dim = choose_shape(in, sizes);
    kernels = known[kernel];
    number_of_tensors = 0;
    refusal = NULL;
    order = fuzz_take(in, 1);
    pieces = 1 + (int)fuzz_below(in, 4);
    thread_fails = fuzz_below(in, 8) == 0;
    forked = fuzz_below(in, 8) == 0;
    memory_for = fuzz_below(in, 16) == 0 ? (int)fuzz_below(in, 2) : 2;
    snprintf(fuzz_about, sizeof fuzz_about, "operator %s, %s, %d pieces", said[which],
             names[kernel], pieces);
    int good = memory_for >= wanted;
    for (int j = 0; j < count; j++)
        good &= choose_tensor(in, dim, sizes);
    const stub *like = tensors[count - 2].dim > 0 ? &tensors[count - 2] : &tensors[count - 1];
    for (int j = 0; j < count; j++)
        good &= tensors[j].dim == 0 || (tensors[j].dim == like->dim && like->dim <= 64 &&
                                        memcmp(tensors[j].sizes, like->sizes,
                                               (size_t)like->dim * sizeof(int64_t)) == 0);
    stub arguments[3];
    float *data[3];
    Value stack[3];
    for (int j = 0; j < count; j++) {
        arguments[j] = tensors[j];
        size_t bytes = (size_t)tensors[j].n * sizeof(float);
        data[j] = malloc(bytes + 1);
        memcpy(data[j], tensors[j].data, bytes);
        stack[j] = (Value)(uintptr_t)&tensors[j];
    }
    int64_t n = like->n;
    operators[which](stack, (uint64_t)count, (uint64_t)wanted);
    if ((refusal == NULL) != good)
        fuzz_fail(good ? "refused: %s" : "what is wrong was taken", refusal);
    for (int j = 0; j < number_of_tensors; j++)
        if (tensors[j].alive != (good && j >= count))
            fuzz_fail("tensor %d of %d is %s", j, number_of_tensors,
                      tensors[j].alive ? "kept" : "lost");
    if (good) {
        stub *results[2] = {NULL, NULL};
        stub made[2];
        for (int k = 0; k < wanted; k++) {
            results[k] = at_handle((Tensor)(uintptr_t)stack[k]);
            made[k] = *results[k];
            if (made[k].n != (which == 1 ? 1 : n))
                fuzz_fail("result %d has %lld elements", k, (long long)made[k].n);
        }
        compare_results(operators[which], count, data, arguments, made, n);
        for (int k = 0; k < wanted; k++)
            stub_delete((Tensor)(void *)results[k]);
    }
    for (int j = 0; j < count; j++)
        free(data[j]);
}
