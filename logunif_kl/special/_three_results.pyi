# Where signatures overlap, the first that fits is meant.
# mypy: disable-error-code="overload-overlap"

from typing import Any, overload

import numpy as np
from numpy.typing import NDArray

from .._types import Array, NumPy

@overload
def neg_kl_normal_and_grad(
    mu: float, log_sigma2: float, /, *out: Any, **options: Any
) -> tuple[np.float64, np.float64, np.float64]: ...
@overload
def neg_kl_normal_and_grad(
    mu: NumPy | float, log_sigma2: NumPy | float, /, *out: Any, **options: Any
) -> tuple[NDArray[Any], NDArray[Any], NDArray[Any]]: ...
@overload
def neg_kl_normal_and_grad(
    mu: Array | float, log_sigma2: Array | float, /, *out: Any, **options: Any
) -> tuple[Array, Array, Array]: ...
