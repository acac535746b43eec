/* Results for the arguments that are not `usual` (`float32_magnitudes.h`), with no instruction that
 * takes or makes a subnormal number, whatever the mode of the processor (FTZ, DAZ) is.
 *
 * The arithmetic runs on arguments put in their places. A number is then taken as `x` 2^`power`,
 * with an integer `power`, until its bits are put together. For u = mu^2 exp(-log_sigma2) / 2:
 *   small u    -KL = -u, d_mu = -mu exp(-log_sigma2), d_log_sigma2 = u
 *   large u    -KL = -(log(u) + log(4) + gamma) / 2, d_mu = -1 / mu, d_log_sigma2 = 1/2
 *   otherwise  mu is scaled by 2^96 or 2^-96, and log_sigma2 shifted, which leaves u as it is. */

typedef struct {
    V x;
    U power;
} LK_NAME(scaled);
#define scaled LK_NAME(scaled)

/* The bits of a number without its sign, with exponents below 1 where it is subnormal. */
LK_INLINE U
LK_NAME(extended)(U size)
{
    U b = bits(to_float(size)) - set1_bits(149u << 23);
    return choose_bits(below(size, set1_bits(0x00800000)), b, size);
}
#define extended LK_NAME(extended)

/* x as a number of [1, 2) and a power. 0, infinity and NaN are left as they are. */
LK_INLINE scaled
LK_NAME(split)(V x)
{
    U size = size_bits(x), b = extended(size);
    U m = (b & set1_bits(0x007fffff)) | set1_bits(0x3f800000) | (bits(x) ^ size);
    /* 32 keeps the number positive that is shifted as an unsigned one. */
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
    /* A subnormal number is an integer times 2^-149, rounded by the addition of 2^23. */
    U places = choose_bits(low, s.power + set1_bits(149), zero);
    places = choose_bits(below(places, set1_bits(-64)), set1_bits(-64), places);
    U b = bits(unbits(choose_bits(low, size + (places << 23), zero)) + set1(0x1p23f));
    b = choose_bits(low, b - set1_bits(0x4b000000), size + (s.power << 23));
    b = choose_bits(below(set1_bits(254), exponent), set1_bits(0x7f800000), b);
    M plain = both(below(zero, size), below(size, set1_bits(0x7f800000)));
    return unbits(choose_bits(plain, b, size) | (bits(s.x) ^ size));
}
#define join LK_NAME(join)

/* log(2) = LOG2_FIRST + LOG2_SECOND. The first has so few bits that its product with an exponent is
 * exact without FMA. */
#define LOG2_FIRST 0x1.62ep-1f
#define LOG2_SECOND 0x1.0bfbe8p-15f

/* exp(-log_sigma2) */
LK_INLINE scaled
LK_NAME(exponential_of_minus)(V log_sigma2)
{
    /* Beyond these limits, u is not small or every result is 0. */
    V x = minimum(maximum(log_sigma2, set1(-300.0f)), set1(300.0f));
    V k_magic = MADD(x, set1(-PER_LOG2), set1(0x1.8p23f));
    V k = k_magic - set1(0x1.8p23f);
    V r = MADD(k, set1(LOG2_FIRST), x);
    r = -MADD(k, set1(LOG2_SECOND), r);
    V e = choose(equal(log_sigma2, set1(INFINITY)), set1(0.0f), exponential(r));
    scaled s = {e, bits(k_magic) - set1_bits(0x4b400000)};
    return s;
}

/* log(2)/2 + gamma/2 */
#define LARGE_U_CONSTANT 0.6351814227307392f
/* 192 log(2) and what it lacks of the exact number, halved */
#define SHIFT 96u
#define SHIFT_LOG 133.08425903320312f
#define SHIFT_REST 1.8284681279594573e-07f

/* Which way an unusual lane goes. `large` holds infinite u, `small` u = 0, `nan` no result. */
typedef struct {
    M small, large, nan, shifted, up;
    U size;
    V log_sigma2;
} LK_NAME(way);
#define way LK_NAME(way)

LK_INLINE way
LK_NAME(way_of)(M usual, V mu, V log_sigma2, int gradient)
{
    way w;
    w.size = size_bits(mu);
    w.log_sigma2 = without_tiny(log_sigma2);
    LK_NAME(exponents) x = exponents_of(extended(w.size), w.log_sigma2);
    M zero = same_bits(w.size, set1_bits(0));
    M infinite = same_bits(w.size, set1_bits(0x7f800000));
    U other = size_bits(log_sigma2), limit = set1_bits(0x7f800000);
    M nan = either(below(limit, w.size), below(limit, other));
    nan = either(nan, both(zero, same_bits(bits(log_sigma2), set1_bits(0xff800000))));
    nan = either(nan, both(infinite, same_bits(bits(log_sigma2), limit)));
    M rare = both(negated(usual), negated(nan));
    w.nan = nan;
    w.small = both(rare, either(zero, both(negated(infinite), is_small(&x, w.log_sigma2, gradient))));
    M rest = both(rare, negated(w.small));
    w.large = both(rest, either(infinite, less(set1(MOST_EXPONENT), x.u)));
    w.shifted = both(rest, negated(w.large));
    w.up = below(w.size, set1_bits(POWER_OF_2(0)));
    return w;
}
#define way_of LK_NAME(way_of)

