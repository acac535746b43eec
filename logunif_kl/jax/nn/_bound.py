"""An upper bound on log alpha as a constraint: min(x, bound) with the gradient of a projection.

Where x is at the bound or above, a step against the gradient may increase x, which the constraint
forbids, or decrease it. `jax.custom_jvp` cannot tell the two apart, because its rule is linear in
the tangent, and `jax.custom_vjp` has no forward mode. So the tangent passes through a primitive
whose transpose looks at the sign.
"""

# mypy: allow-untyped-calls
from __future__ import annotations

from functools import partial
from typing import Any

import jax
import jax.numpy as jnp
from jax.extend.core import Primitive
from jax.interpreters import ad, batching, mlir

Array = Any


@partial(jax.custom_jvp, nondiff_argnums=(1,))
def bounded(x: Array, bound: float) -> Array:
    """Compute min(x, bound).

    In reverse mode the gradient passes where x is below the bound, or where a step against it
    decreases x, and is 0 elsewhere. So a parameter at the bound leaves it when the loss asks for
    it, and stays there otherwise. In forward mode the tangent passes where x is not above the
    bound.
    """
    return jnp.minimum(x, bound)


@bounded.defjvp
def _rule(bound: float, primals: Any, tangents: Any) -> tuple[Array, Array]:
    (x,), (tangent,) = primals, tangents
    return bounded(x, bound), _through.bind(x, tangent, bound=bound)


def _forward(x: Array, tangent: Array, *, bound: float) -> Array:
    return jnp.where(x <= bound, tangent, 0.0)


def _jvp(primals: Any, tangents: Any, *, bound: float) -> tuple[Array, Array]:
    x, tangent = primals
    return (
        _through.bind(x, tangent, bound=bound),
        _through.bind(x, ad.instantiate_zeros(tangents[1]), bound=bound),
    )


def _transpose(cotangent: Any, x: Array, tangent: Any, *, bound: float) -> tuple[None, Any]:
    cotangent = ad.instantiate_zeros(cotangent)
    return None, jnp.where((x < bound) | (cotangent > 0.0), cotangent, 0.0)


def _batch(arrays: Any, dims: Any, *, bound: float) -> tuple[Array, int]:
    size = next(a.shape[d] for a, d in zip(arrays, dims, strict=True) if d is not None)
    moved = [
        jnp.broadcast_to(a, (size, *a.shape)) if d is None else jnp.moveaxis(a, d, 0)
        for a, d in zip(arrays, dims, strict=True)
    ]
    return _through.bind(*moved, bound=bound), 0


_through = Primitive("logunif_kl_bounded_tangent")
_through.def_impl(jax.jit(_forward, static_argnames="bound"))
_through.def_abstract_eval(lambda x, tangent, *, bound: tangent)
mlir.register_lowering(_through, mlir.lower_fun(_forward, multiple_results=False))
ad.primitive_jvps[_through] = _jvp
ad.primitive_transposes[_through] = _transpose
batching.primitive_batchers[_through] = _batch
