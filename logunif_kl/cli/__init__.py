"""The command line, ``logunif-kl``."""

from __future__ import annotations

import sys
from collections.abc import Sequence

from ._process import fail, lacks_memory


def main(argv: Sequence[str] | None = None) -> int:
    """Run the command line and return its exit status.

    Parameters
    ----------
    argv : sequence of str, optional
        The arguments after the program's name; by default the arguments of the process.

    Returns
    -------
    int
        0 on success; 1 after a failed check and 2 after an error, each with one sentence on
        standard error; 130 after an interrupt, even while `main` imports the modules it needs.
    """
    try:
        from ._main import run

        return run(list(sys.argv[1:] if argv is None else argv))
    except KeyboardInterrupt:
        return fail("interrupted", 130)
    except Exception as error:
        if not lacks_memory(error):
            raise
        reason = f" ({error})" if isinstance(error, MemoryError) and str(error) else ""
        return fail(f"not enough memory{reason}: ask for less, or give the process more")


def end_if_started() -> None:
    """End a process that was started as the command line, as an interrupt does.

    `main` cannot catch an interrupt that arrives while the package is imported.
    """
    program = sys.argv[0].replace("\\", "/").rpartition("/")[2] if sys.argv else ""
    # While Python searches for the module of -m, sys.argv[0] is "-m".
    as_module = program == "-m" and not {"logunif_kl", "-mlogunif_kl"}.isdisjoint(sys.orig_argv)
    if as_module or program.startswith("logunif-kl"):
        raise SystemExit(fail("interrupted", 130)) from None
