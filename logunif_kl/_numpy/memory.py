"""Memory that the linear algebra of NumPy and SciPy must find."""

from __future__ import annotations

from functools import cache

import numpy as np

# Each of the two has an OpenBLAS, which allocated 32 to 41 MB when it was first called.
_BYTES = 96 * 2**20


@cache
def check_for_linear_algebra() -> None:
    """Raise MemoryError where OpenBLAS would end the process for want of its buffers.

    They are allocated once and kept, so this is checked once.
    """
    np.empty(_BYTES, np.uint8)
