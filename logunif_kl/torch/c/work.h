/* Run the float32 kernels on PyTorch's threads.
 *
 * An argument is an array, or one number that stands for all elements. */

#ifndef LOGUNIF_KL_WORK_H
#define LOGUNIF_KL_WORK_H

#include <stddef.h>
#include <stdint.h>
#include <stdlib.h>

#include "../../_numpy/c/float32_capsule.h"
#include "shims.h"

static Shims torch;
/* Nonzero in a forked process, which lacks PyTorch's threads and would wait for them forever. */
static int forked;
static const lk_float32_kernels *kernels;

/* A thread takes at least this many elements. The sums of blocks of this size are added in order,
 * so that a total does not depend on the number of threads. */
enum { BLOCK = 32768 };
/* A number that stands for all elements is written this many times into a buffer. */
enum { PIECE = 1024 };

typedef struct {
    const float *data;
    int number;
} Argument;

typedef struct {
    Argument factor, mu, log_sigma2;
    int64_t n;
    float *first, *second; /* the results; `first` is NULL if the gradient in mu is not wanted */
    double *sums;
} Work;

static void
fill(float *to, Argument from, int64_t n)
{
    if (from.number)
        for (int64_t i = 0; i < n; i++)
            to[i] = *from.data;
}

/* Return the elements from `start` on, or the buffer if the argument is one number. */
static const float *
at(Argument argument, const float *buffer, int64_t start)
{
    return argument.number ? buffer : argument.data + start;
}

static int64_t
least(int64_t a, int64_t b)
{
    return a < b ? a : b;
}

static void
value_range(int64_t begin, int64_t end, void *context)
{
    const Work *work = context;
    float mu[PIECE], log_sigma2[PIECE];
    int whole = !work->mu.number && !work->log_sigma2.number;
    int64_t step = whole ? end - begin : least(PIECE, end - begin);
    fill(mu, work->mu, step);
    fill(log_sigma2, work->log_sigma2, step);
    for (int64_t start = begin; start < end; start += step)
        kernels->value(1.0f, at(work->mu, mu, start),
                       at(work->log_sigma2, log_sigma2, start), work->first + start,
                       (ptrdiff_t)least(step, end - start));
}

static void
gradient_range(int64_t begin, int64_t end, void *context)
{
    const Work *work = context;
    float mu[PIECE], log_sigma2[PIECE], unused[PIECE];
    int each = !work->factor.number;
    int whole = !work->mu.number && !work->log_sigma2.number && work->first != NULL;
    int64_t step = whole ? end - begin : least(PIECE, end - begin);
    fill(mu, work->mu, step);
    fill(log_sigma2, work->log_sigma2, step);
    for (int64_t start = begin; start < end; start += step)
        kernels->gradient(work->factor.data + (each ? start : 0), each,
                          at(work->mu, mu, start), at(work->log_sigma2, log_sigma2, start),
                          work->first != NULL ? work->first + start : unused,
                          work->second + start,
                          (ptrdiff_t)least(step, end - start));
}

/* Store the sums of the blocks from `begin` to `end`. */
static void
sum_range(int64_t begin, int64_t end, void *context)
{
    const Work *work = context;
    float mu[PIECE], log_sigma2[PIECE];
    int whole = !work->mu.number && !work->log_sigma2.number;
    int64_t step = whole ? BLOCK : least(PIECE, work->n);
    fill(mu, work->mu, step);
    fill(log_sigma2, work->log_sigma2, step);
    for (int64_t block = begin; block < end; block++) {
        int64_t stop = least(work->n, (block + 1) * BLOCK);
        double total = 0.0;
        for (int64_t start = block * BLOCK; start < stop; start += step)
            total += kernels->sum(at(work->mu, mu, start),
                                  at(work->log_sigma2, log_sigma2, start),
                                  (ptrdiff_t)least(step, stop - start));
        work->sums[block] = total;
    }
}

/* Call the function on ranges of `grain` units or more, on threads if there are several ranges. */
static void
run(Range function, int64_t count, int64_t grain, Work *work)
{
    if (count <= grain || forked)
        function(0, count, work);
    else if (torch.torch_parallel_for(0, count, grain, function, work))
        function(0, count, work); /* torch_parallel_for failed before it started a thread */
}

static void
run_value(Work *work)
{
    if (work->n > 0)
        run(value_range, work->n, BLOCK, work);
}

static void
run_gradient(Work *work)
{
    if (work->n > 0)
        run(gradient_range, work->n, BLOCK, work);
}

/* Write the sum to `first`. Return 0, or -1 if memory cannot be allocated. */
static int
run_sum(Work *work)
{
    enum { FEW = 64 };
    double few[FEW], total = 0.0;
    int64_t blocks = (work->n + BLOCK - 1) / BLOCK;
    work->sums = blocks <= FEW ? few : malloc((size_t)blocks * sizeof(double));
    if (work->sums == NULL)
        return -1;
    if (blocks > 0)
        run(sum_range, blocks, 1, work);
    for (int64_t i = 0; i < blocks; i++)
        total += work->sums[i];
    if (work->sums != few)
        free(work->sums);
    *work->first = (float)total;
    return 0;
}

#endif
