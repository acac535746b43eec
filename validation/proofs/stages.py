"""What the functions have in common: ranges, reciprocals, the logarithm, the exponential."""

from itertools import pairwise
from typing import Any, NamedTuple

import numpy as np
from flint import arb, fmpq

from . import truth
from .algebra import UP, Number, Pieces, Poly, binade, half_ulp, largest, rational, smallest
from .graph import Graph
from .truth import exact, of_ball, upper

PARTS = 64


class Table(NamedTuple):
    """The ranges of a function: the bounds between them, and their centres."""

    bounds: list[float]
    centres: list[float]


def reduced_argument(graph: Graph, output: int) -> int:
    """The node u - c or 1/u - c of a function of u."""
    nodes = graph.nodes

    def is_that(i: int) -> bool:
        if nodes[i].operation != "sub":
            return False
        a, c = (nodes[k] for k in nodes[i].operands)
        is_row = c.operation == "lookup" and nodes[c.operands[0]].operation == "index_count"
        return bool(a.operation == "choose" and is_row)

    (v,) = filter(is_that, graph.needed(output))
    return v


def table(graph: Graph, output: int, v: int) -> Table:
    """Read the bounds and centres of the ranges from the graph, where v = a - centre[index]."""
    nodes = graph.nodes
    lookup = nodes[nodes[v].operands[1]]
    index, centres = lookup.operands
    bounds = []
    while nodes[index].operation == "index_count":
        index, mask = nodes[index].operands
        bounds += [
            nodes[k].operands[0] for k in nodes[mask].operands if nodes[k].operation == "const"
        ]
    return Table(bounds[::-1], list(centres))


def reciprocal(pieces: Pieces, w: int, u: int, lo: Any, hi: Any, centre: float, name: str) -> None:
    """Hook w = RN(1/u) for u in [lo, hi] as v + centre, with w u = 1 - e."""
    least, most = 1 / hi, 1 / lo  # rounded as the kernel rounds, which keeps the order
    error = hi * half_ulp(most) * UP
    pieces.error(name, error)
    pieces.reciprocals[w, u] = name
    poly: Poly = {(): [rational(centre), fmpq(1)]}
    pieces.hooks[w] = lambda: Number(poly, binade(least) - 52, box=(least, most))


def reciprocal_shift(pieces: Pieces, centre: float, name: str) -> tuple[Poly, Any]:
    """1/u - w as a polynomial, and its size: w e + w e^2/(1 - e), where w = v + centre."""
    w: Poly = {(): [rational(centre), fmpq(1)]}
    e = pieces.atoms[name][1]
    square = pieces.error(f"{name}.square", e * e / (1 - e) * UP)
    relative = pieces.add({(name,): [fmpq(1)]}, square)
    size = largest(pieces.interval(w)) * (e + e * e * 2) * UP
    return pieces.mul(w, relative, f"{name}.shift"), size


def hook_log(pieces: Pieces, of: str, lo: Any, hi: Any) -> None:
    """Hook the parts of log(u)/2 on pieces that lie in an eighth of a binade."""
    graph, hooks = pieces.graph, pieces.hooks
    exponent = binade(lo)
    f = np.ldexp(lo, -exponent), np.ldexp(hi, -exponent)
    eighth = np.floor((f[0] - 1) * 8).astype(np.int64)
    if (binade(hi) != exponent).any() or (np.floor((f[1] - 1) * 8) != eighth).any():
        raise AssertionError("a piece is in two eighths of a binade")
    node = graph.label(f"{of}:log.exponent")
    hooks[graph.label(f"{of}:log.f")] = lambda: Number(
        pieces.atom("f", f), np.full(pieces.count, -52)
    )
    hooks[node] = lambda: pieces.point(node, exponent)
    hooks[graph.label(f"{of}:log.j")] = lambda: eighth
    if not graph.fused:

        def high() -> Number:
            poly = pieces.get(graph.label(f"{of}:log.f")).poly
            theta = pieces.atom("theta", (np.zeros(pieces.count), np.full(pieces.count, 2.0**-25)))
            return Number(pieces.add(poly, theta, -1), np.full(pieces.count, -25))

        hooks[graph.label(f"{of}:log.f_hi")] = high
    r = graph.label(f"{of}:log.r")
    hooks[r] = lambda: _reduced(pieces, r)


