"""Try every float32, bfloat16 and float16 input of a function of one argument.

The truth here is the float64 ufunc of the same process. ``search`` measures its worst error: two of
its ulps are 2**-28 of an ulp of float32. All inputs are tried, including NaN payloads and negative
arguments, so the result is the worst error to that precision.
"""

from __future__ import annotations

from collections.abc import Callable, Iterable, Iterator
from concurrent.futures import ProcessPoolExecutor
from contextlib import contextmanager
from multiprocessing import get_context
from typing import NamedTuple

import numpy as np
from numpy.typing import NDArray

from . import flushing
from .doubledouble import Array
from .functions import FUNCTIONS, Evaluate
from .implementations import implementation
from .ulp import FORMATS, Format, round_to_bfloat16

CHUNK = 1 << 22
_BLOCK = 1 << 14

# 1 for an increasing function, -1 for a decreasing one; other functions have no entry.
MONOTONE = {"kl_gap": 1, "kl_gap_grad": -1, "kl_gap_hess": 1, "neg_kl": 1}


class Tally(NamedTuple):
    """The outcome over some inputs. Tallies of disjoint inputs can be merged."""

    tried: int = 0
    ulp: float = -1.0
    input: float = float("nan")
    got: float = float("nan")
    wanted: float = float("nan")
    not_nearest: int = 0
    wrong_special: int = 0
    first_wrong: str = ""
    not_monotone: int = 0

    def merge(self, other: Tally) -> Tally:
        """Return the tally of both ranges; of equal errors, the first one's."""
        worst = other if other.ulp > self.ulp else self
        return worst._replace(
            tried=self.tried + other.tried,
            not_nearest=self.not_nearest + other.not_nearest,
            wrong_special=self.wrong_special + other.wrong_special,
            first_wrong=self.first_wrong or other.first_wrong,
            not_monotone=self.not_monotone + other.not_monotone,
        )


class _Comparison:
    """Errors in ulp of a format, by integer arithmetic on the exponents, in reused buffers."""

    def __init__(self, fmt: Format) -> None:
        self.bits = np.empty(_BLOCK, dtype=np.uint64)
        self.difference = np.empty(_BLOCK)
        self.least = np.uint64((fmt.emin + 1023) << 52)
        # 2**-e has the exponent bits 2046 - (e + 1023); with the precision, this is 1/ulp.
        self.inverse = np.uint64((2046 + fmt.precision - 1) << 52)
        self.exponent = np.uint64(0x7FF << 52)

    def __call__(self, got: NDArray, want: Array) -> Array:
        n = len(want)
        bits, difference = self.bits[:n], self.difference[:n]
        np.bitwise_and(want.view(np.uint64), self.exponent, out=bits)
        np.maximum(bits, self.least, out=bits)
        np.subtract(self.inverse, bits, out=bits)
        np.subtract(got, want, out=difference)
        np.multiply(difference, bits.view(np.float64), out=difference)
        return np.abs(difference, out=difference)


def compare(
    inputs: NDArray, got: NDArray, want: Array, fmt: Format, compared: _Comparison
) -> Tally:
    """Tally one block; ``got`` holds numbers of the format, ``want`` the float64 truth."""
    errors = compared(got, want)
    worst = int(np.argmax(errors))  # the first NaN, if any
    ulp = float(errors[worst])
    first_wrong, wrong = "", 0
    if not np.isfinite(ulp):
        if np.isnan(got).all() and np.isnan(want).all():
            return Tally(len(inputs), 0.0, float(inputs[0]), float("nan"), float("nan"))
        errors, wrong, first_wrong = _with_specials(inputs, got, want, fmt)
        worst = int(np.argmax(errors))
        ulp = float(errors[worst])
    return Tally(
        tried=len(inputs),
        ulp=ulp,
        input=float(inputs[worst]),
        got=float(got[worst]),
        wanted=float(want[worst]),
        not_nearest=int(np.count_nonzero(errors > 0.5 + 2.0**-20)),
        wrong_special=wrong,
        first_wrong=first_wrong,
    )


def _with_specials(
    inputs: NDArray, got: NDArray, want: Array, fmt: Format
) -> tuple[Array, int, str]:
    """Compare NaNs and infinities: the error is 0 where they agree, otherwise infinite."""
    got = got.astype(np.float64)
    with np.errstate(all="ignore"):
        limit = np.ldexp(1.0, fmt.emax + 1)
        # The truth overflows the format if it rounds above the largest number.
        overflows = np.abs(want) >= limit - np.ldexp(0.5, fmt.emax - fmt.precision + 1)
        expected = np.where(overflows, np.copysign(np.inf, want), want)
        special = ~np.isfinite(got) | ~np.isfinite(expected)
        same = (got == expected) | (np.isnan(got) & np.isnan(expected))
        errors = _Comparison(fmt)(np.where(special, 0.0, got), np.where(special, 0.0, want)).copy()
    errors[special] = np.where(same[special], 0.0, np.inf)
    wrong = special & ~same
    first = int(np.argmax(wrong))
    message = f"f({float(inputs[first]).hex()}) = {got[first]}, not {want[first]}"
    return errors, int(wrong.sum()), message if wrong.any() else ""


