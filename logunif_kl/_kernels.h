/* The exact functions on one register, written over `_simd.h`.
 *
 * Each function has up to eight ranges of u. A range holds a polynomial
 * P(v) = base + v (k1 + v (k2 + ...)) in v = u - c or v = 1/u - c, and the result is P times a
 * factor, plus in two cases a logarithm (validation/coefficients/functions.py has the list). The
 * coefficients of the range that an element falls into are looked up by its index, so there are no
 * branches. In float64 the last two steps of the polynomial and every product after it are carried
 * in two words and rounded once; what is left is the rounding of the result and about a tenth of
 * an ulp. float32 results are computed in float64 and rounded once. */

#define MAGIC 0x1.8p52 /* adding it rounds to an integer that stands in the low bits */
#define PINF INFINITY

typedef struct {
    V hi, lo;
} LK_NAME(pair);
#define pair LK_NAME(pair)

LK_INLINE V
LK_NAME(product_error)(V a, V b, V product)
{
#ifdef LK_UNFUSED
    const U upper = set1_bits(~((1ull << 27) - 1));
    V ah = unbits(bits(a) & upper), al = a - ah;
    V bh = unbits(bits(b) & upper), bl = b - bh;
    return (((ah * bh - product) + ah * bl) + al * bh) + al * bl;
#else
    return MADD(a, b, -product);
#endif
}
#define product_error LK_NAME(product_error)

/* z (hi + lo) for |z| < 2, rounded once; unfused, scaled so that what the product lost is exact. */
LK_INLINE V
LK_NAME(times)(V z, V hi, V lo)
{
#ifdef LK_UNFUSED
    V scaled = z * set1(0x1p600), product = scaled * hi;
    return (product + (product_error(scaled, hi, product) + scaled * lo)) * set1(0x1p-600);
#else
    return MADD(z, hi, z * lo);
#endif
}
#define times LK_NAME(times)

/* The range of an argument: how many of seven bounds it has reached, from below or from above. */
#define REACHED(function, type, reached)                                         \
    LK_INLINE I function(const double (*table)[8], type x)                       \
    {                                                                            \
        I i = index_zero();                                                      \
        for (int k = 0; k < 7; k++)                                              \
            i = index_count(i, reached(x, set1(table[BOUNDS][k])));              \
        return i;                                                                \
    }
#define from_below(x, bound) less_equal(bound, x)
#define from_above(x, bound) less_equal(x, bound)
REACHED(LK_NAME(index_up), V, from_below)
REACHED(LK_NAME(index_down), V, from_above)
#define index_up LK_NAME(index_up)
#define index_down LK_NAME(index_down)

/* k_first + v (k_(first+1) + ...), in one chain: two in v^2 are 5 % faster, and an ulp/4 worse. */
LK_INLINE V
LK_NAME(horner)(const double (*table)[8], int degree, int first, I i, V v)
{
    V s = lookup(table[FIRST + degree - 1], i);
#pragma GCC unroll 32
    for (int k = degree - 2; k >= first; k--)
        s = MADD(s, v, lookup(table[FIRST + k], i));
    return s;
}
#define horner LK_NAME(horner)

/* P(v + v_lo) in two words. */
LK_INLINE pair
LK_NAME(polynomial)(const double (*table)[8], int degree, I i, V v, V v_lo)
{
    V s = horner(table, degree, 1, i, v);
    V k1 = lookup(table[FIRST], i), base = lookup(table[BASE_HI], i);
    V p = v * s;
    V s_hi = k1 + p;
    V s_lo = ((k1 - s_hi) + p) + product_error(v, s, p);
    V q = v * s_hi;
    V q_lo = MADD(v, s_lo, product_error(v, s_hi, q)) + MADD(v_lo, s_hi, lookup(table[BASE_LO], i));
    pair r;
    r.hi = base + q;
    r.lo = ((base - r.hi) + q) + q_lo;
    return r;
}
#define polynomial LK_NAME(polynomial)

/* P(v) in one word: for float32 results. */
LK_INLINE V
LK_NAME(polynomial_f32)(const double (*table)[8], int degree, I i, V v)
{
    return MADD(horner(table, degree, 0, i, v), v, lookup(table[BASE_HI], i));
}
#define polynomial_f32 LK_NAME(polynomial_f32)

