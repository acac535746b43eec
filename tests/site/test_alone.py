"""The examples of the first pages run on their own, in a new process."""

import os
import re
import subprocess
import sys

import pytest

from validation.paths import ROOT

START = ROOT / "docs" / "start"
ALONE = re.compile(
    r"^<!-- alone: ([\w ]+) -->\n(?:<!-- needs: (\w+) -->\n)?```python\n(.*?)^```$",
    re.MULTILINE | re.DOTALL,
)
SNIPPETS = {
    name: (needs, body)
    for page in sorted(START.glob("*.md"))
    for name, needs, body in ALONE.findall(page.read_text(encoding="utf-8"))
}
NAMES = ("value", "training", "gradient", "refit", "sparse network")


@pytest.mark.slow
@pytest.mark.parametrize("name", NAMES)
def test_a_new_user(name, tmp_path):
    """An unchanged copy prints what its page shows."""
    needs, body = SNIPPETS[name]
    if needs:
        pytest.importorskip(needs)
    (tmp_path / "snippet.txt").write_text(body, encoding="utf-8")
    command = [sys.executable, "-m", "doctest", "-o", "ELLIPSIS", "-o", "NORMALIZE_WHITESPACE"]
    paths = filter(None, os.environ.get("PYTHONPATH", "").split(os.pathsep))
    done = subprocess.run(
        [*command, "snippet.txt"],
        cwd=tmp_path,
        env={**os.environ, "PYTHONPATH": os.pathsep.join(map(os.path.abspath, paths))},
        capture_output=True,
        text=True,
        check=False,
    )
    assert done.returncode == 0, done.stdout + done.stderr
    assert done.stdout == ""


def test_each_is_on_one_page():
    texts = [page.read_text(encoding="utf-8") for page in START.glob("*.md")]
    assert sorted(SNIPPETS) == sorted(NAMES)
    assert sum(text.count("<!-- alone: ") for text in texts) == len(NAMES)
    assert {needs for needs, _ in SNIPPETS.values()} == {"", "torch", "jax"}
