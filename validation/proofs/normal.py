"""The bounds of -KL and its derivatives from (mu, log sigma^2), in the usual form of the kernels.

There are three stages. Each cuts its results, which are known in two words, to atoms:

1. exp(-log sigma^2) = (Y + ylo)(1 + eta) 2^n;
2. on pieces of the mantissa m of mu and of Y: q + qlo = m^2 (Y + ylo)(1 + eps_q), and
   f + flo = m (Y + ylo)(1 + eps_f);
3. on pieces of u = q 2^n, m and Y: the functions of u.

Powers of two are left out of q and f: all words are normal in the window, so they only shift.
"""

from itertools import pairwise
from typing import Any, NamedTuple

import numpy as np
from flint import fmpq

from .algebra import UP, Number, Pieces, Poly, binade, half_ulp, largest, rational, smallest
from .bounds import Bound, at_shift, check_cover, compare, cut_result, join
from .graph import Graph
from .one_argument import check_reductions, cuts, reductions
from .scaling import check_words
from .stages import (
    Table,
    hook_exponential,
    hook_log,
    log_error,
    reciprocal,
    reduced_argument,
    table,
)
from .truth import errors

NAME = "neg_kl_normal"
WINDOW_MU = (2.0**-130, 2.0**130)
WINDOW_LOG_SIGMA2 = 90.0
MAY_BE_CLIPPED = (2.0**-296, 2.0**299)  # u outside of it, in the rare form
NO_GRID = -5000
BINS = np.linspace(0.95, 2.01, 129)


class Exponentials(NamedTuple):
    """On pieces of log sigma^2: the interval of Y, the largest |ylo|, the bound of eta."""

    lo: Any
    hi: Any
    low_word: Any
    eta: Any


def exponentials(graph: Graph, end: float = WINDOW_LOG_SIGMA2) -> Exponentials:
    """Prove exp(-log sigma^2) for |log sigma^2| <= end."""
    cut = reductions(-end, end, -1, 1)
    check_reductions(graph, NAME, "log_sigma2", -end, end, *cut)
    check_cover(cut[0], cut[1], -end, end)
    rows = []
    for part in (cut[2] == 0, cut[2] != 0):
        lo, hi, k = (x[part] for x in cut)
        pieces = Pieces(graph, len(lo))
        pieces.atoms["x"] = lo, hi
        pieces.set_v((lo, hi))
        near = np.where((lo <= 0) & (hi >= 0), 2.0**-300, np.minimum(abs(lo), abs(hi)))
        argument = graph.nodes[graph.label(f"{NAME}:exp.t")].operands[0]
        pieces.values[argument] = Number({("x",): [fmpq(1)]}, binade(near) - 52, box=(lo, hi))
        eta = hook_exponential(pieces, NAME, k)
        rows.append((*pieces.atoms["Y"], pieces.atoms["ylo"][1], eta))
    return Exponentials(*(np.concatenate(column) for column in zip(*rows, strict=True)))


class Boxes(NamedTuple):
    """Pieces of u in [2^0, 2^1) times a power of two, of m and of Y."""

    u_lo: Any
    u_hi: Any
    m_lo: Any
    m_hi: Any
    y_lo: Any
    y_hi: Any

    def choose(self, which: Any) -> "Boxes":
        return Boxes(*(x[which] for x in self))

    def halves(self) -> "Boxes":
        """Each box cut to eight, without those in which no u is m^2 Y times a power of two."""
        u, m, y = (
            ((lo, (lo + hi) / 2), ((lo + hi) / 2, hi))
            for lo, hi in ((self.u_lo, self.u_hi), (self.m_lo, self.m_hi), (self.y_lo, self.y_hi))
        )
        found = [Boxes(*a, *b, *c) for a in u for b in m for c in y]
        return Boxes(
            *map(np.concatenate, zip(*(x.choose(x.possible()) for x in found), strict=True))
        )

    def possible(self) -> Any:
        least = self.m_lo**2 * self.y_lo / self.u_hi * (1 - 2.0**-40)
        most = self.m_hi**2 * self.y_hi / self.u_lo * (1 + 2.0**-40)
        return np.floor(np.log2(most) + 1e-12) >= np.ceil(np.log2(least) - 1e-12)