/* 2^n for an integer -1023 < n < 1024 held as the low bits of n + MAGIC. */
LK_INLINE V
LK_NAME(power_of_two)(V n_magic)
{
    return unbits((bits(n_magic) + set1_bits(1023)) << 52);
}
#define power_of_two LK_NAME(power_of_two)

/* x 2^n with one rounding, also where the result is subnormal; n is integral. */
LK_INLINE V
LK_NAME(scale)(V x, V n)
{
    V clamped = vmin(vmax(n, set1(-2044.0)), set1(2044.0));
    V half = MADD(clamped, set1(0.5), set1(MAGIC));
    V rest = clamped - (half - set1(MAGIC));
    return x * power_of_two(half) * power_of_two(rest + set1(MAGIC));
}
#define scale LK_NAME(scale)

/* exp(t) = (hi + lo) 2^n for |t| < 2^15. */
LK_INLINE pair
LK_NAME(exponential)(V t, V *n)
{
    V k_magic = MADD(t, set1(EIGHTHS_PER_LOG2), set1(MAGIC));
    V k = k_magic - set1(MAGIC);
    V r = (t - k * set1(EIGHTH_LOG2_HI)) - k * set1(EIGHTH_LOG2_LO);
    U eighths = bits(k_magic) & set1_bits(7);
    I j = index_of_bits(eighths);
    V s = set1(EXP_D[EXP_D_DEGREE - 2]);
#pragma GCC unroll 32
    for (int i = EXP_D_DEGREE - 3; i >= 0; i--)
        s = MADD(s, r, set1(EXP_D[i]));
    V power = lookup(EXP2_EIGHTHS[0], j);
    V more = power * MADD(r * r, s, r);
    pair y;
    y.hi = power + more;
    y.lo = ((power - y.hi) + more) + lookup(EXP2_EIGHTHS[1], j);
    *n = (k - (unbits(eighths | set1_bits(0x4330000000000000)) - set1(0x1p52))) * set1(0.125);
    return y;
}
#define exponential LK_NAME(exponential)

/* exp(t) for float32 results, |t| < 700. */
LK_INLINE V
LK_NAME(exponential_f32)(V t)
{
    V k_magic = MADD(t, set1(EIGHTHS_PER_LOG2), set1(MAGIC));
    V k = k_magic - set1(MAGIC);
    V r = MADD(k, set1(-EIGHTH_LOG2), t);
    V s = set1(EXP_S[EXP_S_DEGREE - 2]);
#pragma GCC unroll 32
    for (int i = EXP_S_DEGREE - 3; i >= 0; i--)
        s = MADD(s, r, set1(EXP_S[i]));
    V power = lookup(EXP2_EIGHTHS[0], index_of_bits(bits(k_magic) & set1_bits(7)));
    V whole = unbits(((bits(k_magic) >> 3) + set1_bits(1023)) << 52);
    return MADD(power, MADD(r * r, s, r), power) * whole;
}
#define exponential_f32 LK_NAME(exponential_f32)

/* log(m 2^n)/2 of a normal m: `hi` is a multiple of 2^-42, so that sums with it lose nothing. */
LK_INLINE pair
LK_NAME(half_log)(V m, V n)
{
    const U mantissa = set1_bits(0x000fffffffffffff), one = set1_bits(0x3ff0000000000000);
    U b = bits(m);
    V f = unbits((b & mantissa) | one);
    V exponent = unbits((b >> 52) | set1_bits(0x4330000000000000)) - set1(0x1p52 + 1023.0);
    V k = exponent + n;
    I j = index_of_bits(b >> 49);
    V c = lookup(LOG_EIGHTHS[0], j);
#ifdef LK_UNFUSED
    V f_hi = unbits(bits(f) & set1_bits(~((1ull << 27) - 1)));
    V r = (f_hi * c - set1(1.0)) + (f - f_hi) * c;
#else
    V r = MADD(f, c, set1(-1.0));
#endif
    V s = set1(LOG1P_D[LOG1P_D_DEGREE - 2]);
#pragma GCC unroll 32
    for (int i = LOG1P_D_DEGREE - 3; i >= 0; i--)
        s = MADD(s, r, set1(LOG1P_D[i]));
    pair y;
    y.hi = k * set1(HALF_LOG2_HI) + lookup(LOG_EIGHTHS[1], j);
    y.lo = set1(0.5) * MADD(r * r, s, r) + MADD(k, set1(HALF_LOG2_LO), lookup(LOG_EIGHTHS[2], j));
    return y;
}
#define half_log LK_NAME(half_log)

