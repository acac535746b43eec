"""The functions as in ``logunif-kl bench``, plus import times and the memory of calls."""

from __future__ import annotations

import argparse
import os
import subprocess
import sys
import tracemalloc
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import numpy as np

import logunif_kl as lk
from logunif_kl import special
from logunif_kl.cli import bench
from logunif_kl.cli.timing import Job, ratio, spreads
from validation.output import track

IMPORT_ROUNDS = 15
IMPORTS = ("logunif_kl", "numpy")


def measure(options: argparse.Namespace) -> tuple[list[str], dict[str, Any]]:
    packages, found = bench.measure(options)
    imports = list(track(_imports(IMPORT_ROUNDS), "importing", IMPORT_ROUNDS))
    over, under = IMPORTS
    what = f"import {over} / import {under}"
    row = {"what": what, "over": over, "under": under, **ratio(imports, over, under)}
    more = {"import_seconds": spreads(imports), "memory_bytes": memory(found["size"])}
    return packages, {**found, "ratios": [*found["ratios"], row], **more}


def _imports(number: int) -> Iterator[dict[str, float]]:
    for _ in range(number):
        yield {module: import_seconds(module) for module in reversed(IMPORTS)}


def memory(size: int) -> dict[str, dict[str, int]]:
    """Return the bytes of each result, and the peak of the memory beyond the result."""
    x = np.random.default_rng(0).uniform(-10.0, 10.0, size)
    u, zeros = np.exp(-x) / 2.0, np.zeros_like(x)
    calls: dict[str, Job] = {
        "special.kl_gap(u)": lambda: special.kl_gap(u),
        "special.kl_gap_grad(u)": lambda: special.kl_gap_grad(u),
        "special.kl_gap_hess(u)": lambda: special.kl_gap_hess(u),
        "neg_kl(log_alpha)": lambda: lk.neg_kl(x),
        "neg_kl(log_alpha, zero_at=1.0)": lambda: lk.neg_kl(x, zero_at=1.0),
        "kl(log_alpha)": lambda: lk.kl(x),
        "neg_kl_grad(log_alpha)": lambda: lk.neg_kl_grad(x),
        "neg_kl_hess(log_alpha)": lambda: lk.neg_kl_hess(x),
        "neg_kl_normal(mu, log_sigma2)": lambda: lk.neg_kl_normal(x, zeros),
    }
    return {
        name: {"result": x.nbytes, "beyond": peak_bytes(call) - x.nbytes}
        for name, call in calls.items()
    }


def import_seconds(module: str) -> float:
    """Time ``import module`` in a new interpreter, without the start of the interpreter.

    Bytecode is written if possible, because users compile a package once, on installation.
    """
    code = f"import time; t = time.perf_counter(); import {module}; print(time.perf_counter() - t)"
    root = str(Path(__file__).resolve().parents[2])
    path = os.pathsep.join(filter(None, (root, os.environ.get("PYTHONPATH"))))
    environment = {k: v for k, v in os.environ.items() if k != "PYTHONDONTWRITEBYTECODE"}
    done = subprocess.run(
        [sys.executable, "-c", code],
        check=True,
        capture_output=True,
        text=True,
        env=environment | {"PYTHONPATH": path},
    )
    return float(done.stdout)


def peak_bytes(job: Job) -> int:
    """Return the peak of the memory that a job adds, by tracemalloc, which counts arrays too."""
    job()
    tracemalloc.start()
    try:
        before, _ = tracemalloc.get_traced_memory()
        tracemalloc.reset_peak()
        kept = job()
        _, peak = tracemalloc.get_traced_memory()
        del kept
    finally:
        tracemalloc.stop()
    return peak - before
