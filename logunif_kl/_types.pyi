from collections.abc import Sequence
from typing import Any, Literal, Protocol, TypedDict, TypeVar, Unpack, overload

import numpy as np
from numpy.typing import DTypeLike, NDArray

class _Shaped(Protocol):
    @property
    def shape(self) -> Any: ...

# An array or a tensor. The functions return the type that they take.
Array = TypeVar("Array", bound=_Shaped)
# What NumPy converts to an array of a floating type.
Lists = Sequence[Any] | NDArray[np.integer[Any]]
NumPy = Sequence[Any] | NDArray[Any] | np.number[Any]
Reduced = Literal["sum", "mean"]

_Out = TypeVar("_Out", bound=NDArray[Any])

class _Options(TypedDict, total=False):
    where: Any
    casting: Literal["no", "equiv", "safe", "same_kind", "unsafe"]
    order: Literal["K", "A", "C", "F"]
    subok: bool

# NumPy calls `ufunc` final, but only a subclass has parameters.
class UFunc(np.ufunc):  # type: ignore[misc]
    @overload
    def __call__(self, u: float, /, **options: Unpack[_Options]) -> np.float64: ...
    @overload
    def __call__(self, u: Lists, /, **options: Unpack[_Options]) -> NDArray[Any]: ...
    @overload
    def __call__(self, u: Array, /, **options: Unpack[_Options]) -> Array: ...
    @overload
    def __call__(
        self,
        u: Any,
        /,
        out: _Out | tuple[_Out],
        *,
        dtype: DTypeLike | None = None,
        signature: Any = None,
        **options: Unpack[_Options],
    ) -> _Out: ...
    @overload
    def __call__(
        self, u: Any, /, *, dtype: DTypeLike, signature: Any = None, **options: Unpack[_Options]
    ) -> Any: ...
