"""How the rare form of -KL and its derivatives from (mu, log sigma^2) differs from the usual form.

It computes |mu| = m 2^e, t = -log sigma^2, exp(t) = y 2^ny, n = ny + 2 e - 1 and u = q 2^n, where
q = m^2 y. It clips t to [-4500, 4500], and n to [-300, 300] for u only. What comes after m, e, t, n
and 2^n is the same graph as in the usual form, but for three things:

- `assemble` scales the results by 2^n if a lane is far away. See `scaling.py`.
- The value gets back what was removed from t.
- mu = 0, infinities and NaN have results of their own, which are constants.
"""

from functools import cache
from itertools import product
from typing import Any

import numpy as np

from .algebra import exponent_of
from .bounds import check_cover
from .graph import Graph, Node
from .normal import NAME
from .one_argument import LARGEST
from .rare import NORMAL, TINY, ZERO_IF_BELOW, below
from .scaling import LARGEST_N, SUBNORMAL, check_scale, folded, matches, scaled
from .special import SIGN, Special

CLIP_T = 4500.0
CLIP_N = 300
EXPONENTS = -1074, 1023  # of mu
INF, NAN = float("inf"), float("nan")
FORMS = (".rare0", ".rare1")
MANTISSA, ONE = 0x000FFFFFFFFFFFFF, 0x3FF0000000000000
CUTS = {"m": "m", "e": "e", "exp.t": "t", "n": "n", "power": "power", "removed": "removed"}
Interval = tuple[float, float]


def both_signs(lo: float, hi: float) -> list[Interval]:
    return [(lo, hi), (-hi, -lo)]


SUBNORMAL_MU = both_signs(TINY, below(NORMAL))
FINITE_MU = [*SUBNORMAL_MU, *both_signs(NORMAL, LARGEST)]
ZEROS: list[Interval] = [(0.0, 0.0), (-0.0, -0.0)]
UNCLIPPED = both_signs(ZERO_IF_BELOW, below(CLIP_T))
TINY_T = [*ZEROS, *both_signs(TINY, below(ZERO_IF_BELOW))]
CLIPPED = [*both_signs(CLIP_T, LARGEST), (INF, INF), (-INF, -INF)]
LIMITS = {"": (0.0, -INF), ".dmu": (0.0, 0.0), ".dlog_sigma2": (0.0, 0.5)}  # at mu = 0 and inf


def check_form(graph: Graph, suffix: str) -> None:
    """Check all this for one result: ``""`` (the value), ``".dmu"`` or ``".dlog_sigma2"``.

    The intervals of mu and of log sigma^2 cover all float64.
    """
    for intervals in ([*ZEROS, *FINITE_MU], [*TINY_T, *UNCLIPPED, *CLIPPED[:2]]):
        lo, hi = np.array(intervals).T
        check_cover(lo, hi, -LARGEST, LARGEST)
    largest_n()
    check_parts(graph)
    check_same(graph, suffix)
    check_limits(graph, suffix)


def largest_n() -> int:
    """A bound of |n|, for exp(t) = y 2^ny and any mu.

    Where t is clipped, n is clipped as well. For a large sigma the results are 0 then, and the
    exact ones are below 2^-1100.
    """
    ny, e = int(CLIP_T / np.log(2)), max(map(abs, EXPONENTS))
    if ny + 3 * e + 4 > LARGEST_N or ny - 2 * e - 4 < max(CLIP_N, 1 - SUBNORMAL):
        raise AssertionError("a power of two is not as expected")
    return ny + 2 * e + 3


def node(graph: Graph, operation: str, *operands: Any) -> int:
    return graph.number(Node(operation, operands))


def bits(graph: Graph, word: int) -> int:
    return node(graph, "bits_const", word)


def expect(found: int, wanted: int, what: str) -> None:
    if found != wanted:
        raise AssertionError(f"{what} is not what the proof is for")


def label(graph: Graph, form: str, name: str) -> int:
    return graph.label(f"{NAME}{form}:{name}")


