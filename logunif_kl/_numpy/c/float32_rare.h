/* Results for arguments that are not `usual` (`float32_magnitudes.h`). No instruction reads or
 * returns a subnormal number, so the mode of the processor (FTZ, DAZ) does not matter.
 *
 * Numbers are kept as `x` 2^`power`, with an integer `power`, until `join` assembles the bits. With
 * u = mu^2 exp(-log_sigma2) / 2 the results are:
 *   small u    -KL = -u, d_mu = -mu exp(-log_sigma2), d_log_sigma2 = u
 *   large u    -KL = -(log(u) + log(4) + gamma) / 2, d_mu = -1 / mu, d_log_sigma2 = 1/2
 *   otherwise  computed from mu times 2^96 or 2^-96, with log_sigma2 shifted so that u is kept. */

typedef struct {
    V x;
    U power;
} LK_NAME(scaled);
#define scaled LK_NAME(scaled)

/* The bits of |x|. A subnormal |x| gets the bits of a normal number, with an exponent below 1. */
LK_INLINE U
LK_NAME(extended)(U size)
{
    U b = bits(to_float(size)) - set1_bits(149u << 23);
    return choose_bits(below(size, set1_bits(0x00800000)), b, size);
}
#define extended LK_NAME(extended)

/* Split x into a number in [1, 2) and a power. 0, infinity and NaN are unchanged. */
LK_INLINE scaled
LK_NAME(split)(V x)
{
    U size = size_bits(x), b = extended(size);
    U m = (b & set1_bits(0x007fffff)) | set1_bits(0x3f800000) | (bits(x) ^ size);
    /* Adding 32 keeps the exponent positive, because the shift is unsigned. */
    U power = ((b + set1_bits(32u << 23)) >> 23) - set1_bits(32 + 127);
    M plain = both(below(set1_bits(0), size), below(size, set1_bits(0x7f800000)));
    scaled s = {unbits(choose_bits(plain, m, bits(x))), choose_bits(plain, power, set1_bits(0))};
    return s;
}
#define split LK_NAME(split)

/* x 2^power, rounded once, for x = 0, infinity, NaN, or 2^-8 < |x| < 2^8. */
LK_INLINE V
LK_NAME(join)(scaled s)
{
    U size = size_bits(s.x), zero = set1_bits(0);
    U exponent = (size >> 23) + s.power;
    M low = below(exponent, set1_bits(1));
    /* A subnormal number is an integer times 2^-149. Adding 2^23 rounds to that integer. */
    U places = larger_int(s.power + set1_bits(149), set1_bits(-64));
    V shifted = unbits(choose_bits(low, size + (places << 23), zero));
    U b = bits(shifted + set1(0x1p23f)) - set1_bits(0x4b000000);
    b = choose_bits(low, b, size + (s.power << 23));
    b = choose_bits(below(set1_bits(254), exponent), set1_bits(0x7f800000), b);
    M plain = both(below(zero, size), below(size, set1_bits(0x7f800000)));
    return unbits(choose_bits(plain, b, size) | (bits(s.x) ^ size));
}
#define join LK_NAME(join)

/* log(2) = LOG2_FIRST + LOG2_SECOND. With FMA, the parts and so the exponentials are the same as in
 * `float32_kernels.h`. Without FMA, LOG2_FIRST has so few bits that its product with an exponent is
 * exact. */
#ifdef LK_UNFUSED
#define LOG2_FIRST 0x1.62ep-1f
#define LOG2_SECOND 0x1.0bfbe8p-15f
#else
#define LOG2_FIRST 0x1.62e4p-1f
#define LOG2_SECOND 0x1.7f7d1cp-20f
#endif

/* exp(-log_sigma2), computed as in `float32_kernels.h`; 0 where log_sigma2 is infinite */
LK_INLINE scaled
LK_NAME(exponential_of_minus)(V log_sigma2)
{
    /* If log_sigma2 < -450, u is not small. Above 450 all results are 0, as factor mu^2 < 2^384. */
    V x = minimum(maximum(log_sigma2, set1(-450.0f)), set1(450.0f));
    V k_magic = MADD(x, set1(-PER_LOG2), set1(0x1.8p23f));
    V k = k_magic - set1(0x1.8p23f);
    V r = MADD(k, set1(-LOG2_SECOND), -MADD(k, set1(LOG2_FIRST), x));
    V s = MADD(set1(0x1.6ac014p-10f), r, set1(0x1.123d9ep-7f));
    s = MADD(s, r, set1(0x1.555858p-5f));
    s = MADD(s, r, set1(0x1.55548cp-3f));
    s = MADD(s, r, set1(0x1.fffffcp-2f));
    s = MADD(s, r, set1(1.0f));
    s = MADD(s, r, set1(1.0f));
    s = choose(less(log_sigma2, set1(INFINITY)), s, set1(0.0f));
    scaled e = {s, bits(k_magic) - set1_bits(0x4b400000)};
    return e;
}

