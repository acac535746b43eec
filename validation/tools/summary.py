"""The two small README tables: accuracy and speed."""

import math
from collections.abc import Iterable

from validation.accuracy.proved import proved
from validation.markdown import processor, table
from validation.output import Record

_NORMAL = ("neg_kl_normal", "neg_kl_normal.dmu", "neg_kl_normal.dlog_sigma2")
_FUNCTIONS = ("neg_kl", "neg_kl_grad", *_NORMAL)

NUMPY = ("avx512", "avx2", "baseline")
# A column's heading, its kernels and its type.
_COLUMNS = {
    "NumPy, float64": (NUMPY, "float64"),
    "NumPy, float32": (NUMPY, "float32"),
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
        bounds = (proved(function, "float64", kernel) for kernel in NUMPY)
        cells.append([function, found[0], f"{max(b for b in bounds if b):.4f}", *found[1:]])
    first, *others = _COLUMNS
    return table(["worst error in ulp", first, f"{first}, proved", *others], cells)


def times_as_fast(
    functions: Record, *of_training: Record
) -> dict[tuple[str, str], tuple[Record, dict[int, float]]]:
    """Return how many times as fast ours is, by what and as what, with the record and by size."""
    ratios = {row["what"]: row["median"] for row in functions["ratios"]}
    found = {
        names: (functions, {functions["size"]: ratios[what]})
        for names, what in _OF_FUNCTIONS.items()
    }
    suites = {
        suite["framework"]: (suite, report) for report in of_training for suite in report["suites"]
    }
    for (framework, name), (what, inverse) in _OF_TRAINING.items():
        suite, report = suites[framework]
        medians = {
            sized["size"]: ratio["median"]
            for sized in suite["sizes"]
            for ratio in sized["ratios"]
            if ratio["what"] == f"{what}, forward+backward"
        }
        times = {size: 1 / medians[size] if inverse else medians[size] for size in _SIZES}
        found[name, _PEERS] = report, times
    return found


def bench(functions: Record, *of_training: Record) -> str:
    rows = [
        [*names, processor(report), *(f"{by[s]:.1f}" if s in by else "" for s in _SIZES)]
        for names, (report, by) in times_as_fast(functions, *of_training).items()
    ]
    sizes = (f"{size:,} elements" for size in _SIZES)
    return table(["times as fast", "as", "on", *sizes], rows)


_PLAIN = "torch, deterministic"


def layers(report: Record) -> str:
    """Tabulate the steps of other layers, compiled by none of them, in steps of ours."""
    found: dict[str, dict[str, float]] = {}
    for network in report["networks"]:
        medians = {row["what"]: row["median"] for row in network["ratios"]}
        if f"ours / {_PLAIN}" in medians:
            pairs = {what.removesuffix(" / ours"): x for what, x in medians.items()}
            name = network["network"].removeprefix("torch.nn.")
            found[name] = pairs | {_PLAIN: 1 / medians[f"ours / {_PLAIN}"]}
    return _by_package("a step takes, in steps of ours", found)


def memory(report: Record) -> str:
    """Tabulate what layers keep for the backward pass in float32, in outputs of a layer."""
    found = {
        row["layer"]: {name: size / row["output_bytes"] for name, size in row["kept_bytes"].items()}
        for row in report["rows"]
        if row["type"] == "float32"
    }
    return _by_package("kept for the backward pass, in outputs", found)


def _by_package(title: str, found: dict[str, dict[str, float]]) -> str:
    names = [_PLAIN, "ours", "ours, per_batch", "cplxmodule", "bayesian-torch, flipout"]
    names += ["bayesian-torch, reparameterization", "torchbnn", "blitz"]
    rows = (
        [name, *(f"{row[name]:.2f}" if name in row else "" for row in found.values())]
        for name in names
        if any(name in row for row in found.values())
    )
    return table([title, *found], rows)