LK_INLINE V
LK_NAME(half_log_f32)(V m)
{
    const U mantissa = set1_bits(0x000fffffffffffff), one = set1_bits(0x3ff0000000000000);
    U b = bits(m);
    V k = unbits((b >> 52) | set1_bits(0x4330000000000000)) - set1(0x1p52 + 1023.0);
    I j = index_of_bits(b >> 49);
    V r = MADD(unbits((b & mantissa) | one), lookup(LOG_EIGHTHS[0], j), set1(-1.0));
    V s = set1(LOG1P_S[LOG1P_S_DEGREE - 2]);
#pragma GCC unroll 32
    for (int i = LOG1P_S_DEGREE - 3; i >= 0; i--)
        s = MADD(s, r, set1(LOG1P_S[i]));
    return MADD(k, set1(HALF_LOG2_HI), lookup(LOG_EIGHTHS[1], j)) +
           set1(0.5) * MADD(r * r, s, r);
}
#define half_log_f32 LK_NAME(half_log_f32)

/* ---- functions of u ------------------------------------------------------------------------ */

/* `result` where u >= 0, NaN elsewhere (keeping the payload of a NaN). */
LK_INLINE V
LK_NAME(in_domain)(V u, V result)
{
    return choose(less_equal(set1(0.0), u), result, u * set1(NAN));
}
#define in_domain LK_NAME(in_domain)

/* The argument of the polynomial: u or 1/u, and what 1/u lost in rounding (relative). */
LK_INLINE V
LK_NAME(argument)(V u, M recip, V *error)
{
    V w = set1(1.0) / u;
    V lost = -(product_error(w, u, set1(1.0)));
    *error = choose(both(recip, less(u, set1(PINF))), lost, set1(0.0));
    return choose(recip, w, u);
}
#define argument LK_NAME(argument)

LK_INLINE V
LK_NAME(kl_gap_d)(V u)
{
    M recip = less_equal(set1(KL_GAP_D[BOUNDS][KL_GAP_D_RECIP - 1]), u);
    I i = index_up(KL_GAP_D, u);
    V a = choose(recip, set1(1.0) / u, u);
    pair p = polynomial(KL_GAP_D, KL_GAP_D_DEGREE, i, a - lookup(KL_GAP_D[CENTRE], i), set1(0.0));
    V z = choose(index_is(i, 0), u, set1(1.0));
    pair l = half_log(u, set1(0.0));
    V l_hi = choose(recip, l.hi, set1(0.0)), l_lo = choose(recip, l.lo, set1(0.0));
    V sum = l_hi + p.hi;
    V rest = ((l_hi - sum) + p.hi) + (p.lo + l_lo);
    V result = times(z, sum, rest);
    return in_domain(u, choose(equal(u, set1(PINF)), u, result));
}

LK_INLINE V
LK_NAME(kl_gap_grad_d)(V u)
{
    M recip = less_equal(set1(KL_GAP_GRAD_D[BOUNDS][KL_GAP_GRAD_D_RECIP - 1]), u);
    I i = index_up(KL_GAP_GRAD_D, u);
    V error;
    V a = argument(u, recip, &error);
    pair p = polynomial(KL_GAP_GRAD_D, KL_GAP_GRAD_D_DEGREE, i,
                        a - lookup(KL_GAP_GRAD_D[CENTRE], i), set1(0.0));
    V z = choose(recip, a, set1(1.0));
    return in_domain(u, times(z, p.hi, MADD(p.hi, error, p.lo)));
}

