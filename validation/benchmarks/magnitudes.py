"""The slowest magnitudes of each function's arguments, relative to the usual magnitudes.

A few rounds time all magnitudes, each next to the usual one, and compare the shortest times. More
rounds then time the slowest of each function; the medians of these ratios are reported.
"""

import argparse
import contextlib
from collections.abc import Callable, Iterator, Sequence
from functools import partial
from typing import Any, NamedTuple

import numpy as np

from logunif_kl.cli.timing import Job, ratio, repetitions, rounds, spreads
from validation.benchmarks.cells import SHARES, Arrays, Cell, cells, mixed
from validation.benchmarks.sizes import DTYPES, UFUNCS, Ufunc, usual
from validation.output import Record, cpus_usable, track

USUAL = "usual"
ABOVE = 1.3  # count magnitudes slower than this many times the usual one
_ROUNDS_OF_SEARCH = 3
_SLOWEST = 10
_CHUNK = 15  # cells timed together with the usual magnitude
_SECONDS = 1e-4
_ELEMENTS = 4096  # of a ufunc, so that they fit the caches
# For a framework: enough that the calls cost comparatively little.
_ELEMENTS_OF = {"float64": 30_000, "float32": 100_000}
_SPECIAL = ("0", "inf", "-inf", "nan")


class Way(NamedTuple):
    """A function on a framework in a type: its arguments, and a function that makes its call."""

    function: str
    framework: str
    dtype: str
    arguments: tuple[str, ...]
    elements: int
    job: Callable[..., Job]
    threads: int = 1


class Timed(NamedTuple):
    """A cell, its share of the elements, and its time relative to the usual one's."""

    cell: Cell
    share: str
    ratio: float

    def named(self) -> Record:
        return {"argument": self.cell.sweep, "at": self.cell.at, "elements": self.share}


def ufuncs() -> list[Way]:
    """List the ufuncs in each type."""
    return [
        Way(ufunc.name, "numpy", dtype, ufunc.arguments, _ELEMENTS, partial(_of_ufunc, ufunc))
        for ufunc in UFUNCS
        for dtype in DTYPES
    ]


def _of_ufunc(ufunc: Ufunc, *arrays: np.ndarray) -> Job:
    out = tuple(np.empty_like(arrays[0]) for _ in range(ufunc.outputs))
    return partial(ufunc.function, *arrays, out=out)


def of_torch() -> list[Way]:
    """List both passes in PyTorch, eager, on one thread."""
    import torch

    from logunif_kl.cli.bench import _torch

    def job(*arrays: np.ndarray) -> Job:
        weights = [torch.from_numpy(array).requires_grad_() for array in arrays]
        return partial(_torch.backward, _torch.ours, weights)

    name, arguments = "neg_kl_normal(...).sum(), forward+backward", ("mu", "log_sigma2")
    return [Way(name, "torch", dtype, arguments, _ELEMENTS_OF[dtype], job) for dtype in DTYPES]


def of_jax() -> list[Way]:
    """List both passes in one program of JAX, in float32."""
    import jax

    from logunif_kl.cli.bench import _jax

    program = jax.jit(jax.value_and_grad(_jax.ours, argnums=(0, 1)))
    wait: Any = jax.block_until_ready

    def job(*arrays: np.ndarray) -> Job:
        arguments = [jax.numpy.asarray(array) for array in arrays]
        return lambda: wait(program(*arguments))

    name, arguments = "neg_kl_normal(...).sum(), forward+backward, jitted", ("mu", "log_sigma2")
    return [Way(name, "jax", "float32", arguments, _ELEMENTS_OF["float32"], job, cpus_usable())]


def measure(options: argparse.Namespace) -> tuple[list[str], Record]:
    """Find and time the slowest magnitudes of every ufunc, and of training on frameworks."""
    ways, packages = ufuncs(), []
    with contextlib.ExitStack() as stack:
        if options.torch:
            from logunif_kl.cli.bench import _torch

            stack.enter_context(_torch.threads(1))
            ways += of_torch()
            packages += ["torch", "triton"]
        if options.jax:
            ways += of_jax()
            packages += ["jax", "jaxlib"]
        found = by_function(ways, options.rounds, options.seed)
    # One thread, unless a function says otherwise.
    about = {"threads": 1, "seed": options.seed, "rounds": options.rounds}
    return packages, {**about, "by_function": found}


