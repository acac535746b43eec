# Where signatures overlap, the first that fits is meant.
# mypy: disable-error-code="overload-overlap"

from math import inf
from typing import Any, overload

import numpy as np
from numpy.typing import NDArray

from .._types import Array, Lists, NumPy, Reduced

@overload
def neg_kl_complex(
    log_alpha: float, *, zero_at: float = inf, log_c: float | None = None, reduction: str = "none"
) -> np.float64: ...
@overload
def neg_kl_complex(
    log_alpha: NumPy, *, zero_at: float = inf, log_c: float | None = None, reduction: Reduced
) -> np.floating[Any]: ...
@overload
def neg_kl_complex(
    log_alpha: Lists, *, zero_at: float = inf, log_c: float | None = None, reduction: str = "none"
) -> NDArray[Any]: ...
@overload
def neg_kl_complex(
    log_alpha: Array, *, zero_at: float = inf, log_c: float | None = None, reduction: str = "none"
) -> Array: ...
@overload
def neg_kl_complex_grad(log_alpha: float) -> np.float64: ...
@overload
def neg_kl_complex_grad(log_alpha: Lists) -> NDArray[Any]: ...
@overload
def neg_kl_complex_grad(log_alpha: Array) -> Array: ...
@overload
def neg_kl_complex_hess(log_alpha: float) -> np.float64: ...
@overload
def neg_kl_complex_hess(log_alpha: Lists) -> NDArray[Any]: ...
@overload
def neg_kl_complex_hess(log_alpha: Array) -> Array: ...
@overload
def neg_kl_complex_normal(
    mu: complex,
    log_sigma2: float,
    *,
    zero_at: float = inf,
    log_c: float | None = None,
    reduction: str = "none",
) -> np.float64: ...
@overload
def neg_kl_complex_normal(
    mu: NumPy | complex,
    log_sigma2: NumPy | float,
    *,
    zero_at: float = inf,
    log_c: float | None = None,
    reduction: Reduced,
) -> np.floating[Any]: ...
@overload
def neg_kl_complex_normal(
    mu: NumPy | complex,
    log_sigma2: NumPy | float,
    *,
    zero_at: float = inf,
    log_c: float | None = None,
    reduction: str = "none",
) -> NDArray[Any]: ...
@overload
def neg_kl_complex_normal(
    mu: Array | complex,
    log_sigma2: Array | float,
    *,
    zero_at: float = inf,
    log_c: float | None = None,
    reduction: str = "none",
) -> Array: ...
@overload
def neg_kl_vector(
    log_alpha: float,
    k: float,
    *,
    zero_at: float = inf,
    log_c: float | None = None,
    reduction: str = "none",
) -> np.float64: ...
@overload
def neg_kl_vector(
    log_alpha: NumPy,
    k: float,
    *,
    zero_at: float = inf,
    log_c: float | None = None,
    reduction: Reduced,
) -> np.floating[Any]: ...
@overload
def neg_kl_vector(
    log_alpha: Lists,
    k: float,
    *,
    zero_at: float = inf,
    log_c: float | None = None,
    reduction: str = "none",
) -> NDArray[Any]: ...
@overload
def neg_kl_vector(
    log_alpha: Array,
    k: float,
    *,
    zero_at: float = inf,
    log_c: float | None = None,
    reduction: str = "none",
) -> Array: ...
@overload
def neg_kl_vector_grad(log_alpha: float, k: float) -> np.float64: ...
@overload
def neg_kl_vector_grad(log_alpha: Lists, k: float) -> NDArray[Any]: ...
@overload
def neg_kl_vector_grad(log_alpha: Array, k: float) -> Array: ...
@overload
def kl_complex(
    log_alpha: float, *, zero_at: float = inf, log_c: float | None = None, reduction: str = "none"
) -> np.float64:
    """KL(q || p), to be *added to a loss*: ``-neg_kl_complex(...)``."""

@overload
def kl_complex(
    log_alpha: NumPy, *, zero_at: float = inf, log_c: float | None = None, reduction: Reduced
) -> np.floating[Any]: ...
@overload
def kl_complex(
    log_alpha: Lists, *, zero_at: float = inf, log_c: float | None = None, reduction: str = "none"
) -> NDArray[Any]: ...
@overload
def kl_complex(
    log_alpha: Array, *, zero_at: float = inf, log_c: float | None = None, reduction: str = "none"
) -> Array: ...
@overload
def kl_complex_normal(
    mu: complex,
    log_sigma2: float,
    *,
    zero_at: float = inf,
    log_c: float | None = None,
    reduction: str = "none",
) -> np.float64:
    """KL(q || p), to be *added to a loss*: ``-neg_kl_complex_normal(...)``."""

@overload
def kl_complex_normal(
    mu: NumPy | complex,
    log_sigma2: NumPy | float,
    *,
    zero_at: float = inf,
    log_c: float | None = None,
    reduction: Reduced,
) -> np.floating[Any]: ...
@overload
def kl_complex_normal(
    mu: NumPy | complex,
    log_sigma2: NumPy | float,
    *,
    zero_at: float = inf,
    log_c: float | None = None,
    reduction: str = "none",
) -> NDArray[Any]: ...
@overload
def kl_complex_normal(
    mu: Array | complex,
    log_sigma2: Array | float,
    *,
    zero_at: float = inf,
    log_c: float | None = None,
    reduction: str = "none",
) -> Array: ...
@overload
def kl_vector(
    log_alpha: float,
    k: float,
    *,
    zero_at: float = inf,
    log_c: float | None = None,
    reduction: str = "none",
) -> np.float64:
    """KL(q || p), to be *added to a loss*: ``-neg_kl_vector(...)``."""

@overload
def kl_vector(
    log_alpha: NumPy,
    k: float,
    *,
    zero_at: float = inf,
    log_c: float | None = None,
    reduction: Reduced,
) -> np.floating[Any]: ...
@overload
def kl_vector(
    log_alpha: Lists,
    k: float,
    *,
    zero_at: float = inf,
    log_c: float | None = None,
    reduction: str = "none",
) -> NDArray[Any]: ...
@overload
def kl_vector(
    log_alpha: Array,
    k: float,
    *,
    zero_at: float = inf,
    log_c: float | None = None,
    reduction: str = "none",
) -> Array: ...
