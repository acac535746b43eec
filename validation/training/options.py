"""What the commands of all experiments have in common: options, errors, and the written record."""

from __future__ import annotations

import argparse
import contextlib
import json
import shlex
import sys
import tempfile
import time
from collections.abc import Callable, Iterator, Sequence
from pathlib import Path
from typing import Any

import torch

from logunif_kl.cli import sources
from logunif_kl.cli._output import CommandError, complain, write_record
from logunif_kl.cli.provenance import provenance
from validation.paths import RESULTS, ROOT, RUNS
from validation.training import data
from validation.training.checkpoint import CheckpointError
from validation.training.data import DataError, Dataset
from validation.training.loop import TrainingError
from validation.training.parts import Parts

_PLACES = ("--data", "--out", "--plot", "--work")  # options whose values are of one machine
_INPUTS = ("--other",)  # and of these, the option stays in the command


class Experiment:
    """One table or figure of a paper: its command, and where its results go.

    Parameters
    ----------
    paper, name : str
        The command is ``python -m validation.papers.PAPER.NAME`` and the record
        ``validation/results/PAPER/NAME.json``.
    description : str
        The first line of the help.
    seeds : sequence of int
        The default seeds of a full run; a quick one takes the first.
    takes_data : bool, optional
        Without images there is no ``--data``, and no dataset among the arguments of ``measure``.
    packages : sequence of str, optional
        The packages whose versions the record has, beside those of every record.
    folder : str, optional
        The folder of its checkpoints in ``build/PAPER``, by default that of its name: experiments
        that name the same one share their networks.
    """

    def __init__(
        self,
        paper: str,
        name: str,
        description: str,
        seeds: Sequence[int],
        *,
        takes_data: bool = True,
        packages: Sequence[str] = ("torch",),
        folder: str | None = None,
    ) -> None:
        self.paper, self.name, self._seeds = paper, name, list(seeds)
        self._takes_data, self._packages = takes_data, packages
        self._subfolder = folder or name
        self.module = f"validation.papers.{paper}.{name}"
        self.parser = argparse.ArgumentParser(
            prog=f"python -m {self.module}",
            description=description.partition("\n")[0],
            allow_abbrev=False,  # `command` knows whole options
        )
        add = self.parser.add_argument
        small = "a small form that takes seconds"
        if takes_data:
            text = f"MNIST: .npz or IDX files (default: ${data.VARIABLE})"
            add("--data", metavar="FILE", help=text)
            small = "a small form on scikit-learn's digits: seconds"
        add("--quick", action="store_true", help=small)
        add("--out", metavar="FILE", help="where to write the record (default: the committed one)")
        add("--seeds", metavar="N", type=int, nargs="+", help=f"default: {self._seeds}")
        add("--work", metavar="FOLDER", help="checkpoints (default: build/ of the repository)")
        add("--threads", metavar="N", type=int, default=1, help="of PyTorch (default: 1)")

    def main(
        self,
        measure: Callable[..., dict[str, Any] | None],
        arguments: Sequence[str] | None = None,
    ) -> int:
        """Parse the options, measure, and write the record; an error is one sentence.

        ``measure`` is called with the options, the dataset if the experiment takes one, and the
        `Parts`.
        """
        given = list(sys.argv[1:] if arguments is None else arguments)
        options = self.parser.parse_args(given)
        if options.seeds is None:
            options.seeds = self._seeds[:1] if options.quick else self._seeds
        threads = torch.get_num_threads()
        try:
            images = [self._dataset(options)] if self._takes_data else []
            torch.set_num_threads(options.threads)
            began = time.monotonic()
            with self._folder(options) as folder:
                about = {"data": images[0].sha256} if images else {}
                parts = self._parts(options, folder, {**about, "quick": options.quick})
                found = measure(options, *images, parts)
            # Parts may have been computed by earlier commands, which were ended.
            seconds = max(parts.seconds, time.monotonic() - began)
            if parts.elsewhere:
                complain(f"{len(parts.elsewhere)} parts are of {RUNS.name}/{self.paper}\n")
                found = found and {**found, "parts_computed_elsewhere": sorted(parts.elsewhere)}
            if found is not None:
                whose = {"data": images[0].about()} if images else {}
                self._write(options, given, {**whose, "seconds": round(seconds, 1), **found})
        except (CheckpointError, CommandError, DataError, TrainingError) as error:
            complain(f"{self.parser.prog}: error: {error}\n")
            return 2
        finally:
            torch.set_num_threads(threads)
        return 0

    @staticmethod
    def _dataset(options: argparse.Namespace) -> Dataset:
        return data.digits() if options.quick else data.load(options.data)

    @contextlib.contextmanager
    def _folder(self, options: argparse.Namespace) -> Iterator[Path]:
        """Give the folder of the checkpoints; a quick form leaves none behind."""
        if options.work is not None:
            yield Path(options.work)
        elif options.quick:
            with tempfile.TemporaryDirectory() as folder:
                yield Path(folder)
        else:
            yield ROOT / "build" / self.paper / self._subfolder

    def _parts(self, options: argparse.Namespace, folder: Path, about: dict[str, Any]) -> Parts:
        """Give the parts; what makes the committed record goes on from what is committed of it.

        That record has no part that other sources computed. Checkpoints serve any, also those of
        experiments that share a folder.
        """
        if options.quick or options.work is not None or options.out is not None:
            return Parts(folder, about)
        about = {**about, "sources_sha256": sources.sha256(f"{self.paper}_{self.name}")}
        return Parts(folder, about, RUNS / self.paper / self.name)

    def _write(
        self,
        options: argparse.Namespace,
        given: Sequence[str],
        found: dict[str, Any],
    ) -> None:
        of = () if options.quick else f"{self.paper}_{self.name}"
        record = {
            **provenance(self.command(given), *self._packages, of=of),
            "threads": options.threads,
            "seeds": options.seeds,
            "quick": options.quick,
            **found,
        }
        if options.out is not None:
            write_record(options.out, record)
        elif options.quick:
            write_record("-", record)
        else:
            path = RESULTS / self.paper / f"{self.name}.json"
            path.parent.mkdir(parents=True, exist_ok=True)
            write_record(str(path), record)

    def command(self, given: Sequence[str] = ()) -> str:
        """Write the command without what belongs to one machine."""
        kept, words = ["python", "-m", self.module], iter(given)
        if self._takes_data and "--quick" not in given:
            kept += ["--data", "FILE"]
        for word in words:
            option, _, value = word.partition("=")
            if option in _PLACES:
                if not value:
                    next(words, None)
                continue
            if option in _INPUTS:
                if not value:
                    next(words, None)
                word, kept = "FILE", [*kept, option]
            kept.append(word)
        return shlex.join(kept)


def read(path: Path) -> dict[str, Any] | None:
    """Read a record; None if there is none."""
    with contextlib.suppress(FileNotFoundError):
        found: dict[str, Any] = json.loads(path.read_text(encoding="utf-8"))
        return found
    return None
