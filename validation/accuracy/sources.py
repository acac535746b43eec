"""Which sources a measured number depends on, and a hash of what they say.

Comments, docstrings and layout do not count: they move no result.
"""

from __future__ import annotations

import ast
import hashlib
import re
from pathlib import Path

from .functions import COMPILED

PACKAGE = Path(__file__).resolve().parents[2] / "logunif_kl"
C_SOURCES = ("_coefficients.h", "_kernels.h", "_simd.h", "_simd_end.h", "_ufuncs.c")
SINGLE_C_SOURCES = (
    "_single_blocks.h",
    "_single_coefficients.h",
    "_single_kernels.h",
    "_single_simd.h",
    "_single_ufuncs.c",
)
_ARITHMETIC = ("_coefficients*.py", "_kernel.py", "_single.py")
_FAMILIES = {
    "compiled": C_SOURCES,
    "python": _ARITHMETIC,
    "torch": (*_ARITHMETIC, *SINGLE_C_SOURCES, "torch/_namespace.py"),
    "triton": (*_ARITHMETIC, "torch/_triton*.py"),
    "jax": _ARITHMETIC,
    "tensorflow": (*_ARITHMETIC, "tensorflow/_rules.py"),
}
_C_TOKENS = re.compile(
    r"""("(?:\\.|[^"\\])*"|'(?:\\.|[^'\\])*')|//[^\n]*|/\*.*?\*/""", re.DOTALL | re.VERBOSE
)


def family(kernel: str) -> str:
    """Name the sources that a kernel is made of."""
    if kernel in COMPILED:
        return "compiled"
    return {"arrays": "python", "inductor": "torch"}.get(kernel, kernel)


def sha256(kernel: str, package: Path = PACKAGE) -> str:
    """Hash what the sources of a kernel say."""
    total = hashlib.sha256()
    for pattern in _FAMILIES[family(kernel)]:
        for path in sorted(package.glob(pattern)):
            text = path.read_text(encoding="utf-8")
            said = python_said(text) if path.suffix == ".py" else c_said(text)
            total.update(f"{path.name}\0{said}\0".encode())
    return total.hexdigest()


def python_said(text: str) -> str:
    """Return the syntax tree of a module as text, less its docstrings."""
    return _written(ast.parse(text))


def _written(node: object) -> str:
    """Write out a tree; absent fields are left out, whose number depends on Python's version."""
    if isinstance(node, list):
        return f"[{','.join(map(_written, node))}]"
    if not isinstance(node, ast.AST):
        return repr(node)
    fields = dict(ast.iter_fields(node))
    if isinstance(node, (ast.Module, ast.ClassDef, ast.FunctionDef, ast.AsyncFunctionDef)) and (
        ast.get_docstring(node, clean=False) is not None
    ):
        fields["body"] = node.body[1:]
    kept = (f"{name}={_written(v)}" for name, v in fields.items() if v is not None and v != [])
    return f"{type(node).__name__}({','.join(kept)})"


def c_said(text: str) -> str:
    """Return a C source less comments, indentation and empty lines."""
    bare = _C_TOKENS.sub(lambda found: found[1] or " ", text)
    lines = (" ".join(line.split()) for line in bare.splitlines())
    return "\n".join(line for line in lines if line)
