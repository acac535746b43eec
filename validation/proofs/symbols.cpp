// Prints the operations of the float64 kernels as a graph. It gives the names of exact_simd.h to
// symbols, includes the C headers as they are, and calls their functions once.
//
//     g++ -std=c++17 [-DFUSED] -I logunif_kl/_numpy/c symbols.cpp -o symbols && ./symbols
//
// Equal operations on equal operands are one node. So a step inside of a function gets a label
// when `main` repeats the call or the expression that makes it.
#include "symbols.h"

// An index into a row of a table.
struct I { int id; };

static I index_zero() { return {make("index_zero")}; }
static I index_count(I i, M m) { return {make("index_count", {i.id, m.id})}; }
static I index_of_bits(U u) { return {make("index_of_bits", {u.id})}; }
static M index_is(I i, int k) { return {make("index_is", {i.id, set1_bits(k).id})}; }

static std::string of; // the function and the form whose steps get labels
static int answers, asked;

// `any` of the lanes of a register may hold for the others. So both answers are traced.
static bool any(M m)
{
    if (asked == 2) {
        fprintf(stderr, "%s asks more often than its forms answer\n", of.c_str());
        exit(1);
    }
    labels[of + ":any" + std::to_string(asked)] = m.id;
    return answers >> asked++ & 1;
}

static V lookup(const double *row, I i)
{
    std::string text = "lookup " + std::to_string(i.id);
    for (int k = 0; k < 8; k++)
        text += " " + hex(row[k]);
    return {make(text)};
}

enum { BOUNDS, CENTRE, BASE_HI, BASE_LO, FIRST };
#define LK_ISA 0
#define LK_INLINE static inline
#define LK_ALIGNED
#define LK_PASTE_(a, b) a##b
#define LK_PASTE(a, b) LK_PASTE_(a, b)
#define LK_NAME(name) LK_PASTE(name##_, LK_SUFFIX)
#undef NAN
#undef INFINITY
#define NAN __builtin_nan("")
#define INFINITY __builtin_inf()
#include "exact_coefficients.h"
#include "exact_elementary.h"
#include "exact_magnitudes.h"
#include "exact_float64.h"

template <typename Register> static Register label(const char *name, Register x)
{
    labels[of + ":" + name] = x.id;
    return x;
}

static void label_exponential(V t)
{
    label("exp.t", t);
    V k_magic = label("exp.k_magic", MADD(t, set1(EIGHTHS_PER_LOG2), set1(MAGIC)));
    V k = k_magic - set1(MAGIC);
    label("exp.r", (t - k * set1(EIGHTH_LOG2_HI)) - k * set1(EIGHTH_LOG2_LO));
    label("exp.power", lookup(EXP2_EIGHTHS[0], index_of_bits(bits(k_magic) & set1_bits(7))));
}

static void label_log(V m, V n)
{
    U b = bits(m);
    V f = unbits((b & set1_bits(0x000fffffffffffff)) | set1_bits(0x3ff0000000000000));
    label("log.f", f);
    V biased = unbits((b >> 52) | set1_bits(0x4330000000000000));
    V exponent = label("log.exponent", biased - set1(0x1p52 + 1023.0));
    label("log.k", exponent + n);
    I j = label("log.j", index_of_bits(b >> 49));
    V c = label("log.c", lookup(LOG_EIGHTHS[0], j));
#ifdef LK_UNFUSED
    V f_hi = label("log.f_hi", unbits(bits(f) & set1_bits(~((1ull << 27) - 1))));
    label("log.r", (f_hi * c - set1(1.0)) + (f - f_hi) * c);
#else
    label("log.r", MADD(f, c, set1(-1.0)));
#endif
    pair y = half_log(m, n);
    label("log.hi", y.hi);
    label("log.lo", y.lo);
}

// The forms: the usual one, the rare one, and the rare one with other answers of `any`.
static const int FORMS = 5;

static void begin(const char *name, int form)
{
    static const char *const suffixes[FORMS] = {"", ".rare", ".rare0", ".rare1", ".rare2"};
    static const int of_form[FORMS] = {0, 3, 0, 1, 2};
    of = std::string(name) + suffixes[form];
    answers = of_form[form];
    asked = 0;
}

static void in_u(const char *name, V u, int form, V (*function)(V, int))
{
    begin(name, form);
    label("", function(u, form > 0));
    M huge = below(bits(set1(HIGH)), bits(u));
    V x = label("x", form ? choose(huge, shifted(u, SHIFT), within(u)) : u);
    label("w", set1(1.0) / x);
    label_log(u, set1(0.0));
}

