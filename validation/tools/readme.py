"""Write the tables of README.md from the committed results.

    python -m validation.tools.readme [--check]

A section lies between ``<!-- results: NAME -->`` and ``<!-- end -->``. It shows records of
``validation/results`` and their commands.
"""

import re
import sys
from pathlib import Path

from validation import generated
from validation.paths import ROOT
from validation.tools import tables

COMMAND = "python -m validation.tools.readme"
README = ROOT / "README.md"
SECTION = re.compile(r"(<!-- results: (\w+) -->\n).*?(<!-- end -->)", re.DOTALL)


def sources() -> dict[Path, str]:
    text = README.read_text(encoding="utf-8")
    return {README: SECTION.sub(lambda found: found[1] + tables.section(found[2]) + found[3], text)}


if __name__ == "__main__":
    sys.exit(generated.main(COMMAND, sources))
