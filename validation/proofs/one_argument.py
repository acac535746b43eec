"""The bounds of the functions of one argument, in the usual form of the kernels."""

from functools import partial
from itertools import pairwise
from typing import Any

import numpy as np
from flint import arb, ctx, fmpq

from .algebra import SMALLEST, Number, Pieces, Poly, binade, largest, rational
from .bounds import Bound, adaptively, at_shift, check_cover, compare, cut_result, join
from .graph import Graph
from .stages import (
    Table,
    hook_exponential,
    hook_log,
    log_error,
    reciprocal,
    reciprocal_shift,
    reduced_argument,
    table,
)
from .truth import around_root, errors, exact, lower, of_ball, shifted, taylor, upper

OF_U = {"kl_gap": "F", "kl_gap_grad": "g", "kl_gap_hess": "Dg"}
# By the form of a range: in u from 0, in u, in 1/u. A factor of the result is left out.
OF_X = {
    "neg_kl": ("F/u", "F", "F"),
    "neg_kl_grad": ("g", "Ug", "Ug"),
    "neg_kl_hess": ("DUg", "UDUg", "UUDUg"),
}
OF_X_ITSELF = {"neg_kl": "F", "neg_kl_grad": "Ug", "neg_kl_hess": "UDUg"}
SIGN = {"neg_kl": -1, "neg_kl_hess": -1}
WINDOW_U = (2.0**-300, 2.0**300)
WINDOW_X = 200.0
LARGEST = float(np.finfo(float).max)
CLIPPED = -300  # the least exponent that the rare form takes for u or 1/u in the polynomials
SINGLE_BITS = 4000  # what cancels in a derivative at u = exp(750) has fewer than 2200


def cuts(lo: float, hi: float, count: int, eighths: bool) -> tuple[Any, Any]:
    """Cut [lo, hi) to pieces: binades below 2^-6 and above 2^20, `count` equal parts between.

    With `eighths`, each piece lies in an eighth of a binade.
    """
    points = {lo}
    first, last = int(np.floor(np.log2(lo))), int(np.ceil(np.log2(hi)))
    for e in range(first, last + 1):
        for k in range(8 if eighths or e >= 3 else 1):
            points.add(float(np.ldexp(1 + k / 8, e)))
    middle = max(lo, 2.0**-6), min(hi, 2.0**20)
    if middle[0] < middle[1]:
        points |= set(np.linspace(*middle, count + 1).tolist())
    inside = np.array(sorted(x for x in points if lo <= x < hi))
    return inside, np.append(np.nextafter(inside[1:], 0), np.nextafter(hi, 0))


def prove_u(graph: Graph, name: str, count: int = 400) -> Bound:
    """Prove a function of u at 0 and on [2^-300, 2^300]."""
    truth = taylor(OF_U[name], 0, 1)[0]
    return join([single(graph, name, "u", 0.0, truth), *prove_window_of_u(graph, name, count)])


def prove_window_of_u(graph: Graph, name: str, count: int = 400) -> list[Bound]:
    output = graph.label(name)
    ranges = table(graph, output, reduced_argument(graph, output))
    ends = [WINDOW_U[0], *ranges.bounds[:7], float(np.nextafter(WINDOW_U[1], np.inf))]
    found = []
    for k in range(8):
        in_reciprocal = ranges.centres[k] < 0.25 and k >= 3
        lo, hi = cuts(ends[k], ends[k + 1], count, name == "kl_gap" and in_reciprocal)
        found.append(_prove_range_of_u(graph, name, k, ranges, in_reciprocal, lo, hi))
    check_cover(*join(found)[:2], *WINDOW_U)
    return found


def _prove_range_of_u(
    graph: Graph, name: str, k: int, ranges: Table, in_reciprocal: bool, lo: Any, hi: Any
) -> Bound:
    output, x = graph.label(name), graph.label(f"{name}:x")
    centre = ranges.centres[k]
    pieces = Pieces(graph, len(lo))
    pieces.atoms["u"] = lo, hi
    poly: Poly = {("u",): [fmpq(1)]} if in_reciprocal else {(): [rational(centre), fmpq(1)]}
    pieces.hooks[x] = lambda: Number(poly, binade(lo) - 52, box=(lo, hi))
    base = (1 / hi, 1 / lo) if in_reciprocal else (lo, hi)
    pieces.set_v((np.nextafter(base[0] - centre, -np.inf), np.nextafter(base[1] - centre, np.inf)))
    if in_reciprocal:
        reciprocal(pieces, graph.label(f"{name}:w"), x, lo, hi, centre, "e")
    log = name == "kl_gap" and in_reciprocal
    if log:
        hook_log(pieces, name, lo, hi)
    result, scale = cut_result(pieces, output)
    main = pieces.main(result)
    c = main[()]
    if in_reciprocal:
        shift, size = reciprocal_shift(pieces, centre, "e")
        truth = at_shift(pieces, c, shift, size, "t")
    else:
        truth = {(): c}
    first = 0.0 if k == 0 else ranges.bounds[k - 1]
    last = ranges.bounds[k] if k < 7 else np.inf
    of_name, polynomial = OF_U[name], c
    if of_name == "F" and k == 0:
        of_name, polynomial = "F/u", c[1:]
    of = errors(
        of_name, tuple(polynomial), rational(centre), first, last, in_reciprocal, int(log), 64
    )
    approximation = of.on(lo, hi)
    if log:
        part, error = log_error(pieces, name, result)
        truth = pieces.add(truth, part)
        approximation = approximation + error
    if set(main) - set(truth):
        raise AssertionError(f"unknown terms {set(main)}")
    return compare(
        pieces, (lo, hi), result, truth, approximation=approximation, absolute=log, scale=scale
    )


