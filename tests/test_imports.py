"""What `import logunif_kl` imports, and which modules may import each other."""

import ast
import graphlib
import re
from pathlib import Path

import pytest

import logunif_kl as lk
from tests.child import output

PACKAGE = Path(lk.__file__).parent
FOREIGN = (
    *("scipy", "mpmath", "flint", "torch", "jax", "numpyro", "tensorflow", "dask", "xarray"),
    *("pandas", "polars", "array_api_strict", "matplotlib", "rich"),
    *("mlx", "autograd", "paddle", "pytensor", "numba", "keras", "tinygrad"),
)
LAZY = (
    *("accuracy", "reference", "methods", "cli", "posteriors", "isotropic", "_isotropic"),
    *("fitting", "_arithmetic.derivatives", "_adapters", "_numba"),
)
OWN_BUT_LAZY = [f"logunif_kl.{name}" for name in LAZY]

REPORT = f"""
import sys
names = {(*FOREIGN, *OWN_BUT_LAZY)!r}
print(*sorted(name for name in names if name in sys.modules))
"""


def imported_after(code: str) -> list[str]:
    return output(code + REPORT).split()


def test_nothing_is_imported_by_use():
    code = """
import numpy as np, logunif_kl as lk
x = np.linspace(-3, 3, 9)
lk.neg_kl(x, zero_at=1.0), lk.neg_kl_grad(x), lk.neg_kl_hess(x), lk.kl_normal(x, x, log_c=1.0)
lk.special.kl_gap(x), lk.log_alpha.from_dropout_rate(x), lk.show_config("dict")
try:
    lk.neg_kl("x")
except TypeError:
    pass
"""
    assert imported_after(code) == []


class TestNames:
    def test_all(self):
        names: dict = {}
        exec("from logunif_kl import *", names)
        assert set(lk.__all__) <= set(names)
        assert dir(lk) == sorted(lk.__all__)

    def test_lazy_modules_are_reached(self):
        found = imported_after("import logunif_kl as lk; lk.reference")
        assert found == ["logunif_kl.reference", "mpmath"]

    def test_lazy_functions_are_reached(self):
        from logunif_kl import fitting, posteriors

        assert lk.fit_polynomial is fitting.fit_polynomial
        assert lk.fit_sigmoid is fitting.fit_sigmoid
        assert lk.neg_kl_posterior is posteriors.neg_kl_posterior
        assert "logunif_kl.posteriors" in imported_after("from logunif_kl import neg_kl_posterior")

    def test_unknown_name(self):
        with pytest.raises(AttributeError, match="module 'logunif_kl' has no attribute 'nonsense'"):
            lk.nonsense  # noqa: B018

    def test_a_framework_is_imported_by_name(self):
        said = "module 'logunif_kl' has no attribute 'torch' before `import logunif_kl.torch`"
        imported_after(
            "import logunif_kl as lk; found = None\n"
            "try: lk.torch\nexcept AttributeError as error: found = str(error)\n"
            f"assert found == {said!r}, found"
        )

    def test_version(self):
        assert re.fullmatch(r"\d+\.\d+\.\d+([a-z]+\d+)?", lk.__version__)


def imports_of(path: Path, root: Path) -> set[str]:
    """Absolute names of the modules that a file imports, at the top or inside functions."""
    package = path.relative_to(root).parts[:-1]
    found = set()
    for node in ast.walk(ast.parse(path.read_text(encoding="utf-8"))):
        if isinstance(node, ast.Import):
            found |= {alias.name for alias in node.names}
        elif isinstance(node, ast.ImportFrom):
            base = package[: len(package) - node.level + 1] if node.level else ()
            module = ".".join((*base, *(node.module.split(".") if node.module else ())))
            found |= {module} | {f"{module}.{alias.name}" for alias in node.names}
    return found


def modules() -> dict[str, set[str]]:
    """Each file of the package, relative to it, and what it imports."""
    paths = PACKAGE.rglob("*.py")
    return {
        path.relative_to(PACKAGE).as_posix(): imports_of(path, PACKAGE.parent) for path in paths
    }


