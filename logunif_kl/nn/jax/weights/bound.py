"""Linear functions with custom transposes, for an upper bound on log alpha.

`jax.custom_jvp` does not allow a custom transpose, and `jax.custom_vjp` has no forward mode. A
primitive can have a rule for each mode.
"""

# mypy: allow-untyped-calls
from __future__ import annotations

from collections.abc import Callable
from functools import partial
from typing import Any

import jax
import jax.numpy as jnp
from jax.extend.core import Primitive
from jax.interpreters import ad, batching, mlir

Array = Any


def with_transpose(
    name: str, forward: Callable[..., Array], transpose: Callable[..., Array]
) -> Callable[..., Array]:
    """Make an elementwise function that is linear in its last argument.

    `name` is the name of the primitive in a jaxpr. JAX applies `forward` to tangents too.
    `transpose` takes the arguments of `forward`, with the cotangent in place of the last one.
    """
    made = Primitive(name)

    def jvp(primals: Any, tangents: Any) -> tuple[Array, Array]:
        *others, _ = primals
        return made.bind(*primals), made.bind(*others, ad.instantiate_zeros(tangents[-1]))

    def transposed(cotangent: Any, *arguments: Any) -> tuple[Any, ...]:
        *others, _ = arguments
        return *(None for _ in others), transpose(*others, ad.instantiate_zeros(cotangent))

    def batched(arrays: Any, axes: Any) -> tuple[Array, int]:
        size = next(a.shape[i] for a, i in zip(arrays, axes, strict=True) if i is not None)
        moved = [
            jnp.broadcast_to(a, (size, *a.shape)) if i is None else jnp.moveaxis(a, i, 0)
            for a, i in zip(arrays, axes, strict=True)
        ]
        return made.bind(*moved), 0

    made.def_impl(forward)
    made.def_abstract_eval(lambda *arguments: arguments[-1])
    mlir.register_lowering(made, mlir.lower_fun(forward, multiple_results=False))
    ad.primitive_jvps[made] = jvp
    ad.primitive_transposes[made] = transposed
    batching.primitive_batchers[made] = batched
    bind: Callable[..., Array] = made.bind
    return bind


# `above` is x minus the bound. Where it is not negative, a negative cotangent means that a descent
# step would increase x further. Such a cotangent becomes 0.
_through = with_transpose(
    "logunif_kl_bounded_tangent",
    lambda above, tangent: jnp.where(above <= 0.0, tangent, 0.0),
    lambda above, cotangent: jnp.where((above < 0.0) | (cotangent > 0.0), cotangent, 0.0),
)


@partial(jax.custom_jvp, nondiff_argnums=(1,))
def bounded(x: Array, bound: float) -> Array:
    """Compute min(x, bound), with a gradient for projected descent.

    In reverse mode the gradient passes where x is below the bound, or where a descent step would
    decrease x. Elsewhere the gradient is 0. A parameter at the bound therefore moves only if a
    smaller value lowers the loss. In forward mode the tangent passes unless x is above the bound.
    """
    return jnp.minimum(x, bound)


@bounded.defjvp
def _bounded_rule(bound: float, primals: Any, tangents: Any) -> tuple[Array, Array]:
    (x,), (tangent,) = primals, tangents
    return bounded(x, bound), _through(x - bound, tangent)


finite_gradient = with_transpose("logunif_kl_finite_gradient", lambda x: x, jnp.nan_to_num)
"""The identity function, in whose gradient NaN becomes 0 and infinities become finite."""
