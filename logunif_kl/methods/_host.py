"""Makes a function of NumPy arrays an operation on any array that `neg_kl` takes.

SciPy's functions, table look-ups and sorting do not exist in every array namespace. Arrays of
another library are therefore converted to NumPy, computed in float64, and converted back. An array
that cannot be converted (one on a device, or traced by a compiler) raises its library's own error.
"""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

import numpy as np

from .._dispatch import Operation
from .._numpy.blocked import BlockedUFunc

Block = Callable[[np.ndarray], np.ndarray]


def host_operation(name: str, function: Block, module: str) -> Operation:
    """Make ``function`` an operation, whose ufunc is the module's attribute ``name``.

    Parameters
    ----------
    name, module : str
        The module attribute under which dask's workers find the ufunc.
    function : callable
        Of a one-dimensional float64 array of at most a few thousand elements.
    """

    def inner(block: np.ndarray) -> np.ndarray:
        return function(block.astype(np.float64, copy=False))

    ufunc = BlockedUFunc(name, inner, module=module)

    def arithmetic(xp: Any, x: Any) -> Any:
        result = ufunc(np.asarray(x, dtype=np.float64))
        return xp.asarray(np.asarray(result), dtype=x.dtype)

    return Operation(ufunc, arithmetic)
