/* The loops that NumPy calls, for all types and strides. Arrays that are not contiguous, or in half
 * precision, are copied block by block. A scalar (stride 0) is copied into a block once. */

#ifndef LOGUNIF_KL_EXACT_STRIDES_H
#define LOGUNIF_KL_EXACT_STRIDES_H

#include "exact_exceptions.h"
#include "exact_half.h"

enum { STRIDE_BLOCK = 512, MOST_OUTPUTS = 3 };

#define READ_AS_IT_IS(type, to, from)              \
    type value_;                                   \
    memcpy(&value_, from, sizeof value_);          \
    to = value_
#define WRITE_AS_IT_IS(type, to, from) memcpy(to, &(from), sizeof(type))
#define READ_HALF(type, to, from)                  \
    npy_half half_;                                \
    memcpy(&half_, from, sizeof half_);            \
    to = float_from_half(half_)
#define WRITE_HALF(type, to, from)                 \
    npy_half half_ = half_from_float(from);        \
    memcpy(to, &half_, sizeof half_)

/* gather_* copies n numbers to a block, and scatter_* copies a block back. */
#define COPIES(suffix, type, READ, WRITE)                                                \
    static void gather_##suffix(type *to, const char *from, npy_intp stride, npy_intp n) \
    {                                                                                    \
        for (npy_intp i = 0; i < n; i++) {                                               \
            READ(type, to[i], from + i * stride);                                        \
        }                                                                                \
    }                                                                                    \
    static void scatter_##suffix(char *to, npy_intp stride, const type *from, npy_intp n) \
    {                                                                                    \
        for (npy_intp i = 0; i < n; i++) {                                               \
            WRITE(type, to + i * stride, from[i]);                                       \
        }                                                                                \
    }

COPIES(f64, double, READ_AS_IT_IS, WRITE_AS_IT_IS)
COPIES(f32, float, READ_AS_IT_IS, WRITE_AS_IT_IS)
COPIES(f16, float, READ_HALF, WRITE_HALF)

/* Arrays whose stride is `contiguous` are used in place. If it is 0 (float16), all are copied. */
#define ONE_ARGUMENT_LOOP(suffix, type, field, contiguous)                               \
    static void one_##suffix##_loop(char **args, npy_intp const *dimensions,             \
                                    npy_intp const *steps, void *data)                   \
    {                                                                                    \
        const one_argument *function = data;                                             \
        npy_intp n = dimensions[0];                                                      \
        if (contiguous != 0 && steps[0] == contiguous && steps[1] == contiguous) {       \
            function->field((const type *)args[0], (type *)args[1], n);                  \
        } else {                                                                         \
            type block[STRIDE_BLOCK];                                                    \
            for (npy_intp start = 0; start < n; start += STRIDE_BLOCK) {                 \
                npy_intp m = n - start < STRIDE_BLOCK ? n - start : STRIDE_BLOCK;        \
                gather_##suffix(block, args[0] + start * steps[0], steps[0], m);         \
                function->field(block, block, m);                                        \
                scatter_##suffix(args[1] + start * steps[1], steps[1], block, m);        \
            }                                                                            \
        }                                                                                \
        forget_exceptions();                                                             \
    }

ONE_ARGUMENT_LOOP(f64, double, f64, (npy_intp)sizeof(double))
ONE_ARGUMENT_LOOP(f32, float, f32, (npy_intp)sizeof(float))
ONE_ARGUMENT_LOOP(f16, float, f32, 0)

#define TWO_ARGUMENTS_LOOP(suffix, type, field, contiguous)                              \
    static void two_##suffix##_loop(char **args, npy_intp const *dimensions,             \
                                    npy_intp const *steps, void *data)                   \
    {                                                                                    \
        const two_arguments *function = data;                                            \
        const int outputs = function->outputs;                                           \
        npy_intp n = dimensions[0];                                                      \
        type block[2 + MOST_OUTPUTS][STRIDE_BLOCK];                                      \
        int direct[2 + MOST_OUTPUTS], all_direct = 1;                                    \
        for (int j = 0; j < 2 + outputs; j++) {                                          \
            direct[j] = contiguous != 0 && steps[j] == contiguous;                       \
            all_direct = all_direct && direct[j];                                        \
        }                                                                                \
        npy_intp most = all_direct ? n : STRIDE_BLOCK;                                   \
        for (npy_intp start = 0; start < n; start += most) {                             \
            npy_intp m = n - start < most ? n - start : most;                            \
            const type *in[2];                                                           \
            type *out[MOST_OUTPUTS];                                                     \
            for (int j = 0; j < 2; j++) {                                                \
                char *from = args[j] + start * steps[j];                                 \
                in[j] = direct[j] ? (const type *)from : block[j];                       \
                if (!direct[j] && (start == 0 || steps[j] != 0))                         \
                    gather_##suffix(block[j], from, steps[j], m);                        \
            }                                                                            \
            for (int j = 2; j < 2 + outputs; j++)                                        \
                out[j - 2] = direct[j] ? (type *)(args[j] + start * steps[j]) : block[j]; \
            function->field(in[0], in[1], out, m);                                       \
            for (int j = 2; j < 2 + outputs; j++)                                        \
                if (!direct[j])                                                          \
                    scatter_##suffix(args[j] + start * steps[j], steps[j], block[j], m); \
        }                                                                                \
        forget_exceptions();                                                             \
    }

TWO_ARGUMENTS_LOOP(f64, double, f64, (npy_intp)sizeof(double))
TWO_ARGUMENTS_LOOP(f32, float, f32, (npy_intp)sizeof(float))
TWO_ARGUMENTS_LOOP(f16, float, f32, 0)

static PyUFuncGenericFunction one_loops[] = {one_f16_loop, one_f32_loop, one_f64_loop};
static PyUFuncGenericFunction two_loops[] = {two_f16_loop, two_f32_loop, two_f64_loop};

#endif
