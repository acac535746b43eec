"""Means over the seeds of an experiment, and how well they are known."""

import math
import statistics
from collections.abc import Sequence

from scipy import stats


def mean_and_error(values: Sequence[float]) -> dict[str, float]:
    """Return the mean, and its standard error; what too few values do not tell is NaN."""
    if len(values) < 2:
        return {"mean": values[0] if values else math.nan, "standard_error": math.nan}
    error = statistics.stdev(values) / math.sqrt(len(values))
    return {"mean": statistics.fmean(values), "standard_error": error}


def named(name: str, values: Sequence[float]) -> dict[str, float]:
    """Return the mean of some values as ``name``, with its standard error; both may be NaN."""
    found = mean_and_error(values)
    return {name: found["mean"], f"{name}_standard_error": found["standard_error"]}


def interval(values: Sequence[float]) -> tuple[float, float]:
    """Return the mean and half the width of its 95 % interval, by Student's t.

    One value tells no width: that is NaN.
    """
    n = len(values)
    if n == 1:
        return values[0], math.nan
    found = mean_and_error(values)
    return found["mean"], float(stats.t.ppf(0.975, n - 1)) * found["standard_error"]