def _blocks(start: int, stop: int, narrow: str) -> Iterator[NDArray]:
    for low in range(start, stop, _BLOCK):
        high = min(low + _BLOCK, stop)
        if narrow == "float32":
            yield np.arange(low, high, dtype=np.uint32).view(np.float32)
        elif narrow == "bfloat16":
            yield (np.arange(low, high, dtype=np.uint32) << 16).view(np.float32)
        else:
            yield np.arange(low, high, dtype=np.uint16).view(np.float16)


def scan(
    name: str,
    narrow: Evaluate,
    wide: Evaluate,
    dtype: str,
    start: int,
    stop: int,
    flushes: bool = False,
) -> Tally:
    """Tally the inputs whose bit patterns lie in [start, stop).

    ``narrow`` is the implementation under test, ``wide`` the float64 one. For bfloat16 the float32
    result is rounded to nearest. With ``flushes``, a zero for a subnormal truth is correct.
    """
    fmt = FORMATS[dtype]
    compared = _Comparison(fmt)
    direction = MONOTONE.get(name, 0)
    total = Tally()
    last = None
    for inputs in _blocks(start, stop, dtype):
        got = narrow(inputs)
        if dtype == "bfloat16":
            got = round_to_bfloat16(got)
        with np.errstate(all="ignore"):
            want = wide(inputs.astype(np.float64))
            if flushes:
                got = flushing.unflushed(got, want, fmt)
            tally = compare(inputs, got, want, fmt, compared)
        if direction:
            # Negative numbers are in descending order of their bit patterns.
            way = direction if start < _half(dtype) else -direction
            wrong = np.count_nonzero(got[1:] < got[:-1] if way > 0 else got[1:] > got[:-1])
            if last is not None:
                wrong += bool(got[0] < last if way > 0 else got[0] > last)
            last = got[-1]
            tally = tally._replace(not_monotone=int(wrong))
        total = total.merge(tally)
    return total


def _half(dtype: str) -> int:
    return 1 << (31 if dtype == "float32" else 15)


def _task(name: str, kernel: str, dtype: str, start: int, stop: int) -> Tally:
    from logunif_kl._numpy import ufuncs

    function = FUNCTIONS[name]
    wide = getattr(ufuncs, function.ufunc)
    narrow = implementation(function, kernel, dtype)
    return scan(name, narrow, wide, dtype, start, stop, kernel in flushing.KERNELS)


def exhaustive(
    name: str,
    kernel: str,
    dtype: str,
    *,
    jobs: int = 1,
    progress: Callable[[int], None] = lambda count: None,
    complain: Callable[[str], None] = print,
    only: range | None = None,
) -> Tally:
    """Try every input of a type, or ``only`` some bit patterns, in several processes.

    A compiled kernel must be that of this process, which its children inherit. ``complain`` is
    called with a sentence for every range of inputs that has a wrong special value.
    """
    patterns = range(2 * _half(dtype)) if only is None else only
    starts = range(patterns.start, patterns.stop, CHUNK)
    tasks = [(name, kernel, dtype, s, min(s + CHUNK, patterns.stop)) for s in starts]
    if dtype != "float32":  # each sign separately, as their bit patterns have opposite orders
        half = _half(dtype)
        tasks = [(name, kernel, dtype, 0, half), (name, kernel, dtype, half, 2 * half)]
    total = Tally()
    with _pool(1 if len(tasks) < 4 else jobs) as each:
        for task, tally in zip(tasks, each(tasks), strict=True):
            if tally.wrong_special:
                stretch = f"{task[3]:#010x} to {task[4] - 1:#010x}"
                complain(
                    f"{name}, {kernel}, {dtype}: {tally.wrong_special} of the bit patterns "
                    f"{stretch} are wrong, the first {tally.first_wrong}"
                )
            total = total.merge(tally)
            progress(task[4] - task[3])
    return total


Task = tuple[str, str, str, int, int]


@contextmanager
def _pool(jobs: int) -> Iterator[Callable[[list[Task]], Iterable[Tally]]]:
    """Yield a function that runs tasks in order, in this process or in several."""
    if jobs == 1:
        yield lambda tasks: (_task(*task) for task in tasks)
        return
    # Spawn, so that every child imports the kernel that the environment names.
    with ProcessPoolExecutor(jobs, mp_context=get_context("spawn")) as pool:
        yield lambda tasks: pool.map(_task, *zip(*tasks, strict=True))
