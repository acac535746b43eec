"""Bundle every module and C extension, but a framework only if the program itself imports it."""

from importlib.machinery import all_suffixes
from pathlib import Path

_PACKAGE = Path(__file__).parents[1]


def _modules() -> set[str]:
    found = set()
    for path in _PACKAGE.rglob("*.*"):
        stem = path.name.partition(".")[0]
        if path.name.removeprefix(stem) in all_suffixes() and "_pyinstaller" not in path.parts:
            parts = path.relative_to(_PACKAGE.parent).parent.parts
            found.add(".".join(parts if stem == "__init__" else (*parts, stem)))
    return found


hiddenimports = sorted(_modules())
excludedimports = [
    *("autograd", "jax", "jaxlib", "llvmlite", "mlx", "numba", "numpyro", "paddle", "pyro"),
    *("keras", "pytensor", "tensorflow", "tinygrad", "torch", "triton"),
]
# Triton compiles kernels from their source.
module_collection_mode = {"logunif_kl.torch._triton": "pyz+py"}
