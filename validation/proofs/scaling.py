"""The last step of -KL and its derivatives from (mu, log sigma^2): to multiply by 2^n.

The usual form calls `scale`, which multiplies the rounded sum of two words by powers of two. The
rare form calls `assemble` instead if n may be large, because its results may overflow or be
subnormal. Both are proved here for sums of two words between 1/32 and 32, and any n of the kernels.
"""

from collections.abc import Sequence
from typing import Any

import numpy as np
from flint import fmpq

from .algebra import NO_GRID, Number, Pieces, binade, largest, rational
from .bounds import cut_result
from .graph import Graph, Node
from .special import Special

ENDS = -5, 5  # the sums of two words are from 2^-5 to 2^5
LOW_WORD = 2.0**-30  # a bound of the second word
LEFT_OUT = -1, 2  # the exponents of the power of two that the proof leaves out of q
LARGEST_N = 12_000
SUBNORMAL = -1100  # the scale of which a smaller n has too
UNIT = -122  # the words are added to 2^UNIT, so that rounding leaves the bits of a subnormal number


def match(graph: Graph, pattern: int, node: int) -> dict[str, int] | None:
    """The nodes that take the places of the inputs of `pattern`, if `node` computes the same."""
    known: dict[int, int] = {}
    found: dict[str, int] = {}

    def same(p: int, i: int) -> bool:
        if p in known:
            return known[p] == i
        known[p] = i
        (operation, operands), (of, others) = graph.nodes[p], graph.nodes[i]
        if operation == "input":
            return found.setdefault(operands[0], i) == i
        if operation in ("const", "bits_const"):
            return p == i
        if operation == "lookup" or of != operation or len(operands) != len(others):
            return False
        return all(same(a, b) for a, b in zip(operands, others, strict=True))

    return found if same(pattern, node) else None


def matches(graph: Graph, pattern: int, output: int) -> dict[int, dict[str, int]]:
    """The nodes which `output` needs and that compute what `pattern` does, with their inputs."""
    found = ((i, match(graph, pattern, i)) for i in graph.needed(output))
    return {i: inputs for i, inputs in found if inputs is not None}


def folded(graph: Graph, name: str) -> int:
    """`assemble` or `scale` without operations of constants, as `Special` makes them."""
    label = graph.label(name)
    inputs = {i: graph.nodes[i] for i in graph.needed(label)}
    cuts = {i: of.operands[0] for i, of in inputs.items() if of.operation == "input"}
    return Special(graph, cuts).node(label)


def scaled(graph: Graph, output: int) -> int:
    """The graph of `output` in which each `assemble` is `scale` of the same words."""
    assembled = matches(graph, folded(graph, "assemble"), output)
    scale = folded(graph, "scale")
    new: dict[int, int] = {}

    def put(i: int, of: dict[int, int]) -> int:
        operation, operands = graph.nodes[i]
        if operation in ("const", "bits_const", "input"):
            return i
        if operation == "lookup":
            operands = (of[operands[0]], *operands[1:])
        else:
            operands = tuple(of[k] for k in operands)
        return graph.number(Node(operation, operands))

    for i in graph.needed(output):
        if i not in assembled:
            new[i] = put(i, new)
            continue
        inner: dict[int, int] = {}
        for k in graph.needed(scale):
            operation, operands = graph.nodes[k]
            inner[k] = new[assembled[i][operands[0]]] if operation == "input" else put(k, inner)
        new[i] = inner[scale]
    return new[output]


def check_words(pieces: Pieces, output: int) -> None:
    """Fail unless the words that are scaled are as the proofs of both functions take them."""
    graph = pieces.graph
    for inputs in matches(graph, graph.label("scale"), output).values():
        if inputs["hi"] in pieces.values:
            hi, lo = (pieces.interval(pieces.get(inputs[word]).poly) for word in ("hi", "lo"))
            least, most = (2.0 ** (end - by) for end, by in zip(ENDS, LEFT_OUT, strict=True))
            ok = (hi[0] > least * 1.01) & (hi[1] < most * 0.99)
            if not (ok & (largest(lo) * 2.0 ** LEFT_OUT[1] <= LOW_WORD)).all():
                raise AssertionError("the words of a result are larger or smaller than expected")


