"""The notebooks of the gallery run, and print what they show."""

import json
import os
import re
import shutil
import subprocess
import sys

import pytest

from validation.paths import ROOT

NOTEBOOKS = sorted((ROOT / "docs" / "gallery").glob("*.ipynb"))
# A shorter form of a notebook that takes long; the whole is run by the slow tests.
SHORTER = {"refit": ("for terms in (1, 2, 3):", "for terms in (1,):")}
PACKAGES = ("torch", "jax", "sklearn", "torchmetrics", "onnxruntime", "optax", "matplotlib")


def cells(path):
    found = json.loads(path.read_text(encoding="utf-8"))["cells"]
    return [cell for cell in found if cell["cell_type"] == "code"]


def shape(text):
    """The words of a text, without its numbers, which differ between machines."""
    return re.sub(r"[\d.e+-]*\d[\d.e+-]*|\s+", " ", text).split()


def forms():
    for path in NOTEBOOKS:
        yield pytest.param(path, SHORTER.get(path.stem, ("", "")), id=path.stem)
        if path.stem in SHORTER:
            yield pytest.param(path, ("", ""), id=f"all of {path.stem}", marks=pytest.mark.slow)


@pytest.mark.parametrize(("path", "shorter"), [*forms()])
def test_what_a_notebook_prints(path, shorter, tmp_path):
    code = "\n\n".join("".join(cell["source"]) for cell in cells(path))
    assert shorter[0] in code
    code = code.replace(*shorter)
    for package in PACKAGES:
        if re.search(rf"^(import|from) {package}\b", code, re.M):
            pytest.importorskip(package)
    if '"cc"' in code and shutil.which("cc") is None:
        pytest.skip("no C compiler")
    done = subprocess.run(
        [sys.executable, "-c", code],
        cwd=tmp_path,
        env={**os.environ, "MPLBACKEND": "agg", "PYTHONPATH": str(ROOT)},
        capture_output=True,
        text=True,
        check=False,
    )
    assert done.returncode == 0, done.stderr
    outputs = [output for cell in cells(path) for output in cell["outputs"]]
    shown = "".join("".join(output.get("text", ())) for output in outputs)
    assert shape(done.stdout) == shape(shown)


@pytest.mark.parametrize("path", NOTEBOOKS, ids=lambda path: path.stem)
def test_a_notebook_has_its_outputs(path):
    assert all(
        cell["outputs"] for cell in cells(path) if "print(" in "".join(cell["source"])[-400:]
    )
    kinds = [output["output_type"] for cell in cells(path) for output in cell["outputs"]]
    assert set(kinds) <= {"stream", "display_data"}
    assert "display_data" in kinds
