/* The seven functions on one register, for float64 results. */

/* ---- functions of u ------------------------------------------------------------------------ */

/* `result` where u >= 0, NaN elsewhere (keeping the payload of a NaN). */
LK_INLINE V
LK_NAME(in_domain)(V u, V result)
{
    return choose(less_equal(set1(0.0), u), result, u * set1(NAN));
}
#define in_domain LK_NAME(in_domain)

/* The argument of the polynomial: u or 1/u, and the relative rounding error of 1/u. */
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

/* ---- -KL and both its derivatives from (mu, log sigma^2) ------------------------------------ */

typedef struct {
    V value, d_mu, d_log_sigma2;
} LK_NAME(normal);
#define normal LK_NAME(normal)

/* The results for mu = 0 and |mu| = inf, where u does not depend on a finite log sigma^2. They are
 * NaN for 0 * inf and for NaN. */
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
    /* The part of log sigma^2 that the clamp cut off, where F is log(u)/2 + const: u is so large. */
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
