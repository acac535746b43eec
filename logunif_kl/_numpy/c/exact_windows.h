/* Tell whether all numbers of a block lie in a window, in which the usual form of the kernels meets
 * no subnormal number. Comparing bits raises no floating-point exception, and takes about 2 % of
 * the time of a function. */

/* `low` and `high` are the bits of positive numbers. The highest bit of b - low is set if
 * the bits b of a number are below `low`, and the highest bit of high - b if b is above `high`. If
 * `mask` does not clear the sign, negative numbers are outside. With `or_zero`, 0 is inside. */
#define ALL_INSIDE(function, type, word)                                                 \
    LK_INLINE int LK_NAME(function)(const type *x, npy_intp n, word mask, word low,      \
                                    word high, int or_zero)                              \
    {                                                                                    \
        word outside = 0;                                                                \
        for (npy_intp k = 0; k < n; k++) {                                               \
            word b;                                                                      \
            memcpy(&b, x + k, sizeof b);                                                 \
            b &= mask;                                                                   \
            word above_low = b - low;                                                    \
            outside |= (or_zero ? above_low & (0 - b) : above_low) | (high - b) | b;     \
        }                                                                                \
        return outside >> (8 * sizeof(word) - 1) == 0;                                   \
    }

ALL_INSIDE(inside_f64, double, uint64_t)
ALL_INSIDE(inside_f32, float, uint32_t)

#define WINDOW(name, type, inside, ...)                        \
    static int LK_NAME(name)(const type *x, npy_intp n)        \
    {                                                          \
        return LK_NAME(inside)(x, n, __VA_ARGS__);             \
    }

#define ANY_SIGN_64 0x7fffffffffffffff
#define ANY_SIGN_32 0x7fffffff

/* u from 2^-300 to 2^300, where u^3 and its rounding error are normal; in float32 from 2^-125 to
 * 2^60, where the results are normal. */
WINDOW(u_f64, double, inside_f64, UINT64_MAX, 0x2d30000000000000, 0x52b0000000000000, 1)
WINDOW(u_f32, float, inside_f32, UINT32_MAX, 0x01000000, 0x5d800000, 1)
/* |log_alpha| <= 200, in float32 <= 80. No intermediate result is subnormal there. */
WINDOW(x_f64, double, inside_f64, ANY_SIGN_64, 0x2d30000000000000, 0x4069000000000000, 1)
WINDOW(x_f32, float, inside_f32, ANY_SIGN_32, 0x03800000, 0x42a00000, 1)
/* |mu| from 2^-130 to 2^130, in float32 from 2^-44 to 2^100. */
WINDOW(mu_f64, double, inside_f64, ANY_SIGN_64, 0x37d0000000000000, 0x4810000000000000, 0)
WINDOW(mu_f32, float, inside_f32, ANY_SIGN_32, 0x29800000, 0x71800000, 0)
/* log_sigma2 up to 90 in magnitude, in float32 up to 25. */
WINDOW(ls_f64, double, inside_f64, ANY_SIGN_64, 0x2d30000000000000, 0x4056800000000000, 1)
WINDOW(ls_f32, float, inside_f32, ANY_SIGN_32, 0x03800000, 0x41c80000, 1)
