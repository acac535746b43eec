/* The arithmetic for a span with means so small that u or a derivative would be subnormal. In
 * training, the penalty leads to such means. log_sigma2 is in the box of `float32_magnitudes.h`.
 *
 * A mean below 2^-29 in magnitude is written as x 2^p, with |x| in [2^-30, 2^-29). F(u) = u for the
 * mean and for x, so the results for the mean are powers of 2 times the results for x. The results
 * for x remain normal numbers if a factor from 2^-32 to 2^32 multiplies them. */

#define TINY_MU POWER_OF_2(-29)
#define TINY_PLACE (-30)
#define TOO_LARGE_MU POWER_OF_2(19)

/* Tell whether all elements are in the box except for tiny means; n is a multiple of STRIDE. */
LK_INLINE int
LK_NAME(in_tiny_box)(const float *factor, const float *mu, const float *log_sigma2, ptrdiff_t n)
{
    U found = set1_bits(IN_WINDOW), size = set1_bits(0);
    for (ptrdiff_t k = 0; k < n; k += STRIDE)
        for (int i = 0; i < WAYS; i++) {
            ptrdiff_t at = k + i * LANES;
            found = found & (bits(load(log_sigma2 + at)) + set1_bits(WINDOW_LOG_SIGMA2));
            size = larger_int(size, size_bits(load(mu + at)));
            if (factor)
                found = found & (bits(load(factor + at)) + set1_bits(WINDOW_FACTOR));
        }
    return all(both(same_bits(found, set1_bits(IN_WINDOW)),
                    below(size, set1_bits(TOO_LARGE_MU))));
}

/* Replace tiny means by x, with p in `power`. For other means `power` is 0. */
LK_INLINE void
LK_NAME(raise)(V *mu, U *power)
{
    for (int i = 0; i < WAYS; i++) {
        U size = size_bits(mu[i]), b = extended(size);
        M tiny = both(below(size, set1_bits(TINY_MU)), below(set1_bits(0), size));
        U x = (b & set1_bits(0x007fffff)) | set1_bits(POWER_OF_2(TINY_PLACE));
        U p = ((b + set1_bits(32u << 23)) >> 23) - set1_bits(32 + 127 + TINY_PLACE);
        power[i] = choose_bits(tiny, p, set1_bits(0));
        mu[i] = unbits(choose_bits(tiny, x, size) | (bits(mu[i]) ^ size));
    }
}

/* Multiply x, which is 0 or a normal number, by 2^power, for power <= 0. */
LK_INLINE void
LK_NAME(lower)(V *x, const U *power)
{
    U found[WAYS];
    M some = below(set1_bits(0), set1_bits(0));
    for (int i = 0; i < WAYS; i++) {
        U size = size_bits(x[i]), exponent = (size >> 23) + power[i];
        M under = below(exponent, set1_bits(1));
        some = either(some, both(both(under, below(set1_bits(-25), exponent)),
                                 below(set1_bits(0), size)));
        found[i] = choose_bits(under, set1_bits(0), size + (power[i] << 23));
    }
    if (any(some))
        for (int i = 0; i < WAYS; i++) {
            scaled s = split(x[i]);
            s.power = s.power + power[i];
            found[i] = size_bits(join(s));
        }
    for (int i = 0; i < WAYS; i++)
        x[i] = unbits(found[i] | (bits(x[i]) ^ size_bits(x[i])));
}
