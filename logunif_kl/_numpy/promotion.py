"""Find the loop (the types of inputs and outputs) that NumPy would choose for a ufunc call.

`numpy.spacing` (one argument) and `numpy.nextafter` (two arguments) have the same loops as the
functions of this package: float16, float32 and float64. Their ``resolve_dtypes`` finds the loop.
Both also have a loop for long doubles, for which this module raises an error.
"""

from __future__ import annotations

from typing import Any

import numpy as np

LOOPS = "efd"
_MODELS: dict[int, Any] = {1: np.spacing, 2: np.nextafter}


def resolve(
    name: str, kinds: list, outs: tuple, casting: Any, dtype: Any, signature: Any
) -> np.dtype:
    """Return the type of the loop, or raise the error that a NumPy ufunc `name` would raise.

    `kinds` has the dtype of each input, or its Python type if it is a weak scalar (NEP 50). `outs`
    has an array or None for each output. The other arguments are options of the call.
    """
    wanted = _wanted(name, len(kinds), len(outs), dtype, signature)
    options = {"casting": casting} if wanted is None else {"casting": casting, "signature": wanted}
    model = _MODELS[len(kinds)]
    try:
        loop: np.dtype = model.resolve_dtypes((*kinds, None), **options)[-1]
    except TypeError as error:
        raise TypeError(str(error).replace(model.__name__, name)) from None
    if loop.char not in LOOPS:
        if wanted is not None:
            raise _no_loop(name)
        raise TypeError(
            f"ufunc '{name}' not supported for the input types, and the inputs could not be safely "
            "coerced to any supported types according to the casting rule ''safe''"
        )
    for out in outs:
        if out is not None and not np.can_cast(loop, out.dtype, casting):
            raise TypeError(
                f"Cannot cast ufunc '{name}' output from {loop!r} to {out.dtype!r} "
                f"with casting rule '{casting}'"
            )
    return loop


def _no_loop(name: str) -> TypeError:
    return TypeError(
        f"No loop matching the specified signature and casting was found for ufunc {name}"
    )


def _wanted(name: str, nin: int, nout: int, dtype: Any, signature: Any) -> tuple | None:
    """Turn ``dtype`` or ``signature`` into a type for each input and one type for all outputs."""
    if signature is None:
        return None if dtype is None else ((None,) * nin + (np.dtype(dtype),))
    if dtype is not None:
        raise TypeError("cannot specify both 'signature' and 'dtype'")
    if isinstance(signature, str):
        before, arrow, after = signature.partition("->")
        if not arrow or len(before) != nin or len(after) != nout:
            raise ValueError(
                f"a type-string for {name}, {nin} typecode(s) before and {nout} after the -> sign"
            )
        signature = tuple(before + after)
    if len(signature) != nin + nout:
        raise ValueError(
            f"a type-tuple must be specified of length {nin + nout} for ufunc '{name}'"
        )
    types = [None if kind is None else np.dtype(kind) for kind in signature]
    outputs = {kind for kind in types[nin:] if kind is not None}
    if len(outputs) > 1:
        raise _no_loop(name)
    return (*types[:nin], outputs.pop() if outputs else None)
