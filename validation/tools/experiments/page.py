"""Write validation/papers/PAPER/README.md from the records of the experiments.

    python -m validation.tools.experiments [--check]

Each result stands beside the paper's. An experiment without a record is named with the command that
makes it. ``--check`` writes nothing, and fails if the page shows anything else.
"""

from __future__ import annotations

import argparse
import json
from collections.abc import Sequence
from pathlib import Path

from validation.paths import RESULTS, ROOT
from validation.tools.experiments import gal2016, haussmann2018, hron2017, molchanov2017, tables
from validation.tools.experiments.section import Section
from validation.tools.experiments.tables import PAPER
from validation.tools.markdown import Results, table

PAGE = ROOT / "validation" / "papers" / PAPER / "README.md"

HEAD = """\
# Kingma, Salimans and Welling 2015: the experiments

*Variational Dropout and the Local Reparameterization Trick*, arXiv:1506.02557. What the paper
states in formulas is decided by `python -m validation.papers`; here are its tables and its figure,
on MNIST. `python -m validation.tools.experiments` writes this page from the records in
`validation/results/kingma2015/`.

MNIST comes as an .npz file (`x_train`, `y_train`, `x_test`, `y_test`) or as the four IDX files,
plain or gzipped, named by `--data` or the environment variable `LOGUNIF_KL_MNIST`; nothing is
downloaded. `--quick` takes scikit-learn's digits and some seconds instead. A run that was ended
goes on from its checkpoints when the same command is given again; they are in `build/`, or in the
folder that `--work` names. `python -m validation.papers.kingma2015.test_error --part 1/2` and
`--part 2/2` are two processes, whose results the command without it collects. All of them need what
`pip install -r validation/frameworks.txt` installs.
"""


SECTIONS = (
    Section(
        "gradient_variance",
        "Tables 1 and 2: the variance of gradients",
        "784-1024-1024-1024-10, minibatches of 1000: the variance of the stochastic gradient in the"
        " weights θ of a layer, as a mean over its weights, with the standard error over pairs of "
        "minibatches. The paper does not say how it averages; ratios to local reparameterisation "
        "are free of that. `gradient_variance.py` says how it is estimated, and what is assumed.",
        " --plot validation/results/kingma2015/gradient_variance.png",
        tables.gradient_variance,
    ),
    Section(
        "shared_noise",
        "Table 1: what one sample of the weights for a minibatch adds",
        "The last step of the order of Table 1, from a sample of the weights for each data point "
        "to one for a minibatch, measured by itself: it is the covariance of the gradients of two "
        "data points, Eq. 5. `shared_noise.py` has the formula.",
        "",
        tables.shared_noise,
    ),
    Section(
        "variance_assumptions",
        "Table 1 under other assumptions",
        "The paper leaves open how its network was trained. Here one assumption is changed at a "
        "time, and ratios to local reparameterisation are measured where the test error is nearest "
        "to the 3 % that the paper gives for its first columns.",
        "",
        tables.variance_assumptions,
    ),
    Section(
        "correlated_assumptions",
        "Table 2 under other assumptions",
        "In the networks of Table 2 above, the divergence of the scales is a few thousand nats, "
        "and the lower layers stay below the largest dropout rate, 0.5. Here the divergence of a "
        "scale is counted once for each weight that it multiplies, or the learning rate is a "
        "fifth.",
        "",
        tables.correlated_assumptions,
    ),
    Section(
        "speed",
        "Section 5: speed",
        "The same network, whole training steps with Adam and the divergence.",
        "",
        tables.speed,
    ),
    Section(
        "test_error",
        "Figure 1a: test error",
        "Three hidden layers of each width, early stopping on the last sixth of the training set, "
        "temporal averaging; the mean over the seeds, with its standard error. α is one for each "
        "input unit, starts from the rates 0.2 and 0.5, and is at most 1.",
        " --plot validation/results/kingma2015/test_error.png",
        tables.test_error,
    ),
    Section(
        "input_rate",
        "Figure 1a: B in narrow networks",
        "Three hidden layers of 100 units, 40 epochs on all training examples, averaged "
        "parameters. Gaussian dropout B keeps the rate of 0.2 at the inputs, which variational "
        "dropout B learns. The mean over the seeds with its standard error, and the same of the "
        "difference from Gaussian dropout B of the same seed.",
        "",
        tables.input_rate,
    ),
    Section(
        "constraint",
        "Section 3.4: without α ≤ 1",
        "Variational dropout B with 200 units in each of three hidden layers, averaged parameters; "
        "the exact divergence and the paper's cubic, with and without the bound.",
        " --plot validation/results/kingma2015/constraint.png",
        tables.constraint,
    ),
    Section(
        "extra_variance",
        "Appendix D: the variance that weight samples add",
        "One layer, a minibatch of one: the gradient in σ² by weight samples and by local "
        "reparameterisation. The slope of the measured difference of their variances on the second "
        "term of Eq. 45, with its standard error: 1 is agreement.",
        " --plot validation/results/kingma2015/extra_variance.png",
        tables.extra_variance,
    ),
)


