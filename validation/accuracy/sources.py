"""Which sources a measured number depends on, and a hash of what they say."""

from __future__ import annotations

from pathlib import Path

from validation import said

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