LK_INLINE V
LK_NAME(kl_gap_hess_d)(V u)
{
    M recip = less_equal(set1(KL_GAP_HESS_D[BOUNDS][KL_GAP_HESS_D_RECIP - 1]), u);
    I i = index_up(KL_GAP_HESS_D, u);
    V error;
    V a = argument(u, recip, &error);
    pair p = polynomial(KL_GAP_HESS_D, KL_GAP_HESS_D_DEGREE, i,
                        a - lookup(KL_GAP_HESS_D[CENTRE], i), set1(0.0));
    V z = choose(recip, a, set1(1.0));
    V t = z * p.hi;
    V t_lo = product_error(z, p.hi, t) + z * MADD(p.hi, error + error, p.lo);
    return in_domain(u, times(z, t, t_lo));
}

/* ---- functions of x = log_alpha ------------------------------------------------------------ */

/* A NaN passes through as a NaN: vmax(bound, x) is x where x is one, and the range is the first. */

typedef struct {
    I range; /* of u = exp(-x)/2 */
    M recip; /* whether `a` is 1/u, not u */
    pair y;  /* exp(+-x) = y 2^n */
    V n;
    V a, a_lo; /* u or 1/u in two words (0 where it would be subnormal) */
} LK_NAME(log_alpha);
#define log_alpha LK_NAME(log_alpha)

LK_INLINE log_alpha
LK_NAME(from_log_alpha)(const double (*table)[8], int first_recip, V x)
{
    log_alpha s;
    s.range = index_down(table, x);
    s.recip = less_equal(x, set1(table[BOUNDS][first_recip - 1]));
    V t = choose(s.recip, x, -x);
    s.y = exponential(vmax(set1(-1500.0), t), &s.n);
    s.n = s.n + choose(s.recip, set1(1.0), set1(-1.0));
    V power = power_of_two(vmax(s.n, set1(-1023.0)) + set1(MAGIC));
    s.a = s.y.hi * power;
    s.a_lo = s.y.lo * power;
    return s;
}
#define from_log_alpha LK_NAME(from_log_alpha)

/* (exp(+-x) 2^n) p where `scaled`, else p. */
LK_INLINE V
LK_NAME(finish)(log_alpha s, pair p, M scaled)
{
    V product = s.y.hi * p.hi;
    V rest = product_error(s.y.hi, p.hi, product) + MADD(s.y.hi, p.lo, s.y.lo * p.hi);
    return choose(scaled, scale(product + rest, s.n), p.hi + p.lo);
}
#define finish LK_NAME(finish)

LK_INLINE V
LK_NAME(neg_kl_d)(V x)
{
    log_alpha s = from_log_alpha(NEG_KL_D, NEG_KL_D_RECIP, x);
    V v = s.a - lookup(NEG_KL_D[CENTRE], s.range);
    pair p = polynomial(NEG_KL_D, NEG_KL_D_DEGREE, s.range, v, s.a_lo);
    V line = choose(s.recip, vmax(x, set1(-1e308)) * set1(0.5), set1(0.0));
    pair sum;
    sum.hi = line + p.hi;
    sum.lo = ((line - sum.hi) + p.hi) + p.lo;
    V result = finish(s, sum, index_is(s.range, 0));
    return choose(less(x, set1(-1e308)), x * set1(0.5), result);
}

LK_INLINE V
LK_NAME(neg_kl_grad_d)(V x)
{
    log_alpha s = from_log_alpha(NEG_KL_GRAD_D, NEG_KL_GRAD_D_RECIP, x);
    V v = s.a - lookup(NEG_KL_GRAD_D[CENTRE], s.range);
    pair p = polynomial(NEG_KL_GRAD_D, NEG_KL_GRAD_D_DEGREE, s.range, v, s.a_lo);
    return finish(s, p, index_is(s.range, 0));
}

LK_INLINE V
LK_NAME(neg_kl_hess_d)(V x)
{
    log_alpha s = from_log_alpha(NEG_KL_HESS_D, NEG_KL_HESS_D_RECIP, x);
    M root = index_is(s.range, NEG_KL_HESS_D_ROOT);
    V v = choose(root, x - set1(INFLECTION_HI), s.a - lookup(NEG_KL_HESS_D[CENTRE], s.range));
    V v_lo = choose(root, set1(-INFLECTION_LO), s.a_lo);
    pair p = polynomial(NEG_KL_HESS_D, NEG_KL_HESS_D_DEGREE, s.range, v, v_lo);
    M scaled = either(index_is(s.range, 0), s.recip);
    return finish(s, p, scaled);
}

