"""`BlockedUFunc`: array arithmetic in Python that is called like a `numpy.ufunc`.

An expression of fifty NumPy operations over a whole array allocates dozens of arrays of that size.
In blocks of a few thousand elements, only the output has the size of the whole array, and the
temporaries stay in the cache. `BlockedUFunc` is used if the C extension was not built, and for
functions without a C version.

A `BlockedUFunc` has the features of a ufunc that users, dask, xarray and pandas need: ``out=``,
``where=``, ``dtype=``, ``casting=``, ``order=``, ``subok=``, ``signature=``, promotion,
broadcasting, overlapping operands, subclasses, ``__array_ufunc__`` and pickling by name. It differs
from a `numpy.ufunc` in these points:

- it does not have ``reduce``, ``accumulate``, ``reduceat``, ``outer`` and ``at``;
- it does not take ``out=...`` (an ellipsis) or ``sig=``;
- it does not warn about a ``where=`` without ``out=``, or about an overflow in a cast.
"""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

import numpy as np

from .promotion import LOOPS, resolve

Inner = Callable[..., Any]

_METHODS = ("reduce", "accumulate", "reduceat", "outer", "at")
_ITERATOR = ["external_loop", "buffered", "delay_bufalloc", "zerosize_ok", "copy_if_overlap"]


def in_float64(arithmetic: Callable[..., Any]) -> Inner:
    """Turn array arithmetic ``f(xp, *arrays)`` into the inner function of a `BlockedUFunc`.

    float16 and float32 are computed in float64 and rounded once, when the block is stored. A
    signalling NaN becomes a quiet NaN, as in C, so that the caller's next operation does not warn.
    """

    def inner(*blocks: np.ndarray) -> Any:
        # The product turns a signalling NaN into a quiet NaN, which a copy would not do.
        return arithmetic(np, *(np.multiply(block, 1.0, dtype=np.float64) for block in blocks))

    return inner


