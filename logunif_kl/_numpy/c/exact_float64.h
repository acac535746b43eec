/* The functions on one register, for float64 results. For the constant `rare` see
 * `exact_magnitudes.h`. */

/* ---- functions of u ------------------------------------------------------------------------ */

/* `result` where u >= 0, else NaN. If u is NaN, the result keeps its payload. */
LK_INLINE V
LK_NAME(in_domain)(V u, V result)
{
    if (!any(beyond(u)))
        return result;
    u = of_the_kind(u);
    return choose(less_equal(set1(0.0), u), result, choose(equal(u, u), set1(NAN), u + u));
}
#define in_domain LK_NAME(in_domain)

LK_INLINE V
LK_NAME(kl_gap_d)(V u, int rare)
{
    V x = rare ? within(u) : u;
    M recip = less_equal(set1(KL_GAP_D[BOUNDS][KL_GAP_D_RECIP - 1]), x);
    I i = index_up(KL_GAP_D, x);
    V a = choose(recip, set1(1.0) / x, x);
    pair p = polynomial(KL_GAP_D, KL_GAP_D_DEGREE, i, a - lookup(KL_GAP_D[CENTRE], i), NULL);
    V z = choose(index_is(i, 0), x, set1(1.0));
    pair l = half_log(u, set1(0.0));
    V l_hi = choose(recip, l.hi, set1(0.0)), l_lo = choose(recip, l.lo, set1(0.0));
    V sum = l_hi + p.hi;
    V rest = ((l_hi - sum) + p.hi) + (p.lo + l_lo);
    V result = times(z, sum, rest);
    if (!rare)
        return result;
    M itself = either(below(bits(u), bits(set1(LOW))), below(bits(set1(DBL_MAX)), bits(u)));
    return in_domain(u, choose(itself, u, result));
}

/* The factor of the derivatives in u: w = 1/u where u is large, and w = 1 elsewhere. If u > HIGH, w
 * is the reciprocal of u 2^-SHIFT instead. */
typedef struct {
    V w;
    V error; /* relative error of w */
    V a;     /* u or 1/u */
} LK_NAME(reciprocal);
#define reciprocal LK_NAME(reciprocal)

#define SHIFT 700
#define shifted(x, n) unbits(bits(x) - set1_bits((uint64_t)(n) << 52))

LK_INLINE reciprocal
LK_NAME(reciprocal_of)(V u, V x, M recip, int rare)
{
    M huge = below(bits(set1(HIGH)), bits(u));
    V divisor = rare ? choose(huge, shifted(u, SHIFT), x) : x;
    V w = set1(1.0) / divisor;
    V lost = -(product_error(w, divisor, set1(1.0)));
    reciprocal r;
    r.error = choose(recip, lost, set1(0.0));
    r.w = choose(recip, w, set1(1.0));
    r.a = choose(recip, rare ? choose(huge, set1(LOW), w) : w, x);
    return r;
}
#define reciprocal_of LK_NAME(reciprocal_of)

/* z (hi + lo), times 2^-shift where u > HIGH. `unit` is 2^(shift - 1022). */
LK_INLINE V
LK_NAME(finish_in_u)(V u, V z, V hi, V lo, int shift, double unit)
{
    V product = z * hi;
    V error = product_error(z, hi, product);
#ifdef LK_UNFUSED
    V result = product + (error + z * lo); /* `times` would overflow here */
#else
    V result = times(z, hi, lo);
#endif
    M huge = below(bits(set1(HIGH)), bits(u));
    if (any(huge)) {
        U sign = bits(result) & SIGN;
        V size = unbits(bits(product) ^ sign), rest = error + z * lo;
        M subnormal = both(huge, below(bits(size), bits(set1(unit))));
        U low = subnormal_of(size, unbits(bits(rest) ^ sign), set1(unit)) | sign;
        result = choose(huge, choose(subnormal, unbits(low), shifted(result, shift)), result);
        result = choose(below(bits(set1(DBL_MAX)), bits(u)), set1(0.0), result);
    }
    return in_domain(u, result);
}
#define finish_in_u LK_NAME(finish_in_u)

