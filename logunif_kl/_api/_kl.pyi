# Where signatures overlap, the first that fits is meant.
# mypy: disable-error-code="overload-overlap"

from math import inf
from typing import Any, overload

import numpy as np
from numpy.typing import NDArray

from .._types import Array, Lists, NumPy, Reduced

@overload
def kl(
    log_alpha: float, *, zero_at: float = inf, log_c: float | None = None, reduction: str = "none"
) -> np.float64: ...
@overload
def kl(
    log_alpha: NumPy, *, zero_at: float = inf, log_c: float | None = None, reduction: Reduced
) -> np.floating[Any]: ...
@overload
def kl(
    log_alpha: Lists, *, zero_at: float = inf, log_c: float | None = None, reduction: str = "none"
) -> NDArray[Any]: ...
@overload
def kl(
    log_alpha: Array, *, zero_at: float = inf, log_c: float | None = None, reduction: str = "none"
) -> Array: ...
@overload
def kl_normal(
    mu: float,
    log_sigma2: float,
    *,
    zero_at: float = inf,
    log_c: float | None = None,
    reduction: str = "none",
) -> np.float64: ...
@overload
def kl_normal(
    mu: NumPy | float,
    log_sigma2: NumPy | float,
    *,
    zero_at: float = inf,
    log_c: float | None = None,
    reduction: Reduced,
) -> np.floating[Any]: ...
@overload
def kl_normal(
    mu: NumPy | float,
    log_sigma2: NumPy | float,
    *,
    zero_at: float = inf,
    log_c: float | None = None,
    reduction: str = "none",
) -> NDArray[Any]: ...
@overload
def kl_normal(
    mu: Array | float,
    log_sigma2: Array | float,
    *,
    zero_at: float = inf,
    log_c: float | None = None,
    reduction: str = "none",
) -> Array: ...
