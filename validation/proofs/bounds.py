"""From the algebra of a result to the bound of its error in ulp."""

from collections.abc import Callable, Sequence
from itertools import pairwise
from typing import Any, NamedTuple

import numpy as np
from flint import fmpq, fmpq_poly

from .algebra import (
    SIGN,
    UP,
    Interval,
    Pieces,
    Poly,
    Undecided,
    binade,
    down,
    largest,
    smallest,
    up,
)

NEAR = 64  # parts of fewer than twice so many numbers are proved number by number
DEPTH = 8  # pieces are cut so often at most
ROWS = 4000  # to so many at once at most


class Bound(NamedTuple):
    """On pieces [lo, hi] of an argument: proved bounds of the error in ulp of the exact result.

    `parts` are the terms of the bound, in ulp, without the last rounding.
    """

    lo: Any
    hi: Any
    ulp: Any
    parts: dict[str, Any]

    @property
    def worst(self) -> float:
        return float(self.ulp.max(initial=0.0))

    def choose(self, which: Any) -> "Bound":
        parts = {name: x[which] for name, x in self.parts.items()}
        return Bound(self.lo[which], self.hi[which], self.ulp[which], parts)


def cut_result(pieces: Pieces, output: int) -> tuple[Poly, Any]:
    """The result before its last rounding, and the exponent of its factor, a power of two.

    Choices, signs, changes of the exponent and exact multiplications by powers of two may come
    after the last rounding.
    `compare` checks that the power neither overflows nor is subnormal.
    """
    nodes, scale = pieces.graph.nodes, np.zeros(pieces.count, np.int64)
    i, factor = output, fmpq(1)
    while True:
        operation, operands = nodes[i]
        if operation == "choose":
            i = pieces.chosen(i)
        elif operation == "neg":
            i, factor = operands[0], -factor
        elif operation == "mul" and (other := _power_of_two(pieces, operands)) is not None:
            by = pieces.get(operands[other])
            if set(by.poly) == {()}:
                factor *= by.poly[()][0]
            else:
                scale = scale + by.power_of_two()
            i = operands[1 - other]
        elif operation == "unbits":
            i, sign, by = _unscaled(pieces, operands[0])
            factor, scale = factor * sign, scale + by
            if pieces.subnormal:
                break
        else:
            break
    poly = dict(pieces.get(i).poly)
    if pieces.subnormal:
        poly = pieces.add(poly, {(): [fmpq(2) ** int(-1022 - scale[0])]}, -1)
    if any(f"d{i}" in key and key != (f"d{i}",) for key in poly):
        raise AssertionError("the last rounding does not come last")
    if poly.pop((f"d{i}",), [fmpq(1)]) != [1]:
        raise AssertionError("the last rounding has a factor")
    return {key: [x * factor for x in c] for key, c in poly.items()}, scale


def _unscaled(pieces: Pieces, word: int) -> tuple[int, int, Any]:
    """The number whose bits are shifted in `word`, its sign, and the exponent of its factor.

    Taking e + 1023 from the exponent of x divides by 2^(e + 1023). But of 2^e <= x < 2^(e + 1), it
    leaves the bits of the subnormal number (x - 2^e) 2^(-1022 - e). Then `subnormal` is set.
    """
    nodes, sign = pieces.graph.nodes, 1
    operation, operands = nodes[word]
    signed = operation == "or"
    if signed:
        word, mask = operands
        bit = np.broadcast_to(pieces.get(mask), (pieces.count,))
        if (bit & ~SIGN).any():
            raise AssertionError(f"node {mask} is not a sign")
        sign = -1 if pieces.decided(mask, bit == SIGN, bit == 0) else 1
        operation, operands = nodes[word]
    if operation not in ("bits_add", "bits_sub"):
        raise AssertionError(f"node {word} is {operation}, of what is not known")
    shifts = np.broadcast_to(pieces.get(operands[1]), (pieces.count,)).view(np.int64)
    shifts = -shifts if operation == "bits_sub" else shifts
    if (shifts % 2**52).any():
        raise AssertionError(f"node {word} changes more than the exponent")
    if nodes[operands[0]].operation != "bits":
        raise AssertionError(f"node {word} does not shift the bits of a number")
    x = nodes[operands[0]].operands[0]
    box, by = pieces.box(pieces.get(x)), shifts >> 52
    if signed and not (box[0] >= 0).all():
        raise AssertionError(f"node {word} gets a sign, but has one")
    least, most = binade(smallest(box)), binade(largest(box))
    normal = (least >= -1022) & (least + by >= -1022) & (most + by < 1024)
    if not pieces.decided(word, normal, (box[0] > 0) & (least + by == -1023) & (most == least)):
        if (by != by[0]).any():
            raise AssertionError(f"node {word} is shifted differently on different pieces")
        pieces.subnormal = True
        by = by + 1
    return x, sign, by


