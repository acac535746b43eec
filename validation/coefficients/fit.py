"""Fit and round the coefficients of one table of the spec, and measure its errors."""

from collections.abc import Sequence
from dataclasses import dataclass, field
from typing import Any

from mpmath import mp, mpf

from validation.coefficients.functions import fitted, inflection, shifted, variable
from validation.coefficients.remez import PER_TERM, Function, Grid, errors, minimax

DIGITS_OF = {"float64": 53, "float32_in_float64": 53, "float32": 24, "float32_in_u": 24}
CHECK_POINTS = 401
REFITTED = 3  # after rounding each of this many powers, refit the higher ones
STEP_BITS, CENTRE = 12, mpf(3) / 5  # for the centre in the form "shifted"
NEVER_REACHED = 10**7  # its range begins at 1/v = this many times the other end

# The table whose coefficients are only rounded, not refit after rounding.
ROUNDED_ONLY = "neg_kl_hess", "float64"


def rounded(x: mpf, bits: int) -> mpf:
    """Round ``x`` to the nearest number of ``bits`` bits, ties to even."""
    with mp.workprec(bits):
        return +x


@dataclass
class Range:
    """One fitted range: ``P(v) = base_hi + base_lo + v (k1 + v (k2 + ...))``.

    At a root the base is 0, and the rounding of k1 would be an error of the result. There v is
    ``(x - root)(1 + stretch)``, with the stretch for which k1 is a float64.
    """

    form: str
    lo: mpf
    hi: mpf
    centre: mpf
    base: tuple[mpf, mpf]
    coefficients: list[mpf]
    levelled: mpf
    deviation: mpf
    after_rounding: mpf
    stretch: mpf = field(default_factory=mpf)


@dataclass
class Table:
    """The fitted ranges of one function, with the degree of each."""

    function: str
    format: str
    degrees: list[int]
    ranges: list[Range] = field(default_factory=list)
    shift: mpf | None = None

    @property
    def degree(self) -> int:
        """The degree, if all ranges share one."""
        (degree,) = set(self.degrees)
        return degree

    def worst(self, which: str) -> mpf:
        return max(getattr(r, which) for r in self.ranges)


def _centre(form: str, a: mpf, b: mpf, centre_bits: int, wide: bool) -> mpf:
    if form == "root":
        return inflection()
    if form == "origin" or a == 0:
        return mpf(0)
    step = mpf(2) ** -(centre_bits if form == "centre" else centre_bits + 4)
    # In a wide range, closer to the end where the function is small and rounding matters more.
    middle = (5 * a + 3 * b) / 8 if wide else (a + b) / 2
    return mp.nint(middle / step) * step


class Fit:
    """A polynomial fitted to ``function`` on [a, b], with the coefficients of some powers given."""

    def __init__(
        self,
        function: Function,
        a: mpf,
        b: mpf,
        free: Sequence[int],
        known: dict[int, mpf],
        weight: Function | None = None,
    ) -> None:
        self.grid = Grid.chebyshev(function, a, b, PER_TERM * (len(free) + 1), weight)
        self.check = Grid.uniform(function, a, b, CHECK_POINTS, weight)
        self.exact, self.level = minimax(self.grid, free, known)

    def worst(self, coefficients: dict[int, mpf]) -> mpf:
        """Return the largest error on a finer grid than that of the fit."""
        return max(abs(e) for e in errors(self.check, coefficients))

    def rounded(
        self, free: Sequence[int], known: dict[int, mpf], bits: int, enough: float = 0.0
    ) -> dict[int, mpf]:
        """Round from the lowest power up; after each of the first few, refit the others.

        Do not refit if the error is at most ``enough``.
        """
        plain = {k: known[k] if k in known else rounded(c, bits) for k, c in self.exact.items()}
        if self.worst(plain) <= enough:
            return plain
        fixed, current = dict(known), self.exact
        for i, power in enumerate(free):
            fixed[power] = rounded(current[power], bits)
            if i < REFITTED and i + 1 < len(free):
                current, _ = minimax(self.grid, free[i + 1 :], fixed)
        return min(plain, fixed, key=self.worst)

    def errors(self, done: dict[int, mpf]) -> tuple[mpf, mpf, mpf]:
        """Return the levelled error, and the largest before and after rounding."""
        return self.level, self.worst(self.exact), self.worst(done)


