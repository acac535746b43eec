/* What the fuzzing targets share: reading an input, laying out arrays in memory, and comparing.
 *
 * A target includes the source that it tests, then this header, and defines `fuzz_one`. Built with
 * FUZZ_LIBFUZZER it is a target of libFuzzer; else it has a `main` of its own:
 *
 *     TARGET --seed S --count N [--only I]  try inputs made from a seed, or one of them
 *     TARGET FILE...                        try inputs in files
 *
 * A finding is said in one line and ends the process by abort(), as those of the sanitizers do. */

#ifndef LOGUNIF_KL_FUZZ_H
#define LOGUNIF_KL_FUZZ_H

#include <float.h>
#include <math.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#if defined(__has_feature)
#if __has_feature(address_sanitizer)
#define __SANITIZE_ADDRESS__
#endif
#endif
#ifdef __SANITIZE_ADDRESS__
void __asan_poison_memory_region(void const volatile *at, size_t size);
void __asan_unpoison_memory_region(void const volatile *at, size_t size);
#else
#define __asan_poison_memory_region(at, size) ((void)(at), (void)(size))
#define __asan_unpoison_memory_region(at, size) ((void)(at), (void)(size))
#endif

/* ---- a finding ----------------------------------------------------------------------------- */

static char fuzz_about[400]; /* what is being tried */
static uint64_t fuzz_index;  /* of an input made from a seed */

static void
fuzz_fail(const char *format, ...)
{
    va_list given;
    va_start(given, format);
    fprintf(stderr, "fuzz: input %llu: %s: ", (unsigned long long)fuzz_index, fuzz_about);
    vfprintf(stderr, format, given);
    fprintf(stderr, "\n");
    va_end(given);
    abort();
}

/* ---- reading an input ---------------------------------------------------------------------- */

/* An input that ends goes on with numbers made from its first bytes. */
typedef struct {
    const uint8_t *data;
    size_t left;
    uint64_t state;
} fuzz_input;

static uint64_t
fuzz_random(uint64_t *state)
{
    uint64_t z = *state += 0x9e3779b97f4a7c15u;
    z = (z ^ (z >> 30)) * 0xbf58476d1ce4e5b9u;
    z = (z ^ (z >> 27)) * 0x94d049bb133111ebu;
    return z ^ (z >> 31);
}

/* A number of so many bytes. */
static uint64_t
fuzz_take(fuzz_input *in, unsigned bytes)
{
    uint64_t found = 0;
    if (in->left < bytes)
        in->left = 0;
    if (in->left == 0)
        return fuzz_random(&in->state) >> (64 - 8 * bytes);
    for (unsigned i = 0; i < bytes; i++)
        found |= (uint64_t)in->data[i] << (8 * i);
    in->data += bytes;
    in->left -= bytes;
    return found;
}

/* A number from 0 to below - 1, of at most two bytes. */
static unsigned
fuzz_below(fuzz_input *in, unsigned below)
{
    return (unsigned)fuzz_take(in, below > 256 ? 2 : 1) % below;
}

static fuzz_input
fuzz_begin(const uint8_t *data, size_t size)
{
    fuzz_input in = {data, size, 1};
    in.state = fuzz_take(&in, 2);
    return in;
}

/* How many elements: few, some blocks of a loop, or about a multiple of a power of two. */
static ptrdiff_t
fuzz_length(fuzz_input *in, int least)
{
    unsigned way = fuzz_below(in, 8), n;
    if (way < 4)
        n = fuzz_below(in, 72);
    else if (way < 6)
        n = fuzz_below(in, 640);
    else if (way < 7)
        n = fuzz_below(in, 1700);
    else
        n = (64u << fuzz_below(in, 5)) + fuzz_below(in, 7) - 3;
    return (ptrdiff_t)n < least ? least : (ptrdiff_t)n;
}

/* ---- values -------------------------------------------------------------------------------- */

enum { FUZZ_F16, FUZZ_F32, FUZZ_F64 };
static const size_t fuzz_item[] = {2, 4, 8};