def imported(names: set[str], module: str) -> bool:
    return any(name == module or name.startswith(f"{module}.") for name in names)


# Modules and subpackages, "parts", by level. A part imports only parts of lower levels.
LEVELS = (
    ("_errors", "_arithmetic", "_version", "_pyinstaller", "_mpmath", "_atomic_io"),
    ("_display",),
    ("_numpy", "_priors"),
    ("_convention", "_config"),
    ("_arguments", "_isotropic"),
    ("torch", "jax", "tensorflow", "_adapters"),
    ("_dispatch",),
    ("_conversions",),
    ("_api", "special", "log_alpha"),
    ("_numba",),
    ("accuracy", "reference"),
    ("methods", "posteriors", "isotropic"),
    ("fitting",),
    ("nn",),
    ("nn.torch", "nn.jax"),
    ("torch.nn", "jax.nn"),
    ("cli",),
    ("__init__", "__main__"),
)
LEVEL = {part: level for level, parts in enumerate(LEVELS) for part in parts}
# The arithmetic imports no library, and each module only the modules before it.
ARITHMETIC = (
    *("__init__", "binary32", "coefficients", "tables", "compensated", "normal_float32"),
    *("functions", "limits", "derivative_tables", "derivatives", "unit"),
    *("posterior_tables", "posteriors", "isotropic"),
)
# The parts that may import a library, at the top of a file or inside a function.
LIBRARIES = {
    "scipy": {"methods", "cli", "fitting", "posteriors", "nn.torch", "_isotropic"},
    "mpmath": {"reference", "cli", "methods", "fitting"},
    "flint": {"reference"},
    "torch": {"torch", "nn.torch", "cli"},
    "triton": {"torch"},
    "jax": {"jax", "nn.jax", "cli"},
    "tensorflow": {"tensorflow"},
    **{
        name: {"_adapters"}
        for name in ("mlx", "autograd", "paddle", "pytensor", "keras", "tinygrad")
    },
    **{name: {"_numba"} for name in ("numba", "llvmlite")},
    "matplotlib": {"cli", "_atomic_io"},
    "rich": {"cli", "methods"},
    "numpy": {part for part in LEVEL if part != "_arithmetic"},
}
# Only `_dispatch` imports the modules of the frameworks for what the public functions are given.
ONLY = {
    "torch": {"_dispatch", "nn.torch", "isotropic", "cli"},
    "jax": {"_dispatch", "nn.jax", "isotropic", "cli"},
    "tensorflow": {"_dispatch", "cli"},
    "reference": {"cli", "__init__"},
}
# The layers import only these parts, and of their framework's part the public names and what
# handles its tensors.
LAYERS = {"nn.torch": "torch", "nn.jax": "jax"}
SEEN_BY_LAYERS = {"_errors", "_display", "_priors", "nn", "methods", "fitting"}
SEEN_OF_FRAMEWORKS = ("_arguments", "_internals", "_foreach", "_sharded")
# Modules and folders of the layers; each imports only those before it.
ORDER = (
    *("arguments", "hooks", "options", "variances", "noise", "moments", "priors", "weights"),
    *("layers", "predict", "convert", "train", "shrink", "deploy"),
)


def part_of(name: str) -> str | None:
    """The part of this package that an imported name is in."""
    top, *parts = name.split(".")
    if top != "logunif_kl":
        return None
    # The layers are a part inside their framework's part.
    return next((part for part in (".".join(parts[:2]), *parts[:1]) if part in LEVEL), None)