/* log(m) for 1 <= m < 2; the error is less than 2^-23. */
LK_INLINE V
LK_NAME(logarithm)(V m)
{
    M upper = less(set1(0x1.6a09e6p+0f), m);
    V x = choose(upper, m * set1(0.5f), m) - set1(1.0f);
    V s = MADD(set1(0x1.6547e2p-4f), x, set1(-0x1.263d6ep-3f));
    s = MADD(s, x, set1(0x1.32393ap-3f));
    s = MADD(s, x, set1(-0x1.533272p-3f));
    s = MADD(s, x, set1(0x1.98b73ep-3f));
    s = MADD(s, x, set1(-0x1.00057p-2f));
    s = MADD(s, x, set1(0x1.555792p-2f));
    s = MADD(s, x, set1(-0x1.fffff8p-2f));
    return MADD(x * x, s, x) + choose(upper, set1(0x1.62e430p-1f), set1(0.0f));
}

/* log(2)/2 + gamma/2 */
#define LARGE_U_CONSTANT 0.6351814227307392f
/* SHIFT_LOG is 192 log(2) in float32, and SHIFT_REST half of the error of SHIFT_LOG. */
#define SHIFT 96u
#define SHIFT_LOG 133.08425903320312f
#define SHIFT_REST 1.8284681279594573e-07f

/* How each lane is computed. `own` and `scaled_` lanes use the arithmetic, with their own arguments
 * (even if mu is 0 or infinite) or with scaled arguments. The other lanes do not use it. */
typedef struct {
    M own[WAYS], small[WAYS], large[WAYS], nan[WAYS], scaled_up[WAYS], scaled_down[WAYS];
    V u[WAYS]; /* the exponent of u */
    int arithmetic, others, products;
} LK_NAME(ways);
#define ways LK_NAME(ways)

/* Find which lanes of a register keep their arguments, have a small or large u, or give NaN. */
LK_INLINE void
LK_NAME(sort_lanes)(ways *w, int i, const V *least, const LK_NAME(exponents) *x, U size, V ls)
{
    U top = set1_bits(0x7f800000);
    V found = least ? minimum(minimum(x->u, x->small), minimum(x->large, set1(-1.0f))) : x->u;
    M small = is_small(x, ls, least != NULL), large = less(set1(MOST_EXPONENT), x->u);
    M own = both(below(set1_bits(0x007fffff), size),
                 both(less_equal(x->u, set1(MOST_EXPONENT)), negated(small)));
    if (least)
        own = both(own, less_equal(set1(LEAST_EXPONENT), found));
    M fine = least ? less_equal(least[i], found) : own;
    /* One comparison of signed integers tests that mu is not 0, infinite or NaN. */
    M plain = both(below(size + set1_bits(0x7fffffff), set1_bits(0xff7fffff)),
                   less(magnitude(ls), set1(INFINITY)));
    w->nan[i] = both(plain, negated(plain));
    if (!all(plain)) {
        M zero = same_bits(size, set1_bits(0)), infinite = same_bits(size, top);
        M finite = below(size, top);
        M special = both(either(zero, infinite), less_equal(magnitude(ls), set1(60.0f)));
        own = either(both(own, finite), special);
        if (least)
            fine = choose_mask(special, less_equal(least[i], set1(-1.0f)), fine);
        w->nan[i] = either(either(below(top, size), not_equal(ls, ls)),
                           either(both(zero, equal(ls, set1(-INFINITY))),
                                  both(infinite, equal(ls, set1(INFINITY)))));
        small = either(zero, both(finite, small));
        large = either(negated(finite), large);
    }
    M rest = negated(either(own, w->nan[i]));
    w->own[i] = own;
    w->small[i] = both(rest, small);
    rest = both(rest, negated(small));
    w->large[i] = both(rest, large);
    if (least)
        w->products |= any(both(own, negated(fine)));
}