/* Numbers where a kernel changes its way, or a result its kind. A target adds its own. */
enum { FUZZ_MOST_LIMITS = 512 };
static double fuzz_limits[FUZZ_MOST_LIMITS] = {
    /* of the formats */
    0.0, 1.0, INFINITY, 0x1p-1074, 0x1p-1022, DBL_MAX, 0x1p-149, 0x1p-126, FLT_MAX, 0x1p-24,
    0x1p-14, 65504.0, 65520.0,
    /* of the windows in float64, and of exponentials */
    0x1p-300, 0x1p300, 200.0, 0x1p-130, 0x1p130, 90.0, 0x1p-150, 1e308, 0x1p-27, 0x1p-54, 708.0,
    710.5, 733.3, 744.5, 745.2, 800.0, 1390.0, 1500.0, 4500.0, 0x1p-537, 0x1p511, 7.3e306, 4.3e153,
    9e161,
    /* in float32 */
    0x1p-125, 0x1p60, 80.0, 0x1p-44, 0x1p100, 25.0, 0x1p-60, 0x1p-61, 20.0, 14.0, 0x1p-45, 0x1p-34,
    0x1p-40, 0x1p-32, 0x1p32, 0x1p-29, 0x1p-30, 0x1p19, 60.0, 72.0, 87.4, 88.8, 103.5, 104.0, 199.6,
    450.0, 0x1p-75, 0x1p64, 133.1, 16.0, 0x1p-11};
static int fuzz_limits_known = 67;

static void
fuzz_add_limits(const double *from, int count)
{
    for (int i = 0; i < count && fuzz_limits_known < FUZZ_MOST_LIMITS; i++)
        fuzz_limits[fuzz_limits_known++] = fabs(from[i]);
}

/* The bits of a number in a type; a number may be outside of the type. */
static uint64_t
fuzz_bits_of(double x, int type)
{
    uint64_t wide;
    if (type == FUZZ_F32) {
        float narrow = (float)x;
        uint32_t b;
        memcpy(&b, &narrow, sizeof b);
        return b;
    }
    memcpy(&wide, &x, sizeof wide);
    if (type == FUZZ_F64)
        return wide;
    int exponent = (int)(wide >> 52 & 0x7ff) - 1023 + 15;
    uint64_t sign = wide >> 48 & 0x8000, fraction = wide >> 42 & 0x3ff;
    if (exponent >= 31)
        return sign | 0x7c00;
    if (exponent > 0)
        return sign | (uint64_t)exponent << 10 | fraction;
    return sign | (exponent < -10 ? 0 : (fraction | 0x400) >> (1 - exponent));
}

enum { FUZZ_KINDS = 8 };

static uint64_t
fuzz_value(fuzz_input *in, int type, unsigned kind)
{
    uint64_t mask = type == FUZZ_F64 ? UINT64_MAX : (1ull << 8 * fuzz_item[type]) - 1;
    int places = type == FUZZ_F64 ? 52 : type == FUZZ_F32 ? 23 : 10;
    uint64_t sign = (mask >> 1) + 1, found;
    double unit = (double)(uint32_t)fuzz_take(in, 4) * 0x1p-32;
    double far = type == FUZZ_F64 ? 900.0 : type == FUZZ_F32 ? 128.0 : 20.0;
    switch (kind) {
    case 0: /* any bits */
        return fuzz_take(in, (unsigned)fuzz_item[type]);
    case 1: /* beside a limit */
        found = fuzz_bits_of(fuzz_limits[fuzz_below(in, (unsigned)fuzz_limits_known)], type);
        return (found + fuzz_take(in, 1) % 7 - 3 + (fuzz_take(in, 1) & 1 ? sign : 0)) & mask;
    case 2: /* any exponent */
        return (fuzz_take(in, 2) << (8 * fuzz_item[type] - 16)) | (uint64_t)(unit * 0x1p32);
    case 3: /* of size 1 */
        return fuzz_bits_of((unit - 0.5) * 16.0, type);
    case 4: /* where exponentials leave the range */
        return fuzz_bits_of((unit - 0.5) * 2.0 * far, type);
    case 5: /* not negative, over some powers of two */
        return fuzz_bits_of(exp2((unit - 0.5) * 40.0), type);
    case 6: /* small */
        return fuzz_bits_of(exp2(-unit * (type == FUZZ_F64 ? 1074.0 : 149.0)), type) |
               (fuzz_take(in, 1) & 1 ? sign : 0);
    default: /* a NaN of any payload, an infinity, or a zero */
        found = fuzz_take(in, 1) & 1 ? sign : 0;
        if (unit < 0.3)
            return found;
        found |= (mask >> 1) & ~((1ull << places) - 1);
        return unit < 0.6 ? found : found | (fuzz_take(in, 8) & ((1ull << places) - 1));
    }
}

