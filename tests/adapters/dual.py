"""A framework that the library does not know: numbers with a derivative, and its adapter."""

from dataclasses import dataclass
from typing import Any

import numpy as np

from logunif_kl._adapters import Adapter


@dataclass
class Dual:
    """Numbers x, and their derivatives dx."""

    x: Any
    dx: Any

    @property
    def dtype(self) -> Any:
        return self.x.dtype

    @property
    def shape(self) -> Any:
        return self.x.shape

    @property
    def size(self) -> int:
        return self.x.size

    def __add__(self, other: "Dual") -> "Dual":
        return Dual(self.x + other.x, self.dx + other.dx)

    def __truediv__(self, number: float) -> "Dual":
        return Dual(self.x / number, self.dx / number)

    def __neg__(self) -> "Dual":
        return Dual(-self.x, -self.dx)


class _Dual(Adapter):
    name = "tests"
    xp = np
    working = {np.dtype("float64"): np.dtype("float64")}  # noqa: RUF012
    cast_by = "Dual({0}.x.astype(float), {0}.dx)"

    def rule(self, operation: Any) -> Any:
        def function(*at: Dual) -> Dual:
            xs = [each.x for each in at]
            slopes = [slope.ufunc(*xs) for slope in operation.slopes()]
            dx = sum(slope * each.dx for slope, each in zip(slopes, at, strict=True))
            return Dual(operation.ufunc(*xs), dx)

        return function

    def number(self, value: float, dtype: Any) -> Dual:
        return Dual(np.asarray(value, dtype), np.zeros((), dtype))

    def broadcast(self, *arrays: Dual) -> Any:
        xs, dxs = (np.broadcast_arrays(*(getattr(a, n) for a in arrays)) for n in ("x", "dx"))
        return list(map(Dual, xs, dxs))

    def total(self, x: Dual) -> Dual:
        return Dual(x.x.sum(), x.dx.sum())


adapter = _Dual()