def reductions(lo: float, hi: float, sign: int, each: int) -> tuple[Any, Any, Any]:
    """Pieces of [lo, hi], by the integer k for which t = sign x is reduced by k log(2)/8."""
    step = np.log(2) / 8
    ends = sorted((sign * lo / step, sign * hi / step))
    rows = []
    for k in range(int(ends[0]) - 2, int(ends[1]) + 3):
        a, b = sorted((sign * (k - 0.5 - 2.0**-30) * step, sign * (k + 0.5 + 2.0**-30) * step))
        a, b = max(a, lo), min(b, hi)
        if a <= b:
            points = np.array([a, b])
            if each > 1 and abs(k) < 120:
                points = np.linspace(a, b, each + 1)
                points[0], points[-1] = a, b
            rows.append((points[:-1], points[1:], np.full(len(points) - 1, k)))
    lo_, hi_, k_ = (np.concatenate(column) for column in zip(*rows, strict=True))
    return lo_, hi_, k_


def check_reductions(
    graph: Graph, name: str, argument: str, start: float, end: float, lo: Any, hi: Any, k: Any
) -> None:
    """Fail unless each x of [start, end] that the kernel reduces by k is in a piece of k.

    The kernel's integer is monotone in x, because each of its steps is. So it is enough to compute
    it next to the pieces of k, where it must differ from k.
    """
    node = graph.label(f"{name}:exp.k_magic")
    order = np.argsort(k, kind="stable")
    integers, first = np.unique(k[order], return_index=True)
    outside = np.concatenate(
        [
            np.nextafter(np.minimum.reduceat(lo[order], first), -np.inf),
            np.nextafter(np.maximum.reduceat(hi[order], first), np.inf),
        ]
    )
    inside = (outside >= start) & (outside <= end)
    got = graph.run(node, **{argument: outside}) - 1.5 * 2.0**52
    if ((got == np.tile(integers, 2)) & inside).any():
        raise AssertionError("the kernel reduces an argument by another integer than its piece's")


def prove_x(graph: Graph, name: str, each: int = 24) -> Bound:
    """Prove a function of x = log alpha on [-200, 200]."""
    bound = join(prove_between(graph, graph, name, -WINDOW_X, WINDOW_X, each))
    check_cover(bound.lo, bound.hi, -WINDOW_X, WINDOW_X)
    return bound


def prove_between(
    graph: Graph, special: Graph, name: str, start: float, end: float, each: int = 24
) -> list[Bound]:
    """Prove what `special` computes on [start, end], with the ranges of `graph`."""
    ranges = table(graph, graph.label(name), graph.label(f"{name}:v"))
    bounds = [x for x in ranges.bounds if np.isfinite(x)]
    nodes = graph.nodes
    mask = nodes[nodes[graph.label(f"{name}:exp.t")].operands[0]]  # x <= the bound of 1/u
    first_reciprocal = bounds.index(nodes[mask.operands[1]].operands[0]) + 1
    found = []
    for k in range(8):
        hi = end if k == 0 else min(end, float(bounds[k - 1]))
        lo = start if k == 7 else max(start, float(np.nextafter(bounds[k], np.inf)))
        if lo > hi:
            continue
        if name == "neg_kl_hess" and k == 2:
            found.append(_prove_root(special, lo, hi))
            continue
        sign = 1 if k >= first_reciprocal else -1
        pieces = reductions(lo, hi, sign, each)
        for part in (pieces[2] == 0, pieces[2] != 0):
            if part.any():
                found += adaptively(
                    partial(_prove_range_of_x, special, name, k, bounds, first_reciprocal),
                    partial(singles, special, name),
                    lambda node, x: special.run(node, x=x),
                    *(p[part] for p in pieces),
                )
        check_reductions(special, name, "x", lo, hi, *pieces)
    return found


