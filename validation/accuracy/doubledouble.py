"""Unevaluated sums of two float64 arrays: about 104 bits, with NumPy alone.

All numbers must have moderate size, because Dekker's splitting overflows near the top of the range
and loses bits near the bottom. Callers keep powers of two separately.
T. J. Dekker, Numer. Math. 18 (1971), doi:10.1007/BF01397083.
"""

from functools import cache
from typing import NamedTuple

import mpmath
import numpy as np
from numpy.typing import NDArray

Array = NDArray[np.float64]

_SPLITTER = 134217729.0  # 2**27 + 1


class DD(NamedTuple):
    """``hi + lo``, where ``hi`` is the float64 nearest to the sum."""

    hi: Array
    lo: Array


def two_sum(a: Array, b: Array) -> DD:
    s = a + b
    t = s - a
    return DD(s, (a - (s - t)) + (b - t))


def fast_two_sum(a: Array, b: Array) -> DD:
    """Return ``a + b`` exactly, where ``abs(a) >= abs(b)``."""
    s = a + b
    return DD(s, b - (s - a))


def _split(a: Array) -> tuple[Array, Array]:
    c = _SPLITTER * a
    high = c - (c - a)
    return high, a - high


def two_prod(a: Array, b: Array) -> DD:
    p = a * b
    a1, a2 = _split(a)
    b1, b2 = _split(b)
    return DD(p, ((a1 * b1 - p) + a1 * b2 + a2 * b1) + a2 * b2)


def add(a: DD, b: DD) -> DD:
    """Return ``a + b`` with a small relative error, even if they nearly cancel."""
    s = two_sum(a.hi, b.hi)
    t = two_sum(a.lo, b.lo)
    s = fast_two_sum(s.hi, s.lo + t.hi)
    return fast_two_sum(s.hi, s.lo + t.lo)


def mul(a: DD, b: DD) -> DD:
    p = two_prod(a.hi, b.hi)
    return fast_two_sum(p.hi, p.lo + (a.hi * b.lo + a.lo * b.hi))


def div(a: DD, b: DD) -> DD:
    q1 = a.hi / b.hi
    r = add(a, mul(DD(-q1, np.zeros_like(q1)), b))
    q2 = r.hi / b.hi
    r = add(r, mul(DD(-q2, np.zeros_like(q2)), b))
    return add(fast_two_sum(q1, q2), DD(r.hi / b.hi, np.zeros_like(q1)))


def constant(value: mpmath.mpf, parts: int = 2) -> tuple[float, ...]:
    """Split a number into the floats of decreasing size that sum to it."""
    out = []
    for _ in range(parts):
        out.append(float(value))
        value = value - out[-1]
    return tuple(out)


class Taylor:
    """Many truncated power series, one of them chosen for each element.

    A row holds the coefficients of a series, lowest order first. The first ``exact_terms`` terms
    are summed in double-double, the rest in float64, so the variable must be small enough.
    """

    def __init__(self, rows: list[list[mpmath.mpf]], exact_terms: int) -> None:
        self.exact_terms = exact_terms
        split = [[constant(c) for c in row] for row in rows]
        table = np.array(split, dtype=np.float64)  # series, order, part
        self.hi = np.ascontiguousarray(table[:, :, 0].T)
        self.lo = np.ascontiguousarray(table[:, :exact_terms, 1].T)

    def __call__(self, t: DD, index: NDArray[np.intp] | None = None) -> DD:
        """Sum the series numbered ``index`` at ``t``, or the only series without an index."""
        which = np.zeros(t.hi.shape, dtype=np.intp) if index is None else index
        tail = np.zeros_like(t.hi)
        for order in range(len(self.hi) - 1, self.exact_terms - 1, -1):
            tail = tail * t.hi + self.hi[order].take(which)
        total = DD(tail, np.zeros_like(tail))
        for order in range(self.exact_terms - 1, -1, -1):
            product = mul(total, t)
            s = two_sum(self.hi[order].take(which), product.hi)
            total = fast_two_sum(s.hi, s.lo + (product.lo + self.lo[order].take(which)))
        return total


class _Elementary:
    """Exponential and logarithm, with the constants that they need."""

    steps = 32

    def __init__(self) -> None:
        with mpmath.workprec(300):
            log2 = mpmath.log(2)
            # k * ln2[0] is exact for abs(k) < 2**20.
            first = mpmath.floor(mpmath.ldexp(log2, 32)) / mpmath.mpf(2) ** 32
            self.ln2 = (float(first), *constant(log2 - first))
            rows = [
                [mpmath.exp(mpmath.mpf(j) / self.steps) / mpmath.factorial(k) for k in range(13)]
                for j in range(-12, 13)
            ]
        self.table = Taylor(rows, exact_terms=6)

    def exp(self, x: Array) -> tuple[DD, NDArray[np.int64]]:
        k = np.rint(x / np.log(2.0))
        product = two_prod(k, np.full_like(k, self.ln2[1]))
        r = two_sum(x - k * self.ln2[0], -product.hi)
        r = fast_two_sum(r.hi, r.lo - product.lo - k * self.ln2[2])
        j = np.rint(r.hi * self.steps)
        t = fast_two_sum(r.hi - j / self.steps, r.lo)
        # A remainder just above log(2)/2 still rounds to the last series.
        return self.table(t, j.astype(np.intp) + 12), k.astype(np.int64)

    def log(self, m: DD, exponent: NDArray[np.int64]) -> DD:
        y = np.log(m.hi)
        power, k = self.exp(-y)
        q = mul(m, DD(np.ldexp(power.hi, k), np.ldexp(power.lo, k)))
        q = add(q, DD(np.full_like(y, -1.0), np.zeros_like(y)))
        e = exponent.astype(np.float64)
        low = two_prod(e, np.full_like(e, self.ln2[1]))
        low = fast_two_sum(low.hi, low.lo + e * self.ln2[2])
        total = add(two_sum(e * self.ln2[0], y), low)
        return add(total, fast_two_sum(q.hi, q.lo - q.hi * q.hi / 2))


_elementary = cache(_Elementary)


def exp(x: Array) -> tuple[DD, NDArray[np.int64]]:
    """Return ``(m, k)`` with ``exp(x) = m * 2**k`` and ``m`` in [0.7, 1.42]; abs(x) < 7e5."""
    return _elementary().exp(x)


def log(m: DD, exponent: NDArray[np.int64]) -> DD:
    """Return ``log(m * 2**exponent)`` to about 2**-100 absolutely; ``m`` of moderate size."""
    return _elementary().log(m, exponent)
