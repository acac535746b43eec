/* Names that depend on the compiler, and the instruction sets that the kernels are compiled for.
 *
 * LK_TARGETS(X) calls X(name, present) for each instruction set that a processor may lack, the
 * fastest first; `baseline` is always there. `each_target.h` compiles the kernels for each of them,
 * as functions whose names end with the name of the instruction set. */

#ifndef LOGUNIF_KL_TARGETS_H
#define LOGUNIF_KL_TARGETS_H

#if defined(__GNUC__) && defined(__x86_64__)
#define LK_X86
#include <immintrin.h>
#endif

#if defined(__GNUC__) && defined(__AARCH64EL__)
#define LK_ARM64
#include <arm_neon.h>
#endif
#define LK_NEON 1 /* LK_ISA of Advanced SIMD; otherwise LK_ISA is the width of a register, or 0 */

#if defined(__GNUC__)
#define LK_ALWAYS_INLINE __attribute__((always_inline))
#define LK_ALIGNED _Alignas(64)
#elif defined(_MSC_VER)
#define LK_ALWAYS_INLINE __forceinline
#define LK_ALIGNED __declspec(align(64))
#else
#define LK_ALWAYS_INLINE
#define LK_ALIGNED
#endif

#define LK_INLINE static inline LK_ALWAYS_INLINE

#define LK_PASTE_(a, b) a##b
#define LK_PASTE(a, b) LK_PASTE_(a, b)
#define LK_NAME(name) LK_PASTE(name##_, LK_SUFFIX)

#ifdef LK_X86
#define LK_HAS(feature) __builtin_cpu_supports(feature)
#define LK_TARGETS(X)                                 \
    X(avx512, LK_HAS("avx512f") && LK_HAS("fma"))     \
    X(avx2, LK_HAS("avx2") && LK_HAS("fma"))
#elif defined(LK_ARM64)
#define LK_TARGETS(X) X(neon, 1) /* every 64-bit ARM processor has it */
#else
#define LK_TARGETS(X)
#endif

/* clang-format off */
#ifdef __clang__
#define LK_TARGET_AVX512 \
    _Pragma("clang attribute push(__attribute__((target(\"avx512f,avx2,fma\"))), apply_to = function)")
#define LK_TARGET_AVX2 \
    _Pragma("clang attribute push(__attribute__((target(\"avx2,fma\"))), apply_to = function)")
#define LK_TARGET_END _Pragma("clang attribute pop")
#else
#define LK_TARGET_AVX512 _Pragma("GCC push_options") _Pragma("GCC target(\"avx512f,avx2,fma\")")
#define LK_TARGET_AVX2 _Pragma("GCC push_options") _Pragma("GCC target(\"avx2,fma\")")
#define LK_TARGET_END _Pragma("GCC pop_options")
#endif
/* clang-format on */

#endif
