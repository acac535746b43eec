"""The quick forms of the experiments see what goes wrong in the layers and in training.

Each mutant is a copy of the source tree with some lines added to one module. The records that must
not hold in that copy are listed.
"""

import os
import re
import shutil
import subprocess
import sys

import pytest

from validation.experiment import experiments
from validation.paths import ROOT

pytestmark = pytest.mark.slow
for _package in ("torch", "numpyro", "sklearn", "torchmetrics"):
    pytest.importorskip(_package)

MUTANTS = {
    "halved KL": (
        "logunif_kl/nn/torch/priors/penalty.py",
        """
_true = total
def total(*arguments, **options):
    return 0.5 * _true(*arguments, **options)
""",
    ),
    "one more draw a layer": (
        "logunif_kl/nn/torch/noise/normal.py",
        """
_true = normals
def normals(*arguments, **options):
    _true(*arguments, **options)
    return _true(*arguments, **options)
""",
    ),
    "wrong learning rate": (
        "validation/training/loop.py",
        """
_adam, _init = torch.optim.Adam, Settings.__init__
def doubled(self, *arguments, **options):
    _init(self, *arguments, **options)
    object.__setattr__(self, "learning_rate", 2.0 * self.learning_rate)
Settings.__init__ = doubled
torch.optim.Adam = lambda parameters, lr=1e-3, **options: _adam(parameters, 2.0 * lr, **options)
""",
    ),
}
# Experiments without layers that draw or train: of integrals, chains, flows, words, and of time.
NEITHER = {
    *(f"hron2017/{name}" for name in ("chains", "correlated", "normaliser", "parametrisations")),
    *("hron2017/remarks", "hron2017/slides", "kingma2015/speed", "molchanov2017/inference"),
}
# These draw noise, but train nothing by the KL: one trains means alone, and three train nothing.
WITHOUT_KL = {
    *("haussmann2018/covariances", "haussmann2018/moments"),
    *("kingma2015/extra_variance", "molchanov2017/gradients"),
}
RECORDS = [each.path for each in experiments().values() if each.path.exists()]
ALL = {f"{path.parent.name}/{path.stem}" for path in RECORDS}
EXPECTED = {
    "halved KL": ALL - NEITHER - WITHOUT_KL,
    "one more draw a layer": ALL - NEITHER,
    "wrong learning rate": ALL - NEITHER - WITHOUT_KL | {"molchanov2017/gradients"},
}


@pytest.mark.parametrize("mutant", MUTANTS)
def test_the_records_that_do_not_hold(mutant, tmp_path):
    file, lines = MUTANTS[mutant]
    for folder in ("logunif_kl", "validation"):
        shutil.copytree(ROOT / folder, tmp_path / folder)
    with (tmp_path / file).open("a", encoding="utf-8") as module:
        module.write(lines)
    records = [str(path.relative_to(ROOT)) for path in RECORDS]
    done = subprocess.run(
        [sys.executable, "-m", "validation.record", "check", *records],
        cwd=tmp_path,
        env={**os.environ, "PYTHONPATH": str(tmp_path)},
        stdout=subprocess.PIPE,
        text=True,
        check=False,
    )
    assert f" of {len(records)} records hold." in done.stdout
    found = set(re.findall(r"^validation/results/(\w+/\w+)\.json: ", done.stdout, re.MULTILINE))
    assert found == EXPECTED[mutant]
