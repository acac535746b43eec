"""Check that there is enough memory for the linear algebra of NumPy and SciPy."""

from __future__ import annotations

from functools import cache

import numpy as np

# NumPy and SciPy each have their own OpenBLAS, which allocates 32 to 41 MB in its first call.
_BYTES = 96 * 2**20


@cache
def check_for_linear_algebra() -> None:
    """Raise MemoryError if there is so little memory that OpenBLAS would end the process.

    OpenBLAS keeps its memory, so one check is enough.
    """
    np.empty(_BYTES, np.uint8)