class BlockedUFunc:
    """An elementwise function evaluated in blocks, and called like a `numpy.ufunc`.

    Parameters
    ----------
    name, module : str
        Where pickle finds the function: ``getattr(sys.modules[module], name)``.
    inner : callable
        Takes `nin` one-dimensional arrays of one type, float16, float32 or float64, and returns one
        array, or a tuple of `nout` arrays. The results may be of a wider type. Floating-point
        warnings are off while it runs.
    nin, nout : int
        The numbers of inputs (one or two) and of outputs.
    doc : str
        The docstring without its signature line.
    block : int
        The largest number of elements in a call of `inner`.
    """

    identity = None
    signature = None
    ntypes = len(LOOPS)

    def __init__(
        self,
        name: str,
        inner: Inner,
        *,
        module: str,
        nin: int = 1,
        nout: int = 1,
        doc: str = "",
        block: int = 4096,
    ) -> None:
        self.__name__ = self.__qualname__ = name
        self.__module__ = module
        inputs = "x" if nin == 1 else ", ".join(f"x{i + 1}" for i in range(nin))
        outputs = None if nout == 1 else (None,) * nout
        self.__doc__ = (
            f"{name}({inputs}, /, out={outputs}, *, where=True, casting='same_kind', order='K', "
            f"dtype=None, subok=True[, signature])\n\n{doc.strip()}\n"
        )
        self.nin, self.nout, self.nargs = nin, nout, nin + nout
        self.types = [f"{c * nin}->{c * nout}" for c in LOOPS]
        self._inner = inner
        self._block = block

    def __repr__(self) -> str:
        return f"<ufunc '{self.__name__}'>"

    def __reduce__(self) -> str:
        return self.__name__

    def __call__(self, *args: Any, out: Any = None, **options: Any) -> Any:
        """Evaluate the function, with the options of a `numpy.ufunc`."""
        inputs, outs = self._operands(args, out)
        overrides = _overrides((*inputs, *outs, options.get("where", True)))
        if overrides:
            if any(array is not None for array in outs):
                options["out"] = outs
            return self._defer(overrides, inputs, options)
        return self._evaluate(inputs, outs, **options)

    def _evaluate(
        self,
        inputs: tuple,
        outs: tuple,
        *,
        where: Any = True,
        casting: Any = "same_kind",
        order: Any = "K",
        dtype: Any = None,
        subok: bool = True,
        signature: Any = None,
        **unknown: Any,
    ) -> Any:
        if unknown:
            raise TypeError(
                f"{self.__name__}() got an unexpected keyword argument {next(iter(unknown))!r}"
            )
        if not isinstance(subok, (bool, np.bool)):
            raise TypeError("'subok' must be a boolean")
        for array in outs:
            if array is not None and not isinstance(array, np.ndarray):
                raise TypeError("return arrays must be of ArrayType")
        arrays = [np.asanyarray(value) for value in inputs]
        kinds = [
            type(value) if _weak(value, array) else array.dtype
            for value, array in zip(inputs, arrays, strict=True)
        ]
        loop = resolve(self.__name__, kinds, outs, casting, dtype, signature)
        results = self._run(arrays, outs, where, order, loop)
        wrapped = tuple(
            self._wrap(result, i, inputs, subok) if given is None else given
            for i, (given, result) in enumerate(zip(outs, results, strict=True))
        )
        return wrapped[0] if self.nout == 1 else wrapped

    def _operands(self, args: tuple, out: Any) -> tuple[tuple, tuple]:
        """Split positional arguments into inputs and outputs, with the outputs as a tuple."""
        if not self.nin <= len(args) <= self.nargs:
            raise TypeError(
                f"{self.__name__}() takes from {self.nin} to {self.nargs} positional arguments "
                f"but {len(args)} were given"
            )
        inputs, outs = args[: self.nin], args[self.nin :]
        if outs and out is not None:
            raise TypeError("cannot specify 'out' as both a positional and keyword argument")
        if outs or out is None:
            return inputs, outs + (None,) * (self.nout - len(outs))
        if not isinstance(out, tuple):
            if self.nout > 1:
                raise TypeError("'out' must be a tuple of arrays")
            out = (out,)
        if len(out) != self.nout:
            raise ValueError("The 'out' tuple must have exactly one entry per ufunc output")
        return inputs, out

    def _defer(self, overrides: list, inputs: tuple, options: dict) -> Any:
        """Try the ``__array_ufunc__`` of each operand until one handles the call (NEP 13)."""
        for operand in overrides:
            if type(operand).__array_ufunc__ is None:
                raise TypeError(
                    f"operand {type(operand).__name__!r} does not support ufuncs "
                    "(__array_ufunc__=None)"
                )
        for operand in overrides:
            result = operand.__array_ufunc__(self, "__call__", *inputs, **options)
            if result is not NotImplemented:
                return result
        names = ", ".join(repr(type(operand).__name__) for operand in overrides)
        raise TypeError(
            "operand type(s) all returned NotImplemented from "
            f"__array_ufunc__({self!r}, '__call__', ...): {names}"
        )

    def _run(
        self, arrays: list[np.ndarray], outs: tuple, where: Any, order: Any, loop: np.dtype
    ) -> tuple[np.ndarray, ...]:
        """Evaluate by blocks. `numpy.nditer` broadcasts and casts, and copies what overlaps."""
        for array in outs:
            if array is not None and not array.flags.writeable:
                raise ValueError("output array is read-only")
        operands: list[Any] = [*arrays, *outs]
        masked = where is not True
        mask = ["writemasked"] if masked else []
        # nditer copies an output that overlaps an input, and writes the whole copy back. With a
        # mask, the copy must therefore begin with the old content of the output.
        given = ["readwrite" if masked else "writeonly", "no_broadcast", *mask]
        fresh = ["writeonly", "allocate", "no_subtype", "no_broadcast", *mask]
        flags = [["readonly", "overlap_assume_elementwise"]] * self.nin
        flags += [fresh if array is None else given for array in outs]
        dtypes: list[Any] = [loop] * self.nargs
        if masked:
            mask_given = np.asarray(where)
            if mask_given.dtype != np.bool:
                raise TypeError(
                    f"Cannot cast array data from {mask_given.dtype!r} to dtype('bool') according "
                    "to the rule 'safe'"
                )
            operands.append(mask_given)
            flags.append(["readonly", "arraymask"])
            dtypes.append(np.bool)
        iterator: Any = np.nditer(  # type: ignore[call-overload]
            operands,
            flags=_ITERATOR,
            op_flags=flags,
            op_dtypes=dtypes,
            order=order,
            casting="unsafe",
            buffersize=self._block,
        )
        with np.errstate(all="ignore"), iterator:
            iterator.reset()
            for blocks in iterator if iterator.itersize else ():
                values = self._inner(*blocks[: self.nin])
                for i, value in enumerate(values if self.nout > 1 else (values,), self.nin):
                    chosen = blocks[-1] if masked else True
                    np.copyto(blocks[i], value, casting="unsafe", where=chosen)
            return tuple(iterator.operands[self.nin : self.nargs])

    def _wrap(self, result: np.ndarray, i: int, inputs: tuple, subok: bool) -> Any:
        """Convert a new output to the subclass of the inputs, or to a scalar if it is 0-d."""
        wrappers = [x for x in inputs if subok and _wraps(x)]
        if wrappers:
            first = max(wrappers, key=lambda x: getattr(x, "__array_priority__", 0.0))
            return first.__array_wrap__(result, (self, inputs, i), result.ndim == 0)
        return result[()] if result.ndim == 0 else result

    def __getattr__(self, name: str) -> Any:
        if name in _METHODS:
            raise AttributeError(
                f"{self.__name__} has no {name}, because it is evaluated by Python and not by a "
                f"numpy.ufunc here: call {self.__name__} itself, and assign or reduce its result"
            )
        raise AttributeError(f"{type(self).__name__!r} object has no attribute {name!r}")


def _weak(value: Any, array: np.ndarray) -> bool:
    """Return whether a value is a Python number, which takes the type of the other operands.

    Return False for an int that fits no integer type, because NumPy makes it an object array.
    """
    return type(value) in (int, float, complex) and array.dtype.kind in "iufc"


def _wraps(operand: Any) -> bool:
    kind = type(operand)
    plain = kind is np.ndarray or issubclass(kind, np.generic)
    return not plain and hasattr(kind, "__array_wrap__")


def _overrides(operands: tuple) -> list:
    """Find operands with their own ``__array_ufunc__``: one of each type, subclasses first."""
    found: list = []
    for operand in operands:
        kind = type(operand)
        method = getattr(kind, "__array_ufunc__", np.ndarray.__array_ufunc__)
        if method is np.ndarray.__array_ufunc__ or any(type(o) is kind for o in found):
            continue
        place = next((i for i, o in enumerate(found) if issubclass(kind, type(o))), len(found))
        found.insert(place, operand)
    return found