/* Fill `w`, and replace the arguments of lanes that do not keep their own. `least` is
 * least_exponent(factor), or NULL for the value. */
static LK_NOINLINE void
LK_NAME(find_ways)(ways *w, const V *least, V *mu, V *log_sigma2)
{
    w->arithmetic = w->others = w->products = 0;
    for (int i = 0; i < WAYS; i++) {
        V ls = log_sigma2[i];
        U size = size_bits(mu[i]), b = extended(size);
        LK_NAME(exponents) x = exponents_of(b, ls);
        LK_NAME(sort_lanes)(w, i, least, &x, size, ls);
        M past = either(either(w->small[i], w->large[i]), w->nan[i]);
        M rest = negated(either(w->own[i], past));
        M up = below(size, set1_bits(POWER_OF_2(0)));
        w->u[i] = x.u;
        w->scaled_up[i] = both(rest, up);
        w->scaled_down[i] = both(rest, negated(up));
        w->arithmetic |= !all(past);
        w->others |= !all(w->own[i]);
        if (any(rest)) {
            U y = choose_bits(up, b + set1_bits(SHIFT << 23), b - set1_bits(SHIFT << 23));
            V m = unbits(choose_bits(rest, y, set1_bits(POWER_OF_2(0))));
            m = unbits(bits(m) | (bits(mu[i]) ^ size));
            mu[i] = choose(rest, m, mu[i]);
            ls = choose(rest, ls + choose(up, set1(SHIFT_LOG), set1(-SHIFT_LOG)), ls);
        }
        mu[i] = choose(past, set1(1.0f), mu[i]);
        log_sigma2[i] = choose(past, set1(1.0f), ls);
    }
}

/* Return u, within 10 % and clipped, from the exponent that `exponents_of` estimates. */
LK_INLINE V
LK_NAME(limited_u)(V exponent)
{
    V x = minimum(maximum(set1(-14.0f), exponent), set1(6.0f)); /* -14 for NaN */
    /* The last 16 bits of the sum hold its fraction. */
    U places = bits(x + set1(192.05f)) - set1_bits(0x43400000);
    return unbits((places << 7) + set1_bits(POWER_OF_2(0)));
}

/* A result for scaled arguments belongs to u / (1 + d) with a small d, so it is multiplied by
 * 1 + elasticity d. Correcting mu instead would round mu, and u doubles the error of mu. */
LK_INLINE V
LK_NAME(corrected)(V result, V elasticity, M up, M down)
{
    V d = choose(up, set1(2.0f * SHIFT_REST), set1(-2.0f * SHIFT_REST));
    return choose(either(up, down), MADD(result, d * elasticity, result), result);
}

/* The relative change of d_log_sigma2 = u F'(u), divided by the relative change of u: (u / (u F') +
 * 1 - 2u) / 2, because 2 u F'' = 1 - (1 + 2u) F'. This ratio is 1 at u = 0, and nearly 0 above u =
 * 16. For d_mu = -2 u F' / mu the ratio is the same. */
LK_INLINE V
LK_NAME(gradient_elasticity)(V u, V d_log_sigma2, M wanted)
{
    V found = (u / choose(wanted, d_log_sigma2, set1(0.5f)) + set1(1.0f)) * set1(0.5f) - u;
    found = choose(less(u, set1(0x1p-11f)), set1(1.0f), found);
    return choose(less(u, set1(16.0f)), found, set1(0.0f));
}

