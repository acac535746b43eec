"""The command line, ``logunif-kl``."""

from __future__ import annotations

import sys
from collections.abc import Sequence


def main(argv: Sequence[str] | None = None) -> int:
    """Run the command line and return its exit status.

    Parameters
    ----------
    argv : sequence of str, optional
        The arguments after the program's name; those of the process by default.

    Returns
    -------
    int
        0 on success; 2 after an error, 1 after a check that failed, each with one sentence on
        standard error; 130 when interrupted, also while what it needs is imported.
    """
    try:
        from ._main import main as run
    except KeyboardInterrupt:
        sys.stderr.write("logunif-kl: error: interrupted\n")
        return 130
    return run(argv)
