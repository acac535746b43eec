/* Names that depend on the compiler, and the instruction sets that the kernels are compiled for.
 *
 * LK_TARGETS(X) calls X(name, present) for each instruction set that a processor may lack, the
 * fastest first; `baseline` is always there. `each_target.h` compiles the kernels for each of them,
 * as functions whose names end with the name of the instruction set. */

#ifndef LOGUNIF_KL_TARGETS_H
#define LOGUNIF_KL_TARGETS_H

/* clang-cl defines __clang__ and _MSC_VER, but not __GNUC__. */
#if defined(__GNUC__) || defined(__clang__)
#define LK_GNU
#endif

#if defined(LK_GNU) && defined(__x86_64__)
#define LK_X86
#include <immintrin.h>
#endif

#if defined(LK_GNU) && defined(__AARCH64EL__)
#define LK_ARM64
#include <arm_neon.h>
#endif
#define LK_NEON 1 /* LK_ISA of Advanced SIMD; otherwise LK_ISA is the width of a register, or 0 */

#if defined(LK_RELEASE) && !defined(LK_X86) && !defined(LK_ARM64)
#error "a release needs the kernels of SIMD: compile it with GCC or clang for x86-64 or AArch64"
#endif

#if defined(LK_GNU)
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

#if defined(LK_X86) && defined(_MSC_VER)
#include <intrin.h>

enum { LK_HAS_AVX2 = 1, LK_HAS_AVX512 = 2 };

/* __builtin_cpu_supports needs a library that clang-cl does not link. Besides the processor's
 * instructions, check in XCR0 that the system saves their registers. */
LK_INLINE int
lk_cpu(void)
{
    int none[4], one[4], seven[4];
    __cpuid(none, 0);
    __cpuid(one, 1);
    if (none[0] < 7 || !(one[2] >> 12 & 1) || !(one[2] >> 27 & 1)) /* FMA and OSXSAVE */
        return 0;
    __cpuidex(seven, 7, 0);
    unsigned long long saved = _xgetbv(0);
    return ((saved & 0x06) == 0x06 && seven[1] >> 5 & 1 ? LK_HAS_AVX2 : 0) |
           ((saved & 0xe6) == 0xe6 && seven[1] >> 16 & 1 ? LK_HAS_AVX512 : 0);
}

#define LK_TARGETS(X)                                 \
    X(avx512, lk_cpu() & LK_HAS_AVX512)               \
    X(avx2, lk_cpu() & LK_HAS_AVX2)
#elif defined(LK_X86)
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