LK_INLINE V
LK_NAME(kl_gap_grad_d)(V u, int rare)
{
    V x = rare ? within(u) : u;
    M recip = less_equal(set1(KL_GAP_GRAD_D[BOUNDS][KL_GAP_GRAD_D_RECIP - 1]), x);
    I i = index_up(KL_GAP_GRAD_D, x);
    reciprocal r = reciprocal_of(u, x, recip, rare);
    pair p = polynomial(KL_GAP_GRAD_D, KL_GAP_GRAD_D_DEGREE, i,
                        r.a - lookup(KL_GAP_GRAD_D[CENTRE], i), NULL);
    V lo = MADD(p.hi, r.error, p.lo);
    return rare ? finish_in_u(u, r.w, p.hi, lo, SHIFT, 0x1p-322) : times(r.w, p.hi, lo);
}

LK_INLINE V
LK_NAME(kl_gap_hess_d)(V u, int rare)
{
    V x = rare ? within(u) : u;
    M recip = less_equal(set1(KL_GAP_HESS_D[BOUNDS][KL_GAP_HESS_D_RECIP - 1]), x);
    I i = index_up(KL_GAP_HESS_D, x);
    reciprocal r = reciprocal_of(u, x, recip, rare);
    pair p = polynomial(KL_GAP_HESS_D, KL_GAP_HESS_D_DEGREE, i,
                        r.a - lookup(KL_GAP_HESS_D[CENTRE], i), NULL);
    V t = r.w * p.hi;
    V t_lo = product_error(r.w, p.hi, t) + r.w * MADD(p.hi, r.error + r.error, p.lo);
    return rare ? finish_in_u(u, r.w, t, t_lo, 2 * SHIFT, 0x1p378) : times(r.w, t, t_lo);
}

/* ---- functions of x = log_alpha ------------------------------------------------------------ */

/* NaN gives NaN, because vmax(bound, NaN) is NaN, and NaN is in the first range. */

typedef struct {
    I range; /* the index of the range of u = exp(-x)/2 */
    M recip; /* whether `a` is 1/u instead of u */
    pair y;  /* y 2^n is u or 1/u */
    V n;
    V a, a_lo; /* u or 1/u in two words, but at least 2^-300 */
} LK_NAME(log_alpha);
#define log_alpha LK_NAME(log_alpha)

LK_INLINE log_alpha
LK_NAME(from_log_alpha)(const double (*table)[8], int first_recip, V x, int rare)
{
    log_alpha s;
    s.range = index_down(table, x);
    s.recip = less_equal(x, set1(table[BOUNDS][first_recip - 1]));
    V t = choose(s.recip, x, -x);
    s.y = exponential(rare ? vmax(set1(-1500.0), t) : t, &s.n);
    s.n = s.n + choose(s.recip, set1(1.0), set1(-1.0));
    V power = power_of_two((rare ? vmax(s.n, set1(-300.0)) : s.n) + set1(MAGIC));
    s.a = s.y.hi * power;
    s.a_lo = s.y.lo * power;
    return s;
}
#define from_log_alpha LK_NAME(from_log_alpha)

/* u p or p/u where `scaled`, else p. */
LK_INLINE V
LK_NAME(finish)(log_alpha s, pair p, M scaled, int rare)
{
    V product = s.y.hi * p.hi;
    V rest = product_error(s.y.hi, p.hi, product) + MADD(s.y.hi, p.lo, s.y.lo * p.hi);
    V sum = product + rest;
    V result;
    if (rare && any(less(s.n, set1(-900.0))))
        result = assemble(sum, product, rest, s.n);
    else
        result = scale(sum, s.n);
    return choose(scaled, result, p.hi + p.lo);
}
#define finish LK_NAME(finish)

LK_INLINE V
LK_NAME(neg_kl_d)(V x, int rare)
{
    if (rare)
        x = zero_if_tiny(x);
    log_alpha s = from_log_alpha(NEG_KL_D, NEG_KL_D_RECIP, x, rare);
    V v = s.a - lookup(NEG_KL_D[CENTRE], s.range);
    pair p = polynomial(NEG_KL_D, NEG_KL_D_DEGREE, s.range, v, &s.a_lo);
    V line = choose(s.recip, (rare ? vmax(x, set1(-1e308)) : x) * set1(0.5), set1(0.0));
    pair sum;
    sum.hi = line + p.hi;
    sum.lo = ((line - sum.hi) + p.hi) + p.lo;
    V result = finish(s, sum, index_is(s.range, 0), rare);
    return rare ? choose(less(x, set1(-1e308)), x * set1(0.5), result) : result;
}

