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
    call = "import sys; from tests.site.test_examples import failures; "
    call += "sys.exit(failures(sys.stdin.read(), 'snippet') or None)"
    done = subprocess.run(
        [sys.executable, "-c", call],
        cwd=tmp_path,
        env={**os.environ, "PYTHONPATH": str(ROOT)},
        input=body,
        capture_output=True,
        text=True,
        check=False,
    )
    assert done.returncode == 0, done.stderr
    assert done.stdout == ""


def test_each_is_on_one_page():
    texts = [page.read_text(encoding="utf-8") for page in START.glob("*.md")]
    assert sorted(SNIPPETS) == sorted(NAMES)
    assert sum(text.count("<!-- alone: ") for text in texts) == len(NAMES)
    assert {needs for needs, _ in SNIPPETS.values()} == {"", "torch", "jax"}
