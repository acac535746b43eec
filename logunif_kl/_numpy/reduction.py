"""The sum or the mean of all elements, for arrays of each library that NumPy's ufuncs take."""

from __future__ import annotations

import math
from typing import Any

import numpy as np


def reduced(result: Any, reduction: str) -> Any:
    """Add the elements in float64, and round to their type; a mean of none is NaN.

    A masked array leaves out what is masked. NaN counts, in pandas and xarray too.

    Raises
    ------
    TypeError
        If it is a dataset of xarray, whose variables have no common sum.
    """
    library = type(result).__module__.partition(".")[0]
    if library == "xarray":
        if not hasattr(result, "dtype"):
            raise TypeError(
                f"a reduction takes one array, but xarray.{type(result).__name__} was given: "
                "call the function for each of its variables"
            )
        return getattr(result, "sum" if reduction == "sum" else "mean")(skipna=False)
    if library == "pandas":
        result = result.to_numpy()
    with np.errstate(all="ignore"):
        total = result.sum(dtype=np.float64)
        if reduction == "mean":
            masked = isinstance(result, np.ma.MaskedArray)
            total = total / np.float64(result.count() if masked else result.size)
        return total.astype(result.dtype)


def reduced_over(xp: Any, result: Any, reduction: str) -> Any:
    """Add the elements of an array of a namespace, in its type."""
    total = xp.sum(result)
    return total if reduction == "sum" else total / math.prod(result.shape)
