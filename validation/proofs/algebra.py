"""Bounds of the rounding errors of a graph of operations, on many pieces of its domain at once.

The computed value of an operation is kept as a polynomial with rational coefficients, in a variable
v and in atoms: rounding errors, and other quantities with a known interval on each piece. So what
cancels in arithmetic with two words cancels exactly. A rounding error is at most half an ulp of the
largest result on the piece. It is zero where each result is a multiple of 2^grid and is at most
2^(grid + 53).
Intervals are pairs of arrays of float64, rounded outwards.
"""

from collections.abc import Callable, Sequence
from fractions import Fraction
from typing import Any

import numpy as np
from flint import fmpq

from .graph import Graph, Node, apply

Interval = tuple[Any, Any]
Poly = dict[tuple[str, ...], list[Any]]
"""Sorted atoms -> the coefficients of the powers of v."""

UP = 1 + 2.0**-40  # more than the rounding of sums and products of fewer than 2^12 positive doubles
TINY = 2.0**-1060
NO_GRID = -5000
SMALLEST = -1074
SIGN = np.uint64(1 << 63)
UPPER = 2**64 - 2**27
VALUES = ("bits_const", "index_zero", "index_count", "index_of_bits", "index_is")
COMPARISONS = ("less", "less_equal", "equal")
OF_BITS = (
    "and",
    "or",
    "xor",
    "not",
    "bits_add",
    "bits_sub",
    "shift_left",
    "shift_right",
    "below",
    "both",
    "either",
)


def down(x: Any) -> Any:
    return np.nextafter(x, -np.inf)


def up(x: Any) -> Any:
    return np.nextafter(x, np.inf)


def product(a: Interval, b: Interval) -> Interval:
    ends = [x * y for x in a for y in b]
    return down(np.minimum.reduce(ends)), up(np.maximum.reduce(ends))


def total(a: Interval, b: Interval) -> Interval:
    return down(a[0] + b[0]), up(a[1] + b[1])


def largest(a: Interval) -> Any:
    return np.maximum(np.abs(a[0]), np.abs(a[1]))


def smallest(a: Interval) -> Any:
    return np.where((a[0] <= 0) & (a[1] >= 0), 0.0, np.minimum(np.abs(a[0]), np.abs(a[1])))


def binade(x: Any) -> Any:
    """floor(log2(x)) of x > 0; a very small number for 0."""
    return np.where(x > 0, np.frexp(x)[1].astype(np.int64) - 1, -4000)


def half_ulp(x: Any) -> Any:
    """At least half an ulp of x, in the format with subnormal numbers."""
    return np.maximum(
        np.ldexp(1.0, np.maximum(binade(x) - 53, SMALLEST).astype(int)), 2.0**SMALLEST
    )


def rational(x: float) -> Any:
    return fmpq(*float(x).as_integer_ratio())


def enclose(c: Any) -> tuple[float, float]:
    """Two floats, equal if c is a float, with c between."""
    nearest = int(c.p) / int(c.q)
    if rational(nearest) == c:
        return nearest, nearest
    return float(down(nearest)), float(up(nearest))


def grid_of(x: Any) -> Any:
    """The largest g for which x is a multiple of 2^g; a large number for 0."""
    fraction, exponent = np.frexp(x)
    n = np.ldexp(fraction, 53).astype(np.int64)
    return np.where(n == 0, 5000, exponent.astype(np.int64) - 54 + np.frexp(n & -n)[1])


class Undecided(AssertionError):
    """A question whose answer is not the same on all pieces: `yes` on some, `no` on some.

    On the other pieces it is not known. `node` is the mask, if there is one.
    """

    def __init__(self, text: str, yes: Any = None, no: Any = None, node: int | None = None) -> None:
        super().__init__(text)
        self.yes, self.no, self.node = yes, no, node


class Number:
    """What an operation computes on each piece: `poly`, a multiple of 2^grid.

    `point` is the number itself where each piece has a single one. `box` is an interval of it that
    is narrower than that of `poly`.
    """

    def __init__(
        self, poly: Poly, grid: Any, point: Any = None, box: Interval | None = None
    ) -> None:
        self.poly, self.grid, self.point, self.box = poly, grid, point, box

    def power_of_two(self) -> Any:
        """The exponents, if it is a power of two on each piece; otherwise None."""
        if self.point is None:
            return None
        fraction, exponent = np.frexp(self.point)
        return exponent.astype(np.int64) - 1 if (fraction == 0.5).all() else None


class Bits:
    """The bits of a number, as an integer."""

    def __init__(self, number: Number) -> None:
        self.number = number