LK_INLINE V
LK_NAME(kl_d)(V x, int rare)
{
    return -LK_NAME(neg_kl_d)(x, rare);
}

LK_INLINE V
LK_NAME(neg_kl_grad_d)(V x, int rare)
{
    if (rare)
        x = zero_if_tiny(x);
    log_alpha s = from_log_alpha(NEG_KL_GRAD_D, NEG_KL_GRAD_D_RECIP, x, rare);
    V v = s.a - lookup(NEG_KL_GRAD_D[CENTRE], s.range);
    pair p = polynomial(NEG_KL_GRAD_D, NEG_KL_GRAD_D_DEGREE, s.range, v, &s.a_lo);
    return finish(s, p, index_is(s.range, 0), rare);
}

LK_INLINE V
LK_NAME(neg_kl_hess_d)(V x, int rare)
{
    if (rare)
        x = zero_if_tiny(x);
    log_alpha s = from_log_alpha(NEG_KL_HESS_D, NEG_KL_HESS_D_RECIP, x, rare);
    M root = index_is(s.range, NEG_KL_HESS_D_ROOT);
    V v = choose(root, x - set1(INFLECTION_HI), s.a - lookup(NEG_KL_HESS_D[CENTRE], s.range));
    V v_lo = choose(root, MADD(v, set1(INFLECTION_STRETCH), set1(-INFLECTION_LO)), s.a_lo);
    pair p = polynomial(NEG_KL_HESS_D, NEG_KL_HESS_D_DEGREE, s.range, v, &v_lo);
    M scaled = either(index_is(s.range, 0), s.recip);
    return finish(s, p, scaled, rare);
}

/* ---- -KL and both its derivatives from (mu, log sigma^2) ------------------------------------ */

typedef struct {
    V value, d_mu, d_log_sigma2;
} LK_NAME(normal);
#define normal LK_NAME(normal)

/* The results for mu = 0 and for |mu| = inf, which do not depend on a finite log sigma^2. The
 * results are NaN where u is 0 * inf, or an argument is NaN. */
LK_INLINE normal
LK_NAME(limits)(V mu, V log_sigma2, normal r)
{
    mu = of_the_kind(mu);
    M zero = equal(mu, set1(0.0)), infinite = equal(magnitude(mu), set1(PINF));
    M undefined = either(both(zero, equal(log_sigma2, set1(-PINF))),
                         both(infinite, equal(log_sigma2, set1(PINF))));
    r.value = choose(zero, set1(-0.0), choose(infinite, set1(-PINF), r.value));
    r.d_mu = choose(either(zero, infinite), unbits(~bits(mu) & SIGN), r.d_mu);
    r.d_log_sigma2 = choose(zero, set1(0.0), choose(infinite, set1(0.5), r.d_log_sigma2));
    V nan = mu + log_sigma2; /* NaN if an argument is NaN, or for inf - inf */
    M defined = both(equal(mu, mu), equal(log_sigma2, log_sigma2));
    r.value = choose(undefined, set1(NAN), choose(defined, r.value, nan));
    r.d_mu = choose(undefined, set1(NAN), choose(defined, r.d_mu, nan));
    r.d_log_sigma2 = choose(undefined, set1(NAN), choose(defined, r.d_log_sigma2, nan));
    return r;
}
#define limits LK_NAME(limits)

