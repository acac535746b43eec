"""Which sources a measured number depends on, and a hash of what they say."""

from __future__ import annotations

from pathlib import Path

from validation import said
from validation.paths import PACKAGE

from .functions import COMPILED

EXACT_C = ("_numpy/c/exact*.[ch]", "_numpy/c/*target*.h")
FLOAT32_C = ("_numpy/c/float32*.[ch]", "_numpy/c/*target*.h")
_ARITHMETIC = tuple(
    f"_arithmetic/{name}.py"
    for name in ("coefficients*", "functions", "normal_float32", "tables", "compensated")
)
_FAMILIES = {
    "compiled": EXACT_C,
    "python": _ARITHMETIC,
    "torch": (*_ARITHMETIC, *FLOAT32_C, "torch/_namespace.py"),
    "triton": (*_ARITHMETIC, "torch/_triton/*.py"),
    "jax": _ARITHMETIC,
    "tensorflow": (*_ARITHMETIC, "tensorflow/_rules.py"),
}


def family(kernel: str) -> str:
    """Name the sources that a kernel is made of."""
    if kernel in COMPILED:
        return "compiled"
    return {"arrays": "python", "inductor": "torch"}.get(kernel, kernel)


def paths(kernel: str, package: Path = PACKAGE) -> list[Path]:
    """List the sources of a kernel."""
    patterns = _FAMILIES[family(kernel)]
    return [path for pattern in patterns for path in sorted(package.glob(pattern))]


def sha256(kernel: str, package: Path = PACKAGE) -> str:
    """Hash what the sources of a kernel say."""
    return said.sha256(paths(kernel, package))