def _reduced(pieces: Pieces, r: int) -> Number:
    """Cut r = f c - 1 + d to the atom r, and keep the bound of d as the atom `r.error`."""
    number = pieces.step(r)
    main = pieces.main(number.poly)
    (atoms,) = (key for key in main if key)
    if main != {(): [fmpq(-1)], atoms: [fmpq(1)]} or "f" not in atoms:
        raise AssertionError("r is not f c - 1")
    pieces.error("r.error", pieces.magnitude(pieces.add(number.poly, main, -1)))
    return Number(pieces.atom("r", pieces.interval(number.poly)), number.grid)


def log_error(pieces: Pieces, of: str, result: Poly, constant: Any = 0) -> tuple[Poly, Any]:
    """The part of `result` that is log(u)/2, and a bound of its error from the exact log(u)/2.

    It may have a constant as well: then from log(u)/2 + `constant`.

    log(u)/2 = K log(2)/2 - log(c)/2 + log(1 + r)/2 for u = f 2^K and f = (1 + r)/c.
    """
    main = pieces.main(result)
    part = {key: c for key, c in main.items() if key}
    points = {key[0]: part[key] for key in part if key[0].startswith("p")}
    if any(c != [fmpq(1)] for c in points.values()):
        raise AssertionError("the tables have a factor")
    powers = [fmpq(0)]
    while ("r",) * len(powers) in part:
        powers.append(part[("r",) * len(powers)][0])
    if len(powers) - 1 + len(points) != len(part):
        raise AssertionError(f"unknown parts of the logarithm: {list(part)}")
    graph = pieces.graph
    exponent = pieces.get(graph.label(f"{of}:log.exponent")).point
    c = pieces.get(graph.label(f"{of}:log.c")).point
    sums = list(zip(exponent, c, *(pieces.atoms[p][0] for p in points), strict=True))
    known, log2, logs = {}, arb(2).log(), {at: exact(at).log() for at in set(c.tolist())}
    for token in set(sums):
        K, at, *words = token
        wanted = (exact(K) * log2 - logs[at]) / 2 + arb(constant)
        known[token] = upper(sum(map(exact, words), arb(0)) - wanted)
    tables = np.array([known[token] for token in sums])
    lo, hi = float(pieces.atoms["r"][0].min()), float(pieces.atoms["r"][1].max())
    if not -0.07 < lo < hi < 0.07:
        raise AssertionError("the reduced argument is too large")
    worst = 0.0
    for m, r, left in _parts(lo, hi):
        p = truth.shifted(powers, m)
        log = [(1 + m).log()] + [-((-1 / (1 + m)) ** k) / k for k in range(1, 25)]
        n = max(len(p), len(log))
        p, log = (x + [arb(0)] * (n - len(x)) for x in (p, log))
        beyond = (r / (1 + left)) ** 25  # at most the next term, which has the factor 1/25
        worst = max(
            worst, upper(of_ball([x - y / 2 for x, y in zip(p, log, strict=True)], r) + beyond)
        )
    # d(log(1 + r))/2 = d/(2 (1 + r)), and 1/(2 * 0.93) < 0.54
    return part, (tables + worst + pieces.atoms["r.error"][1] * 0.54) * UP


def _parts(lo: float, hi: float) -> list[tuple[Any, Any, Any]]:
    """Middle, radius and left end of equal parts of [lo, hi]."""
    ends = [exact(lo) + (exact(hi) - exact(lo)) * k / PARTS for k in range(PARTS + 1)]
    tiny = arb(2) ** -200
    return [
        (arb(((a + b) / 2).mid()), arb(((b - a) / 2).abs_upper()) + tiny, arb(a.lower()))
        for a, b in pairwise(ends)
    ]