def fit_shifted(function: str, shift: mpf, lo: mpf, hi: mpf, degree: int, bits: int) -> Range:
    """Fit the form "shifted": P(v) = base + v (k1 + k2 x + k3 x^2 + ...), where x = v - centre.

    At v = 0, where u is infinite, P equals its base. In powers of v the terms would cancel.
    """
    p, f = shifted(function, shift)
    base = rounded(p(mpf(0)), bits)
    step = mpf(2) ** -STEP_BITS
    centre = mp.nint(hi * CENTRE / step) * step

    def slope(x: mpf) -> mpf:
        return (p(x + centre) - base) / (x + centre)

    def weight(x: mpf) -> mpf:
        return f(x + centre) / (x + centre)

    free = range(degree)
    fit = Fit(slope, lo + hi / NEVER_REACHED - centre, hi - centre, free, {}, weight)
    done = fit.rounded(free, {}, bits)
    coefficients = [done[k] for k in free]
    return Range("shifted", lo, hi, centre, (base, mpf(0)), coefficients, *fit.errors(done))


def fit_range(
    p: Function,
    form: str,
    lo: mpf,
    hi: mpf,
    centre: mpf,
    degree: int,
    format: str,
    enough: float = 0.0,
) -> Range:
    """Fit P on [lo, hi] (in the uncentred variable) and round to ``format``."""
    bits = DIGITS_OF[format]
    a, b = lo - centre, hi - centre
    anchored = form == "root" or a == 0 or b == 0
    known: dict[int, mpf] = {0: mpf(0) if form == "root" else p(centre)} if anchored else {}
    powers = range(1, degree + 1)
    free = powers if anchored else range(degree + 1)
    fit, stretch = Fit(lambda v: p(v + centre), a, b, free, known), mpf(0)
    if form == "root" and format == "float64":
        stretch = fit.exact[1] / rounded(fit.exact[1], bits) - 1
        by = 1 + stretch
        fit = Fit(lambda v: p(v / by + centre), a * by, b * by, free, known)
    base_hi = rounded(fit.exact[0], bits)
    base_lo = mpf(0) if format == "float32_in_float64" else rounded(fit.exact[0] - base_hi, bits)
    done = fit.rounded(powers, {0: base_hi + base_lo}, bits, enough)
    base, coefficients = (base_hi, base_lo), [done[k] for k in powers]
    return Range(form, lo, hi, centre, base, coefficients, *fit.errors(done), stretch)


def fit_table(entry: dict[str, Any], centre_bits: int) -> Table:
    wide = entry["format"] == "float32_in_u"
    degrees = entry["degree"] if wide else [entry["degree"]] * len(entry["ranges"])
    shift = mpf(entry["shift"]) if "shift" in entry else None
    table = Table(entry["function"], entry["format"], degrees, shift=shift)
    start = mpf(0)
    for (form, end), degree in zip(entry["ranges"], degrees, strict=True):
        stop = mpf(end)
        lo, hi = sorted((variable(form, start, shift), variable(form, stop, shift)))
        if form == "shifted" and shift is not None:
            bits = DIGITS_OF[table.format]
            table.ranges.append(fit_shifted(table.function, shift, lo, hi, degree, bits))
        else:
            p = fitted(table.function, form)
            centre = _centre(form, lo, hi, centre_bits, wide)
            enough = 2.0**-55 if (table.function, table.format) == ROUNDED_ONLY else 0.0
            table.ranges.append(fit_range(p, form, lo, hi, centre, degree, table.format, enough))
        start = stop
    return table


def fit_elementary(entry: dict[str, Any]) -> Table:
    """Fit exp or log1p about 0, and keep their base (1 or 0) and first coefficient (1).

    The entry of log(1 + v)/(2 v) has a range instead of a half width; it keeps neither.
    """
    table = Table(entry["function"], entry["format"], [entry["degree"]])
    if "range" in entry:
        lo, hi = map(mpf, entry["range"])
        p = fitted(table.function, "origin")
        table.ranges.append(fit_range(p, "centre", lo, hi, mpf(0), table.degree, table.format))
        return table
    width = mpf(entry["half_width"])
    f = fitted(table.function, "centre")
    known = {0: f(mpf(0)), 1: mpf(1)}
    free = range(2, table.degree + 1)
    fit = Fit(f, -width, width, free, known)
    done = fit.rounded(free, known, DIGITS_OF[table.format])
    coefficients = [done[k] for k in range(1, table.degree + 1)]
    base = (known[0], mpf(0))
    table.ranges.append(
        Range("centre", -width, width, mpf(0), base, coefficients, *fit.errors(done))
    )
    return table
