/* Undefine the names of `float32_simd.h` and of the headers that use it, so that they can be
 * included again. */

#undef LK_ISA
#undef LK_SUFFIX
#undef LANES
#undef V
#undef U
#undef M
#undef set1
#undef load
#undef store
#undef bits
#undef unbits
#undef set1_bits
#undef MADD
#undef maximum
#undef minimum
#undef less
#undef less_equal
#undef greater
#undef greater_equal
#undef equal
#undef not_equal
#undef both
#undef either
#undef negated
#undef choose
#undef magnitude
#undef nearest
#undef exponential
#undef logarithm
#undef MAGIC
#undef MAGIC_BITS
#undef STRIDE
#undef load_ways
#undef store_ways
#undef REST