static void in_x(const char *name, V x, int form, V (*function)(V, int),
                 const double (*table)[8], int first_recip)
{
    begin(name, form);
    int rare = form > 0;
    label("", function(x, rare));
    if (rare)
        x = zero_if_tiny(x);
    log_alpha s = from_log_alpha(table, first_recip, x, rare);
    V t = choose(s.recip, x, -x);
    label_exponential(rare ? vmax(set1(-1500.0), t) : t);
    label("y.hi", s.y.hi);
    label("y.lo", s.y.lo);
    label("n", s.n);
    label("v", s.a - lookup(table[CENTRE], s.range));
    label("v_root", x - set1(INFLECTION_HI));
}

int main()
{
    V u{make("input u")}, x{make("input x")}, mu{make("input mu")};
    V log_sigma2{make("input log_sigma2")};
    for (int form = 0; form < FORMS; form++) {
        in_u("kl_gap", u, form, LK_NAME(kl_gap_d));
        in_u("kl_gap_grad", u, form, LK_NAME(kl_gap_grad_d));
        in_u("kl_gap_hess", u, form, LK_NAME(kl_gap_hess_d));
        in_x("neg_kl", x, form, LK_NAME(neg_kl_d), NEG_KL_D, NEG_KL_D_RECIP);
        in_x("neg_kl_grad", x, form, LK_NAME(neg_kl_grad_d), NEG_KL_GRAD_D, NEG_KL_GRAD_D_RECIP);
        in_x("neg_kl_hess", x, form, LK_NAME(neg_kl_hess_d), NEG_KL_HESS_D, NEG_KL_HESS_D_RECIP);
        begin("neg_kl_normal", form);
        normal r = LK_NAME(neg_kl_normal_d)(mu, log_sigma2, form > 0);
        const char *outputs[] = {"neg_kl_normal", "neg_kl_normal.dmu", "neg_kl_normal.dlog_sigma2"};
        V results[] = {r.value, r.d_mu, r.d_log_sigma2};
        for (int k = 0; k < 3; k++) {
            begin(outputs[k], form);
            label("", results[k]);
        }
        begin("neg_kl_normal", form);
        V number = mu, t = -log_sigma2, shift = set1(0.0), rest = log_sigma2;
        if (form) {
            U size = bits(magnitude(mu));
            M subnormal = below(size, SMALLEST_NORMAL);
            V fraction = unbits(size | bits(set1(1.0))) - set1(1.0);
            number = choose(subnormal, fraction, mu);
            shift = choose(subnormal, set1(-1022.0), set1(0.0));
            M other = either(below(size, set1_bits(1)), below(bits(set1(DBL_MAX)), size));
            number = choose(other, set1(1.0), number);
            shift = choose(other, set1(0.0), shift);
            rest = zero_if_tiny(log_sigma2);
            t = vmin(vmax(-rest, set1(-4500.0)), set1(4500.0));
        }
        V m = label("m", mantissa(number)), e = label("e", exponent(number) + shift);
        V n;
        pair y = exponential(t, &n);
        label_exponential(t);
        label("exp.n", n);
        label("y.hi", y.hi);
        label("y.lo", y.lo);
        n = label("n", n + (e + e) - set1(1.0));
        V power = label("power", power_of_two((form ? vmin(vmax(n, set1(-300.0)), set1(300.0)) : n) +
                                              set1(MAGIC)));
        label("removed", (-rest - t) * set1(0.5));
        V m2 = m * m, m2_lo = product_error(m, m, m2);
        V q = label("q", m2 * y.hi);
        V q_lo = product_error(m2, y.hi, q) + MADD(m2_lo, y.hi, m2 * y.lo);
        label("q_lo", q_lo);
        V scaled = label("u", q * power);
        if (form)
            continue;
        label("u_lo", q_lo * power);
        label("w", set1(1.0) / scaled);
        V f = label("f", m * y.hi);
        label("f_lo", MADD(m, y.lo, product_error(m, y.hi, f)));
        label("inverse", set1(1.0) / m);
        label_log(q, n);
    }
    V hi{make("input hi")}, lo{make("input lo")}, n{make("input n")};
    begin("assemble", 0);
    label("", assemble(hi + lo, hi, lo, n));
    begin("scale", 0);
    label("", scale(hi + lo, n));
    print_graph();
}