/* Arguments for the arithmetic in place of the unusual ones. */
LK_INLINE void
LK_NAME(replace)(M usual, V *mu, V *log_sigma2, int gradient)
{
    way w = way_of(usual, *mu, *log_sigma2, gradient);
    U b = extended(w.size);
    b = choose_bits(w.up, b + set1_bits(SHIFT << 23), b - set1_bits(SHIFT << 23));
    V size = unbits(choose_bits(w.shifted, b, set1_bits(POWER_OF_2(0))));
    size = MADD(size, choose(w.up, set1(SHIFT_REST), set1(-SHIFT_REST)), size);
    V x = w.log_sigma2 + choose(w.up, set1(SHIFT_LOG), set1(-SHIFT_LOG));
    size = unbits(bits(size) | (bits(*mu) ^ w.size));
    *mu = choose(usual, *mu, choose(w.shifted, size, set1(1.0f)));
    *log_sigma2 = choose(usual, w.log_sigma2, choose(w.shifted, x, set1(1.0f)));
}
#define replace LK_NAME(replace)

static LK_NOINLINE void
LK_NAME(replace_ways)(const M *usual, V *mu, V *log_sigma2, int gradient)
{
    for (int i = 0; i < WAYS; i++)
        replace(usual[i], &mu[i], &log_sigma2[i], gradient);
}

/* The value of unusual lanes, with the bits `sign` added; the others stay. */
static LK_NOINLINE void
LK_NAME(finish_value)(const M *usual, unsigned sign, const V *mu, const V *log_sigma2, V *value)
{
    for (int i = 0; i < WAYS; i++) {
        if (all(usual[i]))
            continue;
        way w = way_of(usual[i], mu[i], log_sigma2[i], 0);
        scaled m = split(unbits(w.size));
        V result = unbits(set1_bits(0x7fc00000));
        if (any(w.small)) {
            scaled e =
                LK_NAME(exponential_of_minus)(choose(w.small, w.log_sigma2, set1(0.0f)));
            scaled u = {m.x * m.x * e.x, m.power + m.power + e.power - set1_bits(1)};
            result = choose(w.small, join(u), result);
        }
        if (any(w.large)) {
            V k = to_float(m.power), infinite = set1(INFINITY);
            M finite = both(w.large, less(m.x, infinite));
            V l = MADD(k, set1(LOG2_FIRST), w.log_sigma2 * set1(-0.5f)) +
                  (logarithm(choose(finite, m.x, set1(1.0f))) +
                   MADD(k, set1(LOG2_SECOND), set1(LARGE_U_CONSTANT)));
            l = choose(finite, l, infinite);
            result = choose(w.large, l, result);
        }
        result = unbits(bits(result) ^ set1_bits(sign ^ 0x80000000));
        M kept = either(usual[i], w.shifted);
        value[i] = choose(kept, value[i], result);
    }
}

/* The derivatives, times `factor`, of unusual lanes and of all others. */
static LK_NOINLINE void
LK_NAME(finish_gradient)(const M *usual, const V *factor, const V *mu, const V *log_sigma2,
                         V *d_mu, V *d_log_sigma2)
{
    for (int i = 0; i < WAYS; i++) {
        scaled f = split(factor[i]), r = split(d_mu[i]), s = split(d_log_sigma2[i]);
        if (!all(usual[i])) {
            way w = way_of(usual[i], mu[i], log_sigma2[i], 1);
            scaled m = split(mu[i]);
            scaled e =
                LK_NAME(exponential_of_minus)(choose(w.small, w.log_sigma2, set1(0.0f)));
            V nan = unbits(set1_bits(0x7fc00000));
            U shift = choose_bits(w.up, set1_bits(SHIFT), set1_bits(-SHIFT));
            V rest = choose(w.up, set1(SHIFT_REST), set1(-SHIFT_REST));
            r.x = choose(w.shifted, MADD(r.x, rest, r.x), r.x);
            r.power = choose_bits(w.shifted, r.power + shift, r.power);
            r.power = choose_bits(w.small, m.power + e.power, r.power);
            r.power = choose_bits(w.large, set1_bits(0) - m.power, r.power);
            r.x = choose(w.small, -(m.x * e.x), r.x);
            r.x = choose(w.large, set1(-1.0f) / m.x, r.x);
            r.x = choose(w.nan, nan, r.x);
            U twice = m.power + m.power + e.power - set1_bits(1);
            s.power = choose_bits(w.small, twice, s.power);
            s.power = choose_bits(w.large, set1_bits(0), s.power);
            s.x = choose(w.small, m.x * m.x * e.x, s.x);
            s.x = choose(w.large, set1(0.5f), s.x);
            s.x = choose(w.nan, nan, s.x);
        }
        r.x = f.x * r.x;
        r.power = r.power + f.power;
        s.x = f.x * s.x;
        s.power = s.power + f.power;
        d_mu[i] = join(r);
        d_log_sigma2[i] = join(s);
    }
}