_OTHERS = (hron2017, molchanov2017, haussmann2018, gal2016)


def sections() -> dict[str, Sequence[Section]]:
    """Return the parts of all pages, one for each experiment, by the paper."""
    return {PAPER: SECTIONS, **{other.PAPER: other.SECTIONS for other in _OTHERS}}


def took(record: Results | None) -> str:
    """Say how long a record's computation took, and where."""
    if record is None:
        return "not run"
    seconds = record["seconds"]
    time = f"{seconds:.0f} s" if seconds < 600 else f"{seconds / 3600:.1f} h"
    threads = record["threads"]
    return f"{time}, {record['machine']['cpu']}, {threads} thread{'s' * (threads > 1)} a process"


def page(
    records: dict[str, Results | None], head: str = HEAD, sections: Sequence[Section] = SECTIONS
) -> str:
    """Write the whole page from the records by name."""
    rows = []
    for section in sections:
        record = records.get(section.name)
        seeds = "" if record is None else ", ".join(map(str, record["seeds"]))
        day = "" if record is None else record["date"][:10]
        rows.append((section.title, f"`{section.command}`", seeds, took(record), day))
    made = table(["experiment", "command", "seeds", "computing time", "day"], rows)
    parts = [head, made + "\n", *(each.text(records.get(each.name)) for each in sections)]
    return "\n".join(parts)


def read(
    folder: Path = RESULTS / PAPER, sections: Sequence[Section] = SECTIONS
) -> dict[str, Results | None]:
    """Read the records that are there."""
    found: dict[str, Results | None] = {}
    for section in sections:
        path = folder / f"{section.name}.json"
        there = path.exists()
        found[section.name] = json.loads(path.read_text(encoding="utf-8")) if there else None
    return found


def main(arguments: Sequence[str] | None = None) -> int:
    parser = argparse.ArgumentParser(prog="python -m validation.tools.experiments")
    parser.add_argument("--check", action="store_true", help="compare, and write nothing")
    options = parser.parse_args(arguments)
    late = 0
    for path, written in pages().items():
        if not options.check:
            path.parent.mkdir(parents=True, exist_ok=True)
            path.write_text(written, encoding="utf-8")
        elif not path.exists() or path.read_text(encoding="utf-8") != written:
            late = 1
            print(
                f"{path.relative_to(ROOT)} is out of date: run python -m "
                "validation.tools.experiments"
            )
    return late


def pages() -> dict[Path, str]:
    """Write the page of each paper, by its path."""
    found = {PAGE: page(read())}
    for other in _OTHERS:
        path = ROOT / "validation" / "papers" / other.PAPER / "README.md"
        records = read(RESULTS / other.PAPER, other.SECTIONS)
        found[path] = page(records, other.HEAD, other.SECTIONS)
    return found