/* u is computed as q 2^n, with q in two words, so that no factor overflows or underflows. */
LK_INLINE normal
LK_NAME(neg_kl_normal_d)(V mu, V log_sigma2, int rare)
{
    V number = mu, t = -log_sigma2, shift = set1(0.0);
    if (rare) {
        U size = bits(magnitude(mu));
        M subnormal = below(size, SMALLEST_NORMAL);
        V fraction = unbits(size | bits(set1(1.0))) - set1(1.0);
        number = choose(subnormal, fraction, mu);
        shift = choose(subnormal, set1(-1022.0), set1(0.0));
        /* `limits` gives the results for 0 and infinity. Use 1 here, so that `far` stays 0. */
        M other = either(below(size, set1_bits(1)), below(bits(set1(DBL_MAX)), size));
        number = choose(other, set1(1.0), number);
        shift = choose(other, set1(0.0), shift);
        log_sigma2 = zero_if_tiny(log_sigma2);
        t = vmin(vmax(-log_sigma2, set1(-4500.0)), set1(4500.0));
    }
    V m = mantissa(number), e = exponent(number) + shift;
    V n;
    pair y = exponential(t, &n);
    n = n + (e + e) - set1(1.0);
    int far = rare && any(either(less(set1(800.0), magnitude(n)), less(set1(200.0), magnitude(e))));
    V m2 = m * m;
    V m2_lo = product_error(m, m, m2);
    V q = m2 * y.hi;
    V q_lo = product_error(m2, y.hi, q) + MADD(m2_lo, y.hi, m2 * y.lo);
    V power = power_of_two((rare ? vmin(vmax(n, set1(-300.0)), set1(300.0)) : n) + set1(MAGIC));
    V u = q * power, u_lo = q_lo * power;
    V w = set1(1.0) / u;

    M recip = less_equal(set1(KL_GAP_D[BOUNDS][KL_GAP_D_RECIP - 1]), u);
    I i = index_up(KL_GAP_D, u);
    V v = choose(recip, w, u) - lookup(KL_GAP_D[CENTRE], i);
    V v_lo = choose(recip, set1(0.0), u_lo);
    pair p = polynomial(KL_GAP_D, KL_GAP_D_DEGREE, i, v, &v_lo);
    pair l = half_log(q, n);
    V l_hi = choose(recip, l.hi, set1(0.0)), l_lo = choose(recip, l.lo, set1(0.0));
    V sum = l_hi + p.hi;
    V rest = ((l_hi - sum) + p.hi) + (p.lo + l_lo);
    V value = sum + rest;
    if (rare) /* Add what clipping t removed: for large u, F is log(u)/2 + c. */
        value = value + choose(recip, (-log_sigma2 - t) * set1(0.5), set1(0.0));
    V product = q * p.hi;
    V product_lo = product_error(q, p.hi, product) + MADD(q, p.lo, q_lo * p.hi);
    V low = product + product_lo;
    low = far ? assemble(low, product, product_lo, n) : scale(low, n);
    normal r;
    r.value = -choose(index_is(i, 0), low, value);

    recip = less_equal(set1(KL_GAP_GRAD_D[BOUNDS][KL_GAP_GRAD_D_RECIP - 1]), u);
    i = index_up(KL_GAP_GRAD_D, u);
    v = choose(recip, w, u) - lookup(KL_GAP_GRAD_D[CENTRE], i);
    v_lo = choose(recip, set1(0.0), u_lo);
    p = polynomial(KL_GAP_GRAD_D, KL_GAP_GRAD_D_DEGREE, i, v, &v_lo);
    product = q * p.hi;
    product_lo = product_error(q, p.hi, product) + MADD(q, p.lo, q_lo * p.hi);
    low = product + product_lo;
    low = far ? assemble(low, product, product_lo, n) : scale(low, n);
    r.d_log_sigma2 = choose(recip, p.hi + p.lo, low);

    /* The magnitude of the derivative in mu: F' m y 2^(n - e + 1), or u F' 2/m 2^-e. */
    V f = m * y.hi, inverse = set1(1.0) / m;
    V f_lo = MADD(m, y.lo, product_error(m, y.hi, f));
    V rising = f * p.hi;
    V rising_lo = product_error(f, p.hi, rising) + MADD(f, p.lo, f_lo * p.hi);
    V falling = p.hi * inverse;
    V falling_lo = (p.lo - ((falling * m - p.hi) + product_error(falling, m, falling * m))) * inverse;
    V slope = choose(recip, falling, rising), slope_lo = choose(recip, falling_lo, rising_lo);
    V both_words = slope + slope_lo;
    n = choose(recip, set1(0.0), n) - e + set1(1.0);
    slope = far ? assemble(both_words, slope, slope_lo, n) : scale(both_words, n);
    r.d_mu = unbits(bits(slope) | (~bits(mu) & SIGN));
    return rare ? limits(mu, log_sigma2, r) : r;
}

LK_INLINE normal
LK_NAME(kl_normal_d)(V mu, V log_sigma2, int rare)
{
    normal r = LK_NAME(neg_kl_normal_d)(mu, log_sigma2, rare);
    r.value = -r.value;
    return r;
}