def _power_of_two(pieces: Pieces, operands: tuple[int, ...]) -> int | None:
    for k in (1, 0):
        value = pieces.get(operands[k])
        if value.point is not None and value.power_of_two() is not None:
            return k
    return None


def at_shift(pieces: Pieces, c: Sequence[Any], shift: Poly, size: Any, name: str) -> Poly:
    """P(v + shift) for a polynomial P in v with coefficients `c`, where ``|shift| <= size``.

    This is Taylor's formula: P(v) + P'(v) shift + P''(xi) shift^2/2, for a xi between.
    """
    p = fmpq_poly([fmpq(x) for x in c])
    slope, second = p.derivative(), p.derivative().derivative()
    v = pieces.atoms["v"]
    hull = (down(v[0] - size), up(v[1] + size))
    rest = largest(pieces.horner(coefficients(second), hull)) * size * size * 0.5 * UP
    result = pieces.add({(): list(c)}, pieces.mul({(): coefficients(slope)}, shift, f"{name}.1"))
    return pieces.add(result, pieces.error(f"{name}.2", rest)) if rest.any() else result


def coefficients(p: Any) -> list[Any]:
    return [p[k] for k in range(max(p.degree(), 0) + 1)]


def compare(
    pieces: Pieces,
    argument: Interval,
    result: Poly,
    truth: Poly,
    *,
    approximation: Any,
    absolute: bool,
    scale: Any = 0,
    least: Any = None,
) -> Bound:
    """Bound the error in ulp of the float64 next to `result`.

    The exact value differs from `truth` by at most `approximation`, relative to the exact value or
    absolute. Both are multiplied by 2^scale, which must neither overflow nor be subnormal. `least`
    is a lower bound of the exact value's size, if the interval of `truth` is too wide for one.

    The last rounding errs by half an ulp of the exact value, even if it is into the next binade,
    provided that what comes before errs by less than one ulp. Otherwise it errs by one ulp at most,
    because the result is at most one binade above.
    """
    difference = pieces.add(result, truth, -1)
    parts = {"*".join(key) or "v": largest(pieces.term(key, c)) for key, c in difference.items()}
    box = pieces.interval(truth)
    if absolute:
        parts["approximation"] = np.broadcast_to(approximation, (pieces.count,))
        size = down(smallest(box) - approximation) if least is None else least
    else:  # |exact| is between |truth|/(1 + a) and |truth|/(1 - a)
        size = smallest(box) / (1 + approximation) / UP
        parts["approximation"] = approximation * largest(box) / (1 - approximation) * UP
    if not pieces.subnormal and not (size > 0).all():
        raise AssertionError("the exact value may be zero")
    exponent = binade(size)
    if pieces.subnormal:
        exponent = np.maximum(exponent, -1022 - scale)
    normal = (exponent + scale >= -1022) & (binade(largest(box)) + scale < 1023)
    if not normal.all():
        raise Undecided("the result may be subnormal or overflow", normal, np.zeros_like(normal))
    ulp = np.ldexp(1.0, (exponent - 52).astype(int))
    before = np.sum(list(parts.values()), axis=0) * UP / ulp
    if not (before < 8).all():
        raise AssertionError("before its last rounding the result errs by more than 8 ulp")
    terms = {name: x / ulp for name, x in parts.items()}
    same_binade = binade(largest(pieces.interval(result))) <= exponent
    last = np.where((before < 1) | same_binade, 0.5, 1.0)
    return Bound(*argument, before + last, terms)


