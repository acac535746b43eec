"""Make the golden tables, or check that making them again gives the same.

    python -m validation.golden.make [--check] [NAME ...]

Each value is computed by logunif_kl.reference to 50 digits. If there is a ball of
logunif_kl.reference.enclosure*, the value must lie in it. It is written with 40 digits.
"""

import argparse
import hashlib
import sys
from collections.abc import Callable

import mpmath

from logunif_kl import reference
from tests import golden
from validation import record
from validation.golden import points

DIGITS, DPS, BITS = 40, 50, 170

COLUMNS = {"neg_kl_normal": ("mu", "log_sigma2", "neg_kl_normal", "d/dmu", "d/dlog_sigma2")}
BALLS: dict[str, Callable] = {
    "kl_gap": reference.enclosure_gap,
    "kl_gap_grad": reference.enclosure_gap_grad,
    "kl_gap_hess": reference.enclosure_gap_hess,
    "neg_kl": reference.enclosure,
    "neg_kl_grad": reference.enclosure_grad,
    "neg_kl_hess": reference.enclosure_hess,
}


def truth(name: str, row: tuple[float, ...]) -> tuple:
    if name == "neg_kl_normal":
        mu, log_sigma2 = row
        value = reference.neg_kl_normal(mu, log_sigma2, DPS)
        return value, *reference.neg_kl_normal_grad(mu, log_sigma2, DPS)
    return (getattr(reference, name)(*row, DPS),)


def check(name: str, row: tuple[float, ...], value: mpmath.mpf) -> None:
    """Raise AssertionError unless python-flint's ball and the value overlap."""
    from flint import arb

    ball = BALLS[name](*row, BITS)
    if not mpmath.isfinite(value):
        assert ball.is_nan() if mpmath.isnan(value) else not ball.is_finite(), (name, row)
        return
    rounded = arb(value)
    slack = abs(rounded) * arb(10) ** (1 - DPS)
    assert (rounded + arb(0, 1) * slack).overlaps(ball), (name, row, value, ball)


def written(name: str, row: tuple[float, ...]) -> str:
    values = truth(name, row)
    if name in BALLS:
        check(name, row, values[0])
    return " ".join([*(v.hex() for v in row), *map(decimal, values)]) + "\n"


def decimal(value: mpmath.mpf) -> str:
    """Return the digits that a table holds, always with an exponent."""
    return str(mpmath.nstr(value, DIGITS, min_fixed=0, max_fixed=0)).removeprefix("+")


def header(name: str, rows: str) -> str:
    about = record.about(f"python -m validation.golden.make {name}", "gmpy2", "python-flint")
    ball = BALLS.get(name)
    lines = {
        "function": f"logunif_kl.reference.{name}, {DIGITS} significant digits, zeros unsigned",
        "columns": ", ".join(COLUMNS.get(name, ("log_alpha" if "neg" in name else "u", name))),
        "command": about["command"],
        "versions": ", ".join(f"{p} {version}" for p, version in about["versions"].items()),
        "commit": about["commit"],
        "checked": f"each row against logunif_kl.reference.{ball.__name__}"
        if ball
        else "by two definitions only",
        "rows": str(rows.count("\n")),
        "sha256": hashlib.sha256(rows.encode()).hexdigest(),
    }
    return "".join(f"# {key}: {value}\n" for key, value in lines.items())


def main(argv: list[str] | None = None) -> int:
    parser = argparse.ArgumentParser(description=__doc__.splitlines()[0])
    parser.add_argument("--check", action="store_true", help="write nothing, compare")
    parser.add_argument("names", nargs="*", choices=[*golden.NAMES, []], metavar="NAME")
    options = parser.parse_args(argv)
    differing = []
    for name in options.names or golden.NAMES:
        rows = "".join(written(name, row) for row in points.of(name))
        if options.check:
            same = golden.load(name).text == rows
            differing += [] if same else [name]
            print(f"{name}: {'the same' if same else 'DIFFERS'}")
        else:
            (golden.HERE / f"{name}.txt").write_text(header(name, rows) + rows, encoding="ascii")
            print(f"{name}: {rows.count(chr(10))} rows")
    return 1 if differing else 0


if __name__ == "__main__":
    sys.exit(main())
