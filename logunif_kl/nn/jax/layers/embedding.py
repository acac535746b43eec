"""The embedding layer."""

# mypy: allow-untyped-calls
from __future__ import annotations

from dataclasses import replace
from typing import Any

import jax
import jax.numpy as jnp

from ...._errors import type_name
from ...checks import one_of
from ..arguments import in_int32, real_numbers, working
from ..moments import Moments, check_moments
from ..noise import check_key, normals, root, wide, widened
from ..weights.weight import Parts, Weight, parts_of
from .base import ESTIMATORS

Array = Any


def embedding(
    ids: Any,
    weight: Weight | jax.Array,
    *,
    key: Any = None,
    estimator: str = "local",
    dtype: Any = None,
) -> Any:
    """Draw rows of a table of random embeddings, or return the means of the rows.

    The result has the same distribution as that of `dense` with one-hot inputs. By local
    reparameterisation each element of `ids` has its own noise (Kingma et al. 2015, section 2.3).

    Parameters
    ----------
    ids : array of int or Moments
        The rows to look up, of any shape. For ``Moments(ids)`` the result is the `Moments` of the
        rows. As in `jax.numpy.take`, negative ids count from the end,
        and ids outside the table give NaN.
    weight : Weight or array
        A table of shape (rows, columns). The rows are its input units, the columns its output
        units. An array has no noise, and takes no key.
    key : array, optional
        A key of `jax.random` for the noise. Without one the result is the mean, for evaluation.
    estimator : {"local", "per_example", "per_batch"}, optional
        Whether equal ids share their noise: never, within each ``ids[i]``, or always. Noise is
        drawn only for the rows that are looked up.
    dtype : dtype, optional
        The type of the result. By default the type of the means.

    Returns
    -------
    jax.Array or Moments
        Of shape ``ids.shape + (columns,)``.

    Raises
    ------
    TypeError, ValueError
        For the reasons in `dense`, and if `ids` does not hold integers, or has a variance.

    Examples
    --------
    >>> import jax
    >>> import jax.numpy as jnp
    >>> from logunif_kl.jax import nn
    >>> weight = nn.Weight.from_mean(jnp.arange(6.0).reshape(3, 2), nn.Multiplicative("input"))
    >>> print(nn.embedding(jnp.array([2, 0]), weight))
    [[4. 5.]
     [0. 1.]]
    >>> nn.embedding(jnp.array([[2, 0, 2]]), weight, key=jax.random.key(0)).shape
    (1, 3, 2)
    """
    parts = parts_of(weight, key)
    if "scale" in parts.posterior.parameters:
        raise ValueError(
            f"an embedding cannot have the posterior {parts.posterior}: use Additive, Grouped, "
            "Multiplicative or Correlated"
        )
    one_of("estimator", estimator, ESTIMATORS)
    table = parts.mean()
    if table.ndim != 2:
        raise ValueError(
            f"weight of shape {table.shape} is not a table of embeddings: pass shape "
            "(rows, columns)"
        )
    given = ids
    if isinstance(given, Moments):
        if given.variance is not None:
            raise ValueError("ids have no variance, but one was given: pass Moments(ids)")
        ids = given.mean
    if not hasattr(ids, "dtype") and not isinstance(ids, (int, list, tuple)):
        raise TypeError(f"ids must hold integers, but {type_name(ids)} was given: pass an array")
    ids = real_numbers("ids", ids)
    if not jnp.issubdtype(ids.dtype, jnp.integer):
        raise TypeError(f"ids must hold integers, but {ids.dtype} was given: pass int32")
    ids = in_int32(ids)
    dtype = working(table, table, dtype)
    mean = jnp.take(table, ids, axis=0)
    if isinstance(given, Moments):
        check_moments(key, parts.posterior)
        return replace(
            given,
            mean=mean.astype(dtype),
            variance=jnp.take(parts.variances(), ids, axis=0).astype(wide(dtype)),
        )
    if key is None:
        return mean.astype(dtype)
    check_key(key)
    parts.check_scales(0, 1)
    ids = jnp.where(ids < 0, ids + table.shape[0], ids)
    columns = table.shape[1] if parts.posterior.independent else 1
    deviations = _deviations(parts, ids, widened(mean))
    noise = _noise(key, ids, columns, estimator, deviations.dtype)
    return (widened(mean) + deviations * noise).astype(dtype)


def _deviations(parts: Parts, ids: Array, mean: Array) -> Array:
    """Return the standard deviations of the rows at these ids. `mean` holds the rows' means."""
    spread = parts.log_variances()
    rows = jnp.take(spread, ids, axis=0) if spread.shape[0] > 1 else spread[0]
    deviations = root(rows)
    return mean * deviations if parts.posterior.relative else deviations


def _noise(key: Array, ids: Array, columns: int, estimator: str, dtype: Any) -> Array:
    """Draw normals for each id. The estimator decides whether equal ids share their normals."""
    if estimator == "local":
        return normals(key, (*ids.shape, columns), dtype)
    key = _threefry(key)
    if estimator == "per_example" and ids.ndim:
        keys = jax.random.split(key, ids.shape[0])
        return jax.vmap(lambda key, ids: _of_ids(key, ids, columns, dtype))(keys, ids)
    return _of_ids(key, ids, columns, dtype)


def _threefry(key: Array) -> Array:
    """Return a key of a kind whose draws `jax.vmap` does not change. It changes those of rbg."""
    if str(jax.random.key_impl(key)) == "threefry2x32":
        return key
    return jax.random.wrap_key_data(jax.random.bits(key, (2,), jnp.uint32), impl="threefry2x32")


def _of_ids(key: Array, ids: Array, columns: int, dtype: Any) -> Array:
    """Draw normals for each id, so that equal ids get equal normals."""

    def one(each: Array) -> Array:
        return normals(jax.random.fold_in(key, each), (columns,), dtype)

    return jax.vmap(one)(ids.reshape(-1)).reshape(*ids.shape, columns)
