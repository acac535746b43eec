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


@pytest.mark.parametrize("module", public.MODULES)
def test_names_and_signatures(module):
    if not public.installed(module):
        pytest.skip(f"{module} needs {' and '.join(public.MODULES[module])}")
    # In a new process: earlier imports add names, and two copies of LLVM abort.
    code = f"from tests import public; print(*public.lines({module!r}), sep='\\n')"
    assert output(code).splitlines() == [line for line in WRITTEN if owner(line) == module]


def test_every_module_has_lines():
    assert {owner(line) for line in WRITTEN} == set(public.MODULES)


def test_a_change_is_seen():
    def before(x, *, zero_at=1.0):
        """Nothing."""

    def after(x, *, zero_at=2.0):
        """Nothing."""

    assert list(public._of("f", before)) == ["f(x, *, zero_at=1.0)"]
    assert list(public._of("f", after)) != list(public._of("f", before))