@cache
def check_parts(graph: Graph) -> None:
    """Check m, e, t, n, 2^n and what is removed from t, for finite mu that are not 0."""
    mu, log_sigma2 = (node(graph, "input", name) for name in ("mu", "log_sigma2"))
    for interval in FINITE_MU:
        special = Special(graph, {}, mu=interval, log_sigma2=UNCLIPPED[0])
        number, shift = mu, 0.0
        if interval in SUBNORMAL_MU:  # |mu| = s 2^-1074 is (1 + s 2^-52) - 1 times 2^-1022
            size = node(graph, "and", node(graph, "bits", mu), bits(graph, SIGN - 1))
            word = node(
                graph, "or", node(graph, "bits", node(graph, "unbits", size)), bits(graph, ONE)
            )
            one = node(graph, "const", 1.0)
            number, shift = node(graph, "sub", node(graph, "unbits", word), one), -1022.0
        word = node(graph, "and", node(graph, "bits", number), bits(graph, MANTISSA))
        m = node(graph, "unbits", node(graph, "or", word, bits(graph, ONE)))
        for form in ("", *FORMS) if interval not in SUBNORMAL_MU else FORMS:
            expect(special.node(label(graph, form, "m")), m, "m")
            e = special.node(label(graph, form, "e"))
            operation, operands = graph.nodes[e]
            wanted = "add", number, node(graph, "const", shift)
            expect((operation, exponent_of(graph, operands[0]), operands[1]) == wanted, True, "e")
    for form in FORMS:
        _check_t(graph, form, log_sigma2)
    for form in ("", *FORMS):
        _check_exponents(graph, form)


def _check_t(graph: Graph, form: str, log_sigma2: int) -> None:
    """Check that t is -log sigma^2, or 0, or clipped, and that half of the rest is removed."""
    negative = node(graph, "neg", log_sigma2)
    t, removed = label(graph, form, "exp.t"), label(graph, form, "removed")
    for interval in [*TINY_T, *UNCLIPPED, *CLIPPED]:
        special = Special(graph, {}, mu=FINITE_MU[-1], log_sigma2=interval)
        found, back = special.node(t), special.node(removed)
        if interval in UNCLIPPED:
            expect(found, negative, "t")
            expect(special.constants.get(removed) == 0, True, "what is removed")
            continue
        end = 0.0 if interval in TINY_T else -CLIP_T if interval[0] > 0 else CLIP_T
        expect(special.constants.get(t) == end, True, "t")
        if interval in TINY_T or np.isinf(interval[0]):
            wanted = 0.0 if interval in TINY_T else -interval[0]
            expect(special.constants.get(removed) == wanted, True, "what is removed")
        else:
            expect(back, _removed(graph, end), "what is removed")


def _removed(graph: Graph, t: float) -> int:
    negative = node(graph, "neg", node(graph, "input", "log_sigma2"))
    difference = node(graph, "sub", negative, node(graph, "const", t))
    return node(graph, "mul", difference, node(graph, "const", 0.5))


