"""Write the tables of README.md from the committed results.

    python -m validation.tools.readme [--check]

A section lies between ``<!-- results: NAME -->`` and ``<!-- end -->``. It shows files of
``validation/results`` and, for each, the command that makes it. ``--check`` writes nothing, and
fails if the README shows anything else.
"""

import argparse
import re
import sys
from collections.abc import Sequence

from validation.paths import RESULTS, ROOT
from validation.reports import REPORTS
from validation.tools import tables

README = ROOT / "README.md"
SECTION = re.compile(r"(<!-- results: (\w+) -->\n).*?(<!-- end -->)", re.DOTALL)


def missing(text: str) -> list[str]:
    """Say of each file that a section shows, and that is not there, which command makes it."""
    files = [
        tables.path(file)
        for found in SECTION.finditer(text)
        for file in tables.SECTIONS[found[2]][1]
        if not (RESULTS / f"{file}.json").exists()
    ]
    return [f"{file} is not there, and {REPORTS[file].command} makes it" for file in files]


def rewritten(text: str) -> str:
    """Return the README with every section made anew."""
    return SECTION.sub(lambda found: found[1] + tables.section(found[2]) + found[3], text)


def main(arguments: Sequence[str] | None = None) -> int:
    parser = argparse.ArgumentParser(prog="python -m validation.tools.readme", description=__doc__)
    parser.add_argument("--check", action="store_true", help="write nothing; fail on a difference")
    options = parser.parse_args(arguments)
    text = README.read_text(encoding="utf-8")
    for line in missing(text):
        print(line, file=sys.stderr)
    new = rewritten(text)
    if options.check:
        if new != text:
            print(
                "README.md differs from validation/results: run python -m validation.tools.readme"
            )
        return int(new != text)
    README.write_text(new, encoding="utf-8")
    return 0


if __name__ == "__main__":
    sys.exit(main())
