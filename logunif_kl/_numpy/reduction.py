"""The sum or the mean of all elements, for every kind of array that NumPy's ufuncs take."""

from __future__ import annotations

import math
from typing import Any

import numpy as np

from .._errors import type_name


def reduced(result: Any, reduction: str) -> Any:
    """Return the sum or the mean, added up in float64 and rounded to the type of the elements.

    Masked elements are left out, even in dask. NaN is not skipped, even in pandas and xarray. A
    missing value of pandas or polars counts as NaN. The mean of an empty array is NaN. For columns
    of dask the result is a dask array. An xarray.Dataset (several arrays) raises TypeError.
    """
    library = type(result).__module__.partition(".")[0]
    if library in ("pandas", "polars") and hasattr(result, "to_numpy"):
        result = _of_columns(result)
    elif hasattr(result, "map_partitions"):
        result = result.map_partitions(_of_columns)
    if not hasattr(result, "dtype"):
        each = "call the function for each of its variables"
        raise TypeError(
            f"a reduction takes one array, but {type_name(result)} was given: "
            f"{each if library == 'xarray' else 'convert it to an array of NumPy'}"
        )
    of_numpy = isinstance(result, (np.ndarray, np.generic))
    with np.errstate(all="ignore"):
        if of_numpy:
            total = result.sum(dtype=np.float64)
            if reduction == "mean":
                mask = getattr(result, "mask", False)  # of np.ma, or of astropy's masked arrays
                total = total / np.float64(result.size - np.count_nonzero(mask))
        else:
            # Use the array's method, because the array may have a mask or an unknown size.
            options = {"skipna": False} if library == "xarray" else {}
            total = getattr(result, reduction)(dtype=np.float64, **options)
        return total.astype(result.dtype)


def _of_columns(table: Any) -> Any:
    """Read columns of pandas or polars as one NumPy array, with NaN for missing values."""
    options = {"na_value": np.nan} if type(table).__module__.startswith("pandas") else {}
    values = table.to_numpy(**options)
    return values if values.dtype.kind == "f" else values.astype(np.float64)


def reduced_over(xp: Any, result: Any, reduction: str) -> Any:
    """Return the sum or the mean of an array of the namespace ``xp``, in the type of the array."""
    if reduction == "mean" and None in result.shape:  # the size is not known yet
        return xp.mean(result)
    total = xp.sum(result)
    return total if reduction == "sum" else total / math.prod(result.shape)