/* Write n numbers: of one kind or of all, and some others among them. */
static void
fuzz_fill(fuzz_input *in, char *to, ptrdiff_t stride, int type, ptrdiff_t n)
{
    unsigned style = fuzz_below(in, FUZZ_KINDS + 3), others = fuzz_below(in, 8);
    uint64_t last = 0;
    for (ptrdiff_t i = 0; i < n; i++) {
        unsigned kind = style < FUZZ_KINDS ? style : (unsigned)fuzz_take(in, 1) % FUZZ_KINDS;
        if (i == 0 || style != FUZZ_KINDS + 2)
            last = fuzz_value(in, type, kind);
        memcpy(to + i * stride, &last, fuzz_item[type]);
    }
    for (unsigned k = 0; others < 4 && k < others && n > 0; k++) {
        ptrdiff_t i = (ptrdiff_t)fuzz_take(in, 2) % n;
        uint64_t found = fuzz_value(in, type, fuzz_below(in, FUZZ_KINDS));
        memcpy(to + i * stride, &found, fuzz_item[type]);
    }
}

static double
fuzz_double(const char *at, int type)
{
    if (type == FUZZ_F64) {
        double x;
        memcpy(&x, at, sizeof x);
        return x;
    }
    if (type == FUZZ_F32) {
        float x;
        memcpy(&x, at, sizeof x);
        return (double)x;
    }
    uint16_t h;
    memcpy(&h, at, sizeof h);
    int exponent = h >> 10 & 31, fraction = h & 0x3ff;
    double size = exponent == 31  ? (fraction ? NAN : INFINITY)
                  : exponent == 0 ? fraction * 0x1p-24
                                  : ldexp(fraction + 1024, exponent - 25);
    return h & 0x8000 ? -size : size;
}

/* ---- memory -------------------------------------------------------------------------------- */

/* Memory that begins `lead` bytes behind a multiple of 64, and ends where it may not be touched. */
static char *
fuzz_allocate(size_t size, size_t lead)
{
    void *found = NULL;
    if (posix_memalign(&found, 64, lead + size + (lead + size == 0)))
        abort();
    __asan_poison_memory_region(found, lead / 8 * 8);
    return (char *)found + lead;
}

static void
fuzz_free(char *at, size_t lead)
{
    if (at != NULL) {
        __asan_unpoison_memory_region(at - lead, lead);
        free(at - lead);
    }
}

/* An array of a call. Those with one number of a group lie in one piece of memory. */
typedef struct {
    char *at;
    ptrdiff_t stride, start;
    int type, group;
} fuzz_operand;

enum { FUZZ_MOST = 6 };
typedef struct {
    fuzz_operand op[FUZZ_MOST]; /* the inputs, then the outputs */
    int inputs, count;
    ptrdiff_t n;
    char *memory[FUZZ_MOST], *expected[FUZZ_MOST];
    size_t size[FUZZ_MOST], lead[FUZZ_MOST];
    const char *way;
} fuzz_layout;

static ptrdiff_t
fuzz_stride(fuzz_input *in, ptrdiff_t n, size_t item, int may_be_0)
{
    static const ptrdiff_t times[] = {1, 1,  1,   0,  2,  -1,  3,    -2,
                                      5, 16, -17, 64, -3, 257, 1023, 4097};
    ptrdiff_t found = times[fuzz_below(in, 16)] * (ptrdiff_t)item;
    size_t bytes = (size_t)(n > 0 ? n : 1) * (size_t)(found < 0 ? -found : found);
    if ((found == 0 && !may_be_0) || bytes > 1u << 16)
        found = (ptrdiff_t)item;
    return found;
}

enum { FUZZ_SEPARATE, FUZZ_CONTIGUOUS, FUZZ_NUMBERS, FUZZ_IN_PLACE, FUZZ_AHEAD, FUZZ_INTERLEAVED,
       FUZZ_INPUTS_OVERLAP, FUZZ_WAYS };
static const char *const fuzz_ways[] = {
    "separate", "contiguous", "numbers", "in place", "ahead", "interleaved", "overlapping inputs"};