def check_scale(graph: Graph, limit: int) -> None:
    """Fail unless `scale` multiplies by 2^n without an error for all |n| <= limit."""
    if limit + max(map(abs, ENDS)) > 1021:
        raise AssertionError("a result of `scale` may overflow or be subnormal")
    pieces = _pieces(graph, "scale", np.arange(-limit, limit + 1))
    hook_sum(pieces, "scale", np.full(pieces.count, 2.0 ** ENDS[0]), 2.0 ** ENDS[1])
    poly = pieces.get(graph.label("scale")).poly
    (key,) = poly
    powers = [pieces.atoms[atom][0] for atom in key if atom != "x"]
    wanted = np.arange(-limit, limit + 1)
    if "x" not in key or poly[key] != [fmpq(1)] or not len(powers):
        raise AssertionError("`scale` does not multiply by powers of two")
    exponents = np.sum([np.log2(x) for x in powers], axis=0)
    if (exponents != wanted).any():
        raise AssertionError("`scale` multiplies by another power of two than 2^n")


def error_of_assemble(graph: Graph) -> float:
    """Bound the error of a subnormal result of `assemble` in ulp, beyond half an ulp.

    Check that its other results are the rounded sum times 2^n, or infinity if that is 2^1024 or
    more.
    """
    E, n = (x.ravel() for x in np.meshgrid(np.arange(*ENDS), np.arange(-1110, 1040)))
    normal = (E + n >= -1022) & (E + n <= 1023)
    _check_normal(graph, E[normal], n[normal])
    ends = np.arange(*ENDS)
    large = E + n > 1023
    _check_infinite(graph, E[large], n[large])
    _check_infinite(graph, ends, (np.full(len(ends), 1039), LARGEST_N))
    small = (E + n < -1022) & (n >= SUBNORMAL)
    error = _subnormal(graph, E[small], n[small])
    _subnormal(graph, ends, (np.full(len(ends), -LARGEST_N), SUBNORMAL - 1))
    # that is zero instead of less than 2^(ENDS[1] + SUBNORMAL - 1)
    return float(max(error, 2.0 ** (ENDS[1] + SUBNORMAL - 1 + 1074)))


def _pieces(graph: Graph, name: str, n: Any) -> Pieces:
    """Pieces on which n is known, or lies between two integers."""
    single = isinstance(n, np.ndarray)
    first = n if single else n[0]
    pieces = Pieces(graph, len(first))
    (node,) = [
        i for i in graph.needed(graph.label(name)) if graph.nodes[i] == Node("input", ("n",))
    ]
    if single:
        pieces.values[node] = pieces.point(node, first * 1.0)
    else:
        interval = first * 1.0, np.full(len(first), n[1] * 1.0)
        poly = pieces.atom("n", interval)
        pieces.values[node] = Number(poly, np.zeros(len(first), np.int64), box=interval)
    pieces.set_v((np.zeros(len(first)), np.zeros(len(first))))
    return pieces


def _sum(graph: Graph) -> int:
    (node,) = [
        i
        for i in graph.needed(graph.label("scale"))
        if [graph.nodes[k] for k in graph.nodes[i].operands if isinstance(k, int)]
        == [Node("input", ("hi",)), Node("input", ("lo",))]
    ]
    return node


def hook_sum(pieces: Pieces, name: str, lo: Any, hi: Any) -> None:
    """Take the rounded sum of the words for any float64 in [lo, hi]."""
    hi = np.broadcast_to(hi, lo.shape)
    pieces.values[_sum(pieces.graph)] = Number(
        pieces.atom("x", (lo, hi)), binade(lo) - 52, box=(lo, hi)
    )


def _in_binade(pieces: Pieces, E: Any) -> None:
    hook_sum(pieces, "assemble", np.ldexp(1.0, E), np.nextafter(np.ldexp(2.0, E), 0))


