// Prints the operations of the float32 kernels of training as a graph, as symbols.cpp does for those
// in float64. It gives the names of float32_simd.h to symbols and includes the C headers as they are.
#include "symbols.h"
#include <cstddef>

#define set1_bits(x) set1_bits((uint32_t)(x))
static U operator<<(U a, U b) { return {make("shift_left", {a.id, b.id})}; }
static U operator>>(U a, U b) { return {make("shift_right", {a.id, b.id})}; }
static V minimum(V a, V b) { return vmin(a, b); }
static V maximum(V a, V b) { return vmax(a, b); }
static V inverse(V x) { return set1(1.0) / x; }
static V magnitude(V x) { return unbits(bits(x) & set1_bits(0x7fffffff)); }
static V from_bits(U n) { return {make("from_bits", {n.id})}; }
static M greater_equal(V a, V b) { return less_equal(b, a); }
static M not_equal(V a, V b) { return {make("not_equal", {a.id, b.id})}; }
static M negated(M m) { return {make("negated", {m.id})}; }
static V load(const float *) { abort(); }

// The integers of float32_magnitudes.h, by their names for AVX-512. What `any` lane needs is done.
#define LK_ISA 512
typedef U __m512i;
static M _mm512_cmplt_epi32_mask(U a, U b) { return below(a, b); }
static M _mm512_cmpeq_epi32_mask(U a, U b) { return {make("same_bits", {a.id, b.id})}; }
static V _mm512_cvtepi32_ps(U n) { return from_bits(n); }
static U _mm512_max_epi32(U a, U b) { return {make("larger", {a.id, b.id})}; }
static bool operator!=(M, int) { return true; }
static bool operator==(M, int) { return false; }

#define LK_INLINE static inline
#define LK_NOINLINE
#define LK_PASTE_(a, b) a##b
#define LK_PASTE(a, b) LK_PASTE_(a, b)
#define LK_NAME(name) LK_PASTE(name##_, LK_SUFFIX)
enum { WAYS = 1, LANES = 1, STRIDE = 1 };
#define SET(name, expression)        \
    for (int i = 0; i < WAYS; i++)   \
        (name)[i] = (expression)
#define EACH(type, name, expression) \
    type name[WAYS];                 \
    SET(name, expression)
#undef NAN
#undef INFINITY
#define NAN __builtin_nanf("")
#define INFINITY __builtin_inff()
#include "float32_kernels.h"
#include "float32_magnitudes.h"
#include "float32_rare.h"

static void label(const std::string &name, int id) { labels[name] = id; }

static void label_ways(const std::string &kind, const ways &w)
{
    label(kind + ".own", w.own[0].id);
    label(kind + ".small", w.small[0].id);
    label(kind + ".large", w.large[0].id);
    label(kind + ".nan", w.nan[0].id);
}

// Steps for small and large u, which repeat expressions of float32_rare.h.
static void label_steps(V mu, V log_sigma2, const ways &value, const ways &gradient)
{
    V ls = without_tiny(log_sigma2), infinite = set1(INFINITY);
    scaled m = split(unbits(size_bits(mu))), of_mu = split(mu);
    label("small.m", m.x.id);
    label("small.e", LK_NAME(exponential_of_minus)(choose(value.small[0], ls, set1(0.0f))).x.id);
    V e = LK_NAME(exponential_of_minus)(choose(gradient.small[0], ls, set1(0.0f))).x;
    label("gradient.small.m", of_mu.x.id);
    label("gradient.small.e", e.id);
    scaled alone = LK_NAME(exponential_of_minus)(log_sigma2);
    label("exp", alone.x.id);
    label("exp.power", alone.power.id);
    label("log", LK_NAME(logarithm)(mu).id);
    M finite = both(value.large[0], less(m.x, infinite));
    V k = to_float(m.power);
    label("large.k", k.id);
    label("large.half", (choose(finite, ls, set1(0.0f)) * set1(-0.5f)).id);
    label("large.log", LK_NAME(logarithm)(choose(finite, m.x, set1(1.0f))).id);
}

// `value_of` and `gradient_of` of float32_blocks.h for one register, and a factor of 1.
static void rare(V mu, V log_sigma2)
{
    V a = mu, b = without_tiny(log_sigma2), value, d_mu, d_log_sigma2;
    ways w;
    LK_NAME(find_ways)(&w, NULL, &a, &b);
    LK_NAME(normal_value)(&a, &b, &value);
    LK_NAME(finish_value)(&w, 0, &mu, &log_sigma2, &value);
    label("neg_kl_normal.rare", value.id);
    label_ways("value", w);
    ways of_value = w;
    V factor = set1(1.0), least = least_exponent(factor);
    a = mu;
    b = without_tiny(log_sigma2);
    LK_NAME(find_ways)(&w, &least, &a, &b);
    LK_NAME(normal_gradient)(&a, &b, &d_mu, &d_log_sigma2);
    LK_NAME(finish_gradient)(&w, 0, &factor, &mu, &log_sigma2, &d_mu, &d_log_sigma2);
    label("neg_kl_normal.dmu.rare", d_mu.id);
    label("neg_kl_normal.dlog_sigma2.rare", d_log_sigma2.id);
    label_ways("gradient", w);
    label_steps(mu, log_sigma2, of_value, w);
}

int main()
{
    V mu{make("input mu")}, log_sigma2{make("input log_sigma2")};
    V value, d_mu, d_log_sigma2;
    LK_NAME(normal_value)(&mu, &log_sigma2, &value);
    LK_NAME(normal_gradient)(&mu, &log_sigma2, &d_mu, &d_log_sigma2);
    label("neg_kl_normal", value.id);
    label("neg_kl_normal.dmu", d_mu.id);
    label("neg_kl_normal.dlog_sigma2", d_log_sigma2.id);
    rare(mu, log_sigma2);
    print_graph();
}
