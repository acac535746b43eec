"""A hash of what sources say that bears on results. It survives moving, splitting and layout.

Of a Python file, the hash covers the statements at its top, each by its syntax tree. It leaves out
docstrings, comments, annotations, imports, other hashes, the text of exceptions, and the underscore
that makes a name private. A name of the package stands without its module, unless two of the files
define it differently. Of a C file, it covers the definitions without comments and layout, each
under the preprocessor's conditions. It leaves out what only compilers or Python's C API read. The
order and the names of files do not count.
"""

from __future__ import annotations

import ast
import hashlib
import re
from collections.abc import Iterable, Sequence
from functools import cache
from pathlib import Path

_TOKENS = re.compile(
    r"""("(?:\\.|[^"\\])*"|'(?:\\.|[^'\\])*')|//[^\n]*|/\*.*?\*/""", re.DOTALL | re.VERBOSE
)
# Names for the compilers; the guard of a header.
_COMPILERS = re.compile(
    r"#\s*define (\w+_H|LK_(X86|ALWAYS_INLINE|ALIGNED|INLINE|PASTE_?|NAME|TARGET\w+|HAS|ISA|KERNELS"
    r"|BASELINE_ISA))\b"
)
_GUARD = re.compile(r"_H$")
_TARGET = re.compile(r"LK_TARGET_\w+")
_CALL = re.compile(r"[A-Z_]+\(.*\)")  # of a macro that makes a definition
_PYTHON_API = re.compile(r"\bPy[A-Z]\w*|\bvariant\b|\bnumber_available\b")


def sha256(paths: Iterable[Path]) -> str:
    """Hash what some Python and C files say, taken together."""
    texts = {path: path.read_text(encoding="utf-8") for path in paths}
    python = [(path.stem, text) for path, text in texts.items() if path.suffix == ".py"]
    said = python_said(python)
    for path, text in texts.items():
        if path.suffix != ".py":
            said |= c_said(text)
    return hashlib.sha256("\0".join(sorted(said)).encode()).hexdigest()


def python_said(modules: Sequence[tuple[str, str]]) -> set[str]:
    """Return the statements of some modules, given by name and text.

    A name that two of them define differently keeps the name of its module.
    """
    texts: dict[str, set[str]] = {}
    for _, source in modules:
        for names, text in _statements(source, frozenset()):
            for name in names:
                texts.setdefault(name, set()).add(text)
    ambiguous = frozenset(name for name, several in texts.items() if len(several) > 1)
    return {
        f"{module}: {text}" if ambiguous.intersection(names) else text
        for module, source in modules
        for names, text in _statements(source, ambiguous)
    }


@cache
def _statements(source: str, ambiguous: frozenset[str]) -> tuple[tuple[frozenset[str], str], ...]:
    """Return the names that each statement at the top defines, and its bare form."""
    tree = ast.parse(source)
    bare = _Bare(tree, ambiguous)
    found = []
    for node in _less_docstring(tree).body:
        names = _defined(node)
        changed = bare.visit(node)
        if changed is not None:
            found.append((names, _written(changed)))
    return tuple(found)


def _defined(node: ast.AST) -> frozenset[str]:
    """The public forms of the names that a statement at the top defines."""
    if isinstance(node, (ast.FunctionDef, ast.ClassDef)):
        return frozenset({_public(node.name)})
    targets = node.targets if isinstance(node, ast.Assign) else []
    if isinstance(node, ast.AnnAssign):
        targets = [node.target]
    return frozenset(_public(target.id) for target in targets if isinstance(target, ast.Name))


def _less_docstring(node: ast.Module) -> ast.Module:
    if ast.get_docstring(node, clean=False) is not None:
        node.body = node.body[1:]
    return node


