/* -KL of N(mu, sigma^2) in float32 for one instruction set, LK_ISA. `each_target.h` includes
 * this file once for each. */

#include "float32_simd.h"

#include "float32_kernels.h"

#include "float32_blocks.h"

#include "float32_simd_end.h"
