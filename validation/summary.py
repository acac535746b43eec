"""Means over the seeds of an experiment, and their standard errors."""

import math
import statistics
from collections.abc import Iterable, Sequence
from typing import Any

from scipy import stats

from validation.output import Record


def mean_and_error(values: Sequence[float]) -> dict[str, float]:
    """Return the mean and its standard error, with NaN for what too few values cannot tell."""
    if len(values) < 2:
        return {"mean": values[0] if values else math.nan, "standard_error": math.nan}
    error = statistics.stdev(values) / math.sqrt(len(values))
    return {"mean": statistics.fmean(values), "standard_error": error}


def grouped(rows: Iterable[Record], *names: str) -> dict[Any, list[Record]]:
    """Group rows by one column, or by the values of several, in order of appearance."""
    found: dict[Any, list[Record]] = {}
    for row in rows:
        key = tuple(row[name] for name in names)
        found.setdefault(key if len(names) > 1 else key[0], []).append(row)
    return found


def means(rows: Iterable[Record], name: str) -> list[float]:
    """Average a column of lists, element by element."""
    return [statistics.fmean(values) for values in zip(*(row[name] for row in rows), strict=True)]


def named(name: str, values: Sequence[float]) -> dict[str, float]:
    """Return the mean of some values as ``name``, with its standard error; both may be NaN."""
    found = mean_and_error(values)
    return {name: found["mean"], f"{name}_standard_error": found["standard_error"]}


def averaged(rows: Sequence[Record], *names: str) -> dict[str, float]:
    """Return the means of some columns, with their standard errors, as `named` does."""
    found: dict[str, float] = {}
    for name in names:
        found |= named(name, [row[name] for row in rows])
    return found


def interval(values: Sequence[float]) -> tuple[float, float]:
    """Return the mean and half the width of its 95 % interval, by Student's t.

    For one value the width is NaN.
    """
    n = len(values)
    if n == 1:
        return values[0], math.nan
    found = mean_and_error(values)
    return found["mean"], float(stats.t.ppf(0.975, n - 1)) * found["standard_error"]