def boxes(lo: Any, hi: Any, n: int, y: Exponentials) -> Boxes:
    """Pieces of [lo, hi], each in one binade, with `n` pieces of m and the Y that belong to both.

    m^2 Y is u times a power of two, to within 2^-50: u = RN(RN(m^2) Y) 2^n.
    """
    scaled = np.ldexp(lo, -binade(lo)), np.ldexp(hi, -binade(lo))
    first, last = y.lo.min(), y.hi.max()
    if not (first > 0.5 and last < 2):
        raise AssertionError("Y is not between 1/2 and 2")
    m = 1 + np.arange(n + 1) / n
    found = []
    for shift in range(-2, 4):  # 1/4 < m^2 Y/u < 8, with u in [1, 2)
        for m_lo, m_hi in pairwise(m):
            y_lo = np.maximum(np.ldexp(scaled[0], shift) / m_hi**2 * (1 - 2.0**-40), first)
            y_hi = np.minimum(np.ldexp(scaled[1], shift) / m_lo**2 * (1 + 2.0**-40), last)
            ok = y_lo <= y_hi
            size = int(ok.sum())
            ms = np.full(size, m_lo), np.full(size, m_hi)
            found.append(Boxes(lo[ok], hi[ok], *ms, y_lo[ok], y_hi[ok]))
    return Boxes(*map(np.concatenate, zip(*found, strict=True)))


class Products(NamedTuple):
    """q or f in two words: the interval, the largest second word relative to it, and the error."""

    interval: Any
    low_word: Any
    error: Any


def products(graph: Graph, y: Exponentials, at: Boxes) -> tuple[Products, Products, Any]:
    """The second stage: q, f, and the bound of eta."""
    pieces = Pieces(graph, len(at.u_lo))
    pieces.set_v((at.m_lo, at.m_hi))
    inside = [(y.lo <= b) & (y.hi >= a) for a, b in pairwise(BINS)]
    worst = np.array([y.low_word[x].max(initial=0.0) for x in inside])
    first, last = (
        np.clip(np.searchsorted(BINS, x) - 1, 0, len(worst) - 1) for x in (at.y_lo, at.y_hi)
    )
    low_word = worst[first]
    for step in range(1, int((last - first).max()) + 1):
        low_word = np.maximum(low_word, worst[np.minimum(first + step, last)])
    no_grid = np.full(pieces.count, NO_GRID)
    high = pieces.atom("Y", (at.y_lo, at.y_hi))
    pieces.values[graph.label(f"{NAME}:y.hi")] = Number(high, binade(at.y_lo) - 52)
    pieces.values[graph.label(f"{NAME}:y.lo")] = Number(pieces.error("ylo", low_word), no_grid)
    m: Poly = {(): [fmpq(0), fmpq(1)]}
    pieces.values[graph.label(f"{NAME}:m")] = Number(m, np.full(pieces.count, -52))
    found = []
    for name, power in (("q", 2), ("f", 1)):
        first_word = pieces.get(graph.label(f"{NAME}:{name}"))
        second_word = pieces.get(graph.label(f"{NAME}:{name}_lo"))
        both = pieces.add(first_word.poly, second_word.poly)
        wanted: Poly = {(): [fmpq(0)] * power + [fmpq(1)]}
        exact = pieces.mul(wanted, {("Y",): [fmpq(1)], ("ylo",): [fmpq(1)]}, f"{name}.exact")
        size = at.m_lo**power * at.y_lo * (1 - 2.0**-40)
        error = pieces.magnitude(pieces.add(both, exact, -1)) / size * UP
        interval = pieces.interval(first_word.poly)
        low = largest(pieces.interval(second_word.poly)) / smallest(interval) * UP
        found.append(Products(interval, low, error))
    return found[0], found[1], float(y.eta.max())


def prove(graph: Graph, suffix: str) -> Bound:
    """Prove one result: ``""`` (the value), ``".dmu"`` or ``".dlog_sigma2"``."""
    least, most = (m * m * np.exp(s) / 2 for m, s in zip(WINDOW_MU, (-90.0, 90.0), strict=True))
    first, last = 2.0 ** np.floor(np.log2(least) - 1), 2.0 ** np.ceil(np.log2(most) + 1)
    return prove_between(graph, suffix, exponentials(graph), first, last)