def _prove_range_of_x(
    graph: Graph,
    name: str,
    which: int,
    bounds: list[float],
    first_reciprocal: int,
    lo: Any,
    hi: Any,
    k: Any,
) -> Bound:
    nodes, output = graph.nodes, graph.label(name)
    in_reciprocal = which >= first_reciprocal
    pieces = Pieces(graph, len(lo))
    pieces.atoms["x"] = lo, hi
    pieces.set_v((lo, hi))  # until it is cut
    crosses = (lo <= 0) & (hi >= 0)
    # 2^-300 is the smallest argument but 0
    grid = np.where(crosses, -352, binade(np.minimum(abs(lo), abs(hi))) - 52)
    (x,) = [i for i in graph.needed(output) if nodes[i] == ("input", ("x",))]
    pieces.hooks[x] = lambda: Number({("x",): [fmpq(1)]}, grid, box=(lo, hi))
    hook_exponential(pieces, name, k)
    v = graph.label(f"{name}:v")

    def cut_v() -> Number:
        number = pieces.step(v)
        if pieces.main(number.poly) != number.poly:
            raise AssertionError("u - c is not exact")
        pieces.set_v(pieces.interval(number.poly))
        return Number({(): [fmpq(0), fmpq(1)]}, number.grid)

    pieces.hooks[v] = cut_v
    result, scale = cut_result(pieces, output)
    centre = rational(float(pieces.get(nodes[v].operands[1]).point[0]))
    main = pieces.main(result)
    scaled = [key for key in main if "Y" in key]
    c = main.pop(scaled[0] if scaled else ())
    line = main.pop(("x",), None)
    if (
        main
        or (line is not None) != (in_reciprocal and name == "neg_kl")
        or line not in (None, [fmpq(1, 2)])
    ):
        raise AssertionError(f"unknown terms {main}")
    # u or 1/u, whichever the polynomial takes, is (v + centre + S ylo)(1 + eta).
    S = pieces.get(nodes[nodes[v].operands[0]].operands[1])
    low = pieces.mul(S.poly, {("ylo",): [fmpq(1)]}, "S.ylo")
    both = pieces.add({(): [centre, fmpq(1)]}, low)
    shift = pieces.add(low, pieces.mul(both, {("eta",): [fmpq(1)]}, "s"))
    n = pieces.get(graph.label(f"{name}:n")).point
    if (n < CLIPPED).any():  # 2^CLIPPED is taken for 2^n, and Y is below 2
        shift = pieces.add(shift, pieces.error("clip", np.where(n < CLIPPED, 2.0**-298, 0.0)))
    truth = at_shift(pieces, c, shift, pieces.magnitude(shift), "t")
    if scaled:
        z: Poly = {("Y",): [fmpq(1)], ("ylo",): [fmpq(1)]}
        z = pieces.add(z, pieces.mul(z, {("eta",): [fmpq(1)]}, "z.eta"))
        truth = pieces.mul(z, truth, "z.t")
        truth = _scaled(pieces, truth, n - scale, [atom for atom in scaled[0] if atom != "Y"])
    elif np.any(scale):
        raise AssertionError("the result has an unknown factor")
    if line:
        truth = pieces.add(truth, {("x",): line})
    form = 0 if which == 0 else 2 if in_reciprocal else 1
    # the range of u, a little wider than by the bounds, which are rounded
    first = 0.0 if which == 0 else _u_at(bounds[which - 1], -1)
    last = np.inf if which == 7 else _u_at(bounds[which], 1)
    polynomial = [x * SIGN.get(name, 1) for x in c]
    log = 2 if line else 0  # -F(u) - x/2 = -(F(u) - log(2u)/2)
    of = errors(OF_X[name][form], tuple(polynomial), centre, first, last, in_reciprocal, log, 64)
    # np.exp errs by far less than 1e-9
    with np.errstate(over="ignore"):
        on = np.exp(-hi) / 2 * (1 - 1e-9), np.exp(-lo) / 2 * (1 + 1e-9)
    if which not in (0, 7):
        on = np.maximum(on[0], first), np.minimum(on[1], last)
    elif which == 0:
        on = on[0], np.minimum(on[1], last)
    else:
        on = np.maximum(on[0], first), on[1]
    return compare(
        pieces, (lo, hi), result, truth, approximation=of.on(*on), absolute=bool(log), scale=scale
    )


