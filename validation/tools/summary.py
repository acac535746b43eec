"""The two small README tables: accuracy and speed."""

import math
from collections.abc import Iterable

from validation.accuracy.proved import proved
from validation.markdown import processor, table
from validation.output import Record

_NORMAL = ("neg_kl_normal", "neg_kl_normal.dmu", "neg_kl_normal.dlog_sigma2")
_FUNCTIONS = ("neg_kl", "neg_kl_grad", *_NORMAL)

_NUMPY = ("avx512", "avx2", "baseline")
# A column's heading, its kernels and its type.
_COLUMNS = {
    "NumPy, float64": (_NUMPY, "float64"),
    "NumPy, float32": (_NUMPY, "float32"),
    "PyTorch, float32": (("torch", "inductor"), "float32"),
    "JAX, float32": (("jax",), "float32"),
}
_SIZES = (10_000, 1_000_000, 10_000_000)
_OF_FUNCTIONS = {
    ("`neg_kl`, float64", "Molchanov's formula in NumPy"): "Molchanov in NumPy / neg_kl, float64",
    ("`special.kl_gap_grad`, float64", "`scipy.special.dawsn`"): "scipy dawsn / kl_gap_grad",
}
_PEERS = "Molchanov's formula, clipped"
# Framework and kind of training: the ratio in its report, and whether our time is the numerator.
_OF_TRAINING = {
    ("torch", "training in PyTorch"): ("peers, eager / ours, eager", False),
    ("torch", "training in PyTorch, compiled"): ("ours, compiled / peers, compiled", True),
    ("jax", "training in JAX, jitted"): ("ours, jitted / peers, jitted", True),
}


def worst(rows: list[Record], function: str, dtype: str, kernels: Iterable[str]) -> str:
    found = [
        row["ulp"]
        for row in rows
        if (row["function"], row["dtype"]) == (function, dtype) and row["kernel"] in kernels
    ]
    return f"{math.ceil(1000 * max(found)) / 1000:.3f}" if found else "–"


def accuracy(*reports: Record) -> str:
    rows = [row for report in reports for row in report["rows"]]
    cells = []
    for function in _FUNCTIONS:
        found = [worst(rows, function, dtype, kernels) for kernels, dtype in _COLUMNS.values()]
        bounds = (proved(function, "float64", kernel) for kernel in _NUMPY)
        cells.append([function, found[0], f"{max(b for b in bounds if b):.4f}", *found[1:]])
    first, *others = _COLUMNS
    return table(["worst error in ulp", first, f"{first}, proved", *others], cells)


def bench(functions: Record, *of_training: Record) -> str:
    ratios = {row["what"]: row["median"] for row in functions["ratios"]}
    rows = [
        [
            *names,
            processor(functions),
            *(f"{ratios[what]:.1f}" if size == functions["size"] else "" for size in _SIZES),
        ]
        for names, what in _OF_FUNCTIONS.items()
    ]
    suites = {
        suite["framework"]: (suite, processor(report))
        for report in of_training
        for suite in report["suites"]
    }
    for (framework, name), (what, inverse) in _OF_TRAINING.items():
        suite, where = suites[framework]
        medians = {
            sized["size"]: ratio["median"]
            for sized in suite["sizes"]
            for ratio in sized["ratios"]
            if ratio["what"] == f"{what}, forward+backward"
        }
        times = (medians[size] for size in _SIZES)
        rows.append([name, _PEERS, where, *(f"{1 / t if inverse else t:.1f}" for t in times)])
    sizes = (f"{size:,} elements" for size in _SIZES)
    return table(["times as fast", "as", "on", *sizes], rows)
