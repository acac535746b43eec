/* The functions on one register for float32 results, computed in float64 and rounded once. All
 * intermediate results are normal numbers of float64. For the constant `rare` see
 * `exact_magnitudes.h`. */

LK_INLINE V
LK_NAME(kl_gap_s)(V u, int rare)
{
    M recip = less_equal(set1(KL_GAP_S[BOUNDS][KL_GAP_S_RECIP - 1]), u);
    I i = index_up(KL_GAP_S, u);
    V a = choose(recip, set1(1.0) / u, u);
    V p = polynomial_f32(KL_GAP_S, KL_GAP_S_DEGREE, i, a - lookup(KL_GAP_S[CENTRE], i));
    V high = choose(equal(u, set1(PINF)), u, half_log_f32(u) + p);
    V low = choose(index_is(i, 0), u, set1(1.0)) * p;
    V result = choose(recip, high, low);
    return rare ? in_domain(u, result) : result;
}

LK_INLINE V
LK_NAME(kl_gap_grad_s)(V u, int rare)
{
    M recip = less_equal(set1(KL_GAP_GRAD_S[BOUNDS][KL_GAP_GRAD_S_RECIP - 1]), u);
    I i = index_up(KL_GAP_GRAD_S, u);
    V a = choose(recip, set1(1.0) / u, u);
    V p = polynomial_f32(KL_GAP_GRAD_S, KL_GAP_GRAD_S_DEGREE, i,
                            a - lookup(KL_GAP_GRAD_S[CENTRE], i));
    V result = choose(recip, a, set1(1.0)) * p;
    return rare ? in_domain(u, result) : result;
}

LK_INLINE V
LK_NAME(kl_gap_hess_s)(V u, int rare)
{
    M recip = less_equal(set1(KL_GAP_HESS_S[BOUNDS][KL_GAP_HESS_S_RECIP - 1]), u);
    I i = index_up(KL_GAP_HESS_S, u);
    V a = choose(recip, set1(1.0) / u, u);
    V p = polynomial_f32(KL_GAP_HESS_S, KL_GAP_HESS_S_DEGREE, i,
                            a - lookup(KL_GAP_HESS_S[CENTRE], i));
    V z = choose(recip, a, set1(1.0));
    V result = z * z * p;
    return rare ? in_domain(u, result) : result;
}

/* u = exp(-x)/2, or 1/u where `recip`. Clipping t at -200 changes no float32 result. */
LK_INLINE V
LK_NAME(half_exp_f32)(V x, M recip, int rare)
{
    V t = choose(recip, x, -x);
    V e = exponential_f32(rare ? vmax(set1(-200.0), t) : t);
    return e * choose(recip, set1(2.0), set1(0.5));
}
#define half_exp_f32 LK_NAME(half_exp_f32)

LK_INLINE V
LK_NAME(neg_kl_s)(V x, int rare)
{
    M recip = less_equal(x, set1(NEG_KL_S[BOUNDS][NEG_KL_S_RECIP - 1]));
    I i = index_down(NEG_KL_S, x);
    V a = half_exp_f32(x, recip, rare);
    V p = polynomial_f32(NEG_KL_S, NEG_KL_S_DEGREE, i, a - lookup(NEG_KL_S[CENTRE], i));
    V line = choose(recip, x * set1(0.5), set1(0.0));
    return MADD(choose(index_is(i, 0), a, set1(1.0)), p, line);
}

LK_INLINE V
LK_NAME(kl_s)(V x, int rare)
{
    return -LK_NAME(neg_kl_s)(x, rare);
}

LK_INLINE V
LK_NAME(neg_kl_grad_s)(V x, int rare)
{
    M recip = less_equal(x, set1(NEG_KL_GRAD_S[BOUNDS][NEG_KL_GRAD_S_RECIP - 1]));
    I i = index_down(NEG_KL_GRAD_S, x);
    V a = half_exp_f32(x, recip, rare);
    V p = polynomial_f32(NEG_KL_GRAD_S, NEG_KL_GRAD_S_DEGREE, i,
                            a - lookup(NEG_KL_GRAD_S[CENTRE], i));
    return choose(index_is(i, 0), a, set1(1.0)) * p;
}

LK_INLINE V
LK_NAME(neg_kl_hess_s)(V x, int rare)
{
    M recip = less_equal(x, set1(NEG_KL_HESS_S[BOUNDS][NEG_KL_HESS_S_RECIP - 1]));
    I i = index_down(NEG_KL_HESS_S, x);
    V a = half_exp_f32(x, recip, rare);
    M root = index_is(i, NEG_KL_HESS_S_ROOT);
    V v = choose(root, (x - set1(INFLECTION_HI)) - set1(INFLECTION_LO),
                 a - lookup(NEG_KL_HESS_S[CENTRE], i));
    V p = polynomial_f32(NEG_KL_HESS_S, NEG_KL_HESS_S_DEGREE, i, v);
    return choose(either(index_is(i, 0), recip), a, set1(1.0)) * p;
}

LK_INLINE normal
LK_NAME(neg_kl_normal_s)(V mu, V log_sigma2, int rare)
{
    V t = rare ? vmin(vmax(-log_sigma2, set1(-450.0)), set1(450.0)) : -log_sigma2;
    V u = (mu * mu) * (set1(0.5) * exponential_f32(t));
    V w = set1(1.0) / u;

    M recip = less_equal(set1(KL_GAP_S[BOUNDS][KL_GAP_S_RECIP - 1]), u);
    I i = index_up(KL_GAP_S, u);
    V v = choose(recip, w, u) - lookup(KL_GAP_S[CENTRE], i);
    V p = polynomial_f32(KL_GAP_S, KL_GAP_S_DEGREE, i, v);
    V low = choose(index_is(i, 0), u, set1(1.0)) * p;
    normal r;
    V high = half_log_f32(u) + p;
    if (rare) /* add half of what clipping t removed from -log sigma^2 */
        high = high + (-log_sigma2 - t) * set1(0.5);
    r.value = -choose(recip, high, low);

    recip = less_equal(set1(KL_GAP_GRAD_S[BOUNDS][KL_GAP_GRAD_S_RECIP - 1]), u);
    i = index_up(KL_GAP_GRAD_S, u);
    v = choose(recip, w, u) - lookup(KL_GAP_GRAD_S[CENTRE], i);
    p = polynomial_f32(KL_GAP_GRAD_S, KL_GAP_GRAD_S_DEGREE, i, v);
    r.d_log_sigma2 = choose(recip, set1(1.0), u) * p;
    r.d_mu = set1(-2.0) * r.d_log_sigma2 / mu;
    return rare ? limits(mu, log_sigma2, r) : r;
}

LK_INLINE normal
LK_NAME(kl_normal_s)(V mu, V log_sigma2, int rare)
{
    normal r = LK_NAME(neg_kl_normal_s)(mu, log_sigma2, rare);
    r.value = -r.value;
    return r;
}