/* Choose where the operands lie: as NumPy's machinery may give them to a loop.
 *
 * Pointers and strides are multiples of the size of an element, as NumPy aligns or copies others.
 * Inputs may overlap in any way. An output may be exactly an input (NpyIter_AdvancedNew with
 * COPY_IF_OVERLAP and OVERLAP_ASSUME_ELEMENTWISE). The output of a ufunc with no other may also lie
 * where an input that is ahead of it has been read (PyArray_EQUIVALENTLY_ITERABLE_OVERLAP_OK): both
 * strides have one sign, the input's is as large or larger, and it starts at the same place or
 * further on. Everything else is copied before the loop. */
static void
fuzz_place(fuzz_input *in, fuzz_layout *l)
{
    int outputs = l->count - l->inputs;
    unsigned way = fuzz_below(in, FUZZ_WAYS);
    if (way == FUZZ_AHEAD && (outputs != 1 || l->op[0].type != l->op[l->inputs].type))
        way = FUZZ_IN_PLACE;
    l->way = fuzz_ways[way];
    for (int j = 0; j < l->count; j++) {
        fuzz_operand *o = &l->op[j];
        int output = j >= l->inputs;
        ptrdiff_t item = (ptrdiff_t)fuzz_item[o->type];
        o->group = j;
        o->start = 0;
        o->stride = way == FUZZ_CONTIGUOUS ? item
                                           : fuzz_stride(in, l->n, fuzz_item[o->type],
                                                         !output || fuzz_below(in, 16) == 0);
        if (way == FUZZ_NUMBERS)
            o->stride = output ? item : fuzz_below(in, 2) ? item : 0;
    }
    fuzz_operand *first = &l->op[0], *out = &l->op[l->inputs];
    ptrdiff_t item = (ptrdiff_t)fuzz_item[first->type], shift;
    switch (way) {
    case FUZZ_IN_PLACE:
        for (int j = 0; j < outputs && j < l->inputs; j++) {
            fuzz_operand *from = &l->op[(j + (int)fuzz_below(in, 2)) % l->inputs];
            int taken = from->stride == 0 || from->type != out[j].type;
            for (int k = 0; k < j; k++)
                taken |= out[k].group == from->group;
            if (!taken) {
                out[j].group = from->group;
                out[j].stride = from->stride;
            }
        }
        break;
    case FUZZ_AHEAD:
        for (int j = 0; j < l->inputs; j++) {
            fuzz_operand *from = &l->op[j];
            if (out->stride == 0 || from->stride == 0 || (j > 0 && fuzz_below(in, 2)))
                continue;
            ptrdiff_t sign = out->stride < 0 ? -1 : 1;
            if (from->stride * sign < out->stride * sign)
                from->stride = out->stride;
            shift = (ptrdiff_t)fuzz_below(in, 16) * (fuzz_below(in, 4) ? 1 : 40);
            from->start = sign * shift * item;
            from->group = out->group;
        }
        break;
    case FUZZ_INTERLEAVED:
        shift = (fuzz_below(in, 2) ? 1 : -1) * ((ptrdiff_t)fuzz_below(in, 3) + l->count);
        for (int j = 0; j < l->count && first->type == l->op[j].type; j++) {
            l->op[j].group = 0;
            l->op[j].stride = shift * item;
            l->op[j].start = j * item;
        }
        break;
    case FUZZ_INPUTS_OVERLAP:
        for (int j = 1; j < l->inputs; j++) {
            l->op[j].group = 0;
            l->op[j].start = ((ptrdiff_t)fuzz_below(in, 32) - 16) * item;
        }
        break;
    default:
        break;
    }
}

/* Allocate the memory of every group, and fill it with anything. */
static void
fuzz_make(fuzz_input *in, fuzz_layout *l)
{
    uint64_t noise = fuzz_take(in, 1);
    for (int g = 0; g < l->count; g++) {
        ptrdiff_t low = PTRDIFF_MAX, high = PTRDIFF_MIN;
        size_t item = 0;
        l->memory[g] = l->expected[g] = NULL;
        for (int j = 0; j < l->count; j++) {
            const fuzz_operand *o = &l->op[j];
            if (o->group != g)
                continue;
            ptrdiff_t last = o->start + (l->n > 0 ? l->n - 1 : 0) * o->stride;
            low = o->start < low ? o->start : low;
            low = last < low ? last : low;
            high = o->start > high ? o->start : high;
            high = last > high ? last : high;
            item = fuzz_item[o->type];
        }
        if (item == 0)
            continue;
        l->size[g] = (size_t)(high - low) + (l->n > 0 ? item : 0);
        l->lead[g] = fuzz_below(in, 16) * item;
        l->memory[g] = fuzz_allocate(l->size[g], l->lead[g]);
        l->expected[g] = malloc(l->size[g] + 1);
        for (size_t i = 0; i < l->size[g]; i++)
            l->memory[g][i] = (char)(i % 8 ? noise >> 8 * (i % 8) : fuzz_random(&noise));
        for (int j = 0; j < l->count; j++)
            if (l->op[j].group == g)
                l->op[j].at = l->memory[g] + (l->op[j].start - low);
    }
}

