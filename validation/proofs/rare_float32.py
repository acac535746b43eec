"""The rare form of the float32 kernels: lanes with small or large u, and u above 2^83.

`float32_rare.h` sorts the lanes by estimates of exponents, which are at most 0.3 too small.

own     The usual arithmetic, for -123.5 <= log2(u) < 125.5. For the gradient, log2|d_mu| and
        log2(1/|mu|) are also above -123.8. If u > 2^84, x is limited. Then the computed u is about
        2^84, and the kernel adds half of the excess to F. Zero and infinite means give 0, infinity
        and 1/2 exactly.
small   log2(u) < -26.7. -KL = -u and its derivatives are products of m and e = exp(x), apart from
        powers of two, where |mu| = m 2^k.
large   log2(u) > 124.9, without FMA log2(u) > 79.9. -KL is a sum of k log(2), x/2 and log(m),
        d_mu = -1/mu, and the derivative in log sigma^2 is 1/2.
nan     The truth is NaN as well.
scaled  The others: a subnormal mean with u between those, and for the gradient also |mu| above
        2^123 or a d_mu that is nearly subnormal. They are not proved.

For small and large lanes, the accuracy of the steps is proved. Which lanes are small or large, and
the powers of two, the signs, zeros and infinities of their results, are only tested.
"""

import numpy as np
from flint import arb

from . import exact_float32
from .algebra import UP
from .bounds import Bound
from .exhaustive import ORDER, Pieces, sweep
from .float32 import HALF_ULP, TINY, check_limit, differences, logarithm
from .graph import Graph, Node
from .steps_float32 import Matcher, Steps, take_apart
from .truth import exact, upper

SMALL_U = 2.0**-26.7
LIMITED_U = 2.0**83.5, 2.0**85
LARGEST_EXCESS = 29.5  # more than log(2^125.5/2^83.5)
LARGE_ULP = {True: 2.0**-18, False: 2.0**-19}  # of F at the least u, 2^125 with FMA or 2^80
MOST_POWER = 149


def check_uses(graph: Graph, output: int, operation: str, *operands: int) -> int:
    """Fail unless the output needs this operation; return its node."""
    node = graph.number(Node(operation, operands))
    if node not in graph.needed(output):
        raise AssertionError(f"the rare form does not use {operation} of {operands}")
    return node


def prove_small(graph: Graph, name: str) -> float:
    """The bound for small u; for a subnormal result the error before its rounding counts half."""
    output, is_value = graph.label(f"{name}.rare"), name == "neg_kl_normal"
    prefix = "small" if is_value else "gradient.small"
    m, e = graph.label(f"{prefix}.m"), graph.label(f"{prefix}.e")
    products = check_uses(graph, output, "mul", m, e)
    if not name.endswith(".dmu"):
        check_uses(graph, output, "mul", m, products)
    exp, power = graph.label("exp"), graph.label("exp.power")
    of = exact_float32.exponential(TINY, -450.0, 450.0)
    (log_sigma2,) = _inputs(graph, "log_sigma2")
    got = f"0.5 * t{exp} * two_to(t{power})"
    found = differences(graph, (exp, power), ((log_sigma2, "-x"),), got, of, True)
    error = logarithm(found).max() + (0 if name.endswith(".dmu") else HALF_ULP)
    return float((error + SMALL_U) * 2.0**24 * UP + 1)


def prove_large(graph: Graph, name: str) -> float:
    """The bound for large u, whose derivatives are those at infinity to 2^-120."""
    output = graph.label(f"{name}.rare")
    if name.endswith(".dmu"):
        minus_one = graph.number(Node("const", (-1.0,)))
        check_uses(graph, output, "div", minus_one, graph.label("gradient.small.m"))
        return 0.76  # half an ulp of 1/m, and of a subnormal result, for which the first is a half
    if name.endswith("sigma2"):
        return 0.01
    match, k, half = Matcher(graph), graph.label("large.k"), graph.label("large.half")
    log = graph.label("large.log")
    first, second, constant = _constants(match, graph, output, k, half, log)
    log2 = arb(2).log()
    lost = MOST_POWER * upper(exact(first) + exact(second) - log2)
    lost += upper(exact(constant) - (log2 + arb.const_euler()) / 2)
    lost += _error_of_log(graph) + 2.0**-25 + 2.0**-24 + 2.0**-31
    return lost * UP / LARGE_ULP[graph.fused] + 0.5 + 1.0


