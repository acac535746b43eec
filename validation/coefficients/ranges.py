"""Propose ranges for a table: how far a polynomial of a given degree reaches.

``python -m validation.coefficients.ranges kl_gap_grad 14 4e-18 origin,centre,centre,recip,recip``
extends each form from u = 0 as far as the tolerance allows, and prints the breakpoints.
``spec.toml`` holds those that were chosen.
"""

import sys
from collections.abc import Callable

from mpmath import mp, mpf

from validation.coefficients.functions import fitted, inflection, variable

NODES = 40


def chebyshev_tail(f: Callable[[mpf], mpf], lo: mpf, hi: mpf, degree: int, root: mpf | None) -> mpf:
    """Return the relative size of the Chebyshev coefficients beyond ``degree``."""
    cosines = [mp.cos(mp.pi * (j + mpf(1) / 2) / NODES) for j in range(NODES)]
    points = [(lo + hi) / 2 + (hi - lo) / 2 * c for c in cosines]
    values = [f(p) / (p - root) if root is not None else f(p) for p in points]
    tail = mpf(0)
    for k in range(degree + 1, min(degree + 8, NODES)):
        angle = [mp.cos(mp.pi * k * (j + mpf(1) / 2) / NODES) for j in range(NODES)]
        tail += abs(2 * mp.fdot(zip(values, angle, strict=True)) / NODES)
    return tail / min(abs(x) for x in values)


def reach(function: str, form: str, start: mpf, degree: int, tolerance: mpf) -> mpf:
    """Return the furthest end of a range of ``form`` that begins at u = ``start``."""
    f = fitted(function, form)
    root = inflection() if form == "root" else None

    def good(end: mpf) -> bool:
        a, b = sorted((variable(form, start), variable(form, end)))
        return bool(chebyshev_tail(f, a, b, degree, root) < tolerance)

    if form == "recip" and good(mp.inf):
        return mp.inf
    near, far = start, 3 * start + 6
    for _ in range(10):
        middle = (near + far) / 2
        near, far = (middle, far) if good(middle) else (near, middle)
    return near


def main() -> None:
    function, degree, tolerance = sys.argv[1], int(sys.argv[2]), mpf(sys.argv[3])
    at = mpf(0)
    for form in sys.argv[4].split(","):
        new = reach(function, form, at, degree, tolerance)
        print(f"{form:7s} {float(at):.6g} to {float(new):.6g}", flush=True)
        at = new
        if mp.isinf(at):
            break


if __name__ == "__main__":
    with mp.workdps(45):
        main()
