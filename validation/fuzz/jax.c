/* The handlers of `jax/c/ffi.c`, called as XLA calls them.
 *
 * Buffers are of any shape, and some of another type or size. The pool of threads runs a task at
 * once, when the call has ended, or not at all. Results are compared bit for bit with those of the
 * kernel over dense arrays; what is wrong must be refused, and nothing be written then. */

#include "logunif_kl/jax/c/ffi.c"

#include "kernels.h"

#include "fuzz.h"

enum { MOST_RANK = 5, MOST_TASKS = 8, ERROR = 0x5eed, RESULTS = 3 };

/* How the pool answers, and what it was given. */
static int threads, errors, refused_after;
static uint64_t later;
static struct {
    void (*task)(void *);
    void *data;
} tasks[MOST_TASKS];
static int number_of_tasks, scheduled;

static lk_xla_error *
new_error(void)
{
    errors++;
    return (lk_xla_error *)malloc(ERROR % 64 + 1);
}

static lk_xla_error *
stub_create(lk_xla_error_create *args)
{
    if (args->struct_size != sizeof *args || args->code != LK_XLA_INVALID_ARGUMENT ||
        strncmp(args->message, "logunif_kl: ", 12) != 0)
        fuzz_fail("an error is made that says nothing");
    return new_error();
}

static void
stub_destroy(lk_xla_error_destroy *args)
{
    errors--;
    free(args->error);
}

static lk_xla_error *
stub_schedule(lk_xla_schedule *args)
{
    if (scheduled++ >= refused_after)
        return new_error();
    if (later >> (scheduled % 64) & 1 && number_of_tasks < MOST_TASKS) {
        tasks[number_of_tasks].task = args->task;
        tasks[number_of_tasks++].data = args->data;
    } else {
        args->task(args->data);
    }
    return NULL;
}

static lk_xla_error *
stub_threads(lk_xla_num_threads *args)
{
    if (threads < 0)
        return new_error();
    *args->num_threads = threads;
    return NULL;
}

/* A buffer of n elements of some shape, or one more; return whether a handler takes such. */
static int
choose_buffer(fuzz_input *in, lk_xla_buffer *buffer, int64_t *dims, ptrdiff_t n, int *type)
{
    unsigned way = fuzz_below(in, 40);
    ptrdiff_t held = way == 0 ? n + 1 : n;
    *type = way == 1 ? 0 : LK_XLA_BUFFER;
    *buffer = (lk_xla_buffer){.struct_size = sizeof *buffer, .dims = dims};
    buffer->dtype = way == 2 ? 12 : LK_XLA_F32;
    buffer->rank = held == 1 ? fuzz_below(in, MOST_RANK) : 1 + fuzz_below(in, MOST_RANK - 1);
    for (int64_t d = 0; d < buffer->rank; d++)
        dims[d] = 1;
    if (buffer->rank > 0)
        dims[fuzz_below(in, (unsigned)buffer->rank)] = held;
    if (buffer->rank > 1 && held % 2 == 0 && dims[0] == held && fuzz_below(in, 2)) {
        dims[0] = held / 2;
        dims[1] = 2;
    }
    buffer->data = held > 0 || fuzz_below(in, 2)
                       ? fuzz_allocate((size_t)held * sizeof(float), 0)
                       : NULL;
    return way == 0 || way > 2;
}

static void
compare_results(kind what, float sign, lk_xla_buffer *arguments, lk_xla_buffer *results,
                ptrdiff_t n)
{
    float *wanted[RESULTS];
    const float *mu = arguments[0].data, *log_sigma2 = arguments[1].data;
    for (int k = 0; k < RESULTS; k++)
        wanted[k] = malloc((size_t)n * sizeof(float) + 1);
    if (n > 0 && what == VALUE)
        kernels->value(sign, mu, log_sigma2, wanted[0], n);
    else if (n > 0 && what == GRADIENT)
        kernels->gradient(&sign, 0, mu, log_sigma2, wanted[0], wanted[1], n);
    else if (n > 0)
        kernels->value_and_gradient(sign, mu, log_sigma2, wanted[0], wanted[1], wanted[2], n);
    for (int k = 0; k <= (int)what; k++)
        for (ptrdiff_t i = 0; i < n; i++) {
            float *got = results[k].data;
            if (!fuzz_same((char *)&got[i], (char *)&wanted[k][i], FUZZ_F32))
                fuzz_fail("result %d is %a at %td of %td, but %a by the kernel", k, (double)got[i],
                          i, n, (double)wanted[k][i]);
        }
    for (int k = 0; k < RESULTS; k++)
        free(wanted[k]);
}

