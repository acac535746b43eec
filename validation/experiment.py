"""An experiment of a paper, declared as one object in its own file."""

import argparse
import ast
import contextlib
import inspect
import json
import shlex
import subprocess
import sys
import tempfile
import time
from collections.abc import Callable, Iterator, Mapping, Sequence
from dataclasses import KW_ONLY, dataclass, field
from functools import cache
from importlib import import_module
from pathlib import Path
from typing import Any

from validation import record
from validation.output import SEAL, CommandError, Record, complain, write_record
from validation.paths import RESULTS, ROOT
from validation.training import data
from validation.training.data import Dataset
from validation.training.parts import Incomplete, Parts

# The modules of the experiments use the last four.
__all__ = ["PAPERS", "Dataset", "Experiment", "Parts", "Record", "experiments", "names", "subplots"]

PAPERS = ("kingma2015", "hron2017", "molchanov2017", "haussmann2018", "gal2016")
_PLACES = ("--data", "--out", "--work")  # options whose values belong to one machine
# The fields of a record besides its results.
_ABOUT = {"command", "commit", "date", "versions", "machine", "kernel", SEAL}
_ABOUT |= {"settings", "data", "seconds"}


@dataclass(eq=False)
class Experiment:
    """One table or figure of a paper.

    Its command is ``python -m validation.papers.PAPER.NAME``, and its record
    ``validation/results/PAPER/NAME.json``.
    """

    file: str
    """``__file__`` of the module, whose docstring is the title and the first paragraph of its part
    of the paper's page, and then what a reader of the code needs in addition."""
    measure: Callable[..., Record]
    """Returns the findings, from ``settings``, a ``dataset`` if it takes one, and ``parts``."""
    table: Callable[[Record], str]
    """Writes the record as Markdown, next to what the paper prints."""
    full: Mapping[str, Any] = field(default_factory=dict)
    quick: Mapping[str, Any] = field(default_factory=dict)
    """The sizes of a full run, and those of a quick one that differ."""
    _: KW_ONLY
    place: int
    """Its place on the page."""
    seeds: Sequence[int] = (1,)
    """The seeds of a full run; a quick one takes the first."""
    choose: Sequence[str] = ()
    """The sizes that are options of the command, too."""
    draw: Callable[[Record], Any] | None = None
    """Draws a record, and returns the figure of matplotlib."""
    parted: bool = False
    """Whether several processes can share the work, by ``--part``."""
    packages: Sequence[str] = ("torch",)
    """The packages whose versions the record has, in addition to those of every record."""
    images: str | None = "MNIST"
    """The images of its ``dataset``: a key of `data.VARIABLES`; None if it takes none."""
    noise: Sequence[str] = ()
    """Patterns of the columns that are nothing but rounding errors, which no probe holds."""
    folder: str | None = None
    """The folder of its checkpoints in ``build/PAPER``, if other experiments share it."""

    def __post_init__(self) -> None:
        self.paper, self.name = Path(self.file).parent.name, Path(self.file).stem
        self.module = f"validation.papers.{self.paper}.{self.name}"
        self.path = RESULTS / self.paper / f"{self.name}.json"
        docstring = ast.get_docstring(ast.parse(Path(self.file).read_text(encoding="utf-8"))) or ""
        title, about, *_ = docstring.split("\n\n")
        self.title, self.about = title.removesuffix("."), about.replace("\n", " ")
        if "dataset" not in inspect.signature(self.measure).parameters:
            self.images = None
        self.full, self.quick = dict(self.full), {**self.full, **self.quick}
        self.parser = self._parser()

    def _parser(self) -> argparse.ArgumentParser:
        parser = argparse.ArgumentParser(
            prog=f"python -m {self.module}",
            description=self.title,
            allow_abbrev=False,  # `command` knows only whole options
        )
        add = parser.add_argument
        small = "a small form that takes seconds"
        if self.images:
            variable = data.VARIABLES[self.images]
            text = f"{self.images} {data.FORMS[self.images]} (default: ${variable})"
            add("--data", metavar="FILE", help=text)
            small = "a small form on scikit-learn's digits: seconds"
        add("--quick", action="store_true", help=small)
        add("--out", metavar="FILE", help="where to write the record (default: the committed one)")
        add("--seeds", metavar="N", type=int, nargs="+", help=f"default: {list(self.seeds)}")
        add("--work", metavar="FOLDER", help="checkpoints (default: build/ of the repository)")
        add("--threads", metavar="N", type=int, default=1, help="of PyTorch (default: 1)")
        if self.parted:
            add("--part", metavar="I/N", help="do every N-th part of the work, and write no record")
        for name in self.choose:
            value = self.full[name]
            some = value[0] if isinstance(value, list) else value
            several: Record = {"nargs": "+"} if isinstance(value, list) else {}
            if isinstance(some, str):
                add(f"--{name}", metavar="NAME", choices=value, **several)
            else:
                add(f"--{name}", metavar="N", type=type(some), **several)
        return parser

    def settings(self, options: argparse.Namespace) -> Record:
        sizes = self.quick if options.quick else self.full
        given = {name: getattr(options, name) for name in self.choose}
        return {
            "quick": options.quick,
            "seeds": options.seeds or list(self.seeds[:1] if options.quick else self.seeds),
            "threads": options.threads,
            **sizes,
            **{name: value for name, value in given.items() if value is not None},
        }

    def main(self, arguments: Sequence[str] | None = None) -> int:
        """Parse the options, measure, and write the record. Report an error in one sentence."""
        given = list(sys.argv[1:] if arguments is None else arguments)
        options = self.parser.parse_args(given)
        torch = sys.modules.get("torch")
        threads = torch.get_num_threads() if torch else 0
        try:
            if torch:
                torch.set_num_threads(options.threads)
            self._run(options, given)
        except Incomplete:
            pass
        except CommandError as error:
            complain(f"{self.parser.prog}: error: {error}\n")
            return 2
        finally:
            if torch:
                torch.set_num_threads(threads)
        return 0

    def run(self, name: str) -> None:
        """Run the command if the module's ``__name__`` is that of a command."""
        if name == "__main__":
            sys.exit(self.main())

    def _run(self, options: argparse.Namespace, given: Sequence[str]) -> None:
        settings = self.settings(options)
        datasets = []
        if self.images:
            datasets = [data.digits() if options.quick else data.load(options.data, self.images)]
        began, about = time.monotonic(), record.about(self.command(given), *self.packages)
        with self._folder(options) as folder:
            known = {**({"data": datasets[0].sha256} if datasets else {}), "quick": options.quick}
            parts = Parts(folder, known, part=getattr(options, "part", None))
            probe = None if options.quick else self._probe_of(folder)
            found = self.measure(settings, *datasets, parts)
        # Earlier commands that were interrupted may have computed some parts.
        seconds = max(parts.seconds, time.monotonic() - began)
        document = {
            **about,
            "settings": settings,
            **({"data": datasets[0].about()} if datasets else {}),
            "seconds": round(seconds, 1),
            **found,
        }
        if probe is not None:
            document["probe"] = probe
            if record.commit() != about["commit"]:
                document["commit_at_the_end"] = record.commit()
        self.path.parent.mkdir(exist_ok=True)
        write_record(options.out or ("-" if options.quick else str(self.path)), document)

    @contextlib.contextmanager
    def _folder(self, options: argparse.Namespace) -> Iterator[Path]:
        """Yield the folder of the checkpoints. A quick form leaves none."""
        if options.work is not None:
            yield Path(options.work)
        elif options.quick:
            with tempfile.TemporaryDirectory() as folder:
                yield Path(folder)
        else:
            yield ROOT / "build" / self.paper / (self.folder or self.name)

    def _probe_of(self, folder: Path) -> Record:
        """Return the probe of a full run, and keep it in the folder of the parts.

        Raise if the code that computed these parts gave other numbers than today's. Experiments
        that share a folder each keep a probe there.
        """
        probe = self.probe()
        kept = sorted(folder.glob("*.probe.json"))
        if not kept and any(path.suffix in (".json", ".pt") for path in folder.glob("*")):
            raise CommandError(
                f"{folder} has parts without a probe, so the code that computed them is unknown: "
                "remove that folder, or name another one with --work"
            )
        for path in kept:
            name = path.name.removesuffix(".probe.json")
            other = f"validation.papers.{self.paper}.{name}"
            now = probe if name == self.name else import_module(other).EXPERIMENT.probe()
            changed = list(record.differences(record.read(path)["columns"], now["columns"]))
            if changed:
                raise CommandError(
                    f"the parts in {folder} were computed by code that gives other numbers "
                    f"({changed[0]}): remove that folder"
                )
        folder.mkdir(parents=True, exist_ok=True)
        write_record(str(folder / f"{self.name}.probe.json"), probe)
        return probe

    def command(self, given: Sequence[str] = ()) -> str:
        """Return the command without options that belong to one machine."""
        kept, words = ["python", "-m", self.module], iter(given)
        if self.images and "--quick" not in given:
            kept += ["--data", "FILE"]
        for word in words:
            option, _, value = word.partition("=")
            if option not in _PLACES:
                kept.append(word)
            elif not value:
                next(words, None)
        return shlex.join(kept)

    def quick_command(self, folder: Path) -> list[str]:
        """Return the arguments of the quick form, with its record and checkpoints in a folder."""
        out, work = self.quick_record(folder), folder / self.paper / self.name
        argv = [sys.executable, "-m", self.module, "--quick"]
        return [*argv, "--out", str(out), "--work", str(work)]

    def quick_record(self, folder: Path) -> Path:
        return folder / f"{self.paper}.{self.name}.json"

    def probe(self) -> Record:
        """Run the quick form in its own process, and return its numbers by column."""
        with tempfile.TemporaryDirectory() as name:
            folder = Path(name)
            argv = self.quick_command(folder)
            done = subprocess.run(argv, cwd=ROOT, capture_output=True, text=True, check=False)
            if done.returncode:
                last = (done.stderr.strip().splitlines() or ["no message"])[-1]
                raise CommandError(f"the quick form of {self.paper}.{self.name} failed: {last}")
            found = record.read(self.quick_record(folder))
        findings = {key: value for key, value in found.items() if key not in _ABOUT}
        return {"commit": found["commit"], "columns": record.columns(findings, self.noise)}

    def complaints(self, made: Record, *, replay: bool = True) -> Iterator[str]:
        """Say how a record differs from the one that today's code would make."""
        words = shlex.split(made["command"])[3:]
        today = json.loads(json.dumps(self.settings(self.parser.parse_args(words))))
        recorded = made.get("settings", {})
        for name in sorted(today.keys() | recorded.keys()):
            if today.get(name) != recorded.get(name):
                yield (
                    f"it was made with {name} {recorded.get(name)}, and its command would now "
                    f"take {today.get(name)}"
                )
        if "probe" not in made:
            yield "it has no probe"
        elif replay:
            try:
                now = self.probe()["columns"]
            except CommandError as error:
                yield str(error)
                return
            changed = list(record.differences(made["probe"]["columns"], now))
            if changed:
                yield f"{len(changed)} columns of its quick form changed: {changed[0]}"

    def read(self) -> Record | None:
        return record.read(self.path) if self.path.exists() else None

    def text(self, made: Record | None, picture: str = "") -> str:
        """Write the part of the page: what it is about, the picture, and the record's tables."""
        missing = "There is no record yet, because the run has not ended."
        body = missing if made is None else self.table(made)
        for old in (made or {}).get("replaced_probes", ()):
            body += f"\n\nA note on the check of this record: {old['because']}"
        return "\n\n".join(filter(None, (f"## {self.title}", self.about, picture, body))) + "\n"


def subplots(
    size: tuple[float, float], rows: int = 1, columns: int = 1, **options: Any
) -> tuple[Any, Any]:
    """Return a figure of this size in inches, and its axes: one, or an array of several."""
    from matplotlib.figure import Figure

    figure = Figure(figsize=size, layout="constrained")
    return figure, figure.subplots(rows, columns, **options)


def names() -> list[str]:
    """Name the experiments, ``PAPER.NAME``, without importing their modules."""
    folder = Path(__file__).with_name("papers")
    return [
        f"{paper}.{path.stem}"
        for paper in PAPERS
        for path in sorted((folder / paper).glob("*.py"))
        if "\nEXPERIMENT = " in path.read_text(encoding="utf-8")
    ]


@cache
def experiments() -> dict[str, Experiment]:
    """Import the experiments, in the order of the pages."""
    found = [import_module(f"validation.papers.{name}").EXPERIMENT for name in names()]
    order = sorted(found, key=lambda each: (PAPERS.index(each.paper), each.place))
    return {f"{each.paper}.{each.name}": each for each in order}
