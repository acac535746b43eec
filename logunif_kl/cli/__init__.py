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
        The arguments after the program's name. The default is ``sys.argv[1:]``.

    Returns
    -------
    int
        0 on success, 1 after a failed check, 2 after an error and 130 after an interrupt, even one
        during the imports of `main`. A failure or an error prints one sentence on standard error.
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
    """If this process is the command line, end it with the message and status of an interrupt.

    `main` cannot catch an interrupt that arrives while the package is imported.
    """
    program = sys.argv[0].replace("\\", "/").rpartition("/")[2] if sys.argv else ""
    # With ``python -m``, sys.argv[0] is "-m" until Python has found the module.
    as_module = program == "-m" and not {"logunif_kl", "-mlogunif_kl"}.isdisjoint(sys.orig_argv)
    if as_module or program.startswith("logunif-kl"):
        raise SystemExit(fail("interrupted", 130)) from None
