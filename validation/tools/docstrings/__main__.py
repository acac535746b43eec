"""``python -m validation.tools.docstrings [--check]``: write, or compare, the docstrings."""

import ast
import sys
import tomllib
from collections.abc import Mapping
from pathlib import Path

from validation import generated
from validation.paths import PACKAGE
from validation.tools.docstrings import text

COMMAND = "python -m validation.tools.docstrings"
HERE = Path(__file__).parent
FILES = {
    "numpy": "_api.py",
    "torch": "torch/_api.py",
    "jax": "jax/_api.py",
    "tensorflow": "tensorflow/_api.py",
}


def docstrings() -> dict[str, dict[str, str]]:
    """Make the docstring of each function, with its quotes, for each framework.

    Raises
    ------
    ValueError
        If nothing fills a slot, or if a text fills none.
    """
    templates = {path.stem: path.read_text("utf-8") for path in sorted(HERE.glob("*.txt"))}
    files = {
        name: tomllib.loads((HERE / f"{name}.toml").read_text("utf-8"))
        for name in ("shared", *FILES)
    }
    unused = {(f, t, name) for f, tables in files.items() for t in tables for name in tables[t]}
    made: dict[str, dict[str, str]] = {framework: {} for framework in FILES}
    for framework in FILES:
        for function, template in templates.items():
            slots, places = {}, {}
            for file in ("shared", framework):
                for table in ("every", function):
                    for name, value in files[file].get(table, {}).items():
                        slots[name], places[name] = value, (file, table, name)
            used: set[str] = set()
            try:
                lines = text.filled(template, slots, used)
                made[framework][function] = text.docstring(lines)
            except ValueError as error:
                raise ValueError(f"{function}.txt with {framework}.toml: {error}") from None
            unused -= {places[name] for name in used}
    if unused:
        listed = ", ".join(f"{name} under [{t}] of {f}.toml" for f, t, name in sorted(unused))
        raise ValueError(f"no template uses {listed}: remove it, or correct its name")
    return made


def rewritten(source: bytes, made: Mapping[str, str]) -> bytes:
    """Replace the docstrings of some functions of a module, and nothing else.

    Raises
    ------
    ValueError
        If the module lacks one of the functions, or a function its docstring.
    """
    starts = [0]
    for line in source.splitlines(keepends=True):
        starts.append(starts[-1] + len(line))
    found = {
        node.name: node.body[0]
        for node in ast.parse(source).body
        if isinstance(node, ast.FunctionDef) and ast.get_docstring(node) is not None
    }
    if missing := sorted(set(made) - set(found)):
        raise ValueError(f"no function with a docstring to replace: {', '.join(missing)}")
    for name in sorted(made, key=lambda name: -found[name].lineno):
        old = found[name]
        first = starts[old.lineno - 1] + old.col_offset
        last = starts[(old.end_lineno or 0) - 1] + (old.end_col_offset or 0)
        source = source[:first] + made[name].encode() + source[last:]
    return source


def sources() -> dict[Path, bytes]:
    """Make the four files as they should be."""
    return {
        PACKAGE / FILES[framework]: rewritten((PACKAGE / FILES[framework]).read_bytes(), made)
        for framework, made in docstrings().items()
    }


if __name__ == "__main__":
    sys.exit(generated.main(COMMAND, sources))
