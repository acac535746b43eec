// Prints the operations of the float32 kernels of training as a graph, as symbols.cpp does for those
// in float64. It gives the names of float32_simd.h to symbols and includes the C header as it is.
#include "symbols.h"

static U operator<<(U a, U b) { return {make("shift_left", {a.id, b.id})}; }
static U operator>>(U a, U b) { return {make("shift_right", {a.id, b.id})}; }
static V minimum(V a, V b) { return vmin(a, b); }
static V maximum(V a, V b) { return vmax(a, b); }
static V inverse(V x) { return set1(1.0) / x; }
static V magnitude(V x) { return unbits(bits(x) & set1_bits(0x7fffffff)); }
static V from_bits(U n) { return {make("from_bits", {n.id})}; }
static M greater_equal(V a, V b) { return less_equal(b, a); }

#define LK_INLINE static inline
#define LK_PASTE_(a, b) a##b
#define LK_PASTE(a, b) LK_PASTE_(a, b)
#define LK_NAME(name) LK_PASTE(name##_, LK_SUFFIX)
#define SET(name, expression) (name)[i] = (expression)
#define EACH(type, name, expression) \
    type name[1];                    \
    SET(name, expression)
static const int i = 0; // the only register of a call
#include "float32_kernels.h"

int main()
{
    V mu{make("input mu")}, log_sigma2{make("input log_sigma2")};
    V value, d_mu, d_log_sigma2;
    LK_NAME(normal_value)(&mu, &log_sigma2, &value);
    LK_NAME(normal_gradient)(&mu, &log_sigma2, &d_mu, &d_log_sigma2);
    labels = {{"neg_kl_normal", value.id},
              {"neg_kl_normal.dmu", d_mu.id},
              {"neg_kl_normal.dlog_sigma2", d_log_sigma2.id}};
    print_graph();
}
