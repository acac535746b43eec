/* Compile the kernels in the header LK_KERNELS once for each instruction set of `targets.h`.
 *
 * LK_KERNELS undefines LK_ISA at its end. */

#ifdef LK_X86

LK_TARGET_AVX512
#define LK_ISA 512
#include LK_KERNELS
LK_TARGET_END

LK_TARGET_AVX2
#define LK_ISA 256
#include LK_KERNELS
LK_TARGET_END

#endif

#ifdef LK_ARM64
#define LK_ISA LK_NEON
#include LK_KERNELS
#endif

#define LK_ISA LK_BASELINE_ISA
#include LK_KERNELS
