"""From the algebra of a result to the bound of its error in ulp."""

from collections.abc import Sequence
from typing import Any, NamedTuple

import numpy as np
from flint import fmpq, fmpq_poly

from .algebra import UP, Interval, Pieces, Poly, binade, down, largest, smallest, up


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

    Choices, signs and exact multiplications by powers of two may come after the last rounding.
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
        else:
            break
    poly = dict(pieces.get(i).poly)
    if any(f"d{i}" in key and key != (f"d{i}",) for key in poly):
        raise AssertionError("the last rounding does not come last")
    if poly.pop((f"d{i}",), [fmpq(1)]) != [1]:
        raise AssertionError("the last rounding has a factor")
    return {key: [x * factor for x in c] for key, c in poly.items()}, scale


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
    if not (size > 0).all():
        raise AssertionError("the exact value may be zero")
    exponent = binade(size)
    if not ((exponent + scale >= -1022) & (binade(largest(box)) + scale < 1022)).all():
        raise AssertionError("the result may be subnormal or overflow")
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


def check_cover(lo: Any, hi: Any, start: float, end: float) -> None:
    """Fail unless every float64 of [start, end] is in one of the pieces [lo, hi]."""
    order = np.argsort(lo, kind="stable")
    lo, reached = lo[order], np.maximum.accumulate(hi[order])
    gaps = lo[1:] > np.nextafter(reached[:-1], np.inf)
    if lo[0] > start or reached[-1] < end or gaps.any():
        where = [(x.hex(), y.hex()) for x, y in zip(reached[:-1][gaps], lo[1:][gaps], strict=True)]
        raise AssertionError(f"the pieces do not cover [{start!r}, {end!r}]: gaps {where}")
