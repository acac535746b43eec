"""`BlockedUFunc`: array arithmetic in Python with the manners of a `numpy.ufunc`.

An expression of fifty NumPy operations over a whole array allocates dozens of arrays of its size. Evaluated over
blocks of a few thousand elements it allocates its output alone, and stays in cache. That is worth having in two
places: instead of the C extension where that could not be built, and around functions that only Python spells out.

Everything that callers, dask, xarray and pandas expect of a ufunc is kept: ``out=``, ``where=``, ``dtype=``,
``casting=``, ``order=``, ``subok=``, ``signature=``, promotion, broadcasting, overlapping operands, subclasses,
``__array_ufunc__`` and pickling by name. Promotion and casting are NumPy's own: they are asked of a NumPy ufunc with
the same loops. The loops are float16, float32 and float64.

Not kept: the reductions of functions of two arguments, and ``at`` for them.
"""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

import numpy as np

_LOOPS = "efd"
_CASTINGS = ("no", "equiv", "safe", "same_kind", "unsafe")

Inner = Callable[..., Any]


def in_float64(arithmetic: Callable[..., Any]) -> Inner:
    """Array arithmetic ``f(xp, *arrays)`` as the inner function of a `BlockedUFunc`.

    The narrower loops are computed in float64 and rounded once, when the block is stored.
    """

    def inner(*blocks: np.ndarray) -> Any:
        return arithmetic(np, *(block.astype(np.float64, copy=False) for block in blocks))

    return inner


