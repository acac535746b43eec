"""Fit the best formula for each number of terms, for the value and for the gradient.

    python -m validation.ladder [--sigmoids N] [--degree N] [--out FILE]

Writes ``validation/results/ladder/ladder.json``, or FILE. Fails if a fit is no better than the one
with one term fewer, or than the published formula of the same form. The results hold the text of
each fit in NumPy and in PyTorch, for copying.
"""

import argparse
import itertools
import shlex
import sys
import time
from collections.abc import Iterator, Sequence
from pathlib import Path

from logunif_kl.cli.fit import ladder_document
from logunif_kl.fitting import Rung, ladder
from validation import record
from validation.output import Record, write_record
from validation.paths import RESULTS

RESULT = RESULTS / "ladder" / "ladder.json"
LANGUAGES = ("numpy", "torch")
# Coefficients that fit equally well, and the places of equally large errors.
NOISE = ("*.coefficients.*", "*.extrema.*", "*_at", "*_text.*")
EXACT = {"sigmoid": 2, "polynomial": 8}  # terms up to which every processor finds the same fits
SEARCHED = 0.02  # allowed difference of a searched fit's error between processors
DIGITS = 8  # in the text of a fit, whose error is not known to more digits


def faults(rungs: Sequence[Rung]) -> Iterator[str]:
    """Say which fits are no better than one with fewer terms, or than the published formula."""
    for below, rung in itertools.pairwise(rungs):
        if not rung.value.max_error < below.value.max_error:
            yield f"{rung.family} {rung.terms}: the value is no better than one term less"
        if not rung.gradient.max_grad_error < below.gradient.max_grad_error:
            yield f"{rung.family} {rung.terms}: the gradient is no better than one term less"
    for rung in rungs:
        theirs = rung.published
        if theirs is not None and not (
            rung.value.max_error < theirs.max_error
            and rung.gradient.max_grad_error < theirs.max_grad_error
        ):
            yield f"{rung.family} {rung.terms}: {theirs.name} is better"


def document(rungs: Sequence[Rung]) -> list[Record]:
    made: list[Record] = ladder_document(rungs)["rungs"]
    for entry, rung in zip(made, rungs, strict=True):
        for name, fit in (("value", rung.value), ("gradient", rung.gradient)):
            short = fit.rounded(DIGITS)
            entry[f"{name}_text"] = {language: short.formula(language) for language in LANGUAGES}
            errors = {"value": short.max_error, "gradient": short.max_grad_error}
            entry[f"{name}_text_error"] = errors
    return made


def complaints(made: Record, *, replay: bool = True) -> Iterator[str]:
    """Compare all rungs with today's. Rounding leads the search for many sigmoids elsewhere."""
    now, old = [], []
    if not replay:
        return
    for family, at_most in EXACT.items():
        committed = [each for each in made["rungs"] if each["family"] == family]
        again = document(ladder(len(committed), family))
        now += again[:at_most]
        old += committed[:at_most]
        for before, rung in zip(committed[at_most:], again[at_most:], strict=True):
            for name in ("value", "gradient"):
                was, found = before[name]["level"], rung[name]["level"]
                if abs(found - was) > SEARCHED * was:
                    yield f"{family} {rung['terms']}: the {name} is {found:.3g} off, not {was:.3g}"
    yield from record.computed_again({"rungs": old}, {"rungs": now}, NOISE)


def main(argv: Sequence[str] | None = None) -> int:
    arguments = list(sys.argv[1:] if argv is None else argv)
    parser = argparse.ArgumentParser(description=__doc__.partition("\n")[0])
    parser.add_argument("--sigmoids", type=int, default=5)
    parser.add_argument("--degree", type=int, default=8)
    parser.add_argument("--out", metavar="FILE", type=Path, default=RESULT)
    options = parser.parse_args(arguments)
    climbed, seconds = {}, {}
    for family, terms in (("sigmoid", options.sigmoids), ("polynomial", options.degree)):
        began = time.process_time()
        climbed[family] = ladder(terms, family)
        seconds[family] = round(time.process_time() - began, 1)
    result = {
        **record.about(shlex.join(["python", "-m", "validation.ladder", *arguments])),
        "cpu_seconds": seconds,
        "text_digits": DIGITS,
        "rungs": [entry for rungs in climbed.values() for entry in document(rungs)],
    }
    write_record(str(options.out), result, finite=True)
    failed = [line for rungs in climbed.values() for line in faults(rungs)]
    for line in failed:
        print(line, file=sys.stderr)
    return 1 if failed else 0


if __name__ == "__main__":
    sys.exit(main())