class Pieces:
    """The operations of a graph on pieces of its domain.

    `hooks` say what a node is, by its number, in place of its operation: the arguments, and what is
    cut there because its error is known. `reciprocals` are pairs of nodes (w, u) with w u = 1 - e
    for the atom `e`.
    """

    def __init__(self, graph: Graph, count: int) -> None:
        self.graph, self.count = graph, count
        self.atoms: dict[str, Interval] = {}
        self.errors: set[str] = set()
        self.subnormal = False  # whether the results are, which `cut_result` finds out
        self.values: dict[int, Any] = {}
        self.hooks: dict[int, Callable[[], Any]] = {}
        self.reciprocals: dict[tuple[int, int], str] = {}
        self.rules: dict[tuple[str, str], Poly] = {}
        self._groups: dict[Any, Interval] = {}

    # ---- polynomials

    def atom(self, name: str, interval: Interval, error: bool = False) -> Poly:
        self.atoms[name] = interval
        if error:
            self.errors.add(name)
        return {(name,): [fmpq(1)]}

    def error(self, name: str, bound: Any) -> Poly:
        bound = np.broadcast_to(bound, (self.count,))
        return self.atom(name, (-bound, bound), error=True)

    def is_error(self, key: tuple[str, ...]) -> bool:
        return any(atom in self.errors for atom in key)

    def main(self, poly: Poly) -> Poly:
        """What is left if every error is zero."""
        return {key: c for key, c in poly.items() if not self.is_error(key)}

    def add(self, a: Poly, b: Poly, sign: int = 1) -> Poly:
        result = {key: list(c) for key, c in a.items()}
        for key, c in b.items():
            t = result.setdefault(key, [])
            t += [fmpq(0)] * (len(c) - len(t))
            for k, x in enumerate(c):
                t[k] = t[k] + sign * x
            while t and t[-1] == 0:
                t.pop()
            if not t:
                del result[key]
        return result

    def mul(self, a: Poly, b: Poly, name: str) -> Poly:
        """The product. Terms with two errors or more become one error, `name`."""
        result: Poly = {}
        lumped = np.zeros(self.count)
        for k, c in a.items():
            for m, d in b.items():
                key, t = tuple(sorted(k + m)), [fmpq(0)] * (len(c) + len(d) - 1)
                for i, x in enumerate(c):
                    for j, y in enumerate(d):
                        t[i + j] += x * y
                if sum(atom in self.errors for atom in key) >= 2:
                    lumped = lumped + largest(self.term(key, t))
                else:
                    result = self.add(result, self._rewritten(key, t))
        if lumped.any():
            result = self.add(result, self.error(name, lumped * UP + TINY))
        return result

    def _rewritten(self, key: tuple[str, ...], c: list[Any]) -> Poly:
        for pair, by in self.rules.items():
            if all(atom in key for atom in pair):
                rest = list(key)
                for atom in pair:
                    rest.remove(atom)
                return {tuple(sorted([*rest, *k])): [x * d[0] for x in c] for k, d in by.items()}
        return {key: c}

    def horner(self, c: Sequence[Any], v: Interval | None = None) -> Interval:
        v = v or self.atoms["v"]
        s = (np.zeros(self.count), np.zeros(self.count))
        for x in reversed(c):
            lo, hi = enclose(fmpq(x))
            s = total(product(s, v), (np.full(self.count, lo), np.full(self.count, hi)))
        return s

    def term(self, key: tuple[str, ...], c: Sequence[Any]) -> Interval:
        token = (key, tuple(c))
        if token not in self._groups:
            if len(c) == 1 and c[0] in (1, -1) and key:
                lo, hi = self.atoms[key[0]]
                s, key = ((lo, hi) if c[0] == 1 else (-hi, -lo)), key[1:]
            else:
                s = self.horner(c)
            for atom in key:
                s = product(s, self.atoms[atom])
            self._groups[token] = s
        return self._groups[token]

    def interval(self, poly: Poly) -> Interval:
        s = (np.zeros(self.count), np.zeros(self.count))
        for key, c in poly.items():
            s = total(s, self.term(key, c))
        return s

    def magnitude(self, poly: Poly) -> Any:
        """A bound of the absolute value, term by term."""
        s = np.zeros(self.count)
        for key, c in poly.items():
            s = s + largest(self.term(key, c))
        return s * UP

    def set_v(self, interval: Interval) -> None:
        self.atoms["v"] = interval
        self._groups.clear()

    # ---- operations

    def get(self, i: int) -> Any:
        if i not in self.values:
            self.values[i] = self.hooks[i]() if i in self.hooks else self.step(i)
        return self.values[i]

    def box(self, x: Number) -> Interval:
        if x.point is not None:
            return x.point, x.point
        return x.box if x.box is not None else self.interval(x.poly)

    def point(self, i: int, x: Any, constant: bool = False) -> Number:
        """A number that is known on each piece: a constant, which must be one, or an atom."""
        x = np.broadcast_to(np.asarray(x, np.float64), (self.count,))
        finite = np.isfinite(x)
        grid = np.where(finite, grid_of(np.where(finite, x, 0.0)), NO_GRID)
        if constant or not x.any():
            if not (x == x[0]).all():
                raise Undecided(f"node {i} differs between pieces")
            poly: Poly = {(): [rational(x[0])]} if np.isfinite(x[0]) and x[0] else {}
        else:
            poly = self.atom(f"p{i}", (x, x))
        return Number(poly, grid, x)

    def _of_range(self, i: int) -> bool:
        operation, operands = self.graph.nodes[i]
        return operation == "lookup" and self.graph.nodes[operands[0]].operation == "index_count"

    def rounded(self, i: int, poly: Poly, grid: Any, exact: Any = False) -> Number:
        """The float64 next to `poly`, a multiple of 2^grid. `exact` says where it is a float64."""
        interval = self.interval(poly)
        size = largest(interval)
        if not (size < 2.0**1023).all():
            raise AssertionError(f"node {i} may overflow")
        fits = (size <= np.ldexp(1.0, np.clip(grid + 53, -1074, 1000).astype(int))) & (
            grid >= SMALLEST
        )
        error = np.where(fits | exact, 0.0, half_ulp(size))
        if not error.any():
            whole = (grid >= 0).all()  # integers lie between integers
            box = (np.ceil(interval[0]), np.floor(interval[1])) if whole else None
            return Number(poly, grid, box=box)
        least = binade(smallest(interval)) - 52
        grid = np.where(error == 0, grid, np.maximum(np.maximum(grid, least), SMALLEST))
        return Number(
            self.add(poly, self.error(f"d{i}", error)), grid, box=self._rounded_box(poly, interval)
        )

    def _rounded_box(self, poly: Poly, interval: Interval) -> Interval:
        """The interval of RN(poly): that of its ends, because rounding is monotone.

        A constant is added last, so that 1 + x does not fall below 1 for a small x > 0.
        """
        c = poly.get((), [fmpq(0)])
        lo, hi = enclose(c[0])
        if lo != hi or not lo:
            return interval
        rest = self.interval({**poly, (): [fmpq(0), *c[1:]]})
        return lo + rest[0], lo + rest[1]

    def step(self, i: int) -> Any:
        operation, operands = self.graph.nodes[i]
        if operation == "const":
            return self.point(i, operands[0], constant=True)
        if operation == "bits_const":
            return np.full(self.count, operands[0], np.uint64)
        if operation == "choose":
            return self.get(self.chosen(i))
        error = self._product_error(i)
        if error is not None:
            return error
        number = self._exponent(i)
        if number is not None:
            return number
        values = [self.get(x) for x in (operands[:1] if operation == "lookup" else operands)]
        if all(is_array(x) or getattr(x, "point", None) is not None for x in values):
            return self._of_points(i, operation, operands)
        if operation in COMPARISONS:
            return self._compare(i, operation, *values)
        if operation in ("max", "min"):
            return self._extreme(i, operation, *values)
        if operation in ("bits", "unbits", "below", "and", "xor"):
            return self._bits(i, operation, *values)
        if operation == "neg":
            return Number(self.add({}, values[0].poly, -1), values[0].grid)
        if operation in ("add", "sub"):
            return self._sum(i, operation, operands, *values)
        if operation == "mul":
            return self._product(i, operands, *values)
        if operation == "fma":
            poly = self.add(self.times(i, *operands[:2]), values[2].poly)
            grid = np.minimum(values[0].grid + values[1].grid, values[2].grid)
            return self.rounded(i, poly, np.maximum(grid, NO_GRID))
        raise AssertionError(f"node {i} is {operation}, of what is not known")

    def chosen(self, i: int) -> int:
        """The operand that a choice takes on every piece."""
        node, yes, no = self.graph.nodes[i].operands
        mask = np.broadcast_to(self.get(node), (self.count,))
        return int(yes if self.decided(i, mask, ~mask, node) else no)

    def decided(self, i: int, yes: Any, no: Any, node: int | None = None) -> bool:
        """The answer to a question, if it is the same on all pieces."""
        if yes.all() or no.all():
            return bool(yes.all())
        raise Undecided(f"node {i} differs between pieces or within one", yes, no, node)

    def _extreme(self, i: int, operation: str, a: Number, b: Number) -> Number:
        x, y = (self.box(a), self.box(b)) if operation == "max" else (self.box(b), self.box(a))
        return a if self.decided(i, x[0] > y[1], x[1] <= y[0]) else b

    def _exponent(self, i: int) -> Number | None:
        """The exponent of a number, as `exponent` takes it from the bits."""
        x = exponent_of(self.graph, i)
        if x is None or self.get(x).point is not None:
            return None
        box = self.box(self.get(x))
        if not (smallest(box) >= 2.0**-1022).all():
            raise AssertionError(f"node {i} may be the exponent of a subnormal number")
        ends = binade(smallest(box)), binade(largest(box))
        if (ends[0] == ends[1]).all():
            return self.point(i, ends[0])
        integer = self.atom(f"i{i}", (ends[0] * 1.0, ends[1] * 1.0))
        return Number(integer, np.zeros(self.count, np.int64))

    def _bits(self, i: int, operation: str, a: Any, b: Any = None) -> Any:
        """Operations of bits: of the sign, and comparisons of positive numbers."""
        if operation == "bits":
            return Bits(a)
        if operation == "unbits":
            return a.number
        if operation == "below":
            x, y = (
                self.box(k.number) if isinstance(k, Bits) else (k.view(np.float64),) * 2
                for k in (a, b)
            )
            if not ((x[0] > 0) & (y[0] > 0)).all():
                raise AssertionError(f"node {i} compares the bits of numbers that are not positive")
            yes, no = x[1] < y[0], x[0] >= y[1]
            if not (yes | no).all():
                raise Undecided(f"node {i} compares differently within a piece", yes, no, i)
            return yes
        if not isinstance(a, Bits) or not is_array(b) or (b & ~SIGN).any():
            raise AssertionError(f"node {i} is {operation}, of what is not known")
        if operation == "and":
            box = self.box(a.number)
            negative = self.decided(i, box[1] < 0, box[0] > 0)
            return b if negative else np.zeros_like(b)
        if not self.decided(i, b == SIGN, b == 0):
            return a
        return Bits(Number(self.add({}, a.number.poly, -1), a.number.grid))

    def _of_points(self, i: int, operation: str, operands: tuple[Any, ...]) -> Any:
        def value(k: int) -> Any:
            x = self.get(k)
            return x.point if isinstance(x, Number) else x

        if operation == "fma":  # of few numbers, and so by fractions, which need no compiler
            a, b, c = (value(k).tolist() for k in operands)
            result: Any = [
                float(Fraction(x) * Fraction(y) + Fraction(z))
                for x, y, z in zip(a, b, c, strict=True)
            ]
        else:
            with np.errstate(all="ignore"):
                result = np.broadcast_to(apply(operation, operands, value), (self.count,))
        kinds = (*VALUES, *COMPARISONS, *OF_BITS, "bits")
        if operation in kinds:
            return result
        numbers = [] if operation == "lookup" else [self.get(k) for k in operands]
        constant = all(isinstance(x, Number) and set(x.poly) <= {()} for x in numbers)
        return self.point(i, result, constant if numbers else self._of_range(i))

    def _compare(self, i: int, operation: str, a: Number, b: Number) -> Any:
        x, y = self.box(a), self.box(b)
        if operation == "equal" and a is b:
            return np.ones(self.count, bool)
        if operation == "less":
            yes, no = x[1] < y[0], x[0] >= y[1]
        elif operation == "less_equal":
            yes, no = x[1] <= y[0], x[0] > y[1]
        else:
            yes, no = (
                (x[0] == x[1]) & (x[0] == y[0]) & (y[0] == y[1]),
                (x[1] < y[0]) | (x[0] > y[1]),
            )
        if not (yes | no).all():
            raise Undecided(f"node {i} compares differently within a piece", yes, no, i)
        return yes

    def _sum(
        self, i: int, operation: str, operands: tuple[int, ...], a: Number, b: Number
    ) -> Number:
        sign = 1 if operation == "add" else -1
        if not b.poly:
            return a
        if not a.poly:
            return b if sign == 1 else Number(self.add({}, b.poly, -1), b.grid)
        exact: Any = False
        of, second = self.graph.nodes[operands[1]]
        if operation == "sub" and of == "add" and second[0] == operands[0]:
            # Fast2Sum (Dekker 1971): a - RN(a + b) is a float64 where |a| >= |b|.
            exact = largest(self.box(self.get(second[1]))) <= smallest(self.box(a))
        return self.rounded(i, self.add(a.poly, b.poly, sign), np.minimum(a.grid, b.grid), exact)

    def _product(self, i: int, operands: tuple[int, ...], a: Number, b: Number) -> Number:
        for x, y in ((a, b), (b, a)):
            power = y.power_of_two()
            if power is not None:
                size = largest(self.interval(x.poly)) * np.ldexp(1.0, power)
                if ((x.grid + power >= SMALLEST) & (size < 2.0**1023)).all():
                    return Number(self.mul(x.poly, y.poly, f"m{i}"), x.grid + power)
        return self.rounded(i, self.times(i, *operands), np.maximum(a.grid + b.grid, NO_GRID))

    def times(self, i: int, a: int, b: int) -> Poly:
        for pair in ((a, b), (b, a)):
            if pair in self.reciprocals:
                return {(): [fmpq(1)], (self.reciprocals[pair],): [fmpq(-1)]}
        return self.mul(self.get(a).poly, self.get(b).poly, f"m{i}")

    def _product_error(self, i: int) -> Number | None:
        """The error of a product without FMA, which `product_error` computes to 2^-100 |a b|.

        `lemma.py` proves it for factors between 1 and 2. Powers of two change nothing if no word is
        subnormal.
        """
        found = split_product(self.graph, i)
        if found is None:
            return None
        a, b, rounded = found
        x, y, z = self.get(a), self.get(b), self.get(rounded)
        for w in (x, y):
            if not ((smallest(self.box(w)) > 2.0**-480) | (w.grid > -530)).all():
                raise AssertionError(f"the words of node {i} may be subnormal")
        bound = (
            largest(self.interval(x.poly)) * largest(self.interval(y.poly)) * 2.0**-100 * UP + TINY
        )
        poly = self.add(self.times(i, a, b), z.poly, -1)
        return Number(self.add(poly, self.error(f"x{i}", bound)), np.full(self.count, NO_GRID))


