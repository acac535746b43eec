"""Average a function of normal samples, with standard errors, in blocks of bounded memory.

The samples form independent *units*, each with the right mean. The spread of the units gives the
standard error of their average:

- ``plain``: a unit is one sample.
- ``antithetic``: a unit is the average over z and -z.
- ``qmc``: a unit is the average over one scrambled Sobol sequence. There are 16 to 31 sequences.

The spread of few units is uncertain, so the standard error is multiplied by Student's factor for
the 95 % interval: 1.09 for 16 units, 1.02 for 64 and 1.0005 for 2,500. This factor suffices for
normally distributed units. Ours are skewed, most of all if antithetic or without control variates.
Below `LEAST` samples, three standard errors miss the exact value for more than 1 % of seeds.

Every element of log alpha uses the same z (common random numbers), so the difference of two
elements' estimates has a far smaller error than either estimate.
"""

from __future__ import annotations

from collections.abc import Iterator
from typing import Any

import numpy as np
from scipy.special import ndtri, stdtrit
from scipy.stats.qmc import Sobol

from .._errors import shown
from ._arguments import choice, integer
from ._control_variates import SPREAD, Integrand, controls
from ._progress import progress_bar

BLOCK = 16384  # values in a block; an array of 128 KiB fits the second-level cache
REPLICATES = 16  # the least number of Sobol sequences; the largest is 31
#: The least number of samples with control variates and without, as determined in
#: ``tests/methods/test_monte_carlo.py``.
LEAST = {"plain": (128, 512), "antithetic": (256, 2048), "qmc": (16 * REPLICATES, None)}
MOST = 2**32
_BITS = 52  # the bits of a Sobol point: with 52, a point plus half a step is still below 1


def check_samples(n_samples: Any, scheme: Any, controlled: bool) -> int:
    """Check `n_samples` and the scheme, and return `n_samples` as an int."""
    choice("scheme", scheme, LEAST)
    if scheme == "qmc" and not controlled:
        raise ValueError(
            "scheme='qmc' was given with variance_reduction=False, but then the singularity of the "
            "logarithm makes the standard error wrong: leave variance_reduction=True"
        )
    least = LEAST[scheme][0 if controlled else 1] or 0
    bare = "" if controlled else " without variance reduction"
    remedy = (
        f"the standard error of scheme={scheme!r}{bare} needs {least}, and the averages of several "
        "calls can be averaged"
    )
    n = integer("n_samples", n_samples, least, MOST, remedy)
    if scheme == "antithetic" and n % 2:
        raise ValueError(
            f"n_samples must be even for scheme='antithetic', which samples pairs, but {n} was "
            f"given: take {n + 1}"
        )
    return n


def generator(rng: Any) -> np.random.Generator:
    """Make a generator from any argument that `numpy.random.default_rng` takes."""
    try:
        return np.random.default_rng(rng)
    except (TypeError, ValueError) as error:
        raise type(error)(
            "rng must be a numpy.random.Generator, a seed or None, but "
            f"{type(rng).__name__} {shown(rng)} was given: pass an int of at least 0 for the same "
            "numbers each time, or leave it out"
        ) from None


class Moments:
    """The means and sums of squared deviations of k sequences, updated block by block.

    Blocks are merged by Eq. 2.1 of Chan, Golub and LeVeque, "Algorithms for computing the sample
    variance", The American Statistician 37 (1983), which avoids differences of large numbers.
    """

    def __init__(self, k: int) -> None:
        self.count = np.zeros(k)
        self.mean = np.zeros(k)
        self.squares = np.zeros(k)

    def add(self, rows: Any, values: np.ndarray) -> None:
        """Add m values to each of the sequences `rows`; `values` has a row for each sequence."""
        m = values.shape[1]
        mean = values.mean(axis=1)
        deviation = values - mean[:, np.newaxis]
        deviation *= deviation
        before = self.count[rows]
        step, total = mean - self.mean[rows], before + m
        self.squares[rows] += deviation.sum(axis=1) + step * step * (before * m / total)
        self.mean[rows] += step * (m / total)
        self.count[rows] = total

    def standard_error(self) -> np.ndarray:
        return np.sqrt(self.squares / (self.count * (self.count - 1.0)))


def average(
    integrand: Integrand,
    n_samples: int,
    scheme: str,
    rng: np.random.Generator,
    *,
    controlled: bool,
    progress: bool,
) -> tuple[np.ndarray, np.ndarray]:
    """Return the mean of the integrand over z and its standard error, both of shape (k,)."""
    k = integrand.shift.size
    units = Moments(k)
    replicate = Moments(k) if scheme == "qmc" else None
    with progress_bar("sampling", n_samples, progress) as advance:
        for z, ends in _blocks(n_samples, scheme, rng):
            z = SPREAD * z if controlled else z
            of_z = controls(z) if controlled else None
            of_minus_z = controls(-z) if controlled and scheme == "antithetic" else None
            for rows in integrand.groups(max(1, BLOCK // z.size)):
                values = integrand.evaluate(rows, z, of_z)
                if scheme == "antithetic":
                    values += integrand.evaluate(rows, -z, of_minus_z)
                    values *= 0.5
                (units if replicate is None else replicate).add(rows, values)
            if replicate is not None and ends:
                units.add(slice(None), replicate.mean[:, np.newaxis])
                replicate = Moments(k)
            advance(z.size if scheme != "antithetic" else 2 * z.size)
    return units.mean, units.standard_error() * students_factor(units.count)


def students_factor(count: np.ndarray) -> np.ndarray:
    """Return t/1.96, by which a 95 % interval from `count` normal values must be widened."""
    return np.asarray(stdtrit(count - 1.0, 0.975) / ndtri(0.975))


def _blocks(
    n_samples: int, scheme: str, rng: np.random.Generator
) -> Iterator[tuple[np.ndarray, bool]]:
    """Yield (block of normal samples, whether the block completes a Sobol sequence)."""
    if scheme == "qmc":
        each = 1 << ((n_samples // REPLICATES).bit_length() - 1)
        for _ in range(n_samples // each):
            seed = np.random.default_rng(int(rng.integers(2**63)))
            sobol = Sobol(1, scramble=True, bits=_BITS, seed=seed)
            size = min(each, BLOCK)
            for end in range(size, each + 1, size):
                yield ndtri(sobol.random(size)[:, 0] + 0.5 ** (_BITS + 1)), end == each
        return
    draws = n_samples // 2 if scheme == "antithetic" else n_samples
    for start in range(0, draws, BLOCK):
        yield rng.standard_normal(min(BLOCK, draws - start)), False
