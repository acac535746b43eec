"""Make a release, try one, or check that one can be published.

    python -m validation.tools.release 1.0.0rc1
    python -m validation.tools.release --dry-run 1.0.0rc1 FOLDER
    python -m validation.tools.release --check v1.0.0rc1

The first form writes the version and the date into the package, ``CHANGELOG.md`` and
``CITATION.cff``, adds ``pip install`` to the README and the site, commits and tags. The second form
does so in a copy of the last commit, makes the wheel, the source archive, the notes and the site in
an empty folder, and checks them; it needs the extras ``dev`` and ``docs``. The third form changes
nothing. All but the second refuse until ``pyproject.toml`` has the repository's address.
"""

import datetime
import os
import re
import subprocess
import sys
import tomllib
import venv
from pathlib import Path
from zipfile import ZipFile

from validation.paths import ROOT

PLACEHOLDER = ".invalid/"
VERSION = re.compile(r"\d+\.\d+\.\d+(rc\d+)?")


def problems(root: Path) -> list[str]:
    urls = tomllib.loads((root / "pyproject.toml").read_text("utf-8"))["project"]["urls"]
    return [
        f"{name} in [project.urls] of pyproject.toml is a placeholder: set the real address"
        for name, url in urls.items()
        if PLACEHOLDER in url
    ]


def edits(version: str, date: str) -> dict[str, tuple[tuple[str, str], ...]]:
    """Return, for each file, the patterns that must be found once, and what replaces them."""
    pip = "with `pip install logunif_kl`, or from a clone"
    return {
        "logunif_kl/_version.py": ((r'(?<=^__version__ = ").*(?=")', version),),
        "conda/recipe.yaml": ((r'(?<=^  version: ")[^"]*(?="$)', version),),
        "CHANGELOG.md": ((r"^## Unreleased$", f"## {version} ({date})"),),
        "CITATION.cff": (
            (
                r"^type: software(\nversion: .*\ndate-released: .*)?$",
                f'type: software\nversion: {version}\ndate-released: "{date}"',
            ),
        ),
        "README.md": (
            (r"(?<=later; )(?:not on PyPI yet; )?half a minute", "half a minute"),
            (r"^Install (?:.* )?from a clone(?= \()", f"Install {pip}"),
        ),
        "docs/start/install.md": (
            (r"(?:Install it .*|From a clone)(?= of the repository:)", f"Install it {pip}"),
        ),
    }


def write(root: Path, version: str, date: str) -> list[str]:
    written = {}
    for name, pairs in edits(version, date).items():
        text = (root / name).read_text(encoding="utf-8")
        for pattern, new in pairs:
            text, found = re.subn(pattern, new, text, flags=re.MULTILINE)
            if found != 1:
                raise SystemExit(f"release: {name} has {found} lines like {pattern}: write one")
        written[name] = text
    for name, text in written.items():
        (root / name).write_text(text, encoding="utf-8")
    return list(written)


def current(root: Path) -> str:
    text = (root / "logunif_kl/_version.py").read_text(encoding="utf-8")
    return str(re.findall(r'"(\d.*)"', text)[0])


def run(command: list[str], cwd: Path, **environment: str) -> str:
    print(f"release: {' '.join(command)}", flush=True)
    found = {**os.environ, **environment}
    done = subprocess.run(
        command, cwd=cwd, env=found, stdout=subprocess.PIPE, text=True, check=False
    )
    if done.returncode:
        raise SystemExit(f"release: this command failed, for the reason above:\n{done.stdout}")
    return done.stdout


def notes(root: Path, version: str) -> str:
    """Return what the changes say of a version."""
    text = (root / "CHANGELOG.md").read_text(encoding="utf-8")
    (found,) = re.findall(rf"^## {re.escape(version)} .*?(?=^## |\Z)", text, re.M | re.S)
    return str(found)


def try_out(root: Path, version: str, folder: Path) -> list[str]:
    """Make everything of a release in a folder, and return what is wrong with it."""
    copy, dist, site = folder / "source", folder / "dist", folder / "site"
    git(root, "clone", "-q", str(root), str(copy))
    write(copy, version, datetime.datetime.now(datetime.UTC).date().isoformat())
    (folder / "notes.md").write_text(notes(copy, version), encoding="utf-8")
    run([sys.executable, "-m", "build", "-o", str(dist)], copy, LOGUNIF_KL_RELEASE="1")
    (wheel,) = dist.glob("*.whl")
    made = venv.EnvBuilder(with_pip=True)
    made.create(folder / "venv")
    python = str(folder / "venv" / ("Scripts" if os.name == "nt" else "bin") / "python")
    run([python, "-m", "pip", "install", "-q", f"{wheel}[cli]"], folder)
    said = run([python, "-c", "import logunif_kl as lk; print(lk.__version__)"], folder).strip()
    compared = run([python, "-m", "logunif_kl", "compare"], folder)
    with ZipFile(wheel) as archive:  # the site shows what was compiled
        compiled = [name for name in archive.namelist() if name.endswith((".so", ".pyd"))]
        archive.extractall(copy, compiled)
    sphinx = [sys.executable, "-m", "sphinx", "-q", "-W", "docs", str(site)]
    run(sphinx, copy, PYTHONPATH=str(copy))
    wanted = {
        "the wheel has another version": f"logunif_kl-{version}-" in wheel.name,
        "there is no source archive": (dist / f"logunif_kl-{version}.tar.gz").is_file(),
        "the installed package has another version": said == version,
        "the installed command compares nothing": "molchanov" in compared,
        "the notes are empty": len(notes(copy, version).splitlines()) > 1,
        **{
            f"{page} of the site has another version": version
            in (site / page).read_text(encoding="utf-8").partition("</title>")[0]
            for page in ("index.html", "llms.txt")
        },
    }
    return [what for what, right in wanted.items() if not right]


def git(root: Path, *words: str) -> str:
    done = subprocess.run(["git", *words], cwd=root, check=True, capture_output=True, text=True)
    return done.stdout


def main(arguments: list[str], root: Path = ROOT) -> int:
    if arguments[:1] == ["--dry-run"] and len(arguments) == 3:
        version, folder = arguments[1], Path(arguments[2]).resolve()
        folder.mkdir(parents=True, exist_ok=True)
        if not VERSION.fullmatch(version) or any(folder.iterdir()):
            print(
                "release: give one version, such as 1.0.0rc1, and an empty folder", file=sys.stderr
            )
            return 1
        found = try_out(root, version, folder)
        print(*(f"release: {each}" for each in found or [f"{version} is in {folder}"]), sep="\n")
        return bool(found)
    check = arguments[:1] == ["--check"]
    version = arguments[-1].removeprefix("v") if len(arguments) == 1 + check else ""
    found = problems(root)
    if not VERSION.fullmatch(version):
        found.append("give one version, such as 1.0.0rc1")
    if check and version != current(root):
        found.append(
            f"the package has the version {current(root)}: tag the commit that has {version}"
        )
    if not check and git(root, "status", "--porcelain"):
        found.append("the working tree has changes: commit them first")
    if found:
        print(*(f"release: {each}" for each in found), sep="\n", file=sys.stderr)
        return 1
    if not check:
        names = write(root, version, datetime.datetime.now(datetime.UTC).date().isoformat())
        git(root, "commit", "-m", f"Release {version}", "--", *names)
        git(root, "tag", "-a", f"v{version}", "-m", version)
        print(f"release: push the commit and the tag v{version}; the workflow wheels publishes it")
    return 0


if __name__ == "__main__":
    raise SystemExit(main(sys.argv[1:]))
