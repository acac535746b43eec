"""Compile the fuzzing targets: for libFuzzer with the sanitizers, or with their own main."""

import re
import shutil
import subprocess
import sysconfig
from collections.abc import Callable, Sequence
from pathlib import Path

import numpy as np

from validation.paths import ROOT

HERE = Path(__file__).resolve().parent
# Other files that a target is linked with.
TARGETS: dict[str, tuple[str, ...]] = {
    "exact": (),
    "float32": ("kernels", "reference"),
    "torch": ("kernels",),
    "jax": ("kernels",),
}
# The options of setup.py that change results. No warnings, because functions for Python are unused.
FLAGS = [
    "-std=c11",
    "-D_GNU_SOURCE",
    "-O1",
    "-g1",
    "-fno-math-errno",
    "-fno-trapping-math",
    "-ffp-contract=off",
    "-fno-fast-math",
    "-w",
    "-DNPY_NO_DEPRECATED_API=NPY_2_0_API_VERSION",
    "-DNPY_TARGET_VERSION=NPY_2_0_API_VERSION",
    # Without references to Python, the compiler drops the code that needs it.
    "-DPyMODINIT_FUNC=static PyObject *",
]
SANITIZE = ("-fno-sanitize-recover=undefined", "-fno-omit-frame-pointer")
SANITIZERS = ("address", "undefined")
# The checks of `undefined` in the float32 kernels: with all of them, clang takes minutes. GCC
# checks all in `python -m validation.tools.sanitize`.
FEWER = (
    "address",
    "bounds",
    "float-cast-overflow",
    "integer-divide-by-zero",
    "shift",
    "signed-integer-overflow",
)
PARTS: dict[str, tuple[str, ...]] = {"kernels": FEWER, "reference": ()}
NO_CLANG = (
    "fuzz: clang with libFuzzer is needed, and {problem}: install it "
    "(on Debian: apt-get install clang llvm libclang-rt-dev)"
)


class BuildError(Exception):
    """A compiler is missing or failed."""


def find_clang() -> str:
    names = ("clang", *(f"clang-{version}" for version in range(40, 10, -1)))
    found = next(filter(None, map(shutil.which, names)), None)
    if found is None:
        raise BuildError(NO_CLANG.format(problem="there is no clang"))
    return found


def find_cc() -> str | None:
    named = (sysconfig.get_config_var("CC") or "cc").split()[0]
    return shutil.which(named) or shutil.which("cc")


def has_headers() -> bool:
    return Path(sysconfig.get_paths()["include"], "Python.h").exists()


def compile_file(compiler: str, output: Path, arguments: Sequence[str], root: Path = ROOT) -> None:
    """Run a compiler, with `root` as the folder of the package's C sources."""
    if not has_headers():
        raise BuildError(
            "fuzz: Python.h is needed, and it is not there: install Python's headers "
            "(on Debian: apt-get install python3-dev)"
        )
    include = [root, HERE, sysconfig.get_paths()["include"], np.get_include()]
    done = subprocess.run(
        [compiler, *FLAGS, *(f"-I{path}" for path in include), *arguments, "-o", str(output)],
        capture_output=True,
        text=True,
        check=False,
    )
    if done.returncode:
        said = done.stdout + done.stderr
        if re.search(r"libclang_rt|fsanitize=fuzzer", said):
            raise BuildError(NO_CLANG.format(problem=f"{compiler} has no runtime for it"))
        raise BuildError(f"fuzz: {compiler} failed to make {output.name}:\n{said}")


def build(
    target: str,
    folder: Path,
    compiler: str,
    options: Sequence[str] = (),
    of_part: Callable[[str], Sequence[str]] | None = None,
    root: Path = ROOT,
) -> Path:
    """Build a target with the other files that it needs, unless they are already compiled.

    ``of_part`` maps the name of another file to its options, if they differ from ``options``.
    """
    objects = []
    for name in TARGETS[target]:
        made = folder / f"{name}.o"
        if not made.exists():
            own = of_part(name) if of_part else options
            compile_file(compiler, made, [*own, "-c", str(HERE / f"{name}.c")], root)
        objects.append(str(made))
    output = folder / target
    compile_file(compiler, output, [*options, str(HERE / f"{target}.c"), *objects, "-lm"], root)
    return output


def build_fuzzer(target: str, folder: Path, clang: str) -> Path:
    def of_part(name: str) -> Sequence[str]:
        wanted = ",".join((*PARTS[name], "fuzzer-no-link"))
        return [f"-fsanitize={wanted}", *SANITIZE] if PARTS[name] else []

    options = ["-DFUZZ_LIBFUZZER", f"-fsanitize={','.join(SANITIZERS)},fuzzer", *SANITIZE]
    return build(target, folder, clang, options, of_part)


def version(compiler: str) -> str:
    done = subprocess.run([compiler, "--version"], capture_output=True, text=True, check=True)
    return done.stdout.splitlines()[0]
