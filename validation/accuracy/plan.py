"""The jobs that make each report: which kernels, functions and types, and how each is measured."""

from __future__ import annotations

from collections.abc import Iterable, Iterator, Sequence
from typing import NamedTuple

from . import driver
from .driver import Job
from .functions import (
    ARRAYS,
    COMPILED,
    EMULATED,
    FRAMEWORKS,
    FUNCTIONS,
    OF_FRAMEWORKS,
    UNARY,
)

COUNT, ROUNDS, SEED = 10_000_000, 200, 1
# An emulator takes twenty times as long.
FEWER = (100_000, 5)
NARROW = ("float16", "bfloat16", "float32")
HALVES = NARROW[:2]
_ALL = tuple(FUNCTIONS)
_HERE = tuple(kernel for kernel in COMPILED if kernel not in EMULATED)
_OF_TWO = tuple(name for name in FUNCTIONS if name not in UNARY)


class Part(NamedTuple):
    """Kernels of which the same functions are measured in the same types, with how many samples."""

    method: str
    kernels: tuple[str, ...]
    dtypes: tuple[str, ...]
    functions: tuple[str, ...]
    samples: tuple[int, int] = (COUNT, ROUNDS)


def _of_framework(*kernels: str) -> tuple[Part, ...]:
    """List the parts of a framework's report; float16 of two arguments for the first kernel."""
    unary = tuple(name for name in OF_FRAMEWORKS if name in UNARY)
    return (
        Part("search", kernels, ("float64", "float32"), OF_FRAMEWORKS),
        Part("search", kernels[:1], ("float16",), _OF_TWO),
        Part("exhaustive", kernels, HALVES, unary),
    )


# All inputs of a narrow type are tried, where there is one argument and time enough: for a kernel
# in Python there is not in float32. Triton's interpreter is for parts: search --kernels triton.
PARTS: dict[str, tuple[Part, ...]] = {
    "search": (
        Part("search", _HERE, ("float64",), _ALL),
        Part("search", _HERE, ("float32", "float16"), _OF_TWO),
        Part("search", ("python",), ("float64", "float32"), _ALL),
        Part("search", ("python",), ("float16",), _OF_TWO),
        Part("search", (ARRAYS,), ("float32",), _ALL),  # in float64 they are `python`
    ),
    "exhaustive": (
        Part("exhaustive", _HERE, NARROW, UNARY),
        Part("exhaustive", ("python",), HALVES, UNARY),
    ),
    "neon": (
        Part("search", ("neon",), ("float64", "float32"), _ALL, FEWER),
        Part("search", ("neon",), ("float16",), _OF_TWO, FEWER),
        Part("exhaustive", ("neon",), HALVES, UNARY),
    ),
    "torch": _of_framework("torch", "inductor"),
    "jax": _of_framework("jax"),
    "tensorflow": _of_framework("tensorflow"),
}


def kernels(report: str) -> tuple[str, ...]:
    """Name the kernels that a report is about."""
    return tuple(dict.fromkeys(kernel for part in PARTS[report] for kernel in part.kernels))


def jobs(report: str, available: Sequence[str], processes: int) -> list[Job]:
    """List the jobs of a report, for the kernels that are available."""
    made = [
        _search(name, dtype, kernel, *part.samples)
        if part.method == "search"
        else _exhaustive(name, dtype, kernel, processes)
        for part in PARTS[report]
        for kernel in part.kernels
        for name in part.functions
        for dtype in part.dtypes
        if kernel in available
    ]
    order = {kernel: place for place, kernel in enumerate(kernels(report))}
    return sorted(made, key=lambda job: order[job["kernel"]])


def search_jobs(
    kernels: Iterable[str],
    functions: Sequence[str],
    dtypes: Sequence[str] | None = None,
    *,
    count: int = COUNT,
    rounds: int = ROUNDS,
    seed: int = SEED,
) -> list[Job]:
    """List jobs that search; by default in the types of the reports."""
    return [
        _search(name, dtype, kernel, count, rounds, seed)
        for kernel in kernels
        for name in _measured(kernel, functions)
        for dtype in dtypes or _dtypes("search", kernel, name)
        if not (kernel in (ARRAYS, "triton") and dtype != "float32")
    ]


def exhaustive_jobs(
    kernels: Iterable[str],
    functions: Sequence[str],
    dtypes: Sequence[str] | None = None,
    *,
    processes: int,
) -> list[Job]:
    """List jobs that try every input; by default in the types of the reports."""
    return [
        _exhaustive(name, dtype, kernel, processes)
        for kernel in kernels
        for name in _measured(kernel, functions)
        for dtype in dtypes or _dtypes("exhaustive", kernel, name)
        # 2**32 inputs would take a framework hours, and arrays have only that type.
        if not (kernel == ARRAYS or (kernel in FRAMEWORKS and dtype == "float32"))
    ]


def _measured(kernel: str, functions: Iterable[str]) -> Iterator[str]:
    return (name for name in functions if kernel not in FRAMEWORKS or name in OF_FRAMEWORKS)


def _dtypes(method: str, kernel: str, name: str) -> list[str]:
    """List the types in which the reports have a function of a kernel."""
    if kernel == "triton":  # it has no float64
        return ["float32"] if method == "search" else list(HALVES)
    return [
        dtype
        for parts in PARTS.values()
        for part in parts
        if part.method == method and kernel in part.kernels and name in part.functions
        for dtype in part.dtypes
    ]


def _search(
    name: str, dtype: str, kernel: str, count: int = COUNT, rounds: int = ROUNDS, seed: int = SEED
) -> Job:
    known = [
        entry["inputs"]
        for entry in driver.worst_inputs()
        if (entry["function"], entry["dtype"]) == (name, dtype)
    ]
    fewer = kernel in FRAMEWORKS and dtype == "float64"
    return {
        "method": "search",
        "function": name,
        "dtype": dtype,
        "kernel": kernel,
        "count": count // 10 if fewer else count,
        "rounds": rounds,
        "seed": seed,
        "known": known,
    }


def _exhaustive(name: str, dtype: str, kernel: str, processes: int) -> Job:
    return {
        "method": "exhaustive",
        "function": name,
        "dtype": dtype,
        "kernel": kernel,
        "jobs": processes,
    }
