"""`neg_kl_normal_and_grad`: a ufunc with three results, and a way to apply it to dask arrays."""

from __future__ import annotations

from operator import itemgetter
from typing import Any

import numpy as np

from .. import _errors
from .._arguments import NUMPY, PROTOCOL, kind_of, parse, without_loss
from .._numpy import ufuncs
from .._numpy.docs import DOCS


def neg_kl_normal_and_grad(mu: Any, log_sigma2: Any, /, *out: Any, **options: Any) -> Any:
    """-KL(q || p) of q(w) = N(mu, sigma^2) and both its derivatives, in one pass."""
    arguments = {"mu": mu, "log_sigma2": log_sigma2}
    kinds = [kind_of(type(value)) for value in (mu, log_sigma2)]
    mu, log_sigma2 = (without_loss(name, value) for name, value in arguments.items())
    others = [x for x, kind in zip((mu, log_sigma2), kinds, strict=True) if kind == PROTOCOL]
    try:
        if others and not out and not options and all(map(_of_dask, others)):
            return _lazily(mu, log_sigma2)
        return ufuncs.neg_kl_normal_and_grad(mu, log_sigma2, *out, **options)
    except ValueError:
        _errors.check_shapes(arguments)
        raise
    except (AttributeError, NotImplementedError, TypeError):
        parse(arguments)  # raises errors for invalid arguments
        if others and (out or options) and all(map(_of_dask, others)):
            raise TypeError(
                "dask arrays were given with options of a ufunc, such as out=, where= or dtype=: "
                "leave these out, or call .compute() first"
            ) from None
        if others:
            raise _errors.not_computed(arguments) from None
        raise


neg_kl_normal_and_grad.__doc__ = DOCS["neg_kl_normal_and_grad"]


def _of_dask(value: Any) -> bool:
    return _errors.derives(type(value), "dask", "Array")


def _lazily(*arguments: Any) -> tuple[Any, ...]:
    """Compute the three results in one pass over the blocks, as dask does for `numpy.frexp`."""
    from dask.array.core import elemwise

    function = ufuncs.neg_kl_normal_and_grad
    values = [
        np.asanyarray(value) if kind_of(type(value)) == NUMPY else value for value in arguments
    ]
    one_each = [np.ones(1, v.dtype) if hasattr(v, "chunks") else v for v in values]
    triples = elemwise(function, *values, dtype=object)  # type: ignore[no-untyped-call]
    return tuple(
        triples.map_blocks(itemgetter(i), dtype=result.dtype, meta=result[:0])
        for i, result in enumerate(function(*one_each))
    )