class BlockedUFunc:
    """An elementwise function evaluated in blocks, and called like a `numpy.ufunc`.

    Parameters
    ----------
    name, module : str
        ``getattr(sys.modules[module], name)`` is the function; it is pickled so.
    inner : callable
        Takes `nin` one-dimensional arrays of one of the loops' types and returns one array, or `nout` of them in a
        tuple. It may compute in a wider type. Floating-point warnings are off while it runs.
    nin, nout : int
        The numbers of inputs (one or two) and of outputs.
    doc : str
        The docstring, without the signature line.
    block : int
        The most elements given to `inner` at once.
    """

    identity = None
    signature = None
    ntypes = len(_LOOPS)

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
        arguments = "x" if nin == 1 else ", ".join(f"x{i + 1}" for i in range(nin))
        outputs = "out=None" if nout == 1 else f"out={(None,) * nout}"
        self.__doc__ = (
            f"{name}({arguments}, /, {outputs}, *, where=True, casting='same_kind', order='K', "
            f"dtype=None, subok=True[, signature])\n\n{doc.strip()}\n"
        )
        self.nin, self.nout, self.nargs = nin, nout, nin + nout
        self.types = [f"{c * nin}->{c * nout}" for c in _LOOPS]
        self._inner = inner
        self._block = block
        # Ufuncs with the same loops, and one for long doubles, which is refused below.
        self._model = np.spacing if nin == 1 else np.nextafter

    def __repr__(self) -> str:
        return f"<ufunc '{self.__name__}'>"

    def __reduce__(self) -> str:
        return self.__name__

    def __call__(
        self,
        *args: Any,
        out: Any = None,
        where: Any = True,
        casting: str = "same_kind",
        order: str = "K",
        dtype: Any = None,
        subok: bool = True,
        signature: Any = None,
    ) -> Any:
        inputs, outs = self._operands(args, out)
        if signature is not None and dtype is not None:
            raise TypeError("cannot specify both 'signature' and 'dtype'")
        options = {
            "where": (where, True),
            "casting": (casting, "same_kind"),
            "order": (order, "K"),
            "dtype": (dtype, None),
            "subok": (subok, True),
            "signature": (signature, None),
        }
        overrides = _overrides((*inputs, *outs, where))
        if overrides:
            kwargs = {key: value for key, (value, default) in options.items() if value is not default}
            if any(o is not None for o in outs):
                kwargs["out"] = outs
            return self._defer(overrides, "__call__", inputs, kwargs)
        if casting not in _CASTINGS:
            raise ValueError(f"casting must be one of {str(_CASTINGS)[1:-1]} (got {casting!r})")
        if not isinstance(subok, (bool, np.bool)):
            raise TypeError("'subok' must be a boolean")
        arrays, loop = self._resolve(inputs, outs, casting, dtype, signature)
        results = self._run(arrays, outs, where, order, loop)
        wrapped = tuple(
            given if given is not None else self._wrap(result, i, inputs, subok)
            for i, (given, result) in enumerate(zip(outs, results, strict=True))
        )
        return wrapped[0] if self.nout == 1 else wrapped

    def _operands(self, args: tuple, out: Any) -> tuple[tuple, tuple]:
        """Split positional arguments into inputs and outputs, and bring the outputs to a tuple."""
        if not self.nin <= len(args) <= self.nargs:
            raise TypeError(
                f"{self.__name__}() takes from {self.nin} to {self.nargs} positional arguments but {len(args)} were given"
            )
        inputs, outs = args[: self.nin], args[self.nin :]
        if outs and out is not None:
            raise TypeError("cannot specify 'out' as both a positional and keyword argument")
        if outs:
            return inputs, outs + (None,) * (self.nout - len(outs))
        if out is None:
            return inputs, (None,) * self.nout
        if not isinstance(out, tuple):
            if self.nout > 1:
                raise TypeError("'out' must be a tuple of arrays")
            out = (out,)
        if len(out) != self.nout:
            raise ValueError("The 'out' tuple must have exactly one entry per ufunc output")
        return inputs, out

    def _defer(self, overrides: list, method: str, inputs: tuple, kwargs: dict) -> Any:
        """Let the first operand that can do so carry out the call (NEP 13)."""
        for operand in overrides:
            if type(operand).__array_ufunc__ is None:
                raise TypeError(
                    f"operand {type(operand).__name__!r} does not support ufuncs (__array_ufunc__=None)"
                )
        for operand in overrides:
            result = operand.__array_ufunc__(self, method, *inputs, **kwargs)
            if result is not NotImplemented:
                return result
        names = ", ".join(repr(type(operand).__name__) for operand in inputs + kwargs.get("out", ()))
        raise TypeError(
            f"operand type(s) all returned NotImplemented from __array_ufunc__({self!r}, {method!r}, ...): {names}"
        )

    def _resolve(
        self, inputs: tuple, outs: tuple, casting: str, dtype: Any, signature: Any
    ) -> tuple[list[np.ndarray], np.dtype]:
        """Find the loop as NumPy would; return the inputs as arrays, and the loop's type."""
        arrays, kinds = [], []
        for value in inputs:
            array = np.asanyarray(value)
            # Only Python's own scalars are weak (NEP 50).
            weak = type(value) in (int, float, complex) and array.dtype.kind in "ifc"
            arrays.append(array)
            kinds.append(type(value) if weak else array.dtype)
        for given in outs:
            if given is not None and not isinstance(given, np.ndarray):
                raise TypeError("return arrays must be of ArrayType")
        wanted = self._wanted(dtype, signature)
        try:
            options = {} if wanted is None else {"signature": wanted}
            loop = self._model.resolve_dtypes((*kinds, None), casting=casting, **options)[-1]
        except TypeError as error:
            message = str(error).replace(self._model.__name__, self.__name__)
            raise TypeError(message) from None
        if loop.char not in _LOOPS:
            if wanted is not None:
                raise TypeError(
                    f"No loop matching the specified signature and casting was found for ufunc {self.__name__}"
                )
            raise TypeError(
                f"ufunc '{self.__name__}' not supported for the input types, and the inputs could not be safely "
                "coerced to any supported types according to the casting rule ''safe''"
            )
        for given in outs:
            if given is not None and not np.can_cast(loop, given.dtype, casting):
                raise TypeError(
                    f"Cannot cast ufunc '{self.__name__}' output from {loop!r} to {given.dtype!r} "
                    f"with casting rule '{casting}'"
                )
        return arrays, loop

    def _wanted(self, dtype: Any, signature: Any) -> tuple | None:
        """The call's ``dtype`` or ``signature``, for a ufunc of as many inputs and one output."""
        if dtype is not None:
            return (None,) * self.nin + (np.dtype(dtype),)
        if signature is None:
            return None
        if isinstance(signature, str):
            before, arrow, after = signature.partition("->")
            if not arrow or len(before) != self.nin or len(after) != self.nout:
                raise ValueError(
                    f"a type-string for {self.__name__}, {self.nin} typecode(s) before and {self.nout} after the -> sign"
                )
            signature = tuple(before + after)
        if len(signature) != self.nargs:
            raise ValueError(
                f"a type-tuple must be of length {self.nargs} for ufunc {self.__name__!r}"
            )
        types = [None if t is None else np.dtype(t) for t in signature]
        outputs = {t for t in types[self.nin :] if t is not None}
        if len(outputs) > 1:
            raise TypeError(
                f"No loop matching the specified signature and casting was found for ufunc {self.__name__}"
            )
        return (*types[: self.nin], outputs.pop() if outputs else None)

    def _run(
        self, arrays: list[np.ndarray], outs: tuple, where: Any, order: str, loop: np.dtype
    ) -> tuple[np.ndarray, ...]:
        """Evaluate block by block; `numpy.nditer` broadcasts, casts, and copies where operands overlap."""
        for given in outs:
            if given is not None and not given.flags.writeable:
                raise ValueError("output array is read-only")
        masked = where is not True
        read = ["readonly", "overlap_assume_elementwise"]
        write = ["writemasked"] if masked else []
        operands: list[Any] = [*arrays, *outs]
        flags = [read] * self.nin
        flags += [["writeonly", "allocate", "no_subtype", "no_broadcast", *write] if given is None
            else ["readwrite" if masked else "writeonly", "no_broadcast", *write] for given in outs]
        dtypes: list[Any] = [loop] * self.nargs
        if masked:
            operands.append(np.asarray(where, dtype=bool))
            flags.append(["readonly", "arraymask"])
            dtypes.append(np.bool)
        with np.errstate(all="ignore"), np.nditer(
            operands,
            flags=["external_loop", "buffered", "delay_bufalloc", "zerosize_ok", "copy_if_overlap"],
            op_flags=flags,
            op_dtypes=dtypes,
            order=order,
            casting="unsafe",
            buffersize=self._block,
        ) as iterator:
            iterator.reset()
            if iterator.itersize:
                for blocks in iterator:
                    values = self._inner(*blocks[: self.nin])
                    for target, value in zip(
                        blocks[self.nin : self.nargs], values if self.nout > 1 else (values,), strict=True
                    ):
                        np.copyto(target, value, casting="unsafe", where=blocks[-1] if masked else True)
            return tuple(iterator.operands[self.nin : self.nargs])

    def _wrap(self, result: np.ndarray, i: int, inputs: tuple, subok: bool) -> Any:
        """Give a fresh output the type of the inputs: a scalar for 0-d, the subclass for subclasses."""
        if subok:
            wrappers = [x for x in inputs if hasattr(type(x), "__array_wrap__") and not _plain(x)]
            if wrappers:
                first = max(wrappers, key=lambda x: getattr(x, "__array_priority__", 0.0))
                return first.__array_wrap__(result, (self, inputs, i), result.ndim == 0)
        return result[()] if result.ndim == 0 else result

    def at(self, a: np.ndarray, indices: Any, b: Any = None, /) -> None:
        """Apply in place to the elements at `indices`, again for each time that one is repeated."""
        if self.nin > 1 or self.nout > 1:
            raise ValueError(f"ufunc '{self.__name__}' has no 'at': it is not a function of one variable")
        if b is not None:
            raise ValueError("second operand provided when ufunc is unary")
        if not isinstance(a, np.ndarray):
            raise TypeError("first operand must be array")
        left = np.arange(a.size).reshape(a.shape)[indices].reshape(-1)
        while left.size:
            once, first = np.unique(left, return_index=True)
            where = np.unravel_index(once, a.shape)
            a[where] = self(a[where])
            left = np.delete(left, first)

    def _binary_only(self, what: str) -> Any:
        if self.nout > 1:
            raise ValueError(f"{what} only supported for functions returning a single value")
        if self.nin == 1:
            raise ValueError(f"{what} only supported for binary functions")
        raise ValueError(f"ufunc '{self.__name__}' has no {what}: it is not an operation of its own kind")

    def reduce(self, *args: Any, **kwargs: Any) -> Any:
        """Raise `ValueError`, as for every ufunc of one argument."""
        return self._binary_only("reduce")

    def accumulate(self, *args: Any, **kwargs: Any) -> Any:
        """Raise `ValueError`, as for every ufunc of one argument."""
        return self._binary_only("accumulate")

    def reduceat(self, *args: Any, **kwargs: Any) -> Any:
        """Raise `ValueError`, as for every ufunc of one argument."""
        return self._binary_only("reduceat")

    def outer(self, *args: Any, **kwargs: Any) -> Any:
        """Raise `ValueError`, as for every ufunc of one argument."""
        return self._binary_only("outer product")


def _plain(operand: Any) -> bool:
    return type(operand) is np.ndarray or isinstance(operand, np.generic)


def _overrides(operands: tuple) -> list:
    """Operands with an ``__array_ufunc__`` of their own: subclasses first, else left to right, each type once."""
    found: list = []
    for operand in operands:
        kind = type(operand)
        method = getattr(kind, "__array_ufunc__", np.ndarray.__array_ufunc__)
        if method is np.ndarray.__array_ufunc__ or any(type(o) is kind for o in found):
            continue
        place = next((i for i, o in enumerate(found) if issubclass(kind, type(o))), len(found))
        found.insert(place, operand)
    return found
