"""Rows of the capability table: make, merge, compare and print them."""

from collections.abc import Iterable, Iterator, Mapping
from typing import Any, NamedTuple

from validation.markdown import table as markdown
from validation.output import Record


class Capability(NamedTuple):
    """A function of the package, under a transform of a framework."""

    framework: str
    transform: str
    function: str

    @classmethod
    def parse(cls, recorded: str) -> "Capability":
        function, framework, transform = recorded.split(":", 2)
        return cls(framework, transform, function)

    def __str__(self) -> str:
        return f"{self.function} in {self.framework}: {self.transform}"


Table = dict[Capability, set[str]]
"""Each capability, and the runs that show it: "default", "slow", "gpu"."""


class Outcome(NamedTuple):
    passed: set[Capability]
    failures: dict[Capability, list[str]]
    """The names of the tests that failed."""


def outcome(tests: Iterable[Mapping[str, Any]]) -> Outcome:
    """Return what some test shows and no test contradicts. Skipped tests do not count."""
    passed: set[Capability] = set()
    failures: dict[Capability, list[str]] = {}
    for test in tests:
        for recorded in test["capabilities"]:
            capability = Capability.parse(recorded)
            if test["outcome"] == "passed":
                passed.add(capability)
            elif test["outcome"] == "failed":
                failures.setdefault(capability, []).append(test["test"])
    return Outcome(passed - failures.keys(), failures)


def merged(on_file: Table, passed: set[Capability], run: str, frameworks: set[str]) -> Table:
    """Replace the rows of one run of these frameworks by those that passed."""
    rows = {
        row: runs - {run} if row.framework in frameworks else set(runs)
        for row, runs in on_file.items()
    }
    for row in passed:
        rows.setdefault(row, set()).add(run)
    return {row: runs for row, runs in rows.items() if runs}


def differences(on_file: Table, now: Table) -> Iterator[str]:
    for row in sorted(on_file.keys() | now.keys()):
        before, after = on_file.get(row, set()), now.get(row, set())
        for run in sorted(before - after):
            yield f"{row}: on file, and not shown by this {run} run"
        for run in sorted(after - before):
            yield f"{row}: shown by this {run} run, and not on file"


def to_json(rows: Table) -> list[Record]:
    return [{**row._asdict(), "runs": sorted(runs)} for row, runs in sorted(rows.items())]


def from_json(rows: Iterable[Mapping[str, Any]]) -> Table:
    return {
        Capability(row["framework"], row["transform"], row["function"]): set(row["runs"])
        for row in rows
    }


def text(rows: Table) -> str:
    blocks = []
    for framework in sorted({row.framework for row in rows}):
        own = {(row.transform, row.function) for row in rows if row.framework == framework}
        transforms, functions = (sorted({pair[i] for pair in own}) for i in (0, 1))
        lines = ([t, *("yes" if (t, f) in own else "" for f in functions)] for t in transforms)
        blocks.append(markdown([framework, *functions], lines))
    return "\n\n".join(blocks)