def breaches(files: dict[str, set[str]]) -> list[str]:
    """Say which file imports what it should not."""
    found = []
    for file, names in files.items():
        part, *inner = file.removesuffix(".py").split("/")
        if inner and f"{part}.{inner[0]}" in LEVEL:
            part = f"{part}.{inner[0]}"
        for library, parts in LIBRARIES.items():
            if imported(names, library) and part not in parts:
                found.append(f"{file} imports {library}")
        if part not in LEVEL:
            found.append(f"{file} is not on a level")
            continue
        for other in {part_of(name) for name in names} - {None, part}:
            if LEVEL[other] >= LEVEL[part]:
                found.append(f"{file} imports {other}, which is not on a lower level")
            if (other in ONLY and part not in ONLY[other]) or (
                part in LAYERS and other not in {LAYERS[part], *SEEN_BY_LAYERS}
            ):
                found.append(f"{file} imports {other}")
        if part in LAYERS:
            found += [
                f"{file} imports {name}, which is not public"
                for name in names
                if re.match(rf"logunif_kl\.{LAYERS[part]}\._", name)
                and name.split(".")[2] not in SEEN_OF_FRAMEWORKS
            ]
        if part in LAYERS and inner[1] in ORDER:
            found += [
                f"{file} imports {name}, which comes after it"
                for name in ORDER[ORDER.index(inner[1]) + 1 :]
                if imported(names, f"logunif_kl.{part}.{name}")
            ]
        if part == "_arithmetic":
            found += [
                f"{file} imports {name}, which comes after it"
                for name in ARITHMETIC[ARITHMETIC.index(inner[0]) + (len(inner) > 1) :]
                if imported(names, f"logunif_kl._arithmetic.{name}")
            ]
    return found


def circle(files: dict[str, set[str]], top: str = "logunif_kl") -> list[str]:
    """Find modules that import each other in a circle; empty if there are none."""
    module = {
        f"{top}/{file}".removesuffix(".py").removesuffix("/__init__").replace("/", "."): names
        for file, names in files.items()
    }
    graph = {
        name: {other for other in names if other in module and other not in (name, top)}
        for name, names in module.items()
    }
    # `from . import x` names the package of x too, but needs only x.
    for name, others in graph.items():
        package = name.rpartition(".")[0]
        if any(other.startswith(f"{package}.") for other in others):
            graph[name] = others - {package}
    try:
        graphlib.TopologicalSorter(graph).prepare()
    except graphlib.CycleError as error:
        return list(error.args[1])
    return []


# A file, and what it must not import, by each of the rules.
BREACHES = """
_arithmetic/functions.py: import numpy as np
_arithmetic/tables.py: from .functions import gap
_arithmetic/coefficients.py: def f(): from . import tables
_convention.py: from ._dispatch import evaluate
torch/_rules.py: from ..jax import _rules
torch/_rules.py: from . import nn
_conversions.py: from . import torch
_api/_kl.py: from ..reference import neg_kl
nn/jax/weights/trees.py: from ....jax._rules import neg_kl_normal
nn/jax/weights/trees.py: from ...._api import neg_kl
nn/torch/weights/sampled.py: from ..deploy import prune
_elsewhere.py: pass
"""


class TestDirections:
    def test_of_import(self):
        assert breaches(modules()) == []

    def test_no_circle(self):
        assert circle(modules()) == []

    def test_breaches_are_found(self, tmp_path):
        for row in BREACHES.strip().splitlines():
            file, code = row.split(": ", 1)
            path = tmp_path / "logunif_kl" / file
            path.parent.mkdir(parents=True, exist_ok=True)
            path.write_text(code)
            assert len(breaches({file: imports_of(path, tmp_path)})) >= 1, row

    def test_every_part_is_there(self):
        for part in LEVEL:
            path = PACKAGE / part.replace(".", "/")
            assert path.is_dir() or path.with_suffix(".py").exists()

    def test_no_module_is_longer_than_350_lines(self):
        generated = {"_arithmetic/coefficients.py", "accuracy.py", "torch/_triton/arithmetic.py"}
        for path in PACKAGE.rglob("*.py"):
            if path.relative_to(PACKAGE).as_posix() not in generated:
                assert len(path.read_text(encoding="utf-8").splitlines()) <= 350, path

    def test_few_modules_outside_of_subpackages(self):
        assert sum(path.suffix == ".py" for path in PACKAGE.iterdir()) <= 15
