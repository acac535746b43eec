/* The exact functions for one instruction set, LK_ISA. `each_target.h` includes this for each. */

#include "exact_simd.h"

#include "exact_elementary.h"

#include "exact_magnitudes.h"

#include "exact_float64.h"

#include "exact_float32.h"

#include "exact_loops.h"

#include "exact_simd_end.h"