def hook_exponential(pieces: Pieces, of: str, k: Any) -> Any:
    """Cut exp(t) = (y + y_lo) 2^n (1 + eta), for pieces of t that are reduced by k log(2)/8.

    y and y_lo become the atoms `Y` and `ylo`, and eta the error `eta`.
    """
    graph = pieces.graph
    node = graph.label(f"{of}:exp.k_magic")
    pieces.hooks[node] = lambda: pieces.point(node, k + 1.5 * 2.0**52)
    r = graph.label(f"{of}:exp.r")
    pieces.hooks[r] = lambda: _reduced_by(pieces, r, k)
    high, low = graph.label(f"{of}:y.hi"), graph.label(f"{of}:y.lo")
    y, y_lo = pieces.step(high), pieces.step(low)
    both = pieces.add(y.poly, y_lo.poly)
    main = pieces.main(both)
    power = pieces.get(graph.label(f"{of}:exp.power")).point
    name = f"p{graph.label(f'{of}:exp.power')}"
    c = [fmpq(1)]
    while (key := tuple(sorted((name, *["r"] * len(c))))) in main:
        c.append(main.pop(key)[0])
    if main.pop((name,)) != [1]:
        raise AssertionError("the exponential does not begin with 2^(j/8)")
    low_words = [main.pop(key) for key in list(main) if len(key) == 1 and key[0].startswith("p")]
    if main or low_words not in ([], [[fmpq(1)]]):
        raise AssertionError(f"unknown parts of the exponential: {list(main)}")
    table_lo = pieces.get(graph.nodes[low].operands[1]).point
    lo, hi = float(pieces.atoms["r"][0].min()), float(pieces.atoms["r"][1].max())
    if not -0.0435 < lo < hi < 0.0435:
        raise AssertionError(f"the reduced argument is too large: from {lo} to {hi}")
    worst = 0.0
    for m, radius, left in _parts(lo, hi):
        p = truth.shifted(c, m)
        p += [arb(0)] * (24 - len(p))
        factorial = arb(1)
        for n in range(len(p)):
            factorial = factorial * n if n else factorial
            p[n] = p[n] - m.exp() / factorial
        # the remainder of exp on the part, which is below exp(m) 1.05 r^24/24!
        worst = max(worst, upper((of_ball(p, radius) + radius**24) / left.exp()))
    of_tables = {}
    for token in set(zip(power, table_lo, k % 8, strict=True)):
        of_tables[token] = upper(
            (exact(token[0]) + exact(token[1])) / arb(2) ** (arb(int(token[2])) / 8) - 1
        )
    tables = np.array([of_tables[token] for token in zip(power, table_lo, k % 8, strict=True)])
    errors = pieces.magnitude(pieces.add(both, pieces.main(both), -1))
    # The low word of 2^(j/8) is added without the factor exp(r), which is between 0.957 and 1.045.
    relative = (
        errors / smallest(pieces.interval(y.poly)) + worst + tables + np.abs(table_lo) * 0.045
    )
    # exp(d) - 1 for d the error of r; the sum of all is so small that their products count by UP
    eta = (relative + pieces.atoms["r.error"][1] * 1.01) * 1.01
    if not (eta < 2.0**-54).all():
        raise AssertionError("the exponential is worse than expected")
    Y, size = pieces.interval(y.poly), largest(pieces.interval(y_lo.poly))
    pieces.values[high] = Number(pieces.atom("Y", Y), y.grid)
    no_grid = np.full(pieces.count, -5000)
    pieces.values[low] = Number(pieces.error("ylo", size), no_grid)
    pieces.error("eta", eta)
    return eta


def _reduced_by(pieces: Pieces, node: int, k: Any) -> Number:
    """Cut r = t - k log(2)/8 + d to the atom r, and keep the bound of d as the atom `r.error`."""
    number = pieces.step(node)
    main = pieces.main(number.poly)
    points = [key[0] for key in main if key and key[0].startswith("p")]
    if any(main[p,] != [fmpq(-1)] for p in points):
        raise AssertionError("r is not t - k log(2)/8")
    off, step = {}, arb(2).log() / 8
    words = list(zip(k.tolist(), *(pieces.atoms[p][0] for p in points), strict=True))
    for token in set(words):
        off[token] = upper(sum(map(exact, token[1:]), arb(0)) - token[0] * step)
    errors = pieces.magnitude(pieces.add(number.poly, main, -1))
    pieces.error("r.error", (errors + np.array([off[token] for token in words])) * UP)
    return Number(pieces.atom("r", pieces.interval(number.poly)), number.grid)