/* ---- float32 results, computed in float64 -------------------------------------------------- */

LK_INLINE V
LK_NAME(kl_gap_s)(V u)
{
    M recip = less_equal(set1(KL_GAP_S[BOUNDS][KL_GAP_S_RECIP - 1]), u);
    I i = index_up(KL_GAP_S, u);
    V a = choose(recip, set1(1.0) / u, u);
    V p = polynomial_f32(KL_GAP_S, KL_GAP_S_DEGREE, i, a - lookup(KL_GAP_S[CENTRE], i));
    V high = choose(equal(u, set1(PINF)), u, half_log_f32(u) + p);
    V low = choose(index_is(i, 0), u, set1(1.0)) * p;
    return in_domain(u, choose(recip, high, low));
}

LK_INLINE V
LK_NAME(kl_gap_grad_s)(V u)
{
    M recip = less_equal(set1(KL_GAP_GRAD_S[BOUNDS][KL_GAP_GRAD_S_RECIP - 1]), u);
    I i = index_up(KL_GAP_GRAD_S, u);
    V a = choose(recip, set1(1.0) / u, u);
    V p = polynomial_f32(KL_GAP_GRAD_S, KL_GAP_GRAD_S_DEGREE, i,
                            a - lookup(KL_GAP_GRAD_S[CENTRE], i));
    return in_domain(u, choose(recip, a, set1(1.0)) * p);
}

LK_INLINE V
LK_NAME(kl_gap_hess_s)(V u)
{
    M recip = less_equal(set1(KL_GAP_HESS_S[BOUNDS][KL_GAP_HESS_S_RECIP - 1]), u);
    I i = index_up(KL_GAP_HESS_S, u);
    V a = choose(recip, set1(1.0) / u, u);
    V p = polynomial_f32(KL_GAP_HESS_S, KL_GAP_HESS_S_DEGREE, i,
                            a - lookup(KL_GAP_HESS_S[CENTRE], i));
    V z = choose(recip, a, set1(1.0));
    return in_domain(u, z * z * p);
}

/* u = exp(-x)/2, or 1/u where `recip`; float32 needs no more than |x| < 700. */
LK_INLINE V
LK_NAME(half_exp_f32)(V x, M recip)
{
    V e = exponential_f32(vmax(set1(-700.0), choose(recip, x, -x)));
    return e * choose(recip, set1(2.0), set1(0.5));
}
#define half_exp_f32 LK_NAME(half_exp_f32)

LK_INLINE V
LK_NAME(neg_kl_s)(V x)
{
    M recip = less_equal(x, set1(NEG_KL_S[BOUNDS][NEG_KL_S_RECIP - 1]));
    I i = index_down(NEG_KL_S, x);
    V a = half_exp_f32(x, recip);
    V p = polynomial_f32(NEG_KL_S, NEG_KL_S_DEGREE, i, a - lookup(NEG_KL_S[CENTRE], i));
    V line = choose(recip, x * set1(0.5), set1(0.0));
    return MADD(choose(index_is(i, 0), a, set1(1.0)), p, line);
}

LK_INLINE V
LK_NAME(neg_kl_grad_s)(V x)
{
    M recip = less_equal(x, set1(NEG_KL_GRAD_S[BOUNDS][NEG_KL_GRAD_S_RECIP - 1]));
    I i = index_down(NEG_KL_GRAD_S, x);
    V a = half_exp_f32(x, recip);
    V p = polynomial_f32(NEG_KL_GRAD_S, NEG_KL_GRAD_S_DEGREE, i,
                            a - lookup(NEG_KL_GRAD_S[CENTRE], i));
    return choose(index_is(i, 0), a, set1(1.0)) * p;
}

