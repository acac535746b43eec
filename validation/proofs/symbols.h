// The registers and operations that `symbols.cpp` and `symbols_float32.cpp` have in common. Each
// operation prints as a node. Equal operations on equal operands are one node.
#include <cfloat>
#include <cmath>
#include <cstdint>
#include <cstdio>
#include <cstdlib>
#include <cstring>
#include <map>
#include <string>
#include <vector>

static std::vector<std::string> nodes;
static std::map<std::string, int> known;

static int make(const std::string &text)
{
    auto [place, is_new] = known.try_emplace(text, (int)nodes.size());
    if (is_new)
        nodes.push_back(text);
    return place->second;
}

static int make(const char *operation, std::initializer_list<int> operands)
{
    std::string text = operation;
    for (int operand : operands)
        text += " " + std::to_string(operand);
    return make(text);
}

static std::string hex(double x)
{
    char text[64];
    snprintf(text, sizeof text, "%a", x);
    return text;
}

// The registers: floating-point numbers, their bits, truth values.
struct V { int id; };
struct U { int id; };
struct M { int id; };

static V set1(double x) { return {make("const " + hex(x))}; }
static U set1_bits(uint64_t x) { return {make("bits_const " + std::to_string(x))}; }
static V operator+(V a, V b) { return {make("add", {a.id, b.id})}; }
static V operator-(V a, V b) { return {make("sub", {a.id, b.id})}; }
static V operator*(V a, V b) { return {make("mul", {a.id, b.id})}; }
static V operator/(V a, V b) { return {make("div", {a.id, b.id})}; }
static V operator-(V a) { return {make("neg", {a.id})}; }
#ifdef FUSED
static V MADD(V a, V b, V c) { return {make("fma", {a.id, b.id, c.id})}; }
#define LK_SUFFIX fused
#else
static V MADD(V a, V b, V c) { return a * b + c; }
#define LK_UNFUSED
#define LK_SUFFIX unfused
#endif
static V vmax(V a, V b) { return {make("max", {a.id, b.id})}; }
static V vmin(V a, V b) { return {make("min", {a.id, b.id})}; }
static U bits(V x) { return {make("bits", {x.id})}; }
static V unbits(U x) { return {make("unbits", {x.id})}; }
static U operator&(U a, U b) { return {make("and", {a.id, b.id})}; }
static U operator|(U a, U b) { return {make("or", {a.id, b.id})}; }
static U operator^(U a, U b) { return {make("xor", {a.id, b.id})}; }
static U operator+(U a, U b) { return {make("bits_add", {a.id, b.id})}; }
static U operator-(U a, U b) { return {make("bits_sub", {a.id, b.id})}; }
static U operator~(U a) { return {make("not", {a.id})}; }
static U operator<<(U a, int n) { return {make("shift_left", {a.id, set1_bits(n).id})}; }
static U operator>>(U a, int n) { return {make("shift_right", {a.id, set1_bits(n).id})}; }
static M less(V a, V b) { return {make("less", {a.id, b.id})}; }
static M less_equal(V a, V b) { return {make("less_equal", {a.id, b.id})}; }
static M equal(V a, V b) { return {make("equal", {a.id, b.id})}; }
static M below(U a, U b) { return {make("below", {a.id, b.id})}; }
static M both(M a, M b) { return {make("both", {a.id, b.id})}; }
static M either(M a, M b) { return {make("either", {a.id, b.id})}; }
static V choose(M m, V a, V b) { return {make("choose", {m.id, a.id, b.id})}; }

static std::map<std::string, int> labels;

static void print_graph()
{
    for (size_t i = 0; i < nodes.size(); i++)
        printf("%zu %s\n", i, nodes[i].c_str());
    for (auto &[name, id] : labels)
        printf("label %s %d\n", name.c_str(), id);
}
