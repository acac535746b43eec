"""The public names and signatures are those on file, so the history shows each change."""

import pytest

from tests import golden, public
from tests.child import output

WRITTEN = (golden.HERE / "public.txt").read_text(encoding="utf-8").splitlines()


def owner(line):
    """The module that a line belongs to."""
    name = line.removesuffix(": module")
    if name != line:
        return name.rpartition(".")[0]
    return max((m for m in public.MODULES if line.startswith(f"{m}.")), key=len)


@pytest.mark.parametrize("framework", ["", *public.FRAMEWORKS])
def test_names_and_signatures(framework):
    """Of the modules that need a framework, or none."""
    modules = [name for name in public.MODULES if public.framework(name) == framework]
    there = [name for name in modules if public.installed(name)]
    if not there:
        pytest.skip(f"{framework} is not installed")
    # In a new process: earlier imports add names, and two copies of LLVM abort.
    code = f"from tests import public\nfor name in {there!r}: print(*public.lines(name), sep='\\n')"
    written = [line for line in WRITTEN if owner(line) in there]
    assert sorted(output(code).splitlines()) == sorted(written)


def test_every_module_has_lines():
    assert {owner(line) for line in WRITTEN} == set(public.MODULES)
