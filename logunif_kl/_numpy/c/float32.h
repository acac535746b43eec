/* -KL of N(mu, sigma^2) in float32. `each_target.h` includes this file for each LK_ISA. */

#include "float32_simd.h"

#include "float32_kernels.h"

#include "float32_blocks.h"

#include "float32_simd_end.h"