class _Bare(ast.NodeTransformer):
    """Takes from a statement what changes no result."""

    def __init__(self, module: ast.Module, ambiguous: frozenset[str]) -> None:
        self._ambiguous = ambiguous
        # The name that this package's module or object has here -> its module, and its own name.
        self._own = {
            alias.asname or alias.name: ((node.module or "").rpartition(".")[2], alias.name)
            for node in ast.walk(module)
            if isinstance(node, ast.ImportFrom) and node.level
            for alias in node.names
        }

    def _name(self, module: str, name: str, context: ast.expr_context) -> ast.Name:
        public = _public(name)
        return ast.Name(f"{module}.{public}" if public in self._ambiguous else public, context)

    def visit_Import(self, node: ast.Import) -> None:
        return None

    def visit_ImportFrom(self, node: ast.ImportFrom) -> None:
        return None

    def visit_Assign(self, node: ast.Assign) -> ast.AST | None:
        hashes = (isinstance(t, ast.Name) and t.id.endswith("_SHA256") for t in node.targets)
        return None if all(hashes) else self.generic_visit(node)

    def visit_Raise(self, node: ast.Raise) -> ast.AST:
        raised = node.exc.func if isinstance(node.exc, ast.Call) else node.exc
        return ast.Raise(None if raised is None else self.visit(raised), None)

    def visit_Attribute(self, node: ast.Attribute) -> ast.AST:
        if isinstance(node.value, ast.Name) and node.value.id in self._own:
            return self._name(self._own[node.value.id][1], node.attr, node.ctx)
        return self.generic_visit(node)

    def visit_Name(self, node: ast.Name) -> ast.AST:
        if node.id in self._own:
            return self._name(*self._own[node.id], node.ctx)
        return ast.Name(_public(node.id), node.ctx)

    def visit_FunctionDef(self, node: ast.FunctionDef) -> ast.AST:
        node.returns = None
        return self._definition(node)

    def visit_ClassDef(self, node: ast.ClassDef) -> ast.AST:
        return self._definition(node)

    def _definition(self, node: ast.FunctionDef | ast.ClassDef) -> ast.AST:
        node.name = _public(node.name)
        if ast.get_docstring(node, clean=False) is not None:
            node.body = node.body[1:]
        return self.generic_visit(node)

    def visit_arg(self, node: ast.arg) -> ast.AST:
        return ast.arg(node.arg)

    def visit_AnnAssign(self, node: ast.AnnAssign) -> ast.AST:
        if node.value is None:
            return ast.AnnAssign(self.visit(node.target), ast.Constant(None), None, node.simple)
        return ast.Assign([self.visit(node.target)], self.visit(node.value))


def _public(name: str) -> str:
    return name if name.startswith("__") else name.lstrip("_") or name


def _written(node: object) -> str:
    """Write out a tree; absent fields are left out, whose number depends on Python's version."""
    if isinstance(node, list):
        return f"[{','.join(map(_written, node))}]"
    if not isinstance(node, ast.AST):
        return repr(node)
    kept = (
        f"{name}={_written(value)}"
        for name, value in ast.iter_fields(node)
        if value is not None and value != []
    )
    return f"{type(node).__name__}({','.join(kept)})"


def c_said(text: str) -> set[str]:
    """Return the definitions of a C source or header."""
    bare = _TOKENS.sub(lambda found: found[1] or " ", text).replace("\\\n", " ")
    said: set[str] = set()
    conditions: list[str] = []
    open_lines: list[str] = []
    depth = 0
    for line in (" ".join(each.split()) for each in bare.splitlines()):
        if not line or _TARGET.fullmatch(line):
            continue
        if line.startswith("#") and not open_lines:
            directive = line.lstrip("# ")
            if directive.startswith("if"):
                conditions.append(line)
            elif directive.startswith("el"):
                conditions[-1] = f"{conditions[-1]} {line}"
            elif directive.startswith("endif"):
                conditions.pop()
            elif directive.startswith("define") and not _COMPILERS.match(line):
                said.add(_under(conditions, line))
            continue
        open_lines.append(line)
        if not line.startswith("#"):
            depth += line.count("{") - line.count("}")
        definition = " ".join(open_lines)
        if depth == 0 and (line.endswith((";", "}")) or _CALL.fullmatch(definition)):
            open_lines = []
            if not _PYTHON_API.search(definition):
                said.add(_under(conditions, definition))
    if open_lines:
        said.add(" ".join(open_lines))
    return said


def _under(conditions: list[str], definition: str) -> str:
    """Put the conditions on the instruction set before a definition."""
    return "\n".join([*(c for c in conditions if not _GUARD.search(c)), definition])