LK_INLINE V
LK_NAME(neg_kl_hess_s)(V x)
{
    M recip = less_equal(x, set1(NEG_KL_HESS_S[BOUNDS][NEG_KL_HESS_S_RECIP - 1]));
    I i = index_down(NEG_KL_HESS_S, x);
    V a = half_exp_f32(x, recip);
    M root = index_is(i, NEG_KL_HESS_S_ROOT);
    V v = choose(root, (x - set1(INFLECTION_HI)) - set1(INFLECTION_LO),
                 a - lookup(NEG_KL_HESS_S[CENTRE], i));
    V p = polynomial_f32(NEG_KL_HESS_S, NEG_KL_HESS_S_DEGREE, i, v);
    return choose(either(index_is(i, 0), recip), a, set1(1.0)) * p;
}

/* ---- -KL and both its derivatives from (mu, log sigma^2) ------------------------------------ */

typedef struct {
    V value, d_mu, d_log_sigma2;
} LK_NAME(normal);
#define normal LK_NAME(normal)

/* mu = 0 and |mu| = inf, where u does not depend on a finite log sigma^2; 0 * inf and NaN: NaN. */
LK_INLINE normal
LK_NAME(limits)(V mu, V log_sigma2, normal r)
{
    V size = unbits(bits(mu) & set1_bits(~(1ull << 63)));
    M zero = equal(mu, set1(0.0)), infinite = equal(size, set1(PINF));
    M undefined = either(both(zero, equal(log_sigma2, set1(-PINF))),
                         both(infinite, equal(log_sigma2, set1(PINF))));
    r.value = choose(zero, set1(-0.0), choose(infinite, set1(-PINF), r.value));
    r.d_mu = choose(either(zero, infinite), set1(0.0) * -choose(zero, mu, set1(1.0) / mu), r.d_mu);
    r.d_log_sigma2 = choose(zero, set1(0.0), choose(infinite, set1(0.5), r.d_log_sigma2));
    V nan = mu + log_sigma2; /* NaN where either is, and so where both infinities differ in sign */
    M defined = both(equal(mu, mu), equal(log_sigma2, log_sigma2));
    r.value = choose(undefined, set1(NAN), choose(defined, r.value, nan));
    r.d_mu = choose(undefined, set1(NAN), choose(defined, r.d_mu, nan));
    r.d_log_sigma2 = choose(undefined, set1(NAN), choose(defined, r.d_log_sigma2, nan));
    return r;
}
#define limits LK_NAME(limits)