/* Dense copies of the inputs, and room for dense outputs. */
static void
fuzz_copy(const fuzz_layout *l, char **dense)
{
    for (int j = 0; j < l->count; j++) {
        size_t item = fuzz_item[l->op[j].type];
        dense[j] = fuzz_allocate((size_t)l->n * item, 0);
        for (ptrdiff_t i = 0; i < l->n; i++)
            if (j < l->inputs)
                memcpy(dense[j] + i * (ptrdiff_t)item, l->op[j].at + i * l->op[j].stride, item);
    }
    for (int g = 0; g < l->count; g++)
        if (l->memory[g] != NULL)
            memcpy(l->expected[g], l->memory[g], l->size[g]);
}

static int
fuzz_same(const char *a, const char *b, int type)
{
    return memcmp(a, b, fuzz_item[type]) == 0 ||
           (isnan(fuzz_double(a, type)) && isnan(fuzz_double(b, type)));
}

/* Compare all memory with what it was, but for the results, which are those of dense arrays. */
static void
fuzz_compare(fuzz_layout *l, char *const *dense)
{
    for (int j = l->inputs; j < l->count; j++) {
        const fuzz_operand *o = &l->op[j];
        ptrdiff_t item = (ptrdiff_t)fuzz_item[o->type];
        char *to = l->expected[o->group] + (o->at - l->memory[o->group]);
        for (ptrdiff_t i = 0; i < l->n; i++) {
            char *at = o->at + i * o->stride;
            const char *wanted = dense[j] + i * item;
            if (o->stride == 0 && i + 1 < l->n)
                continue; /* the last is written last */
            if (!fuzz_same(at, wanted, o->type))
                fuzz_fail("%s: output %d is %a at %td of %td with stride %td, but %a where all is "
                          "dense",
                          l->way, j - l->inputs, fuzz_double(at, o->type), i, l->n, o->stride,
                          fuzz_double(wanted, o->type));
            memcpy(to + i * o->stride, at, (size_t)item);
        }
    }
    for (int g = 0; g < l->count; g++)
        if (l->memory[g] != NULL && memcmp(l->memory[g], l->expected[g], l->size[g]) != 0)
            fuzz_fail("%s: memory was written that is no output's", l->way);
}

static void
fuzz_give_back(fuzz_layout *l, char **dense)
{
    for (int j = 0; j < l->count; j++) {
        fuzz_free(dense[j], 0);
        fuzz_free(l->memory[j], l->lead[j]);
        free(l->expected[j]);
    }
}

/* ---- accuracy ------------------------------------------------------------------------------ */

/* Compare a result with the same one in float64, whose own error is little here. */
static void
fuzz_close(const char *what, const char *got, int type, double exact, double most_ulp)
{
    double x = fuzz_double(got, type), size = fabs(exact);
    double limit = type == FUZZ_F32 ? (double)FLT_MAX : 65504.0;
    int places = type == FUZZ_F32 ? 23 : 10, least = type == FUZZ_F32 ? -126 : -14;
    if (isnan(x) != isnan(exact))
        fuzz_fail("%s is %a, and %a in float64", what, x, exact);
    if (isnan(x))
        return;
    if (signbit(x) != signbit(exact))
        fuzz_fail("%s is %a, and of the other sign in float64: %a", what, x, exact);
    int exponent = size > 0.0 && size < INFINITY ? ilogb(size) : least;
    double unit = ldexp(1.0, (exponent < least ? least : exponent) - places);
    if (size > limit || isinf(x)) { /* infinity is taken as the number after the largest */
        double most = limit + ldexp(1.0, type == FUZZ_F32 ? 104 : 5);
        double given = isinf(x) ? most : fabs(x);
        size = size > most ? most : size;
        if (fabs(given - size) <= most_ulp * (most - limit))
            return;
        fuzz_fail("%s is %a, and %a in float64", what, x, exact);
    }
    if (!(fabs(x - exact) <= most_ulp * unit))
        fuzz_fail("%s is %a, and %a in float64: %.3f ulp, more than %.3f", what, x, exact,
                  fabs(x - exact) / unit, most_ulp);
}

