"""PyTensor, and so PyMC: elementwise operations whose implementation is a ufunc."""

from __future__ import annotations

from collections.abc import Callable
from importlib import import_module
from typing import Any

import numpy as np
import pytensor.tensor as pt
from pytensor.scalar.basic import ScalarOp, upgrade_to_float
from pytensor.tensor.elemwise import Elemwise

from .._numpy.operations import Operation
from . import Adapter

Array = Any


class _Scalar(ScalarOp):
    """The operation on numbers, from which `Elemwise` makes that on arrays."""

    def __init__(self, operation: Operation) -> None:
        ufunc: Any = operation.ufunc
        self.nin, self.nout = ufunc.nin, 1
        path = f"{ufunc.__module__}.{ufunc.__name__}"
        if getattr(import_module(ufunc.__module__), ufunc.__name__, None) is ufunc:
            self.nfunc_spec = path, self.nin, 1
        self._operation = operation
        super().__init__(upgrade_to_float, name=ufunc.__name__)

    def __eq__(self, other: object) -> bool:
        return type(other) is _Scalar and other._operation.ufunc is self._operation.ufunc

    def __hash__(self) -> int:
        return hash(self.name)

    def impl(self, *numbers: Any) -> Any:
        return self._operation.ufunc(*numbers)

    def pullback(self, inputs: Any, outputs: Any, cotangents: Any) -> list[Any]:
        if self._operation.slopes is None:
            raise NotImplementedError(
                "this formula has a first derivative only: call logunif_kl.neg_kl, whose "
                "derivatives of any order are exact"
            )
        slopes = map(_Scalar, self._operation.slopes())
        return [cotangents[0] * slope(*inputs) for slope in slopes]

    def L_op(self, inputs: Any, outputs: Any, cotangents: Any) -> list[Any]:
        return self.pullback(inputs, outputs, cotangents)

    def c_code(self, *_: Any) -> str:
        raise NotImplementedError


class _PyTensor(Adapter):
    name = "pytensor"
    xp = pt
    working = {"float16": "float32", "float32": "float32", "float64": "float64"}  # noqa: RUF012
    cast_by = '{}.astype("float64")'

    def rule(self, operation: Operation) -> Callable[..., Array]:
        made: Callable[..., Array] = Elemwise(_Scalar(operation))
        return made

    def is_array(self, value: Any) -> bool:
        return super().is_array(value) or isinstance(value, np.ndarray)

    def dtype(self, x: Array) -> Any:
        return str(x.dtype)

    def promoted(self, *dtypes: Any) -> Any:
        return str(np.result_type(*dtypes))

    def cast(self, x: Array, dtype: Any) -> Array:
        return pt.cast(x, dtype)

    def number(self, value: float, dtype: Any) -> Array:
        return pt.constant(np.asarray(value, dtype))

    def broadcast(self, *arrays: Array) -> Any:
        return arrays  # An Elemwise broadcasts, and its gradient adds up.

    def shape(self, x: Array) -> Any:
        return x.shape if isinstance(x, np.ndarray) else x.type.shape

    def total(self, x: Array) -> Array:
        return pt.sum(x, dtype="float64", acc_dtype="float64").astype(x.dtype)


adapter = _PyTensor()