def _check_exponents(graph: Graph, form: str) -> None:
    """Check n = ny + 2 e - 1 and 2^n, where ny = floor(k/8) if t is reduced by k log(2)/8."""
    cuts = {label(graph, form, name): CUTS[name] for name in ("e", "exp.t")}
    special = Special(graph, cuts)
    e, ny = node(graph, "input", "e"), special.node(label(graph, form, "exp.n"))
    total = node(graph, "add", ny, node(graph, "add", e, e))
    n = node(graph, "sub", total, node(graph, "const", 1.0))
    expect(special.node(label(graph, form, "n")), n, "n")
    k = np.arange(-LARGEST_N * 8, LARGEST_N * 8 + 1)
    special = Special(graph, {label(graph, form, "exp.k_magic"): "k"})
    found = graph.run(special.node(label(graph, form, "exp.n")), k=k + 1.5 * 2.0**52)
    expect((found == k // 8).all(), True, "the exponent of exp(t)")
    special = Special(graph, {label(graph, form, "n"): "n"})
    end = LARGEST_N if form else 2 * CLIP_N
    every = np.arange(-end, end + 1)
    found = graph.run(special.node(label(graph, form, "power")), n=every * 1.0)
    wanted = np.ldexp(1.0, np.clip(every, -CLIP_N, CLIP_N) if form else every)
    expect((found == wanted).all(), True, "2^n")
    if not form:
        operands = label(graph, "", "log.exponent"), label(graph, "", "n")
        of_log = label(graph, "", "log.k")
        expect(of_log, node(graph, "add", *operands), "log(u)")
        expect(of_log in graph.needed(graph.label(NAME)), True, "log(u)")


def check_same(graph: Graph, suffix: str) -> None:
    """Check that the rare form is the usual form, if it is cut and `assemble` is `scale`."""
    checked = set()
    for mu, log_sigma2 in product(FINITE_MU, [*TINY_T, *UNCLIPPED, *CLIPPED]):
        of = {form: cut(graph, form, mu, log_sigma2) for form in ("", *FORMS)}
        outputs = [x.node(graph.label(NAME + suffix + form)) for form, x in of.items()]
        mask = of[FORMS[0]].node(label(graph, FORMS[0], "any0"))
        if (key := (*outputs, mask)) not in checked:
            _check_outputs(graph, suffix, *outputs)
            _check_far(graph, mask)
            checked.add(key)
    for other, same in ((".rare2", ".rare0"), (".rare", ".rare1")):
        expect(graph.label(NAME + suffix + other), graph.label(NAME + suffix + same), other)


def cut(graph: Graph, form: str, mu: Interval, log_sigma2: Interval) -> Special:
    cuts = {label(graph, form, name): to for name, to in CUTS.items()}
    return Special(graph, cuts, mu=mu, log_sigma2=log_sigma2)


def _check_outputs(graph: Graph, suffix: str, usual: int, *rare: int) -> None:
    if suffix == ".dmu":  # it has the sign of -mu
        mu = node(graph, "not", node(graph, "bits", node(graph, "input", "mu")))
        sign = node(graph, "and", mu, bits(graph, SIGN))
        word = graph.nodes[graph.nodes[usual].operands[0]]
        expect((word.operation, word.operands[1]) == ("or", sign), True, "the sign")
    for i in rare:
        output = scaled(graph, i)
        same = without_removed(graph, output) if suffix == "" else output
        expect(same, usual, f"the rare form of {NAME}{suffix}")
        (inputs,) = matches(graph, folded(graph, "scale"), output).values()
        _check_power(graph, suffix, inputs)


def without_removed(graph: Graph, output: int) -> int:
    """-(value or what is scaled) instead of -(value + [removed or 0] or what is scaled).

    What was removed is added where the value has a logarithm.
    """
    which, low, last = graph.nodes[graph.nodes[output].operands[0]].operands
    value, back = graph.nodes[last].operands
    log, _ = graph.nodes[graph.nodes[value].operands[0]].operands
    mask = graph.nodes[log].operands[0]
    removed = node(graph, "input", "removed"), node(graph, "const", 0.0)
    expect(back, node(graph, "choose", mask, *removed), "what is added to the value")
    expect(last, node(graph, "add", value, back), "the value")
    return node(graph, "neg", node(graph, "choose", which, low, value))


def _check_power(graph: Graph, suffix: str, inputs: dict[str, int]) -> None:
    """The results are scaled by 2^n, those in mu by 2^(n - e + 1) or 2^(1 - e)."""
    n, power = node(graph, "input", "n"), inputs["n"]
    if suffix == ".dmu":
        operation, (mask, *_) = graph.nodes[inputs["hi"]]
        expect(operation == "choose", True, "the derivative in mu")
        n = node(graph, "choose", mask, node(graph, "const", 0.0), n)
        n = node(graph, "sub", n, node(graph, "input", "e"))
        n = node(graph, "add", n, node(graph, "const", 1.0))
    expect(power, n, "the power of two of a result")


def _check_far(graph: Graph, mask: int) -> None:
    """Check that `scale` is exact for a lane that is not far away."""
    limits = []
    for side, name in zip(graph.nodes[mask].operands, ("n", "e"), strict=True):
        operation, (limit, size) = graph.nodes[side]
        word = node(graph, "bits", node(graph, "input", name))
        magnitude = node(graph, "unbits", node(graph, "and", word, bits(graph, SIGN - 1)))
        expect((operation, size) == ("less", magnitude), True, "what is far away")
        limits.append(int(graph.nodes[limit].operands[0]))
    expect(graph.nodes[mask].operation == "either", True, "what is far away")
    _check_scale(graph, sum(limits) + 1)


@cache
def _check_scale(graph: Graph, limit: int) -> None:
    check_scale(graph, limit)


def check_limits(graph: Graph, suffix: str) -> None:
    """Check the results for mu = 0, infinities and NaN."""
    finite = both_signs(TINY, LARGEST)
    numbers = [*ZEROS, *finite, (INF, INF), (-INF, -INF)]
    nan = (NAN, NAN)
    cases = [(mu, x) for mu in (*ZEROS, (INF, INF), (-INF, -INF)) for x in (*numbers, nan)]
    cases += [(nan, x) for x in (*numbers, nan)] + [(mu, nan) for mu in FINITE_MU]
    for (mu, log_sigma2), form in product(cases, FORMS):
        undefined = (abs(mu[0]), log_sigma2[0]) in ((0.0, -INF), (INF, INF))
        limit = LIMITS[suffix][int(mu[0] != 0)]
        if undefined or np.isnan(mu[0]) or np.isnan(log_sigma2[0]):
            limit = NAN
        special = Special(graph, {}, mu=mu, log_sigma2=log_sigma2)
        output = graph.label(NAME + suffix + form)
        special.node(output)
        got = special.constants.get(output)
        if got is None or not np.array_equal(got, [limit], equal_nan=True):
            raise AssertionError(f"{NAME}{suffix}{form} at {mu}, {log_sigma2} is {got}")