def is_array(x: Any) -> bool:
    """Whether x is known on each piece: integers or truth values."""
    return not isinstance(x, Number | Bits)


def exponent_of(graph: Graph, i: int) -> int | None:
    """Return x if node i is ((bits(x) >> 52) & 0x7ff | bits(2^52)) - (2^52 + 1023)."""

    def operands(k: int, operation: str, last: int | float | None = None) -> tuple[int, ...]:
        of, found = graph.nodes[k]
        if of != operation or last not in (None, graph.nodes[found[-1]].operands[0]):
            raise LookupError
        return found

    try:
        word, _ = operands(i, "sub", 2.0**52 + 1023)
        biased, _ = operands(operands(word, "unbits")[0], "or", 0x4330000000000000)
        shifted, _ = operands(biased, "and", 0x7FF)
        return operands(operands(shifted, "shift_right", 52)[0], "bits")[0]
    except LookupError:
        return None


def _split(graph: Graph, high: int, low: int) -> int | None:
    """The number of a constant that is split to the constants `high` and `low`."""
    if {graph.nodes[k].operation for k in (high, low)} != {"const"}:
        return None
    h, rest = (np.float64(graph.nodes[k].operands[0]) for k in (high, low))
    x = h + rest
    if h.view(np.uint64) != x.view(np.uint64) & np.uint64(UPPER) or rest != x - h:
        return None
    return graph.number(Node("const", (float(x),)))