def prove_between(
    graph: Graph, suffix: str, y: Exponentials, least: float, most: float, clipped: float = 0.0
) -> Bound:
    """Prove one result for u in [least, most).

    Where u may be clipped, the function of the exact u differs from that of u by `clipped` at most,
    relative to it.
    """
    output = graph.label(NAME + suffix)
    ranges = table(graph, output, reduced_argument(graph, output))
    ends = [least, *ranges.bounds[:7], most]
    found, worst = [], 0.0
    for k in range(8):
        lo, hi = cuts(ends[k], ends[k + 1], 200, k >= 3)
        at = boxes(lo, hi, 4 if k == 7 else 16, y)
        for again in range(9):
            bound = _prove_range(graph, suffix, k, ranges, at, products(graph, y, at), clipped)
            # Cut the worst boxes, as long as a smaller bound of the whole may come of it.
            cut = np.argsort(-bound.ulp)[:1000]
            cut = cut[bound.ulp[cut] > max(worst, 0.0)]
            if again == 8 or k == 7 or not len(cut):
                found.append(bound)
                break
            keep = np.ones(len(bound.ulp), bool)
            keep[cut] = False
            found.append(bound.choose(keep))
            worst = max(worst, found[-1].worst)
            at = at.choose(~keep).halves()
        worst = max(worst, bound.worst)
    bound = join(found)
    check_cover(bound.lo, bound.hi, ends[0], float(np.nextafter(ends[-1], 0)))
    return bound