def by_function(ways: Sequence[Way], number: int, seed: int) -> list[Record]:
    """Find the slowest magnitudes of each function, and time them in ``number`` rounds."""
    plans = [[(c, s) for c in cells(w.arguments, w.dtype) for s in SHARES] for w in ways]
    total = sum(len(range(0, len(plan), _CHUNK)) for plan in plans)
    timed: list[list[Timed]] = [[] for _ in ways]
    for index, some in track(_search(ways, plans, seed), "magnitudes", total):
        timed[index] += some
    both = zip(ways, timed, strict=True)
    return [_again(*each, number, seed) for each in track(both, "the slowest again", len(ways))]


def _search(
    ways: Sequence[Way], plans: Sequence[list[tuple[Cell, str]]], seed: int
) -> Iterator[tuple[int, list[Timed]]]:
    for index, (way, plan) in enumerate(zip(ways, plans, strict=True)):
        rng = np.random.default_rng(seed)
        among = _usual(way, rng)
        for begin in range(0, len(plan), _CHUNK):
            chunk = plan[begin : begin + _CHUNK]
            samples = _samples(way, chunk, among, rng, _ROUNDS_OF_SEARCH)
            least = {name: min(sample[name] for sample in samples) for name in samples[0]}
            yield index, [Timed(*c, least[str(i)] / least[USUAL]) for i, c in enumerate(chunk)]


def _usual(way: Way, rng: np.random.Generator) -> Arrays:
    drawn = usual(rng, way.elements, way.dtype)
    return {name: drawn[name] for name in way.arguments}


def _samples(
    way: Way,
    chunk: Sequence[tuple[Cell, str]],
    among: Arrays,
    rng: np.random.Generator,
    number: int,
) -> list[dict[str, float]]:
    jobs = {USUAL: way.job(*among.values())}
    for i, (cell, share) in enumerate(chunk):
        jobs[str(i)] = way.job(*mixed(cell, SHARES[share], among, rng, way.dtype).values())
    for job in jobs.values():
        job()
    (count,) = repetitions({USUAL: jobs[USUAL]}, _SECONDS).values()
    return list(rounds(jobs, dict.fromkeys(jobs, count), number))


def _again(way: Way, timed: list[Timed], number: int, seed: int) -> Record:
    rng = np.random.default_rng(seed)
    slowest = sorted(timed, key=lambda each: -each.ratio)[:_SLOWEST]
    pairs = [(each.cell, each.share) for each in slowest]
    samples = _samples(way, pairs, _usual(way, rng), rng, number)
    nanoseconds = spreads(samples, 1e9 / way.elements)
    rows = [
        {
            **each.named(),
            "nanoseconds": nanoseconds[str(i)],
            "against_usual": ratio(samples, str(i), USUAL),
        }
        for i, each in enumerate(slowest)
    ]
    sweeps: dict[str, list[Timed]] = {}
    for each in timed:
        sweeps.setdefault(each.cell.sweep, []).append(each)
    worst = {sweep: max(some, key=lambda each: each.ratio) for sweep, some in sweeps.items()}
    return {
        "function": way.function,
        "framework": way.framework,
        "dtype": way.dtype,
        "elements": way.elements,
        "threads": way.threads,
        "usual_nanoseconds": nanoseconds[USUAL],
        "slowest": sorted(rows, key=lambda row: -row["against_usual"]["median"]),
        "searched": [
            {
                "argument": sweep,
                "magnitudes": len(some),
                "above_aim": sum(each.ratio > ABOVE for each in some),
                "slowest": {**worst[sweep].named(), "ratio": worst[sweep].ratio},
            }
            for sweep, some in sweeps.items()
        ],
        "special": [
            {**each.named(), "ratio": each.ratio} for each in timed if each.cell.at in _SPECIAL
        ],
    }