def split_product(graph: Graph, i: int) -> tuple[int, int, int] | None:
    """a, b and RN(a b) if node i is (((ah bh - RN(a b)) + ah bl) + al bh) + al bl."""
    nodes = graph.nodes

    def operands(k: int, operation: str) -> tuple[int, ...]:
        if nodes[k].operation != operation:
            raise LookupError
        return nodes[k].operands

    try:
        rest, albl = operands(i, "add")
        rest, albh = operands(rest, "add")
        rest, ahbl = operands(rest, "add")
        ahbh, rounded = operands(rest, "sub")
        (ah, bh), (al, bl) = operands(ahbh, "mul"), operands(albl, "mul")
        if operands(albh, "mul") != (al, bh) or operands(ahbl, "mul") != (ah, bl):
            return None
        a, b = (
            _split(graph, high, low) or operands(low, "sub")[0]
            for high, low in ((ah, al), (bh, bl))
        )
        for high, low, x in ((ah, al, a), (bh, bl, b)):
            if _split(graph, high, low) is not None:
                continue
            word, mask = operands(operands(high, "unbits")[0], "and")
            if operands(low, "sub") != (x, high) or operands(word, "bits") != (x,):
                return None
            if operands(mask, "bits_const") != (UPPER,):
                return None
    except LookupError:
        return None
    return a, b, rounded