def _prove_range(
    graph: Graph,
    suffix: str,
    k: int,
    ranges: Table,
    at: Boxes,
    words: tuple[Products, Products, float],
    clipped: float,
) -> Bound:
    in_reciprocal = k >= 3
    centre = rational(ranges.centres[k])
    lo, hi = at.u_lo, at.u_hi
    q, f, eta = words
    pieces = Pieces(graph, len(lo))
    no_grid = np.full(pieces.count, NO_GRID)
    exponent = binade(lo)

    def label(name: str) -> int:
        return graph.label(f"{NAME}:{name}")

    def hook(name: str, number: Number) -> None:
        pieces.hooks[label(name)] = lambda: number

    pieces.atoms["u"] = lo, hi
    of_u: Poly = {("u",): [fmpq(1)]} if in_reciprocal else {(): [centre, fmpq(1)]}
    hook("u", Number(of_u, exponent - 52, box=(lo, hi)))
    base = (1 / hi, 1 / lo) if in_reciprocal else (lo, hi)
    c = ranges.centres[k]
    pieces.set_v((np.nextafter(base[0] - c, -np.inf), np.nextafter(base[1] - c, np.inf)))
    reciprocal(pieces, label("w"), label("u"), lo, hi, c, "e")
    scaled_q = np.ldexp(lo, -exponent), np.ldexp(hi, -exponent)
    hook("q", Number(pieces.atom("q", scaled_q), np.full(pieces.count, -52)))
    hook("q_lo", Number(pieces.error("qlo", q.low_word * scaled_q[1] * UP), no_grid))
    hook("u_lo", Number(pieces.error("ulo", q.low_word * hi * UP), no_grid))
    hook("m", Number(pieces.atom("m", (at.m_lo, at.m_hi)), np.full(pieces.count, -52)))
    hook("f", Number(pieces.atom("f", f.interval), binade(smallest(f.interval)) - 52))
    hook("f_lo", Number(pieces.error("flo", f.low_word * largest(f.interval) * UP), no_grid))
    inverse = 1 / at.m_hi, 1 / at.m_lo
    lost = pieces.error("em", at.m_hi * half_ulp(inverse[1]) * UP)
    pieces.rules["inverse", "m"] = pieces.add({(): [fmpq(1)]}, lost, -1)
    hook("inverse", Number(pieces.atom("inverse", inverse), binade(inverse[0]) - 52, box=inverse))
    log = suffix == "" and in_reciprocal
    if log:  # the exponent of q and n are known by their sum, which is that of u
        hook_log(pieces, NAME, lo, hi)
        pieces.hooks[label("n")] = lambda: pieces.point(label("n"), 0.0, constant=True)
    result, scale = _cut(pieces, suffix, k)
    check_words(pieces, graph.label(NAME + suffix))
    main = pieces.main(result)
    factor = {"": "q" if k == 0 else "", ".dlog_sigma2": "" if in_reciprocal else "q"}.get(
        suffix, "inverse" if in_reciprocal else "f"
    )
    polynomial = main[(factor,) if factor else ()]
    one: Poly = {(): [fmpq(1)]}
    size = eta + q.error + f.error
    # A product or quotient of factors 1 + x with |x| < 2^-50 is 1 plus or minus the sum of the x.
    # The error of that is below twice the square of the sum of |x|.
    total = size + pieces.atoms["e"][1] + q.low_word + f.low_word + pieces.atoms["em"][1]
    second = pieces.error("second", total * total * 4)
    relative = pieces.add(pieces.error("eta", eta), pieces.error("eps_q", q.error))
    if in_reciprocal:
        # u is (u + ulo)(1 + eta + eps_q): the sum of these errors is s, and 1/u is w (1 + e - s).
        s = pieces.error("s", (eta + q.error + q.low_word) * UP)
        change = pieces.add(pieces.add(pieces.add({("e",): [fmpq(1)]}, s, -1), second), {})
        shift = pieces.mul({(): [centre, fmpq(1)]}, change, "shift")
    else:
        both = pieces.add({(): [centre, fmpq(1)]}, {("ulo",): [fmpq(1)]})
        shift = pieces.add(
            {("ulo",): [fmpq(1)]}, pieces.mul(both, pieces.add(relative, second), "shift")
        )
    truth = at_shift(pieces, polynomial, shift, pieces.magnitude(shift), "t")
    if factor == "inverse":  # 1/m = inverse/(1 - em)
        truth = pieces.mul(
            truth,
            pieces.mul({("inverse",): [fmpq(1)]}, pieces.add(pieces.add(one, lost), second), "z"),
            "z.t",
        )
    elif factor:
        error = (
            relative
            if factor == "q"
            else pieces.add({("eta",): [fmpq(1)]}, pieces.error("eps_f", f.error))
        )
        low = {"q": "qlo", "f": "flo"}[factor]
        z: Poly = {(factor,): [fmpq(1)], (low,): [fmpq(1)]}
        z = pieces.mul(z, pieces.add(pieces.add(one, error), second), "z")
        truth = pieces.mul(z, truth, "z.t")
    sign = -1 if suffix == "" else 1
    approximation: Any = 0.0
    if log:
        part, approximation = log_error(
            pieces, NAME, {key: [sign * x for x in c_] for key, c_ in result.items()}
        )
        half = pieces.add({key: [x / 2 for x in c_] for key, c_ in s.items()}, second)
        truth = pieces.add(truth, pieces.add(part, half), sign)
    name = {"": "F/u" if k == 0 else "F", ".dlog_sigma2": "Ug" if in_reciprocal else "g"}.get(
        suffix, "Ug" if in_reciprocal else "g"
    )
    first = 0.0 if k == 0 else ranges.bounds[k - 1] * (1 - 2.0**-40)
    last = ranges.bounds[k] * (1 + 2.0**-40) if k < 7 else np.inf
    of = errors(
        name, tuple(sign * x for x in polynomial), centre, first, last, in_reciprocal, int(log), 64
    )
    on = np.maximum(lo * (1 - 2.0**-45), first), np.minimum(hi * (1 + 2.0**-45), last)
    approximation = approximation + of.on(*on)
    if not log:
        approximation = approximation + np.where(
            (lo < MAY_BE_CLIPPED[0]) | (hi > MAY_BE_CLIPPED[1]), clipped, 0.0
        )
    return compare(
        pieces, (lo, hi), result, truth, approximation=approximation, absolute=log, scale=scale
    )


def _cut(pieces: Pieces, suffix: str, k: int) -> tuple[Poly, Any]:
    """The result without its sign, and without its power of two.

    The powers depend on integers that no piece knows. They are exact: in the window no result is
    below 2^-530 or above 2^530.
    """
    graph = pieces.graph
    output = graph.label(NAME + suffix)
    nodes = graph.nodes
    if suffix == ".dmu":  # unbits(bits(size) | sign)
        word = nodes[nodes[output].operands[0]].operands[0]
        output = nodes[word].operands[0]
    for i in graph.needed(output):
        operation, operands = nodes[i]
        if operation != "unbits" or i == graph.label(f"{NAME}:power"):
            continue
        if nodes[operands[0]].operation == "shift_left":
            pieces.values[i] = pieces.point(i, 1.0, constant=True)
    return cut_result(pieces, output)