def _scaled(pieces: Pieces, truth: Poly, exponent: Any, power: list[str]) -> Poly:
    """Multiply by 2^exponent, which is the atom `power` or 1, or less than that."""
    by, wanted = np.ones(pieces.count), np.ldexp(1.0, exponent.astype(int))
    for atom in power:
        truth, by = pieces.mul(truth, {(atom,): [fmpq(1)]}, "power"), pieces.atoms[atom][0]
    more = by > wanted
    if (by < wanted).any() or (more.any() and not pieces.subnormal):
        raise AssertionError("the result has another factor than the truth")
    if not more.any():
        return truth
    lost = np.where(more, largest(pieces.interval(truth)), 0.0)
    return pieces.add(truth, pieces.error("lost", lost))


def _u_at(x: float, side: int) -> float:
    """exp(-x)/2, rounded down or up by more than the rounding of `x` between neighbours."""
    u = (-exact(x)).exp() / 2
    return float(u.lower()) * (1 - 2.0**-45) if side < 0 else float(u.upper()) * (1 + 2.0**-45)


def _prove_root(graph: Graph, lo: float, hi: float) -> Bound:
    """neg_kl_hess in the range of its root, where v = x - INFLECTION_HI."""
    nodes, name = graph.nodes, "neg_kl_hess"
    output = graph.label(name)
    v = graph.label(f"{name}:v_root")
    x, root_node = nodes[v].operands
    root = nodes[root_node].operands[0]
    sides = []
    for end, sign in ((hi - root, 1), (root - lo, -1)):
        fine = [np.ldexp(1 + k / 4, e) for e in range(-52, -7) for k in range(4)]
        points = np.unique([p for p in fine if p < end] + np.linspace(2.0**-7, end, 401).tolist())
        sides.append((points[:-1], points[1:]) if sign > 0 else (-points[1:], -points[:-1]))
    v_lo, v_hi = (np.concatenate(ends) for ends in zip(*sides, strict=True))
    pieces = Pieces(graph, len(v_lo))
    pieces.set_v((v_lo, v_hi))
    box = np.maximum(root + v_lo, lo), np.minimum(root + v_hi, hi)
    grid = binade(np.minimum(abs(box[0]), abs(box[1]))) - 52
    pieces.hooks[x] = lambda: Number({(): [rational(root), fmpq(1)]}, grid, box=box)
    result, scale = cut_result(pieces, output)
    main = pieces.main(result)
    if set(main) != {()}:
        raise AssertionError(f"unknown terms {set(main)}")
    error, least = np.zeros(pieces.count), np.full(pieces.count, np.inf)
    points = np.unique(
        np.concatenate([np.linspace(v_lo.min(), 0, 65), np.linspace(0, v_hi.max(), 65)])
    )
    for a, b in pairwise(points):
        series = around_root(root + a - 1e-12, root + b + 1e-12)
        beyond = series.remainder
        for i in np.nonzero((v_lo <= b) & (v_hi >= a))[0]:
            left, right = exact(max(v_lo[i], a)), exact(min(v_hi[i], b))
            m = arb(((left + right) / 2).mid())
            r = arb(((right - left) / 2).abs_upper()) + arb(2) ** -300
            truth = shifted(series.coefficients, m + exact(root) - series.middle)
            p = shifted(main[()], m)
            n = max(len(p), len(truth))
            p, padded = (y + [arb(0)] * (n - len(y)) for y in (p, truth))
            found = of_ball([y - z for y, z in zip(p, padded, strict=True)], r) + beyond
            error[i] = max(error[i], upper(found))
            size = abs(truth[0]) - of_ball([arb(0), *truth[1:]], r) - beyond
            least[i] = min(least[i], float(size.lower()))
    least = least * (1 - 2.0**-50)
    beside = compare(
        pieces, box, result, main, approximation=error, absolute=True, scale=scale, least=least
    )
    series = around_root(root, root)
    return join([beside, single(graph, name, "x", root, series.coefficients[0])])


def single(graph: Graph, name: str, argument: str, at: float, truth: Any) -> Bound:
    """The error at one argument, where the kernel's result is computed and the truth is a ball."""
    got = graph.run(graph.label(name), **{argument: np.array([at])})[0]
    ulp = np.ldexp(1.0, max(int(binade(np.array(lower(truth)))) - 52, SMALLEST))
    error = np.array([upper((exact(got) - truth) / exact(ulp))])
    return Bound(np.array([at]), np.array([at]), error, {})


def singles(graph: Graph, name: str, at: Any) -> Bound:
    """The errors at some arguments u or x, each by itself."""
    argument = "u" if name in OF_U else "x"
    found = []
    with ctx.workprec(SINGLE_BITS):
        for x in at.tolist():
            u = exact(x) if argument == "u" else (-exact(x)).exp() / 2
            of = OF_U[name] if argument == "u" else OF_X_ITSELF[name]
            truth = taylor(of, u, 0)[0] * SIGN.get(name, 1)
            found.append(single(graph, name, argument, x, truth))
    return join(found)
