# Where signatures overlap, the first that fits is meant.
# mypy: disable-error-code="overload-overlap"

from typing import Any, overload

import numpy as np
from numpy.typing import NDArray

from .._types import Array, Lists

__all__ = ["kl_gap", "kl_gap_grad", "kl_gap_hess"]

@overload
def kl_gap(u: float) -> np.float64: ...
@overload
def kl_gap(u: Lists) -> NDArray[Any]: ...
@overload
def kl_gap(u: Array) -> Array: ...
@overload
def kl_gap_grad(u: float) -> np.float64: ...
@overload
def kl_gap_grad(u: Lists) -> NDArray[Any]: ...
@overload
def kl_gap_grad(u: Array) -> Array: ...
@overload
def kl_gap_hess(u: float) -> np.float64: ...
@overload
def kl_gap_hess(u: Lists) -> NDArray[Any]: ...
@overload
def kl_gap_hess(u: Array) -> Array: ...
