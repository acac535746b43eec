"""Run the tests with the oldest versions that ``pyproject.toml`` allows, or with the newest.

    python -m validation.tools.versions oldest|newest [core] [jax] [torch] [tensorflow] [-- ...]

Each name has its own virtual environment, for the tests of NumPy (``core``, the default) or of a
framework. ``oldest`` takes the lower bounds in ``pyproject.toml`` and the oldest allowed Python,
``newest`` the newest ones that can be found, but of PyTorch that in ``validation/frameworks.txt``,
without CUDA. ``--python PATH`` names another interpreter. Arguments after ``--`` go to pytest.
"""

import argparse
import re
import shutil
import subprocess
import sys
import tempfile
import time
import tomllib
from collections.abc import Sequence
from pathlib import Path

from validation.output import Record
from validation.paths import ROOT
from validation.tools.elsewhere import TESTS, copy_source, copy_tests, run

CORE = "core"
# The package to install for each framework. tensorflow-cpu has the same releases, without GPU
# files.
FRAMEWORKS = {"jax": "jax", "torch": "torch", "tensorflow": "tensorflow-cpu"}
TESTS_OF = {CORE: TESTS, **{name: (f"tests/{name}",) for name in FRAMEWORKS}}
_REQUIREMENT = re.compile(r"(?P<name>[A-Za-z0-9_.-]+)(\[(?P<extras>[^]]*)\])?>=(?P<bound>[\d.]+)")


def project() -> Record:
    return dict(tomllib.loads((ROOT / "pyproject.toml").read_text(encoding="utf-8"))["project"])


def requirements(*extras: str, of: Record) -> dict[str, str]:
    found: dict[str, str] = {}
    texts = list(of["dependencies"])
    for extra in extras:
        texts += of["optional-dependencies"][extra]
    for text in texts:
        own = re.fullmatch(rf"{of['name']}\[(.*)\]", text)
        if own:
            inner = requirements(*own[1].split(","), of=of)
        else:
            match = _REQUIREMENT.fullmatch(text)
            if match is None:
                raise SystemExit(f"versions: {text!r} has no lower bound, or has more than that")
            name = match["name"] + (f"[{match['extras']}]" if match["extras"] else "")
            inner = {name: match["bound"]}
        for name, bound in inner.items():
            found[name] = max(bound, found.get(name, bound), key=_parts)
    return found


def _parts(version: str) -> tuple[int, ...]:
    return tuple(map(int, version.split(".")))


def asked(which: str, kind: str, of: Record) -> list[str]:
    extras = ["test"] if kind == CORE else [kind, "test"]
    bounds = requirements(*extras, of=of)
    if kind != CORE:
        bounds[FRAMEWORKS[kind]] = bounds.pop(kind)
    if which == "oldest":
        # A framework may need newer versions of others, whose oldest versions are tried with the
        # core.
        old = bounds if kind == CORE else {FRAMEWORKS[kind]}
        # The first release may be called x.y.0 or x.0.y.
        return [
            f"{name}>={bound}" + (f",<{bound}.1" if name in old else "")
            for name, bound in bounds.items()
        ]
    texts = [f"{name}>={bound}" for name, bound in bounds.items()]
    if kind == "torch":
        return [text for text in texts if not text.startswith("torch>")] + [pinned("torch")]
    return texts


def pinned(framework: str) -> str:
    lines = (ROOT / "validation" / "frameworks.txt").read_text(encoding="utf-8").splitlines()
    (line,) = (line for line in lines if re.match(rf"{framework}\b", line))
    return line


def interpreter(which: str, of: Record) -> str:
    declared = [
        text.rpartition(" ")[2]
        for text in of["classifiers"]
        if re.fullmatch(r"Programming Language :: Python :: 3\.\d+", text)
    ]
    for version in sorted(declared, key=_parts, reverse=which == "newest"):
        path = shutil.which(f"python{version}")
        # A name on the path may start versions that are not installed.
        if path and run([path, "-c", ""], ROOT).returncode == 0:
            return path
    versions = ", ".join(declared)
    raise SystemExit(f"versions: none of Python {versions} is on the path: pass --python")


def checked(command: Sequence[str], cwd: Path) -> str:
    done = run(command, cwd=cwd)
    if done.returncode:
        raise SystemExit(f"{done.stdout}\nversions: {' '.join(command)} failed")
    return done.stdout


def wheel(python: str, folder: Path) -> Path:
    source = copy_source(folder / "source")
    command = [python, "-m", "pip", "wheel", "-q", "--no-deps", "-w", str(folder / "wheels")]
    checked([*command, str(source)], folder)
    (made,) = (folder / "wheels").glob("logunif_kl-*.whl")
    return made


def install(python: str, texts: Sequence[str], made: Path, folder: Path) -> str:
    checked([python, "-m", "venv", str(folder)], folder.parent)
    scripts = "Scripts" if sys.platform == "win32" else "bin"
    own = str(folder / scripts / "python")
    pip = [own, "-m", "pip", "install", "-q"]
    checked([*pip, *texts], folder)
    checked([*pip, "--no-deps", str(made)], folder)
    return own


def run_tests(own: str, arguments: Sequence[str], folder: Path) -> int:
    elsewhere = copy_tests(folder / "elsewhere")
    print(checked([own, "-m", "pip", "list", "--format=freeze"], folder), flush=True)
    command = [own, "-m", "pytest", "-q", "-p", "no:cacheprovider", "--durations=5"]
    return subprocess.run([*command, *arguments], cwd=elsewhere, check=False).returncode


def main(arguments: list[str]) -> int:
    parser = argparse.ArgumentParser(prog="versions", usage=__doc__)
    parser.add_argument("which", choices=("oldest", "newest"))
    parser.add_argument("kinds", nargs="*", default=[CORE])
    parser.add_argument("--python")
    at = arguments.index("--") if "--" in arguments else len(arguments)
    options, for_pytest = parser.parse_args(arguments[:at]), arguments[at + 1 :]
    unknown = set(options.kinds) - {CORE, *FRAMEWORKS}
    if unknown:
        parser.error(f"{' '.join(sorted(unknown))}: choose from {CORE} {' '.join(FRAMEWORKS)}")
    of = project()
    wanted = {kind: asked(options.which, kind, of) for kind in options.kinds}
    python = options.python or interpreter(options.which, of)
    with tempfile.TemporaryDirectory() as temporary:
        folder = Path(temporary).resolve()
        made = wheel(python, folder)
        status = 0
        for kind, texts in wanted.items():
            began = time.monotonic()
            place = folder / f"{options.which}-{kind}"
            place.mkdir()
            with_it = install(python, texts, made, place / "venv")
            outcome = run_tests(with_it, for_pytest or TESTS_OF[kind], place)
            said = f"failed with status {outcome}" if outcome else "passed"
            took = f"[{time.monotonic() - began:.0f} s]"
            print(f"versions: {options.which} {kind}: {said} {took}", flush=True)
            status = status or outcome
    return status


if __name__ == "__main__":
    raise SystemExit(main(sys.argv[1:]))