def _check_normal(graph: Graph, E: Any, n: Any) -> None:
    pieces = _pieces(graph, "assemble", n)
    _in_binade(pieces, E)
    poly, scale = cut_result(pieces, graph.label("assemble"))
    if pieces.subnormal or poly != {("x",): [fmpq(1)]} or (scale != n).any():
        raise AssertionError("`assemble` does not multiply by 2^n")


def _check_infinite(graph: Graph, E: Any, n: Any) -> None:
    pieces = _pieces(graph, "assemble", n)
    _in_binade(pieces, E)
    if (pieces.get(graph.label("assemble")).point != np.inf).any():
        raise AssertionError("`assemble` does not return infinity for what overflows")


def _subnormal(graph: Graph, E: Any, n: Any) -> float:
    """Bound the error of z next to unit + s (hi + lo) in the last bits of unit = 2^UNIT.

    The sum T = hi + lo rounds to a float64 below 2^(E + 1), so that T is at most
    2^(E + 1) (1 - 2^-54). If z is the number that is rounded last, z is less than 2 unit, and its
    rounding errs by half a bit at most. The bits of RN(z) - unit are those of the result, even if
    RN(z) is 2 unit. With an interval of n the result is zero.
    """
    pieces = _pieces(graph, "assemble", n)
    _in_binade(pieces, E)
    hi, lo = graph.nodes[_sum(graph)].operands
    T = np.ldexp(1 - 2.0**-53, E), np.ldexp(2.0, E)
    low = pieces.error("lo", np.full(pieces.count, LOW_WORD))
    pieces.values[lo] = Number(low, np.full(pieces.count, NO_GRID))
    pieces.values[hi] = Number(
        pieces.add(pieces.atom("T", T), low, -1),
        E - 53,
        box=(T[0] - LOW_WORD * 2, T[1] + LOW_WORD * 2),
    )
    i = graph.label("assemble")
    while graph.nodes[i].operation == "choose":
        i = pieces.chosen(i)
    rounded, unit = _words(pieces, i)
    first, more = (pieces.get(k) for k in graph.nodes[rounded].operands)
    z = pieces.add(first.poly, more.poly)
    by = n + 900 if isinstance(n, np.ndarray) else SUBNORMAL + 900
    left = dict(z)
    if left.pop((), None) != [rational(unit)]:
        raise AssertionError("the words are not added to the unit")
    (key,) = (key for key in pieces.main(left))
    powers = [pieces.atoms[atom][0] for atom in key if atom != "T"]
    factor = np.prod(powers, axis=0) if powers else np.ones(pieces.count)
    factor = factor * float(left[key][0].p) / float(left[key][0].q)
    if "T" not in key or len(left[key]) != 1 or (factor != np.ldexp(1.0, by)).any():
        raise AssertionError("`assemble` adds other words to the unit")
    bit = unit * 2.0**-52
    if not isinstance(n, np.ndarray):
        if not (pieces.magnitude(left) < bit / 4).all():
            raise AssertionError("the result may be more than zero")
        return 0.0
    deviation = pieces.magnitude(pieces.add(left, pieces.main(left), -1)) / bit
    if not (deviation < 1 / 8).all():
        raise AssertionError("the sum with the unit errs too much")
    return float(deviation.max())


def _words(pieces: Pieces, i: int) -> tuple[int, float]:
    """RN(z) and the unit, if node i is unbits((bits(RN(z)) - bits(unit)) | sign)."""
    nodes = pieces.graph.nodes

    def operands(k: int, operation: str) -> Sequence[int]:
        if nodes[k].operation != operation:
            raise AssertionError(f"node {k} is {nodes[k].operation}, where {operation} is expected")
        return nodes[k].operands

    word, sign = operands(operands(i, "unbits")[0], "or")
    word, unit = operands(word, "bits_sub")
    value = float(nodes[operands(unit, "bits")[0]].operands[0])
    if pieces.get(sign).any() or value != 2.0**UNIT:
        raise AssertionError("the result has a sign, or another unit")
    (rounded,) = operands(word, "bits")
    operands(rounded, "add")
    return rounded, value
