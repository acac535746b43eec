"""The formulas that take tensors: methods of papers, and fits."""

from collections.abc import Callable
from functools import cache
from typing import Any

import numpy as np

import logunif_kl as lk

CLOSED = ("kingma", "molchanov", "lower_bound", "kummer", "fit of sigmoids", "fit of a cubic")
ON_HOST = ("series", "quadrature")
NAMES = (*CLOSED, *ON_HOST)
# Above alpha = 1 the cubics cross zero, where a relative error is unbounded.
X = np.concatenate([np.linspace(-30.0, -0.5, 200), [-np.inf]])


@cache
def of(name: str) -> tuple[Callable[..., Any], Callable[..., Any], np.ndarray]:
    """A formula, its derivative, and arguments."""
    if name.startswith("fit"):
        fit = lk.fit_sigmoid(1) if "sigmoid" in name else lk.fit_polynomial(3)
        return fit.neg_kl, fit.neg_kl_grad, X
    return getattr(lk.methods, name), getattr(lk.methods, f"{name}_grad"), X


def check(got: Any, truth: np.ndarray, ulps: float = 4.0) -> None:
    """Compare float64 results, in units of the last place."""
    got = np.asarray(got)
    assert got.dtype == truth.dtype
    other = got != truth
    got, truth = got[other], truth[other]
    assert (np.abs(got - truth) <= ulps * np.spacing(np.abs(truth))).all()