/* Compare two results of one type: how many numbers of the type one is from the other. */
static void
fuzz_near(const char *what, const char *a, const char *b, int type, uint64_t most)
{
    uint64_t place[2] = {0, 0}, sign = 1ull << (8 * fuzz_item[type] - 1);
    double x = fuzz_double(a, type), y = fuzz_double(b, type);
    if (isnan(x) && isnan(y))
        return;
    if (isnan(x) || isnan(y) || signbit(x) != signbit(y))
        fuzz_fail("%s are %a and %a", what, x, y);
    memcpy(&place[0], a, fuzz_item[type]);
    memcpy(&place[1], b, fuzz_item[type]);
    place[0] &= sign - 1;
    place[1] &= sign - 1;
    uint64_t apart = place[0] < place[1] ? place[1] - place[0] : place[0] - place[1];
    if (apart > most)
        fuzz_fail("%s are %a and %a, %llu numbers apart", what, x, y, (unsigned long long)apart);
}

/* ---- the processor's register of exceptions ------------------------------------------------ */

#ifdef LK_X86
enum { FUZZ_SUBNORMAL = 0x12, FUZZ_FLAGS = 0x3f, FUZZ_FLUSH = 0x8040 };

static void
fuzz_mode(unsigned mode)
{
    _mm_setcsr((_mm_getcsr() & ~(unsigned)(FUZZ_FLAGS | FUZZ_FLUSH)) | mode);
}

static unsigned
fuzz_flags(void)
{
    return _mm_getcsr() & FUZZ_FLAGS;
}
#else
enum { FUZZ_SUBNORMAL = 0, FUZZ_FLUSH = 0 };

static void
fuzz_mode(unsigned mode)
{
    (void)mode;
}

static unsigned
fuzz_flags(void)
{
    return 0;
}
#endif

/* ---- trying inputs ------------------------------------------------------------------------- */

static void fuzz_one(fuzz_input *in);

#ifdef FUZZ_LIBFUZZER

int
LLVMFuzzerTestOneInput(const uint8_t *data, size_t size)
{
    fuzz_input in = fuzz_begin(data, size);
    fuzz_one(&in);
    return 0;
}

#else

enum { FUZZ_MOST_BYTES = 4096 };

static size_t
fuzz_generate(uint64_t seed, uint64_t index, uint8_t *to)
{
    uint64_t state = seed * 0x100000001b3u + index;
    size_t size = 4 + fuzz_random(&state) % (index % 8 ? 96 : 1024);
    for (size_t i = 0; i < size; i++)
        to[i] = (uint8_t)fuzz_random(&state);
    return size;
}

static void
fuzz_try(const uint8_t *data, size_t size)
{
    uint8_t *copy = malloc(size + 1); /* of its own size, so that reading past it is found */
    memcpy(copy, data, size);
    fuzz_input in = fuzz_begin(copy, size);
    fuzz_one(&in);
    free(copy);
}

int
main(int argc, char **argv)
{
    uint8_t data[FUZZ_MOST_BYTES];
    uint64_t seed = 1, count = 0, only = UINT64_MAX, tried = 0;
    for (int i = 1; i < argc; i++) {
        int more = i + 1 < argc;
        if (more && strcmp(argv[i], "--seed") == 0) {
            seed = strtoull(argv[++i], NULL, 0);
        } else if (more && strcmp(argv[i], "--count") == 0) {
            count = strtoull(argv[++i], NULL, 0);
        } else if (more && strcmp(argv[i], "--only") == 0) {
            only = strtoull(argv[++i], NULL, 0);
        } else {
            FILE *file = fopen(argv[i], "rb");
            if (file == NULL) {
                fprintf(stderr, "fuzz: %s cannot be read\n", argv[i]);
                return 2;
            }
            fuzz_try(data, fread(data, 1, sizeof data, file));
            fclose(file);
            tried++;
        }
    }
    for (uint64_t i = 0; i < count; i++) {
        if (only != UINT64_MAX && only != i)
            continue;
        fuzz_index = i;
        fuzz_try(data, fuzz_generate(seed, i, data));
        tried++;
    }
    printf("%llu\n", (unsigned long long)tried);
    return 0;
}

#endif

#endif
