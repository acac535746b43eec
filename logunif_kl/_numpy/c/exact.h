/* The exact functions. `each_target.h` includes this file once for each instruction set LK_ISA. */

#include "exact_simd.h"

#include "exact_elementary.h"

#include "exact_magnitudes.h"

#include "exact_float64.h"

#include "exact_float32.h"

#include "exact_loops.h"

#include "exact_simd_end.h"
