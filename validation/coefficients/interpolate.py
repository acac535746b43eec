"""Tables of smooth functions as polynomials in t - c on each range.

The polynomials interpolate at Chebyshev points, in many digits. A TOML specification names the
functions, types, ranges and degrees. With a ``margin``, the points of each range lie in an interval
that is longer at both ends by this share of the range, because the derivatives of a fit are worst
at the ends of its interval.
"""

import hashlib
import struct
import tomllib
from collections.abc import Callable, Iterator, Mapping
from itertools import pairwise
from pathlib import Path
from typing import Any

import mpmath
from mpmath import mp, mpf

Function = Callable[[mpf], mpf]


def centre(low: mpf, high: mpf) -> mpf:
    """Return the middle of a range as a multiple of 1/256, or 0 for the range that begins at 0."""
    return mpf(int(mp.nint((low + high) * 128))) / 256 if low else mpf(0)


def interpolant(function: Function, low: mpf, high: mpf, degree: int) -> list[mpf]:
    """Return the coefficients of (t - c)^0, ... of the interpolant at Chebyshev points."""
    points = [
        (low + high) / 2 + (high - low) / 2 * mp.cos((2 * k + 1) * mp.pi / (2 * degree + 2))
        for k in range(degree + 1)
    ]
    differences = [function(p) for p in points]
    for order in range(1, degree + 1):
        for k in range(degree, order - 1, -1):
            gap = points[k] - points[k - order]
            differences[k] = (differences[k] - differences[k - 1]) / gap
    found = [differences[-1]]
    for k in range(degree - 1, -1, -1):
        shift = points[k] - centre(low, high)
        longer = [mpf(0), *found]
        for power, value in enumerate(found):
            longer[power] -= shift * value
        longer[0] += differences[k]
        found = longer
    return found


def rounded(x: mpf, dtype: str) -> float:
    packed = "d" if dtype == "float64" else "f"
    return float(struct.unpack(packed, struct.pack(packed, float(x)))[0])


def error(function: Function, row: list[mpf] | list[float], low: mpf, high: mpf) -> mpf:
    """Return the largest error on a fine grid, relative where the function is above 1/8."""
    worst = mpf(0)
    for k in range(101):
        t = low + (high - low) * k / 100
        truth = function(t)
        value, place = mpf(0), t - centre(low, high)
        for coefficient in reversed(row):
            value = value * place + mpf(coefficient)
        worst = max(worst, abs(value - truth) / max(abs(truth), mpf("0.125")))
    return worst


def source(head: str, spec: Path, functions: Mapping[str, Function], *, strings: bool) -> str:
    """Return the text of a Python file with the tables of a specification.

    ``head`` is the text before the tables, with ``SHA256`` for the hash of the specification. The
    coefficients are numbers of the type or, with ``strings``, strings of 26 digits.
    """
    raw = spec.read_bytes()
    entries = tomllib.loads(raw.decode())
    lines = [head.replace("SHA256", hashlib.sha256(raw).hexdigest())]
    with mpmath.workdps(entries["digits"]):
        for table in entries["table"]:
            lines += _entry(table, functions[table["function"]], strings)
    return "\n".join([*lines, "}", "# fmt: on", ""])


def _entry(table: dict[str, Any], function: Function, strings: bool) -> Iterator[str]:
    name, dtype = table["function"], table["format"]
    ends = [mpf(0), *map(mpf, table["bounds"]), mpf(table.get("end", 1))]
    margin = mpf(table.get("margin", 0))
    ranges = [
        (low and low - margin * (high - low), high + margin * (high - low))
        for low, high in pairwise(ends)
    ]
    yield f"    # {name}, {dtype}, degree {table['degree']}:"
    rows = []
    for (low, high), degree in zip(ranges, table["degree"], strict=True):
        exact = interpolant(function, low, high, degree)
        row = [rounded(c, dtype) for c in exact]
        fit, with_rounding = (float(error(function, each, low, high)) for each in (exact, row))
        yield f"    #   {fit:.1e} {with_rounding:.1e}"
        exactly = (mpmath.nstr(c, 26, min_fixed=0, max_fixed=0) for c in exact)
        rows.append([f'"{c}",' for c in exactly] if strings else [f"{c!r}," for c in row])
    yield f'    ("{name}", "{dtype}"): ('
    yield f"        {tuple(table['bounds'])!r},"
    yield f"        {tuple(float(centre(*r)) for r in ranges)!r},"
    yield "        ("
    a_line = 2 if strings else 3
    for texts in rows:
        yield "            ("
        for k in range(0, len(texts), a_line):
            yield "                " + " ".join(texts[k : k + a_line])
        yield "            ),"
    yield "        ),"
    yield "    ),"
