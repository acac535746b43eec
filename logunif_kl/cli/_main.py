"""Parse and run commands. An error of the user is printed as one sentence, with exit status 2."""

from __future__ import annotations

import argparse
import shlex
import shutil
import sys
from collections.abc import Sequence
from typing import Any, NoReturn

from .. import __version__
from . import bench, compare, fit, table, validate
from ._output import CommandError, wrapped
from ._process import emit, fail, lacks_memory, silence

PROGRAM = "logunif-kl"
COMMANDS = (compare, table, fit, validate, bench)


class _Parser(argparse.ArgumentParser):
    def error(self, message: str) -> NoReturn:
        raise CommandError(f"{message}; see {self.prog} --help")

    def parse_known_args(self, args: Any = None, namespace: Any = None) -> Any:
        """Parse, but let the parser of a command refuse what it does not know: it has the help."""
        found, rest = super().parse_known_args(args, namespace)
        if rest:
            self.error(f"unrecognized arguments: {' '.join(rest)}")
        return found, rest

    def format_help(self) -> str:
        """Return the help with long lines wrapped: argparse does not wrap the usage line."""
        width = max(11, shutil.get_terminal_size().columns)
        lines = super().format_help().split("\n")
        return "\n".join(wrapped(x, width) if len(x) > width else x for x in lines)

    def print_help(self, file: Any = None) -> None:
        """Print the help. Unlike argparse, raise an error if standard output cannot be written."""
        if file is None:
            emit(self.format_help())
        else:
            super().print_help(file)


class _Version(argparse.Action):
    def __call__(self, parser: argparse.ArgumentParser, *_: Any, **__: Any) -> None:
        emit(f"{PROGRAM} {__version__}\n")
        parser.exit()


def build_parser() -> argparse.ArgumentParser:
    """Build the parser for all commands. Each command adds its own subparser."""
    parser = _Parser(
        prog=PROGRAM,
        description="The exact KL divergence from a Gaussian to the log-uniform prior, "
        "and the published approximations measured against it.",
    )
    parser.add_argument("--version", action=_Version, nargs=0, help="print the version and exit")
    subparsers = parser.add_subparsers(
        title="commands", metavar="COMMAND", dest="command", required=True, parser_class=_Parser
    )
    for module in COMMANDS:
        module.add_parser(subparsers)
    return parser


def run(arguments: Sequence[str]) -> int:
    """Run a command and return its exit status. If the user made an error, print one sentence."""
    if sys.stdout is None:
        return fail("standard output is closed: leave it open, or send it to a file")
    try:
        options = build_parser().parse_args([_shield(argument) for argument in arguments])
        options.run(options, shlex.join([PROGRAM, *arguments]))
    except (CommandError, ValueError, TypeError) as error:
        return fail(" ".join(str(error).split()), getattr(error, "status", 2))
    except BrokenPipeError:
        silence(sys.stdout)
    except OSError as error:
        if lacks_memory(error):
            raise
        reason = error.strerror or error
        if error.filename is None:  # the error is not about a file
            silence(sys.stdout)
            return fail(f"cannot write to standard output: {reason}; send it elsewhere")
        return fail(f"{error.filename}: {reason}")
    return 0


def _shield(argument: str) -> str:
    """Add a leading space to -1e3 or -inf, so that argparse does not take it for an option."""
    if not argument.startswith("-"):
        return argument
    try:
        float(argument)
    except ValueError:
        return argument
    return f" {argument}"
