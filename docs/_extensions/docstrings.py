"""Make docstrings plain reStructuredText: bars are no substitutions, and titles no sections."""

from __future__ import annotations

import inspect
import re
from enum import Enum
from typing import Any

import numpy as np
import sphinx.util.inspect
from sphinx.application import Sphinx

LITERAL = re.compile(r"(``.+?``)")
BAR = re.compile(r"(?<!\\)\|")


def prepare(app: Sphinx, what: str, name: str, obj: Any, options: Any, lines: list[str]) -> None:
    """Escape each bar outside of literals, such as those of an absolute value."""
    if what == "module":
        _make_rubrics(lines)
    literal_from: int | None = None
    in_doctest = False
    for i, line in enumerate(lines):
        indent = len(line) - len(line.lstrip())
        if line.strip():
            if literal_from is not None and indent <= literal_from:
                literal_from = None
            in_doctest = line.lstrip().startswith(">>>") or in_doctest
        else:
            in_doctest = False
        if literal_from is None and not in_doctest:
            parts = LITERAL.split(line)
            parts[::2] = [BAR.sub(r"\|", part) for part in parts[::2]]
            lines[i] = "".join(parts)
            if line.rstrip().endswith("::") and not line.lstrip().startswith(".."):
                literal_from = indent


def _make_rubrics(lines: list[str]) -> None:
    for i in range(len(lines) - 1):
        if lines[i] and re.fullmatch("-+", lines[i + 1]) and len(lines[i]) == len(lines[i + 1]):
            lines[i], lines[i + 1] = f".. rubric:: {lines[i]}", ""
    for i, line in enumerate(lines):
        lines[i] = re.sub(r"^\.\. \[(\d+)\] ", r"\1. ", line)


def show_defaults(app: Sphinx, obj: Any, bound_method: bool) -> None:
    """Show a default that is a member of an enum of floats as the float."""
    try:
        signature = inspect.signature(obj)
    except (TypeError, ValueError):
        return
    parameters = [
        p.replace(default=float(p.default))
        if isinstance(p.default, float) and isinstance(p.default, Enum)
        else p
        for p in signature.parameters.values()
    ]
    if any(isinstance(p.default, Enum) for p in signature.parameters.values()):
        obj.__signature__ = signature.replace(parameters=parameters)


def hide(
    app: Sphinx, what: str, name: str, obj: Any, options: Any, signature: str, _: str
) -> tuple[str, str] | None:
    """Hide the signature of a base class, which only its subclasses can make."""
    return ("", "") if what == "class" and signature == "(*args, **kwargs)" else None


def setup(app: Sphinx) -> dict[str, bool]:
    """Prepare each docstring before numpydoc reads it, and what that adds, those of properties."""
    app.connect("autodoc-process-docstring", prepare, priority=400)
    app.connect("autodoc-process-docstring", prepare, priority=600)
    app.connect("autodoc-before-process-signature", show_defaults)
    app.connect("autodoc-process-signature", hide)
    # autosummary takes a ufunc for data.
    is_routine = sphinx.util.inspect.isroutine
    sphinx.util.inspect.isroutine = lambda obj: is_routine(obj) or isinstance(obj, np.ufunc)
    return {"parallel_read_safe": True, "parallel_write_safe": True}
