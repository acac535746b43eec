/* Coefficients of exp and log in float32, for `float32_simd.h`.
 *
 * Written by `python -m validation.traced`: do not edit. */

#ifndef LOGUNIF_KL_FLOAT32_COEFFICIENTS_H
#define LOGUNIF_KL_FLOAT32_COEFFICIENTS_H

/* exp(v) = 1 + v + v^2 (k2 + k3 v + ...), |v| <= log(2)/2;
 * relative error 3.2e-09 with the rounded coefficients */
enum { EXP_F_TERMS = 5 };
static const float EXP_F[] = {
    0x1.fffffc0000000p-2f,
    0x1.55548c0000000p-3f,
    0x1.5558560000000p-5f,
    0x1.123de00000000p-7f,
    0x1.6acae80000000p-10f,
};

/* log(1 + v) = v - v^2/2 + v^3 (k3 + ...), -1/4 <= v <= 1/2;
 * relative error 8.8e-09 with the rounded coefficients */
enum { LOG_F_TERMS = 8 };
static const float LOG_F[] = {
    0x1.5555a20000000p-2f,
    -0x1.0000400000000p-2f,
    0x1.9969b80000000p-3f,
    -0x1.54efee0000000p-3f,
    0x1.28844a0000000p-3f,
    -0x1.0d89e80000000p-3f,
    0x1.ac8fc40000000p-4f,
    -0x1.7140740000000p-5f,
};

#define LOG2_F_HI 0x1.62e4000000000p-1f
#define LOG2_F_LO 0x1.7f7d1c0000000p-20f
#define PER_LOG2_F 0x1.7154760000000p+0f

#endif
