"""Ufuncs of NumPy that refuse arguments whose derivative or unit they would lose."""

from __future__ import annotations

from typing import Any

import numpy as np

from .._arguments import NAMESPACE, kind_of, without_loss
from .._dispatch import evaluate, operation
from .._numpy import ufuncs

_PLAIN = frozenset({float, int, np.ndarray, np.float16, np.float32, np.float64})


def guarded(name: str) -> Any:
    """Return a ufunc of one argument as a function with the attributes and methods of the ufunc.

    NumPy alone would convert every object that has ``__array__`` or the buffer protocol.
    """
    ufunc = getattr(ufuncs, name)

    def function(u: Any, /, *out: Any, **options: Any) -> Any:
        if type(u) in _PLAIN:
            return ufunc(u, *out, **options) if out or options else ufunc(u)
        u = without_loss("u", u)
        if kind_of(type(u)) == NAMESPACE and not out and not options:
            return evaluate(operation(name), u=u)
        return ufunc(u, *out, **options)

    for attribute in dir(ufunc):
        if not attribute.startswith("_"):
            setattr(function, attribute, getattr(ufunc, attribute))
    function.__doc__ = ufunc.__doc__.partition("\n\n")[2]  # without the ufunc's signature
    function.__name__ = function.__qualname__ = name
    function.__module__ = "logunif_kl.special"  # where pickle finds it
    return function