/* u = q 2^n with q in two words: no square or exponential leaves the range of a double. */
LK_INLINE normal
LK_NAME(neg_kl_normal_d)(V mu, V log_sigma2)
{
    const U mantissa = set1_bits(0x000fffffffffffff), one = set1_bits(0x3ff0000000000000);
    const U sign = set1_bits(1ull << 63);
    V size = unbits(bits(mu) & ~sign);
    M tiny = less(size, set1(0x1p-1022));
    U b = bits(choose(tiny, size * set1(0x1p54), size));
    V m = unbits((b & mantissa) | one);
    V e = unbits((b >> 52) | set1_bits(0x4330000000000000)) - set1(0x1p52 + 1023.0);
    e = e - choose(tiny, set1(54.0), set1(0.0));
    V t = vmin(vmax(-log_sigma2, set1(-4500.0)), set1(4500.0));
    V n;
    pair y = exponential(t, &n);
    n = n + (e + e) - set1(1.0);
    V m2 = m * m;
    V m2_lo = product_error(m, m, m2);
    V q = m2 * y.hi;
    V q_lo = product_error(m2, y.hi, q) + MADD(m2_lo, y.hi, m2 * y.lo);
    V u = scale(q, n);
    V u_lo = q_lo * power_of_two(vmin(vmax(n, set1(-1000.0)), set1(100.0)) + set1(MAGIC));
    V w = set1(1.0) / u;

    M recip = less_equal(set1(KL_GAP_D[BOUNDS][KL_GAP_D_RECIP - 1]), u);
    I i = index_up(KL_GAP_D, u);
    V v = choose(recip, w, u) - lookup(KL_GAP_D[CENTRE], i);
    pair p = polynomial(KL_GAP_D, KL_GAP_D_DEGREE, i, v, choose(recip, set1(0.0), u_lo));
    pair l = half_log(q, n);
    /* what the clamp of log sigma^2 cut off: there u is so large that F is log(u)/2 + const */
    V cut = choose(recip, (-log_sigma2 - t) * set1(0.5), set1(0.0));
    V l_hi = choose(recip, l.hi, set1(0.0)), l_lo = choose(recip, l.lo, set1(0.0));
    V sum = l_hi + p.hi;
    V rest = ((l_hi - sum) + p.hi) + (p.lo + l_lo);
    V product = q * p.hi;
    V product_lo = product_error(q, p.hi, product) + MADD(q, p.lo, q_lo * p.hi);
    normal r;
    r.value = -choose(index_is(i, 0), scale(product + product_lo, n), (sum + rest) + cut);

    recip = less_equal(set1(KL_GAP_GRAD_D[BOUNDS][KL_GAP_GRAD_D_RECIP - 1]), u);
    i = index_up(KL_GAP_GRAD_D, u);
    v = choose(recip, w, u) - lookup(KL_GAP_GRAD_D[CENTRE], i);
    p = polynomial(KL_GAP_GRAD_D, KL_GAP_GRAD_D_DEGREE, i, v, choose(recip, set1(0.0), u_lo));
    product = q * p.hi;
    product_lo = product_error(q, p.hi, product) + MADD(q, p.lo, q_lo * p.hi);
    r.d_log_sigma2 = choose(recip, p.hi + p.lo, scale(product + product_lo, n));

    /* the size of the derivative in mu: F' m y 2^(n - e + 1), or u F' 2/m 2^-e */
    V f = m * y.hi, inverse = set1(1.0) / m;
    V f_lo = MADD(m, y.lo, product_error(m, y.hi, f));
    V rising = f * p.hi;
    V rising_lo = product_error(f, p.hi, rising) + MADD(f, p.lo, f_lo * p.hi);
    V falling = p.hi * inverse;
    V falling_lo = (p.lo - ((falling * m - p.hi) + product_error(falling, m, falling * m))) * inverse;
    V slope = choose(recip, falling + falling_lo, rising + rising_lo);
    slope = scale(slope + slope, choose(recip, set1(0.0), n) - e);
    r.d_mu = unbits(bits(slope) | (~bits(mu) & sign));
    return limits(mu, log_sigma2, r);
}

LK_INLINE normal
LK_NAME(neg_kl_normal_s)(V mu, V log_sigma2)
{
    V t = vmin(vmax(-log_sigma2, set1(-450.0)), set1(450.0));
    V u = (mu * mu) * (set1(0.5) * exponential_f32(t));
    V w = set1(1.0) / u;

    M recip = less_equal(set1(KL_GAP_S[BOUNDS][KL_GAP_S_RECIP - 1]), u);
    I i = index_up(KL_GAP_S, u);
    V v = choose(recip, w, u) - lookup(KL_GAP_S[CENTRE], i);
    V p = polynomial_f32(KL_GAP_S, KL_GAP_S_DEGREE, i, v);
    V low = choose(index_is(i, 0), u, set1(1.0)) * p;
    V cut = (-log_sigma2 - t) * set1(0.5);
    normal r;
    r.value = -choose(recip, (half_log_f32(u) + p) + cut, low);

    recip = less_equal(set1(KL_GAP_GRAD_S[BOUNDS][KL_GAP_GRAD_S_RECIP - 1]), u);
    i = index_up(KL_GAP_GRAD_S, u);
    v = choose(recip, w, u) - lookup(KL_GAP_GRAD_S[CENTRE], i);
    p = polynomial_f32(KL_GAP_GRAD_S, KL_GAP_GRAD_S_DEGREE, i, v);
    r.d_log_sigma2 = choose(recip, set1(1.0), u) * p;
    r.d_mu = set1(-2.0) * r.d_log_sigma2 / mu;
    return limits(mu, log_sigma2, r);
}

/* ---- blocks -------------------------------------------------------------------------------- */

/* A last, partial register goes through a buffer, so that every element sees the same code. */
#define ONE_ARGUMENT(function, type, load_v, store_v, kernel)                  \
    static void LK_NAME(function)(const type *in, type *out, npy_intp n)       \
    {                                                                          \
        npy_intp k = 0;                                                        \
        for (; k + LANES <= n; k += LANES)                                     \
            store_v(out + k, LK_NAME(kernel)(load_v(in + k)));                 \
        if (k < n) {                                                           \
            type rest[LANES] = {0};                                            \
            memcpy(rest, in + k, (size_t)(n - k) * sizeof(type));              \
            store_v(rest, LK_NAME(kernel)(load_v(rest)));                      \
            memcpy(out + k, rest, (size_t)(n - k) * sizeof(type));             \
        }                                                                      \
    }

