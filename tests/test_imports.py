"""What `import logunif_kl` imports, and which module may import which."""

import ast
import importlib.util
import os
import re
import subprocess
import sys
from pathlib import Path

import pytest

import logunif_kl as lk

PACKAGE = Path(lk.__file__).parent
FOREIGN = (
    "scipy",
    "mpmath",
    "flint",
    "torch",
    "jax",
    "dask",
    "xarray",
    "pandas",
    "array_api_strict",
)
FOREIGN += ("matplotlib", "rich", "numpyro", "tensorflow")
OWN_BUT_LAZY = ("logunif_kl.reference", "logunif_kl.methods", "logunif_kl.cli")
OWN_BUT_LAZY += ("logunif_kl.posteriors", "logunif_kl.fitting", "logunif_kl._higher")

REPORT = f"""
import sys
names = {(*FOREIGN, *OWN_BUT_LAZY)!r}
print(*sorted(name for name in names if name in sys.modules))
"""


def imported_after(code: str) -> list[str]:
    done = subprocess.run(
        [sys.executable, "-c", code + REPORT], capture_output=True, text=True, check=True
    )
    return done.stdout.split()


class TestNothingIsImported:
    def test_by_the_package(self):
        assert imported_after("import logunif_kl") == []

    def test_by_use(self):
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

    def test_this_test_can_fail(self):
        assert imported_after("import logunif_kl, mpmath") == ["mpmath"]
        assert "scipy" in imported_after("import logunif_kl, scipy.special")
        assert imported_after("import logunif_kl as lk; lk.reference") == [
            "logunif_kl.reference",
            "mpmath",
        ]


class TestNames:
    def test_all_is_there(self):
        for name in lk.__all__:
            assert getattr(lk, name) is not None

    def test_dir(self):
        assert dir(lk) == sorted(lk.__all__)

    def test_lazy_modules_are_reached(self):
        assert imported_after("import logunif_kl as lk; lk.methods.METHODS")[0] == (
            "logunif_kl.methods"
        )

    def test_lazy_functions_are_reached(self):
        from logunif_kl import fitting, posteriors

        assert lk.fit_polynomial is fitting.fit_polynomial
        assert lk.fit_sigmoid is fitting.fit_sigmoid
        assert lk.neg_kl_posterior is posteriors.neg_kl_posterior
        assert "logunif_kl.posteriors" in imported_after("from logunif_kl import neg_kl_posterior")

    def test_unknown_name(self):
        with pytest.raises(AttributeError, match="module 'logunif_kl' has no attribute 'nonsense'"):
            lk.nonsense  # noqa: B018

    def test_star(self):
        names: dict = {}
        exec("from logunif_kl import *", names)
        assert set(lk.__all__) <= set(names)

    def test_version(self):
        assert re.fullmatch(r"\d+\.\d+\.\d+([a-z]+\d+)?", lk.__version__)


def imports_of(path: Path) -> set[str]:
    """Absolute names of the modules that a file imports, at the top or anywhere else."""
    parts = path.relative_to(PACKAGE.parent).with_suffix("").parts
    package = parts[:-1]
    found = set()
    for node in ast.walk(ast.parse(path.read_text())):
        if isinstance(node, ast.Import):
            found |= {alias.name for alias in node.names}
        elif isinstance(node, ast.ImportFrom):
            base = package[: len(package) - node.level + 1] if node.level else ()
            module = ".".join((*base, *(node.module.split(".") if node.module else ())))
            found |= {module} | {f"{module}.{alias.name}" for alias in node.names}
    return found


def modules() -> dict[str, set[str]]:
    """Each file of the package, relative to it, and what it imports."""
    return {
        path.relative_to(PACKAGE).as_posix(): imports_of(path) for path in PACKAGE.rglob("*.py")
    }


def imported(names: set[str], module: str) -> bool:
    return any(name == module or name.startswith(f"{module}.") for name in names)