def _constants(
    match: Matcher, graph: Graph, output: int, k: int, half: int, log: int
) -> tuple[float, float, float]:
    """Find k FIRST + half + (log + (k SECOND + CONSTANT)) in what the output needs."""
    for node in graph.needed(output):
        try:
            high, rest = match(node, "add")
            k_high, first, added = match.multiply_add(high)
            found, low = match(rest, "add")
            k_low, second, constant = match.multiply_add(low)
        except (AssertionError, ValueError):
            continue
        if (k_high, k_low, added, found) == (k, k, half, log):
            values = tuple(match.constant(i) for i in (first, second, constant))
            if not graph.fused and values[0] * 2.0**16 % 1:
                raise AssertionError("k times the first part of log(2) is not exact")
            return values[0], values[1], values[2]
    raise AssertionError("the sum for large u is not as expected")


def _inputs(graph: Graph, name: str) -> list[int]:
    return [i for i, node in enumerate(graph.nodes) if node == ("input", (name,))]


def _error_of_log(graph: Graph) -> float:
    """The largest error of log(m) for 1 <= m < 2."""
    pieces = exact_float32.logarithms(0.0, 1.0, 2.0)
    (mu,), log = _inputs(graph, "mu"), graph.label("log")
    found = sweep(graph, [log], {mu: "x"}, f"-2.0 * t{log}", pieces, False)
    return float(np.abs(found).max() / 2) + 2.0**-40


def prove_limited(graph: Graph, name: str, bound: Bound) -> float:
    """The bound where x is limited, of the bound where it is not and u is about 2^84.

    The excess is only added, so it changes the result by half of it and by the roundings of the
    sums that it takes part in.
    """
    steps = take_apart(graph, name)
    least, most = check_limit(graph, steps)
    if not 2.0**84 * np.exp([least, most]).min() > LIMITED_U[0] or not most < np.log(2.0) / 2:
        raise AssertionError("the limit of x is not near 2^84")
    about = (bound.hi >= LIMITED_U[0]) & (bound.lo <= LIMITED_U[1])
    unlimited = float(bound.ulp[about].max())
    if name != "neg_kl_normal":
        return unlimited + 2.0**-50  # the derivatives differ from 1/2 by less
    sums = _sums(graph, steps)
    size = np.array(LIMITED_U, np.float32)
    pieces = Pieces(size[:1], size[1:], np.zeros(1), np.zeros((1, ORDER + 1)))
    lost = np.spacing(np.float32(LARGEST_EXCESS)) / 4
    for node in sums:
        for excess in (0.0, LARGEST_EXCESS):
            given = {steps.u: "x", steps.excess: f"{excess!r}f"}
            found = sweep(graph, [node], given, f"(double)t{node}", pieces, False)
            lost += float(np.spacing(np.float32(np.abs(found).max()))) / 2
    ulp = 2.0**-19  # of F(2^83.5) = 29.9, and less than that of larger u
    return unlimited + float(lost / ulp * UP)


def _sums(graph: Graph, steps: Steps) -> list[int]:
    """The sums from the excess to the result, each of which adds to the one before it."""
    match, node, found = Matcher(graph), steps.far, []
    while True:
        found.append(node)
        a, b, c = match.multiply_add(node)
        if steps.excess in (a, b):
            match.constant(c)
            match.same({a, b} - {steps.excess} == {graph.number(Node("const", (0.5,)))}, True)
            return found
        for factor in (a, b):
            if steps.excess in graph.needed(factor):
                raise AssertionError("the excess is multiplied")
        node = c
