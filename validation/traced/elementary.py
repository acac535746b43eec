"""The polynomials of the exponential and the logarithm in float32, for the C header."""

from __future__ import annotations

from collections.abc import Callable
from functools import cache

import mpmath
from mpmath import mp, mpf

from validation.coefficients.fit import CHECK_POINTS, _round_one_by_one, _worst, rounded
from validation.coefficients.remez import PER_TERM, Grid, minimax

DIGITS, BITS = 40, 24
# log 2 in two parts: an exponent of 8 bits times the first is exact.
HIGH_BITS = 15


def _fit(
    f: Callable[[mpf], mpf], lo: mpf, hi: mpf, known: dict[int, mpf], degree: int
) -> tuple[list[mpf], mpf]:
    """Return the rounded coefficients after the known ones, and the worst relative error."""
    free = list(range(max(known) + 1, degree + 1))
    grid = Grid.chebyshev(f, lo, hi, PER_TERM * (len(free) + 1))
    check = Grid.uniform(f, lo, hi, CHECK_POINTS)
    exact, _ = minimax(grid, free, known)
    done = _round_one_by_one(grid, check, exact, free, known, BITS)
    return [done[k] for k in free], _worst(check, done)


def _table(name: str, about: str, coefficients: list[mpf], worst: mpf) -> str:
    lines = [
        f"/* {about};",
        f" * relative error {float(worst):.1e} with the rounded coefficients */",
        f"enum {{ {name}_TERMS = {len(coefficients)} }};",
        f"static const float {name}[] = {{",
        *(f"    {float(c).hex()}f," for c in coefficients),
        "};",
        "",
    ]
    return "\n".join(lines)


HEADER = """\
/* Coefficients of exp and log in float32, for `float32_simd.h`.
 *
 * Written by `COMMAND`: do not edit. */

#ifndef LOGUNIF_KL_FLOAT32_COEFFICIENTS_H
#define LOGUNIF_KL_FLOAT32_COEFFICIENTS_H
"""


@cache
def source(command: str) -> str:
    """Return the text of the generated header."""
    with mp.workdps(DIGITS):
        log2 = mp.log(2)
        high = mp.floor(log2 * 2**HIGH_BITS) / 2**HIGH_BITS
        half = log2 / 2 * mpf("1.0001")
        exp = _fit(mp.exp, -half, half, {0: mpf(1), 1: mpf(1)}, 6)
        log = _fit(
            lambda v: mpmath.log1p(v) / v,
            mpf(-1) / 4,
            mpf(1) / 2,
            {0: mpf(1), 1: mpf(-1) / 2},
            9,
        )
        lines = [
            HEADER.replace("COMMAND", command),
            _table("EXP_F", "exp(v) = 1 + v + v^2 (k2 + k3 v + ...), |v| <= log(2)/2", *exp),
            _table("LOG_F", "log(1 + v) = v - v^2/2 + v^3 (k3 + ...), -1/4 <= v <= 1/2", *log),
            f"#define LOG2_F_HI {float(high).hex()}f",
            f"#define LOG2_F_LO {float(rounded(log2 - high, BITS)).hex()}f",
            f"#define PER_LOG2_F {float(rounded(1 / log2, BITS)).hex()}f",
            "",
            "#endif",
            "",
        ]
        return "\n".join(lines)