ONE_ARGUMENT(kl_gap_f64, double, load, store, kl_gap_d)
ONE_ARGUMENT(kl_gap_grad_f64, double, load, store, kl_gap_grad_d)
ONE_ARGUMENT(kl_gap_hess_f64, double, load, store, kl_gap_hess_d)
ONE_ARGUMENT(neg_kl_f64, double, load, store, neg_kl_d)
ONE_ARGUMENT(neg_kl_grad_f64, double, load, store, neg_kl_grad_d)
ONE_ARGUMENT(neg_kl_hess_f64, double, load, store, neg_kl_hess_d)
ONE_ARGUMENT(kl_gap_f32, float, load_f32, store_f32, kl_gap_s)
ONE_ARGUMENT(kl_gap_grad_f32, float, load_f32, store_f32, kl_gap_grad_s)
ONE_ARGUMENT(kl_gap_hess_f32, float, load_f32, store_f32, kl_gap_hess_s)
ONE_ARGUMENT(neg_kl_f32, float, load_f32, store_f32, neg_kl_s)
ONE_ARGUMENT(neg_kl_grad_f32, float, load_f32, store_f32, neg_kl_grad_s)
ONE_ARGUMENT(neg_kl_hess_f32, float, load_f32, store_f32, neg_kl_hess_s)

#define TWO_ARGUMENTS(function, type, load_v, store_v, kernel)                              \
    static void LK_NAME(function)(const type *mu, const type *log_sigma2, type *value,      \
                                  type *d_mu, type *d_log_sigma2, npy_intp n)               \
    {                                                                                       \
        npy_intp k = 0;                                                                     \
        for (; k + LANES <= n; k += LANES) {                                                \
            normal r = LK_NAME(kernel)(load_v(mu + k), load_v(log_sigma2 + k));             \
            store_v(value + k, r.value);                                                    \
            store_v(d_mu + k, r.d_mu);                                                      \
            store_v(d_log_sigma2 + k, r.d_log_sigma2);                                      \
        }                                                                                   \
        if (k < n) {                                                                        \
            size_t bytes = (size_t)(n - k) * sizeof(type);                                  \
            type a[LANES] = {0}, b[LANES] = {0}, c[LANES];                                  \
            memcpy(a, mu + k, bytes);                                                       \
            memcpy(b, log_sigma2 + k, bytes);                                               \
            normal r = LK_NAME(kernel)(load_v(a), load_v(b));                               \
            store_v(a, r.value);                                                            \
            store_v(b, r.d_mu);                                                             \
            store_v(c, r.d_log_sigma2);                                                     \
            memcpy(value + k, a, bytes);                                                    \
            memcpy(d_mu + k, b, bytes);                                                     \
            memcpy(d_log_sigma2 + k, c, bytes);                                             \
        }                                                                                   \
    }

TWO_ARGUMENTS(neg_kl_normal_f64, double, load, store, neg_kl_normal_d)
TWO_ARGUMENTS(neg_kl_normal_f32, float, load_f32, store_f32, neg_kl_normal_s)

static const kernels LK_NAME(kernels) = {
    {LK_NAME(kl_gap_f64), LK_NAME(kl_gap_f32)},
    {LK_NAME(kl_gap_grad_f64), LK_NAME(kl_gap_grad_f32)},
    {LK_NAME(kl_gap_hess_f64), LK_NAME(kl_gap_hess_f32)},
    {LK_NAME(neg_kl_f64), LK_NAME(neg_kl_f32)},
    {LK_NAME(neg_kl_grad_f64), LK_NAME(neg_kl_grad_f32)},
    {LK_NAME(neg_kl_hess_f64), LK_NAME(neg_kl_hess_f32)},
    {LK_NAME(neg_kl_normal_f64), LK_NAME(neg_kl_normal_f32)},
};
