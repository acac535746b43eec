"""Which sources a measured error depends on, and a hash of what they say."""

from __future__ import annotations

from pathlib import Path

from logunif_kl.cli import said, sources
from logunif_kl.cli.sources import ARITHMETIC, EXACT_C, FLOAT32_C, TORCH_C
from validation.paths import ROOT

from .functions import COMPILED

_FAMILIES = {
    "compiled": EXACT_C,
    "python": ARITHMETIC,
    "torch": (*ARITHMETIC, *FLOAT32_C, *TORCH_C, "logunif_kl/torch/_namespace.py"),
    "triton": (*ARITHMETIC, "logunif_kl/torch/_triton/*.py"),
    "jax": ARITHMETIC,
    "tensorflow": (*ARITHMETIC, "logunif_kl/tensorflow/_rules.py"),
}


def family(kernel: str) -> str:
    """Name the sources that a kernel is made of."""
    if kernel in COMPILED:
        return "compiled"
    return {"arrays": "python", "inductor": "torch"}.get(kernel, kernel)


def sha256(kernel: str, root: Path = ROOT) -> str:
    """Hash what the sources of a kernel say."""
    return said.sha256(sources.paths(_FAMILIES[family(kernel)], root))