/* Correct the lanes with scaled arguments, and compute the small, large and NaN lanes. */
static LK_NOINLINE void
LK_NAME(finish_value)(const ways *w, unsigned sign, const V *mu, const V *log_sigma2, V *value)
{
    for (int i = 0; i < WAYS; i++) {
        if (all(w->own[i]))
            continue;
        scaled m = split(unbits(size_bits(mu[i])));
        V ls = without_tiny(log_sigma2[i]), result = value[i];
        U flip = set1_bits(sign ^ 0x80000000);
        M up = w->scaled_up[i], down = w->scaled_down[i];
        if (any(either(up, down))) {
            /* `part` is the elasticity u F' / F within 0.1. */
            V u = LK_NAME(limited_u)(w->u[i]);
            V part = set1(1.0f) / MADD(u, set1(0.36f), set1(1.0f));
            result = LK_NAME(corrected)(result, part, up, down);
        }
        if (any(w->small[i])) {
            scaled e =
                LK_NAME(exponential_of_minus)(choose(w->small[i], ls, set1(0.0f)));
            scaled u = {m.x * (m.x * e.x), m.power + m.power + e.power - set1_bits(1)};
            result = choose(w->small[i], unbits(bits(join(u)) ^ flip), result);
        }
        if (any(w->large[i])) {
            V k = to_float(m.power), infinite = set1(INFINITY);
            M finite = both(w->large[i], less(m.x, infinite));
            V l = MADD(k, set1(LOG2_FIRST), choose(finite, ls, set1(0.0f)) * set1(-0.5f)) +
                  (LK_NAME(logarithm)(choose(finite, m.x, set1(1.0f))) +
                   MADD(k, set1(LOG2_SECOND), set1(LARGE_U_CONSTANT)));
            l = choose(finite, l, infinite);
            result = choose(w->large[i], unbits(bits(l) ^ flip), result);
        }
        value[i] = choose(w->nan[i], set1(NAN), result);
    }
}

/* The same as finish_value for the derivatives, which are multiplied by `factor` in all lanes. */
static LK_NOINLINE void
LK_NAME(finish_gradient)(const ways *w, int each, const V *factor, const V *mu,
                         const V *log_sigma2, V *d_mu, V *d_log_sigma2)
{
    scaled f = {set1(1.0f), set1_bits(0)};
    int factor_is_split = 0;
    for (int i = 0; i < WAYS; i++) {
        scaled r = {d_mu[i], set1_bits(0)}, s = {d_log_sigma2[i], set1_bits(0)};
        M small = w->small[i], large = w->large[i], own = w->own[i], nan = w->nan[i];
        M up = w->scaled_up[i], down = w->scaled_down[i];
        V g = choose(own, factor[i], set1(1.0f));
        if (!w->products && all(either(own, nan))) {
            d_mu[i] = choose(nan, set1(NAN), g * d_mu[i]);
            d_log_sigma2[i] = choose(nan, set1(NAN), g * d_log_sigma2[i]);
            continue;
        }
        if (w->products || any(either(up, down))) {
            U shift = choose_bits(down, set1_bits(-SHIFT), set1_bits(0));
            r = split(d_mu[i]);
            s = split(d_log_sigma2[i]);
            r.power = r.power + choose_bits(up, set1_bits(SHIFT), shift);
        }
        scaled m = split(mu[i]);
        M shifted = either(up, down);
        if (any(shifted)) {
            V u = LK_NAME(limited_u)(w->u[i]);
            V part = LK_NAME(gradient_elasticity)(u, d_log_sigma2[i], shifted);
            r.x = LK_NAME(corrected)(r.x, part, up, down);
            s.x = LK_NAME(corrected)(s.x, part, up, down);
        }
        if (each || !factor_is_split++)
            f = split(factor[i]);
        if (any(small)) {
            V ls = choose(small, without_tiny(log_sigma2[i]), set1(0.0f));
            scaled e = LK_NAME(exponential_of_minus)(ls);
            V slope = m.x * e.x;
            U power = m.power + e.power;
            r.x = choose(small, -slope, r.x);
            r.power = choose_bits(small, power, r.power);
            s.x = choose(small, m.x * slope, s.x);
            s.power = choose_bits(small, power + m.power - set1_bits(1), s.power);
        }
        if (any(large)) {
            r.x = choose(large, set1(-1.0f) / m.x, r.x);
            r.power = choose_bits(large, set1_bits(0) - m.power, r.power);
            s.x = choose(large, set1(0.5f), s.x);
            s.power = choose_bits(large, set1_bits(0), s.power);
        }
        r.x = f.x * choose(nan, set1(NAN), r.x);
        r.power = r.power + f.power;
        s.x = f.x * choose(nan, set1(NAN), s.x);
        s.power = s.power + f.power;
        V x = join(r), y = join(s);
        if (!w->products) {
            x = choose(own, g * d_mu[i], x);
            y = choose(own, g * d_log_sigma2[i], y);
        }
        d_mu[i] = x;
        d_log_sigma2[i] = y;
    }
}
