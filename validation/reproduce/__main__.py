"""Run the experiments; ``python -m validation.reproduce``."""

import argparse
import contextlib
import os
import shlex
import signal
import subprocess
import sys
import tempfile
from collections.abc import Iterator, Mapping, Sequence
from importlib.util import find_spec
from pathlib import Path

from validation.output import CommandError, complain, emit
from validation.paths import ROOT
from validation.reproduce import listing
from validation.reproduce.work import STUDIES, Work, chosen, full_command, results, works
from validation.training import data
from validation.training.data import DataError

PROGRAM = "python -m validation.reproduce"
OPTIONS = {"MNIST": "--data", "Fashion-MNIST": "--fashion-mnist", "CIFAR-10": "--cifar10"}


def main(arguments: Sequence[str] | None = None) -> int:
    """Run the command line; return 0, 1 after a failure, 2 after an error, 130 if interrupted."""
    options = _parser().parse_args(arguments)
    try:
        names = chosen(options.names)
        if options.list:
            listing.put(options.names)
            return 0
        takers = [name for name in names if name not in STUDIES]
        if takers and find_spec("torch") is None:
            raise CommandError(
                f"nothing was run, since {takers[0]} needs PyTorch, which is not installed: "
                "run pip install -r validation/frameworks.txt"
            )
        wanted = works(names)
        with _terminated_as_interrupted():
            if options.quick:
                with tempfile.TemporaryDirectory() as folder:
                    return _run(wanted, folder=Path(folder))
            return _run(wanted, files=_files(wanted, vars(options)))
    except CommandError as error:
        complain(f"{PROGRAM}: error: {error}\n")
        return 2
    except KeyboardInterrupt:
        complain(f"{PROGRAM}: interrupted; an experiment resumes from its checkpoints\n")
        return 130


@contextlib.contextmanager
def _terminated_as_interrupted() -> Iterator[None]:
    """Treat SIGTERM as an interrupt, so that no command outlives this one."""
    before = signal.signal(signal.SIGTERM, signal.default_int_handler)
    try:
        yield
    finally:
        signal.signal(signal.SIGTERM, before)


def run(argv: list[str]) -> int:
    return subprocess.call(argv, cwd=ROOT)  # ends the command at an interrupt


def _parser() -> argparse.ArgumentParser:
    parser = argparse.ArgumentParser(
        prog=PROGRAM,
        description="Run the experiments of the papers, and print what they find next to what the "
        "papers print. An experiment that was ended resumes from its checkpoints.",
    )
    add = parser.add_argument
    named = "a paper, PAPER.EXPERIMENT, or a study such as ladder (default: all)"
    add("names", nargs="*", metavar="NAME", help=named)
    add("--list", action="store_true", help="say what there is and what shows it; run nothing")
    add("--quick", action="store_true", help="small forms, of small images; no record is written")
    for images, option in OPTIONS.items():
        text = f"{images} {data.FORMS[images]} (default: ${data.VARIABLES[images]})"
        add(option, metavar="FILE", dest=images, help=text)
    return parser


def _files(works: Mapping[str, Work], named: Mapping[str, str | None]) -> dict[str, str]:
    """Return the paths of the images that the works take, after checking them."""
    files: dict[str, str] = {}
    for images, option in OPTIONS.items():
        takers = [name for name, work in works.items() if work.images == images]
        if not takers:
            continue
        try:
            data.load(named[images], images, option)
        except DataError as error:
            first, others = takers[0], len(takers) - 1
            whose = f"{first} and {others} more take" if others else f"{first} takes"
            raise DataError(f"nothing was run, since {whose} {images}, and {error}") from None
        files[images] = os.path.abspath(named[images] or os.environ[data.VARIABLES[images]])
    return files


def _run(
    works: Mapping[str, Work], files: Mapping[str, str] | None = None, folder: Path | None = None
) -> int:
    """Run the full forms on the files of the images, or the quick forms in a folder."""
    failed = []
    for place, (name, work) in enumerate(works.items(), 1):
        how = "in its quick form" if folder else work.command()
        emit(f"\n[{place}/{len(works)}] {name}: {work.title} ({how})\n\n")
        argv = work.quick_command(folder) if folder else full_command(work, files or {})
        status = run(argv)
        if status:
            how = f"signal {-status}" if status < 0 else f"exit status {status}"
            again = shlex.join(["python", *argv[1:]])
            failed.append(f"{name} failed with {how}: run {again} to see why")
            continue
        if folder and work.paper:
            images = ", on scikit-learn's digits" if work.images else ""
            emit(f"The numbers are those of a small form{images}; the words are of the full one.\n")
            emit("\n")
        emit(results(work, folder))
    emit(f"\n{len(works) - len(failed)} of {len(works)} were run without failure.\n")
    for sentence in failed:
        complain(f"{PROGRAM}: {sentence}\n")
    return 1 if failed else 0


if __name__ == "__main__":
    sys.exit(main())
