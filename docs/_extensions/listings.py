"""Directives that list what the project knows of itself.

``claims`` lists the papers' statements, ``capabilities`` what works under which transform,
``frameworks`` the same for the frameworks that share one contract,
``commands`` the help of the command line, and ``findings`` the scripts in ``findings/``.
"""

from __future__ import annotations

import argparse
import json
import re

from docutils import nodes
from docutils.statemachine import StringList
from sphinx.application import Sphinx
from sphinx.util.docutils import SphinxDirective

from logunif_kl.cli._main import build_parser
from validation.markdown import table
from validation.paths import RESULTS, ROOT
from validation.tools import tables
from validation.tools.capability import table as capability


class Listing(SphinxDirective):
    """A directive whose text is Markdown that a method writes."""

    file: str | None = None

    def text(self) -> str:
        raise NotImplementedError

    def run(self) -> list[nodes.Node]:
        if self.file is not None:
            self.env.note_dependency(str(ROOT / self.file))
        container = nodes.container(classes=["results"])
        lines = StringList(self.text().splitlines(), source=self.name)
        self.state.nested_parse(lines, self.content_offset, container)
        return [container]


class Claims(Listing):
    """The statements of the papers, with the verdict on each."""

    file = "validation/results/papers/papers.json"

    def text(self) -> str:
        claims = json.loads((ROOT / self.file).read_text(encoding="utf-8"))["claims"]
        papers = dict.fromkeys(claim["paper"] for claim in claims)
        parts = []
        for paper in papers:
            rows = [
                [c["where"], _cell(tables.claim(c)), c["verdict"], _cell(c["note"])]
                for c in claims
                if c["paper"] == paper
            ]
            parts += [f"**{paper}**", table(["where", "statement", "verdict", "found"], rows)]
        return "\n\n".join(parts)


def _cell(text: str) -> str:
    return text.replace("|", "\\|").replace("*", "\\*").replace("<", "\\<")


class Capabilities(Listing):
    """The table of capabilities, a part for each framework."""

    file = "validation/results/capability/capability.json"

    def text(self) -> str:
        document = json.loads((RESULTS / "capability/capability.json").read_text(encoding="utf-8"))
        rows = capability.from_json(document["rows"])
        parts = []
        for framework in dict.fromkeys(row.framework for row in rows):
            functions: dict[str, list[str]] = {}
            for row in rows:
                if row.framework == framework:
                    # What follows a comma outside of brackets is a variant that a test has.
                    transform = _in_words(re.split(r",(?![^(]*\))", row.transform)[0])
                    functions.setdefault(transform, []).append(row.function)
            transforms: dict[tuple[str, ...], list[str]] = {}
            for transform, found in functions.items():
                transforms.setdefault(tuple(sorted(set(found))), []).append(transform)
            cells = [
                [", ".join(f"`{name}`" for name in names), ", ".join(found)]
                for names, found in transforms.items()
            ]
            parts += [f"**{framework}**", table(["functions", "under"], cells)]
        return "\n\n".join(parts)


_WHERE = {
    "eager": "eagerly",
    "function": "in tf.function",
    "autograph": "in AutoGraph",
    "xla": "compiled by XLA",
    "fwd": "forward mode",
    "rev": "reverse mode",
}
_WHAT = {
    "value": "value",
    "broadcasting": "broadcasting",
    "backward": "gradient",
    "2nd backward": "second derivative",
    "3rd backward": "third derivative",
}


def _in_words(transform: str) -> str:
    """Say what a test of TensorFlow or of finite differences does. Other names are calls."""
    if found := re.fullmatch(r"(eager|function|autograph|xla) (.*)", transform):
        return f"{_WHAT[found[2]]} {_WHERE[found[1]]}"
    if found := re.fullmatch(r"(.*) through (function|xla)", transform):
        return f"{_WHAT.get(found[1], found[1] + ' mode')} of a call {_WHERE[found[2]]}"
    if found := re.fullmatch(r"check_grads\((fwd|rev), order=(\d)\)", transform):
        return f"finite differences to order {found[2]}, {_WHERE[found[1]]}"
    if found := re.fullmatch(r"vectorized_map of order (\d)", transform):
        orders = ("value", "gradient", "second derivative")
        return f"vectorized_map of the {orders[int(found[1])]}"
    return transform


class Frameworks(Listing):
    """What works in the frameworks of `logunif_kl._adapters`, a row for each."""

    file = Capabilities.file

    def text(self) -> str:
        document = json.loads((ROOT / self.file).read_text(encoding="utf-8"))
        found: dict[str, set[str]] = {}
        for row, runs in capability.from_json(document["rows"]).items():
            if "adapters" in runs:
                found.setdefault(row.framework, set()).add(row.transform)
        columns = (
            *("value", "gradient", "second derivative", "forward", "compiled", "vmapped"),
            *("float16", "bfloat16", "float64", "sums of many elements"),
        )
        versions = document["made_with"]
        rows = [
            [versions[name]["adapters"]["version"], *("yes" if c in works else "" for c in columns)]
            for name, works in sorted(found.items())
        ]
        return table(["", *columns], rows)


class Commands(Listing):
    """The help of each command."""

    def text(self) -> str:
        parser = build_parser()
        (commands,) = (
            action.choices
            for action in parser._actions
            if isinstance(action, argparse._SubParsersAction)
        )
        texts = [parser.format_help(), *(each.format_help() for each in commands.values())]
        return "\n\n".join(f"```text\n{text.strip()}\n```" for text in texts)


class Findings(Listing):
    """The scripts in ``findings/``, with the sentence of each."""

    def text(self) -> str:
        rows = []
        for path in sorted((ROOT / "findings").glob("*.sh")):
            self.env.note_dependency(str(path))
            sentence = path.read_text(encoding="utf-8").splitlines()[1].removeprefix("# ")
            rows.append([f"`{path.stem}`", _cell(sentence)])
        return table(["script", "what happens"], rows)


def setup(app: Sphinx) -> dict[str, bool]:
    """Enter the directives."""
    app.add_directive("claims", Claims)
    app.add_directive("capabilities", Capabilities)
    app.add_directive("frameworks", Frameworks)
    app.add_directive("commands", Commands)
    app.add_directive("findings", Findings)
    return {"parallel_read_safe": True, "parallel_write_safe": True}
