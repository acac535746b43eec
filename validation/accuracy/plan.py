"""The jobs for each report: kernels, functions, types, and how each is measured."""

from collections.abc import Sequence
from typing import NamedTuple

from logunif_kl._numpy import ufuncs
from validation.output import Record, cpu_name

from . import driver
from .functions import (
    ARRAYS,
    COMPILED,
    COMPLEX,
    COMPLEX_UNARY,
    EMULATED,
    FRAMEWORKS,
    FUNCTIONS,
    OF_FRAMEWORKS,
    SLOPES,
    UNARY,
    VECTOR,
)

SEED = 1
# The number of inputs before climbing, of climbing rounds, and of starting points.
Samples = tuple[int, int, int]
SAMPLES = (10_000_000, 200, 256)
FEWER = (100_000, 5, 256)  # an emulator is twenty times as slow
OF_BALLS = (12_000, 10, 8)  # Arb is a thousand times as slow, more for groups
OF_SLOW_BALLS = (750, 10, 8)
NARROW = ("float16", "bfloat16", "float32")
HALVES = NARROW[:2]
BOTH = ("float64", "float32")
_ALL = tuple(FUNCTIONS)
_HERE = tuple(kernel for kernel in COMPILED if kernel not in EMULATED)
_OF_TWO = tuple(name for name in FUNCTIONS if name not in UNARY)
_OF_ONE = tuple(name for name in OF_FRAMEWORKS if name in UNARY)


class Part(NamedTuple):
    """Kernels whose same functions are measured in the same types, with the number of samples."""

    method: str
    kernels: tuple[str, ...]
    dtypes: tuple[str, ...]
    functions: tuple[str, ...]
    samples: Samples = SAMPLES


def _of_framework(*kernels: str) -> tuple[Part, ...]:
    """List the parts of a framework's report; float16 of two arguments for the first kernel."""
    return (
        Part("search", kernels, BOTH, OF_FRAMEWORKS),
        Part("search", kernels[:1], ("float16",), _OF_TWO),
        Part("exhaustive", kernels, HALVES, _OF_ONE),
    )


# All inputs of a narrow type are tried for one argument, except in float32 for kernels in Python,
# which would take too long. The report of Triton's interpreter, which has no float64, is not
# committed.
PARTS: dict[str, tuple[Part, ...]] = {
    "search": (
        Part("search", _HERE, ("float64",), _ALL),
        Part("search", _HERE, ("float32", "float16"), _OF_TWO),
        Part("search", ("python",), BOTH, _ALL),
        Part("search", ("python",), ("float16",), _OF_TWO),
        Part("search", (ARRAYS,), ("float32",), _ALL),  # float64 is measured as `python`
    ),
    "exhaustive": (
        Part("exhaustive", _HERE, NARROW, UNARY),
        Part("exhaustive", ("python",), HALVES, UNARY),
    ),
    "neon": (
        Part("search", ("neon",), BOTH, _ALL, FEWER),
        Part("search", ("neon",), ("float16",), _OF_TWO, FEWER),
        Part("exhaustive", ("neon",), HALVES, UNARY),
    ),
    "torch": _of_framework("torch", "inductor"),
    "jax": _of_framework("jax"),
    "tensorflow": _of_framework("tensorflow"),
    "triton": (
        Part("search", ("triton",), ("float32",), OF_FRAMEWORKS),
        Part("exhaustive", ("triton",), HALVES, _OF_ONE),
    ),
    "isotropic": (
        Part("search", ("python",), (*BOTH, "float16"), COMPLEX_UNARY, OF_BALLS),
        Part("search", ("python",), BOTH, (COMPLEX,), OF_BALLS),
        Part("search", ("torch", "jax"), BOTH, (*SLOPES, *COMPLEX_UNARY, COMPLEX), OF_BALLS),
        Part("search", ("python",), ("float64",), VECTOR, OF_SLOW_BALLS),
        Part("search", ("jax",), BOTH, VECTOR, OF_SLOW_BALLS),
    ),
}


def report_of(function: str, dtype: str, kernel: str) -> str:
    """Name the report that has a function of a kernel in a type."""
    return next(
        report
        for report, parts in PARTS.items()
        for part in parts
        if function in part.functions and dtype in part.dtypes and kernel in part.kernels
    )


def file(report: str) -> str:
    """Name the file of a report; the library of PyTorch's exponential has other code for Intel's.

    An AMD EPYC with AVX-512 reaches the figures of a processor without it.
    """
    intel = "avx512" in ufuncs.available_kernels() and "Intel" in cpu_name()
    names = {"torch": "torch" if intel else "torch_avx2"}
    names["isotropic"] = "isotropic_intel" if intel else "isotropic"
    return f"{names.get(report, report)}.json"


def kernels(report: str) -> tuple[str, ...]:
    return tuple(dict.fromkeys(kernel for part in PARTS[report] for kernel in part.kernels))


def jobs(
    report: str,
    available: Sequence[str],
    processes: int = 1,
    *,
    functions: Sequence[str] | None = None,
    dtypes: Sequence[str] | None = None,
    count: int | None = None,
) -> list[Record]:
    made = []
    for part in PARTS[report]:
        samples = part.samples if count is None else (count, *part.samples[1:])
        made += [
            {"method": part.method, "function": name, "dtype": dtype, "kernel": kernel}
            | (_search(name, dtype, kernel, samples) if part.method == "search" else {})
            | ({"jobs": processes} if part.method == "exhaustive" else {})
            for kernel in part.kernels
            for name in part.functions
            for dtype in part.dtypes
            if kernel in available
            if functions is None or name in functions
            if dtypes is None or dtype in dtypes
        ]
    order = {kernel: place for place, kernel in enumerate(kernels(report))}
    return sorted(made, key=lambda job: order[job["kernel"]])


def _search(name: str, dtype: str, kernel: str, samples: Samples) -> Record:
    known = [
        entry["inputs"]
        for entry in driver.worst_inputs()
        if (entry["function"], entry["dtype"]) == (name, dtype)
    ]
    count, rounds, climbers = samples
    if kernel in FRAMEWORKS and dtype == "float64" and name in FUNCTIONS:
        count //= 10
    return {"count": count, "rounds": rounds, "climbers": climbers, "seed": SEED, "known": known}