def breaches(files: dict[str, set[str]]) -> list[str]:
    """The lines of DESIGN section 5 on directions of import, each file against each."""
    found = []
    for file, names in files.items():
        room = file.split("/")[0].removesuffix(".py")
        for library, rooms in {
            "scipy": {"methods", "cli", "fitting", "posteriors", "_timing"},
            "mpmath": {"reference", "cli", "methods", "fitting"},
            "flint": {"reference"},
            "torch": {"torch", "cli"},
            "jax": {"jax", "cli"},
            "tensorflow": {"tensorflow"},
            "matplotlib": {"cli", "fitting"},
            "rich": {"cli"},
            "logunif_kl.reference": {"reference", "cli"},
            "logunif_kl.methods": {"methods", "cli", "fitting"},
            "logunif_kl.fitting": {"fitting", "cli"},
            "logunif_kl.posteriors": {"posteriors", "cli"},
            "logunif_kl.cli": {"cli", "__main__"},
            "logunif_kl.torch": {"torch", "cli", "_dispatch"},  # these only on a tensor
            "logunif_kl.jax": {"jax", "cli", "_dispatch"},
            "logunif_kl.tensorflow": {"tensorflow", "_dispatch"},
        }.items():
            if imported(names, library) and room not in rooms:
                found.append(f"{file} imports {library}")
        allowed = {
            "_kernel": {"logunif_kl._coefficients", "logunif_kl._single"},
            "_single": {"logunif_kl._coefficients"},
            "_higher": {"logunif_kl._kernel"},
            "_coefficients": set(),
        }.get(room)
        if allowed is not None:
            own = {name for name in names if name.split(".")[0] == "logunif_kl"}
            own -= {"logunif_kl"} | {n for n in own if any(n.startswith(a) for a in allowed)}
            found += [f"{file} imports {name}" for name in sorted(own)]
            found += [f"{file} imports numpy" for _ in range(imported(names, "numpy"))]
    return found


class TestDirections:
    def test_of_import(self):
        assert breaches(modules()) == []

    @pytest.mark.parametrize(
        ("file", "code"),
        [
            ("_kernel.py", "from ._api import neg_kl"),
            ("_kernel.py", "import numpy as np"),
            ("_coefficients.py", "def f():\n    from . import _kernel"),
            ("_api.py", "from . import reference"),
            ("_api.py", "from .reference import neg_kl"),
            ("special.py", "import scipy.special"),
            ("torch/ops.py", "from ..jax import ops"),
            ("methods/series.py", "from logunif_kl.reference import kl_gap"),
        ],
    )
    def test_this_test_can_fail(self, file, code, tmp_path, monkeypatch):
        path = tmp_path / "logunif_kl" / file
        path.parent.mkdir(parents=True)
        path.write_text(code)
        monkeypatch.setitem(globals(), "PACKAGE", tmp_path / "logunif_kl")
        assert len(breaches(modules())) >= 1


@pytest.mark.slow
def test_time(tmp_path):
    """With compiled bytecode, as installed: at most 1.2 times NumPy's."""
    environment = {**os.environ, "PYTHONPYCACHEPREFIX": str(tmp_path)}
    environment.pop("PYTHONDONTWRITEBYTECODE", None)
    code = "import time; t = time.perf_counter(); import {}; print(time.perf_counter() - t)"

    def seconds(module: str) -> float:
        done = subprocess.run(
            [sys.executable, "-c", code.format(module)],
            env=environment,
            capture_output=True,
            text=True,
            check=True,
        )
        return float(done.stdout)

    seconds("logunif_kl")
    pairs = [(seconds("numpy"), seconds("logunif_kl")) for _ in range(15)]
    assert min(b for _, b in pairs) <= 1.2 * min(a for a, _ in pairs)


def test_the_package_is_not_imported_by_looking_for_it():
    assert importlib.util.find_spec("logunif_kl") is not None