def join(bounds: Sequence[Bound]) -> Bound:
    names = {name for bound in bounds for name in bound.parts}

    def parts(name: str) -> Any:
        return np.concatenate([b.parts.get(name, np.zeros(len(b.ulp))) for b in bounds])

    lo, hi, ulp = (np.concatenate([bound[k] for bound in bounds]) for k in range(3))
    return Bound(lo, hi, ulp, {name: parts(name) for name in names})


def adaptively(
    prove: Callable[..., Bound],
    singles: Callable[[Any], Bound],
    run: Callable[[int, Any], Any],
    lo: Any,
    hi: Any,
    *more: Any,
    depth: int = 0,
) -> list[Bound]:
    """Prove pieces [lo, hi], apart from each other if an answer differs, and cut to smaller ones.

    `run` computes a node at some arguments: a piece is cut where a mask turns. `singles` proves
    single arguments. `more` has one element for each piece.
    """
    try:
        return [prove(lo, hi, *more)]
    except Undecided as undecided:
        yes, no, node = undecided.yes, undecided.no, undecided.node
        undecided_text = str(undecided)
        if yes is None:
            raise
    found = []
    for which in (yes, no):
        if which.any():
            columns = (x[which] for x in (lo, hi, *more))
            found += adaptively(prove, singles, run, *columns, depth=depth)
    rows: list[tuple[int, int, int]] = []
    for i in np.nonzero(~(yes | no))[0]:
        a, b = int(ordinal(lo[i])), int(ordinal(hi[i]))
        if b - a < 2 * NEAR:
            found.append(singles(number(np.arange(a, b + 1))))
        else:
            rows += [(x, y, int(i)) for x, y in _parts(node, run, a, b)]
    if rows:
        if depth == DEPTH or len(rows) > ROWS:
            raise AssertionError(f"smaller pieces do not help: {undecided_text}")
        a, b, of = np.array(rows).T
        more = tuple(x[of] for x in more)
        found += adaptively(prove, singles, run, number(a), number(b), *more, depth=depth + 1)
    return found


def ordinal(x: Any) -> Any:
    """Integers in the order of float64; those of neighbours differ by 1."""
    word = np.asarray(x, np.float64).view(np.int64)
    return np.where(word < 0, -(word & (2**63 - 1)), word)


def number(n: Any) -> Any:
    """The float64 of an ordinal."""
    return np.where(n < 0, -np.abs(n).view(np.float64), np.abs(n).view(np.float64))


def _parts(
    node: int | None, run: Callable[[int, Any], Any], a: int, b: int
) -> list[tuple[int, int]]:
    """Cut a piece, by ordinals: to small parts where a mask turns, or else at both ends."""

    def at(n: int) -> bool:
        return bool(node is not None and run(node, number(np.array([n])))[0])

    first, last = a, b
    if at(a) != at(b):
        while last - first > 1:
            middle = (first + last) // 2
            first, last = (middle, last) if at(middle) == at(a) else (first, middle)
        ends = [(first, -1), (last, 1)]
    else:
        ends = [(a, 1), (b, -1)]
    marks = {a, b + 1, (a + b) // 2}
    for end, sign in ends:
        marks |= {n for n in (end + sign * (NEAR << j) for j in range(64)) if a < n <= b}
    return [(x, y - 1) for x, y in pairwise(sorted(marks))]


def check_cover(lo: Any, hi: Any, start: float, end: float) -> None:
    """Fail unless every float64 of [start, end] is in one of the pieces [lo, hi]."""
    order = np.argsort(lo, kind="stable")
    lo, reached = lo[order], np.maximum.accumulate(hi[order])
    gaps = lo[1:] > np.nextafter(reached[:-1], np.inf)
    if lo[0] > start or reached[-1] < end or gaps.any():
        where = [(x.hex(), y.hex()) for x, y in zip(reached[:-1][gaps], lo[1:][gaps], strict=True)]
        raise AssertionError(f"the pieces do not cover [{start!r}, {end!r}]: gaps {where}")