static void
fuzz_one(fuzz_input *in)
{
    static const lk_float32_kernels *known[FUZZ_MOST_KERNELS];
    static const char *names[FUZZ_MOST_KERNELS];
    static int number;
    static lk_xla_error *(*const handlers[])(lk_xla_frame *) = {value, gradient,
                                                                value_and_gradient};
    static const char *const said[] = {"value", "gradient", "value_and_gradient"};
    if (number == 0)
        number = fuzz_kernels(known, names);
    unsigned kernel = fuzz_below(in, (unsigned)number);
    kind what = (kind)fuzz_below(in, 3);
    float sign = fuzz_below(in, 2) ? 1.0f : -1.0f;
    ptrdiff_t n = fuzz_below(in, 8) ? fuzz_length(in, 0) : 16384 + (ptrdiff_t)fuzz_take(in, 2);
    kernels = known[kernel];
    threads = (int)fuzz_below(in, 6) - 1;
    refused_after = (int)fuzz_below(in, 4) ? MOST_TASKS : (int)fuzz_below(in, 3);
    later = fuzz_take(in, 8);
    errors = number_of_tasks = scheduled = 0;
    snprintf(fuzz_about, sizeof fuzz_about, "handler %s, %s, sign %g, %d threads", said[what],
             names[kernel], (double)sign, threads);

    lk_xla_api api = {.error_create = stub_create, .error_destroy = stub_destroy,
                      .schedule = stub_schedule, .num_threads = stub_threads};
    lk_xla_buffer buffers[2 + RESULTS];
    int64_t dims[2 + RESULTS][MOST_RANK];
    int types[2 + RESULTS], good = 1, count = 3 + (int)what;
    void *values[2 + RESULTS];
    size_t bytes[2 + RESULTS];
    char *before[2 + RESULTS];
    for (int j = 0; j < count; j++) {
        good &= choose_buffer(in, &buffers[j], dims[j], n, &types[j]);
        values[j] = &buffers[j];
        ptrdiff_t held = 1;
        for (int64_t d = 0; d < buffers[j].rank; d++)
            held *= (ptrdiff_t)dims[j][d];
        if (buffers[j].data != NULL)
            fuzz_fill(in, buffers[j].data, sizeof(float), FUZZ_F32, held);
        bytes[j] = (size_t)held * sizeof(float);
        good &= bytes[j] == bytes[0];
        before[j] = malloc(bytes[j] + 1);
        if (buffers[j].data != NULL)
            memcpy(before[j], buffers[j].data, bytes[j]);
    }
    n = (ptrdiff_t)(bytes[0] / sizeof(float));
    unsigned way = fuzz_below(in, 40);
    lk_xla_scalar scalar = {way == 0 ? 12 : LK_XLA_F32, &sign};
    lk_xla_span name = {way == 1 ? "sigh" : "sign", way == 2 ? 3 : 4};
    lk_xla_span *spans[] = {&name};
    int attribute = way == 3 ? 1 : LK_XLA_SCALAR;
    void *attributes[] = {&scalar};
    lk_xla_frame frame = {.struct_size = sizeof frame, .api = &api};
    frame.stage = way == 4 ? 0 : LK_XLA_EXECUTE;
    frame.arguments = (lk_xla_buffers){.size = 2, .types = types, .values = values};
    frame.results = (lk_xla_buffers){.size = count - 2 + (way == 5), .types = types + 2,
                                     .values = values + 2};
    frame.attributes = (lk_xla_attributes){.size = way == 6 ? 0 : 1, .types = &attribute,
                                           .names = spans, .values = attributes};
    lk_xla_metadata metadata = {0};
    lk_xla_metadata_extension question = {{sizeof question, LK_XLA_METADATA, NULL}, &metadata};
    if (way == 7)
        frame.extensions = &question.base;

    int silent = way == 4 || way == 7;
    good = silent || (good && (way > 7));
    lk_xla_error *error = handlers[what](&frame);
    if ((error == NULL) != good)
        fuzz_fail(good ? "refused" : "what is wrong was taken");
    if (good && !silent)
        compare_results(what, sign, buffers, buffers + 2, n);
    for (int j = 0; j < count; j++) {
        int written = good && !silent && j >= 2;
        if (!written && buffers[j].data != NULL &&
            memcmp(before[j], buffers[j].data, bytes[j]) != 0)
            fuzz_fail("array %d was written", j);
        fuzz_free(buffers[j].data, 0);
        free(before[j]);
    }
    if (way == 7 && metadata.version.minor != LK_XLA_MINOR)
        fuzz_fail("the version was not told");
    if (error != NULL) {
        lk_xla_error_destroy args = {sizeof args, NULL, error};
        stub_destroy(&args);
    }
    for (int i = 0; i < number_of_tasks; i++) /* the arrays are gone */
        tasks[i].task(tasks[i].data);
    if (errors != 0)
        fuzz_fail("%d errors were not destroyed", errors);
}
