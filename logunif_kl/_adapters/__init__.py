"""What a framework has to say so that all functions work with its arrays.

A module of this package has one instance of `Adapter`, named ``adapter``, which is imported when
the first array of the framework is passed. `logunif_kl._errors.FRAMEWORKS` names the module. The
modules `logunif_kl.torch`, `logunif_kl.jax` and `logunif_kl.tensorflow` have the same functions as
an adapter: the six of users, and `Adapter._converted`. They add kernels of their own.
"""

from __future__ import annotations

from collections.abc import Callable, Mapping
from functools import cache, lru_cache, partial
from typing import Any

import numpy as np

from .. import _errors
from .._arguments import unwrapped
from .._convention import ZERO_AT_INFINITY, additive_constant
from .._numpy.operations import Operation, of_log_alpha, of_normal

Array = Any


class Adapter:
    """The functions of a framework. A subclass defines the attributes and methods up to `total`.

    `rule` is the only method that a framework must define. The others have the names of the array
    API as defaults.
    """

    name: str
    """The framework, as the top-level module of its arrays is called."""
    xp: Any
    """The namespace over which `logunif_kl._arithmetic` computes."""
    working: Mapping[Any, Any]
    """For each dtype that the functions take, the dtype in which they are computed."""
    cast_by: str
    """How a user converts an array to another dtype, for messages."""

    def rule(self, operation: Operation) -> Callable[..., Array]:
        """Return a function of arrays of one shape, with the derivatives of the operation."""
        raise NotImplementedError

    def dtype(self, x: Array) -> Any:
        return x.dtype

    def cast(self, x: Array, dtype: Any) -> Array:
        return x.astype(dtype)

    def number(self, value: float, dtype: Any) -> Array:
        """Make an array of no dimensions."""
        return self.xp.array(value, dtype=dtype)

    def broadcast(self, *arrays: Array) -> Any:
        return self.xp.broadcast_arrays(*arrays)

    def shape(self, x: Array) -> Any:
        return x.shape

    def total(self, x: Array) -> Array:
        """Return the sum of all elements, with an error that does not grow with their number."""
        return self.xp.sum(x)

    def size(self, x: Array) -> Any:
        return x.size

    def promoted(self, *dtypes: Any) -> Any:
        """Return the dtype of the result for arrays of two dtypes, or None to raise an error."""
        return None

    def is_array(self, value: Any) -> bool:
        return _errors.framework(type(value)) == self.name

    # What follows is the same for every framework.

    def neg_kl(self, log_alpha: Any, **options: Any) -> Array:
        return self._value(of_log_alpha(0), options, log_alpha=log_alpha)

    def neg_kl_normal(self, mu: Any, log_sigma2: Any, **options: Any) -> Array:
        return self._value(of_normal(), options, mu=mu, log_sigma2=log_sigma2)

    def kl(self, log_alpha: Any, **options: Any) -> Array:
        return -self.neg_kl(log_alpha, **options)

    def kl_normal(self, mu: Any, log_sigma2: Any, **options: Any) -> Array:
        return -self.neg_kl_normal(mu, log_sigma2, **options)

    def neg_kl_grad(self, log_alpha: Any) -> Array:
        return self.evaluate(of_log_alpha(1), log_alpha=log_alpha)

    def neg_kl_hess(self, log_alpha: Any) -> Array:
        return self.evaluate(of_log_alpha(2), log_alpha=log_alpha)

    def of_log_alpha(
        self, log_alpha: Any, k: float | None, order: int, zero_at: Any, log_c: Any, reduction: str
    ) -> Array:
        """Compute -KL of groups of k weights, or of complex weights if k is None."""
        from .. import _isotropic

        constant = _isotropic.constant(k, zero_at, log_c)
        return self.evaluate(_of_group(k, order), constant, reduction, log_alpha=log_alpha)

    def call(self, operation: Operation, *arrays: Array) -> Array:
        """Compute an operation without its derivatives."""
        if not operation.host:
            return operation.arithmetic(self.xp, *arrays)
        result = operation.ufunc(*map(self._numpy, arrays))
        return self.cast(self.xp.array(np.asarray(result)), self.dtype(arrays[0]))

    def _numpy(self, x: Array) -> np.ndarray:
        try:
            values = np.asarray(x)
        except Exception:  # A framework that compiles or maps the function may raise anything.
            values = np.asarray(None)
        if values.dtype.kind == "O":
            raise TypeError(
                f"NumPy computes this function, but cannot read the numbers of this array of "
                f"{self.name} here: pass an array of NumPy"
            )
        return values

    def _converted(self, arithmetic: Callable[..., Any], **given: Any) -> Array:
        return self.evaluate(Operation(arithmetic, arithmetic), **given)

    def _value(self, operation: Operation, options: dict[str, Any], **given: Any) -> Array:
        constant = additive_constant(options.get("zero_at", ZERO_AT_INFINITY), options.get("log_c"))
        return self.evaluate(operation, constant, options.get("reduction", "none"), **given)

    def evaluate(
        self, operation: Operation, constant: float = 0.0, reduction: str = "none", **given: Any
    ) -> Array:
        """Check and convert the arguments, compute, add the constant, reduce and round.

        Raise TypeError for an argument that does not hold real floating-point numbers, or if two
        arrays differ in dtype. Raise ValueError for arrays whose shapes do not broadcast.
        """
        _errors.check_reduction(reduction)
        given = {name: unwrapped(name, value) for name, value in given.items()}
        arrays = {name: value for name, value in given.items() if self.is_array(value)}
        dtype = self._dtype(arrays)
        working = self.working[dtype]
        values = [
            self._cast(value, working) if name in arrays else self._number(name, value, working)
            for name, value in given.items()
        ]
        if len(values) > 1:
            self._check_shapes(arrays)
            values = self.broadcast(*values)
        result = self._rule(operation)(*values)
        if constant != 0.0:
            result = result + self.number(constant, working)
        if reduction != "none":
            total = self.total(result)
            result = total if reduction == "sum" else total / self.size(result)
        return self._cast(result, dtype)

    _formula = evaluate

    def _cast(self, x: Array, dtype: Any) -> Array:
        return x if self.dtype(x) == dtype else self.cast(x, dtype)

    def slope(self, operation: Operation, i: int) -> Callable[..., Array]:
        """Return the partial derivative in argument number i, with its own derivatives."""
        assert operation.slopes is not None
        return self._rule(operation.slopes()[i])

    def _rule(self, operation: Operation) -> Callable[..., Array]:
        if operation.slopes is None:
            return partial(self.call, operation)
        return _made(self, operation)

    def _check_shapes(self, arrays: dict[str, Array]) -> None:
        shapes = {name: self.shape(x) for name, x in arrays.items()}
        try:
            np.broadcast_shapes(*shapes.values())
        except TypeError:  # A length is not known yet.
            return
        except ValueError:
            raise ValueError(_errors.no_broadcast(shapes)) from None

    def _dtype(self, arrays: dict[str, Array]) -> Any:
        dtypes = {name: self.dtype(x) for name, x in arrays.items()}
        for name, dtype in dtypes.items():
            if dtype not in self.working:
                remedy = f"convert it with {self.cast_by.format(name)} if that is what is meant"
                if "complex" in str(dtype):
                    remedy = _errors.OF_COMPLEX
                raise TypeError(
                    f"{name} must be of {self._known()}, but {_errors.type_name(arrays[name])} of "
                    f"{dtype} was given: {remedy}"
                )
        common = dtype if len(set(dtypes.values())) == 1 else self.promoted(*dtypes.values())
        if common is None:
            different = " and ".join(f"{name} of {dtype}" for name, dtype in dtypes.items())
            raise TypeError(
                f"{different} were given together: convert one with "
                f"{self.cast_by.format(next(iter(dtypes)))}"
            )
        return common

    def _known(self) -> str:
        *others, last = (str(dtype).rpartition(".")[2] for dtype in self.working)
        return " or ".join(filter(None, (", ".join(others), last)))

    def _number(self, name: str, value: Any, dtype: Any) -> Array:
        if isinstance(value, np.generic):
            _errors.check_scalar(name, value)
        elif not isinstance(value, (float, int)) or isinstance(value, bool):
            raise _errors.not_real(name, value, type(value).__name__)
        return self.number(_errors.as_float(name, value), dtype)


@cache
def _of_group(k: float | None, order: int) -> Operation:
    from .. import _isotropic

    slopes = partial(_slope_of_group, k, order)
    return Operation(_isotropic.ufunc(k, order), partial(_in_group, k, order), slopes)


def _in_group(k: float | None, order: int, xp: Any, x: Any) -> Any:
    from .. import _isotropic

    return _isotropic.derivative(xp, x, k, order)


def _slope_of_group(k: float | None, order: int) -> tuple[Operation]:
    return (_of_group(k, order + 1),)


@lru_cache(maxsize=1024)
def _made(adapter: Adapter, operation: Operation) -> Callable[..., Array]:
    return adapter.rule(operation)
