"""The magnitudes to try: decades, zeros, infinities, NaN."""

import dataclasses
import math
from collections.abc import Callable, Iterator

import numpy as np

Arrays = dict[str, np.ndarray]

# All elements have the magnitude, or one in 64: a kernel may then take its slow path for a whole
# block.
SHARES = {"all": 1, "1 in 64": 64}
# Decades of exp(x) where it is neither 0 nor infinite in the type.
_DECADES_OF_EXP = {"float64": 330, "float32": 50}
_LN10 = math.log(10.0)


@dataclasses.dataclass(frozen=True, slots=True)
class Cell:
    """Arguments of one magnitude: which arguments, where, and their distribution."""

    sweep: str
    at: str
    draw: Callable[[np.random.Generator, int], Arrays]


def cells(arguments: tuple[str, ...], dtype: str) -> list[Cell]:
    """List the magnitudes of each argument in a type; the others keep their usual magnitude."""
    found = [cell for name in arguments for cell in _of(name, dtype)]
    if "mu" in arguments:
        found += _at_alpha_one(dtype)
    return found


def _of(name: str, dtype: str) -> Iterator[Cell]:
    signed = name.startswith("log")
    for at, value in (("0", 0.0), ("inf", math.inf), ("-inf", -math.inf), ("nan", math.nan)):
        if at != "-inf" or signed:
            yield Cell(name, at, _constant(name, value))
    if not signed:
        for power in _powers(dtype):
            yield Cell(name, _decade(power, dtype), _decades(name, power, dtype, 1.0))
        return
    half = _DECADES_OF_EXP[dtype]
    for power in range(-half, half):
        yield Cell(name, f"log(1e{power})", _uniform(name, power * _LN10, (power + 1) * _LN10))
    for power in _powers(dtype):
        if power < 0 or power > math.log10(half * _LN10):
            for sign, mark in ((1.0, ""), (-1.0, "-")):
                at = mark + _decade(power, dtype)
                yield Cell(name, at, _decades(name, power, dtype, sign))


def _powers(dtype: str) -> range:
    """Return the powers of ten of a type, from its smallest subnormal to its largest number."""
    info = np.finfo(dtype)
    least = math.floor(math.log10(float(info.smallest_subnormal)))
    return range(least, math.floor(math.log10(float(info.max))) + 1)


def _decade(power: int, dtype: str) -> str:
    subnormal = power < math.floor(math.log10(float(np.finfo(dtype).tiny)))
    return f"1e{power}{' (subnormal)' if subnormal else ''}"


def _constant(name: str, value: float) -> Callable[[np.random.Generator, int], Arrays]:
    return lambda rng, number: {name: np.full(number, value)}


def _uniform(name: str, low: float, high: float) -> Callable[[np.random.Generator, int], Arrays]:
    return lambda rng, number: {name: rng.uniform(low, high, number)}


def _decades(
    name: str, power: int, dtype: str, sign: float
) -> Callable[[np.random.Generator, int], Arrays]:
    def draw(rng: np.random.Generator, number: int) -> Arrays:
        values = sign * _magnitudes(rng, number, power, dtype)
        # These functions are even in the mean.
        return {name: values * rng.choice([-1.0, 1.0], number) if name == "mu" else values}

    return draw


def _magnitudes(rng: np.random.Generator, number: int, power: int, dtype: str) -> np.ndarray:
    info = np.finfo(dtype)
    low = max(float(power), math.log10(float(info.smallest_subnormal)))
    high = min(power + 1.0, math.log10(float(info.max)))
    return np.minimum(10.0 ** rng.uniform(low, high, number), float(info.max))


def _at_alpha_one(dtype: str) -> Iterator[Cell]:
    """Vary mean and log_sigma2 together: mu^2 and sigma^2 overflow, but alpha does not."""

    def draw_at(power: int) -> Callable[[np.random.Generator, int], Arrays]:
        def draw(rng: np.random.Generator, number: int) -> Arrays:
            mu = _magnitudes(rng, number, power, dtype)
            return {"mu": mu, "log_sigma2": 2.0 * np.log(mu) + rng.uniform(-1.0, 1.0, number)}

        return draw

    for power in _powers(dtype):
        yield Cell("mu, alpha near 1", _decade(power, dtype), draw_at(power))


def mixed(cell: Cell, share: int, among: Arrays, rng: np.random.Generator, dtype: str) -> Arrays:
    """Draw a cell's arguments: all elements, or one in every ``share`` among usual ones."""
    size = next(iter(among.values())).size
    drawn = {name: values.astype(dtype) for name, values in cell.draw(rng, size).items()}
    chosen = np.zeros(size, bool)
    chosen[rng.integers(min(share, size)) :: share] = True
    return {
        name: np.where(chosen, drawn[name], values) if name in drawn else values
        for name, values in among.items()
    }
