"""Decide the claims; ``python -m validation.papers``."""

import argparse
import sys
from collections.abc import Iterator, Sequence
from importlib import import_module

from validation import record
from validation.output import Record, track, write_record
from validation.papers.statement import STATEMENTS
from validation.paths import RESULTS, ROOT

# Each module registers its statements. This order is that of papers.json.
for _module in (
    "kingma2015.floats",
    "hron2017.claims",
    "kingma2015.claims",
    "kingma2015.appendices",
    "molchanov2017.claims",
    "haussmann2018.claims",
    "gal2016.claims",
):
    import_module(f"validation.papers.{_module}")

RESULT = RESULTS / "papers" / "papers.json"


def decided(names: Sequence[str]) -> list[Record]:
    work = track(names, "reading papers", len(names))
    return [STATEMENTS[name]() for name in work]


def complaints(made: Record, *, replay: bool = True) -> Iterator[str]:
    if replay:
        yield from record.computed_again(made, {"claims": decided(list(STATEMENTS))})


def main(arguments: Sequence[str] | None = None) -> int:
    parser = argparse.ArgumentParser(prog="python -m validation.papers")
    parser.add_argument("names", nargs="*", metavar="NAME", help="which claims (default: all)")
    options = parser.parse_args(arguments)
    unknown = [name for name in options.names if name not in STATEMENTS]
    if unknown:
        parser.error(f"there is no claim {unknown[0]!r}: choose from {', '.join(STATEMENTS)}")
    records = decided(options.names or list(STATEMENTS))
    for each in records:
        print(f"{each['verdict']:11}  {each['name']}: {each['note']}")
    if not options.names:
        document = {**record.about("python -m validation.papers"), "claims": records}
        write_record(str(RESULT), document)
        print(f"wrote {RESULT.relative_to(ROOT)}")
    return 0


if __name__ == "__main__":
    sys.exit(main())
