"""The role ``computed``: a number in a sentence, computed as the page is built.

``{computed}`EXPRESSION:FORMAT``` is what stands in the braces of an f-string. Beside ``lk``, ``np``
and ``math`` it may take what `names` has.
"""

from __future__ import annotations

import ast
import json
import math
import tomllib
from importlib import import_module
from typing import Any

import numpy as np
from docutils import nodes
from scipy import stats
from sphinx.application import Sphinx
from sphinx.util.docutils import SphinxRole

import logunif_kl as lk
from validation import verdict
from validation.paths import RESULTS, ROOT
from validation.tools import summary, tables, trained

COMPARED = "compare/compare"
LENET = "molchanov2017/lenet_300_100"
CAFFE = "molchanov2017/lenet_5_caffe_authors"


def held(name: str, said: str = "") -> str:
    """Say how many of the statements hold that an experiment, PAPER.NAME, measures.

    ``said`` names the list of some of them in its module.
    """
    module = import_module(f"validation.papers.{name}")
    rows = module.EXPERIMENT.read()["rows"]
    every = module.statements(rows, getattr(module, said)) if said else module.statements(rows)
    decided = [verdict.verdict(each["agrees"], networks=True) for each in every]
    return f"{decided.count(verdict.HOLDS)} of {len(decided)}"


def near(table: str, at_the_error: bool = False) -> str:
    """Say how many ratios of a table of Kingma et al. are within a factor of 2 of theirs.

    The networks are those of the paper's number of epochs, or of the paper's test error.
    """
    from validation.papers.kingma2015 import ratios

    found = result("kingma2015/gradient_variance")[table]
    return ratios.near(found["at_the_error_of_the_paper" if at_the_error else "columns"])


def constant(file: str, name: str) -> Any:
    """Return a constant of a module, which need not be importable here."""
    for node in ast.parse((ROOT / file).read_text(encoding="utf-8")).body:
        if isinstance(node, ast.Assign) and ast.unparse(node.targets[0]) == name:
            return ast.literal_eval(node.value)
    raise LookupError(f"{file} has no constant {name}")


def result(file: str) -> Any:
    """Return what a file of ``validation/results`` holds."""
    return json.loads((RESULTS / f"{file}.json").read_text(encoding="utf-8"))


def method(name: str) -> Any:
    """Return what `logunif-kl compare` found of a method, over its own domain."""
    return next(row for row in result(COMPARED)["rows"] if row["method"] == name)


def lenet(what: str, case: str = "exact") -> Any:
    """Return a mean over the seeds of LeNet-300-100 with one divergence."""
    return next(row for row in result(LENET)["summary"] if row["case"] == case)[what]


def peak() -> tuple[float, float]:
    """Return log alpha where the gradient of -KL is largest, and the gradient there."""
    from scipy.optimize import brentq

    at = brentq(lk.neg_kl_hess, -2.0, -1.0, xtol=1e-14)
    return at, float(lk.neg_kl_grad(at))


def crossing() -> float:
    """Return alpha where the lower bound of Kingma et al. is -KL, above which it bounds nothing."""
    from scipy.optimize import brentq

    at = brentq(lambda x: lk.methods.lower_bound(x) - lk.neg_kl(x), 0.5, 1.5, xtol=1e-14)
    return math.exp(at)


def halves(sigma: float) -> Any:
    """Return the mixture of N(-1, sigma^2) and N(1, sigma^2) in equal parts."""
    parts = [stats.Normal(mu=mu, sigma=sigma) for mu in (-1.0, 1.0)]
    return stats.Mixture(parts, weights=[0.5, 0.5])


def table(function: str, dtype: str) -> Any:
    """Return the ranges of a function in one format."""
    from logunif_kl._arithmetic.coefficients import TABLES

    return TABLES[function, dtype]


def spec() -> Any:
    """Return the specification of the coefficients."""
    path = ROOT / "validation" / "coefficients" / "spec.toml"
    return tomllib.loads(path.read_text(encoding="utf-8"))


def times_as_fast() -> dict[tuple[str, str], float]:
    """Return how many times as fast ours is at a million elements, by what and as what."""
    _, files = tables.SECTIONS["bench_in_short"]
    found = summary.times_as_fast(*map(result, files))
    return {names: by_size[1_000_000] for names, (_, by_size) in found.items()}


NAMES = {
    "lk": lk,
    "np": np,
    "math": math,
    "stats": stats,
    "halves": halves,
    "constant": constant,
    "result": result,
    "method": method,
    "lenet": lenet,
    "CAFFE": CAFFE,
    "LENET": LENET,
    "held": held,
    "RULE": verdict.RULE,
    "near": near,
    "table": table,
    "spec": spec,
    "peak": peak,
    "trained": trained.mean,
    "accuracy": lk.accuracy,
    "crossing": crossing,
    "times_as_fast": times_as_fast,
}


class Computed(SphinxRole):
    """``{computed}``: the text that an f-string makes of what is in its braces."""

    def run(self) -> tuple[list[nodes.Node], list[nodes.system_message]]:
        try:
            text = eval(f'f"""{{{self.text}}}"""', dict(NAMES))
        except Exception as error:
            message = self.inliner.reporter.error(f"{self.text} cannot be computed: {error}")
            return [self.inliner.problematic(self.rawtext, self.rawtext, message)], [message]
        if "method(" in self.text:
            self.env.note_dependency(str(RESULTS / f"{COMPARED}.json"))
        return [nodes.inline(self.rawtext, text, classes=["computed"])], []


def setup(app: Sphinx) -> dict[str, bool]:
    """Enter the role."""
    app.add_role("computed", Computed())
    return {"parallel_read_safe": True, "parallel_write_safe": True}
