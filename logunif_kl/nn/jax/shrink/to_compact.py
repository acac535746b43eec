"""Trees of smaller arrays for inference."""

# mypy: allow-untyped-calls
from __future__ import annotations

import warnings
from collections.abc import Callable
from typing import Any

import jax

from ...._display import shown_few
from ...._errors import shown
from ...checks import count
from ...sparsity import THRESHOLD, check_threshold
from ..convert import to_deterministic
from ..weights.trees import is_weight
from .shrink import Shrunk, shrink


def to_compact(
    tree: Any,
    function: Callable[..., Any],
    *args: Any,
    threshold: float = THRESHOLD,
    multiple_of: int = 1,
) -> Any:
    """Return a tree of smaller arrays, without the units that `function` does not need.

    ``function(to_compact(tree, function, x), x)`` computes the same outputs as
    ``function(to_deterministic(tree, threshold), x)``, except for rounding. A unit (a feature, a
    channel or a head) goes if all weights that make it or all weights that read it are 0. Constants
    that such units add to the next layer are added to its bias.

    Parameters
    ----------
    tree : pytree
        See `neg_kl`; also a tree without `Weight` nodes, whose weights that are 0 count as pruned.
    function : callable
        ``function(tree, *args)`` returns the outputs of the model in inference. It must take sizes
        from its arrays: `flax.nnx.Linear`, `flax.nnx.Conv` and `flax.nnx.BatchNorm` do.
    *args : pytree of arrays or of jax.ShapeDtypeStruct
        The other arguments. Only their shapes and dtypes matter.
    threshold : float
        See `sparsity`. With -inf, which prunes all weights, the result has the smallest sizes that
        there can be. Try this before you train: arrays that stay large in it always stay large.

    multiple_of : int
        Keep some dead units, so that dimensions are multiples of this number.

    Returns
    -------
    pytree
        Of the structure of ``to_deterministic(tree)``. Each dimension keeps at least one unit.

    Warns
    -----
    UserWarning
        If dead units stay. The warning names the arrays, and what keeps the units.

    Raises
    ------
    TypeError
        If `function` is not a function, or for the reasons in `to_deterministic`.
    ValueError
        For the reasons in `to_deterministic`, and if `multiple_of` is not a positive integer.

    See Also
    --------
    to_deterministic : keeps the sizes of the arrays.

    Notes
    -----
    `function` is traced to a jaxpr. Units are followed through elementwise operations, products,
    convolutions, normalisation in inference, residual sums, concatenations, pooling, reshapes and
    embeddings. They stay where they are read together (softmax, layer normalisation) and in
    operations that are not followed (`jax.lax.scan`, `jax.lax.cond`, sorting). `function` is
    then traced with the smaller arrays, and where it would do other operations, because it has a
    size from elsewhere or computes with it, units stay too.

    Examples
    --------
    >>> import jax
    >>> import jax.numpy as jnp
    >>> from logunif_kl.jax import nn
    >>> def network(params, x):
    ...     hidden = jax.nn.relu(nn.dense(x, params["first"], params["bias"]))
    ...     return nn.dense(hidden, params["last"])
    >>> noisy = jnp.array([9.0, 9.0, -9.0, -9.0])  # log sigma^2 of each of the hidden units
    >>> params = {
    ...     "first": nn.Weight(jnp.ones((3, 4)), jnp.tile(noisy, (3, 1))),
    ...     "bias": jnp.zeros(4),
    ...     "last": nn.Weight(jnp.ones((4, 2)), jnp.full((4, 2), -9.0)),
    ... }
    >>> x = jax.ShapeDtypeStruct((1, 3), jnp.float32)
    >>> jax.tree.map(jnp.shape, nn.to_compact(params, network, x))
    {'bias': (2,), 'first': (3, 2), 'last': (2, 2)}
    """
    threshold = check_threshold(threshold)
    has_weights = any(map(is_weight, jax.tree.leaves(tree, is_leaf=is_weight)))
    plain = to_deterministic(tree, threshold) if has_weights else tree
    small, left, names = _shrunk(plain, function, args, count("multiple_of", multiple_of))
    reasons: dict[str, list[str]] = {}
    for i, why in left.items():
        reasons.setdefault(why, []).append(names[i])
    if reasons:
        kept = "; of ".join(f"{shown_few(each)}: {why}" for why, each in reasons.items())
        warnings.warn(f"to_compact kept the dead units of {kept}", stacklevel=2)
    return jax.tree.unflatten(jax.tree.structure(plain), small)


def _shrunk(
    tree: Any, function: Callable[..., Any], args: tuple[Any, ...], multiple_of: int
) -> tuple[list[Any], dict[int, str], list[str]]:
    """Return smaller leaves, why dead units stay, and the names of all leaves."""
    if not callable(function):
        raise TypeError(
            f"function must be a function of the tree, but {shown(function)} was given: pass one "
            "that returns the outputs of the model"
        )
    paths, structure = jax.tree_util.tree_flatten_with_path(tree)
    names = [jax.tree_util.keystr(path, simple=True, separator=".") for path, _ in paths]
    # A leaf that occurs twice, such as a shared variable, has one set of units.
    places: dict[int, int] = {}
    at = [places.setdefault(id(leaf), len(places)) for _, leaf in paths]
    first = [at.index(i) for i in range(len(places))]
    leaves = [paths[i][1] for i in first]
    arrays = [i for i, leaf in enumerate(leaves) if hasattr(leaf, "dtype")]

    def whole(some: list[Any]) -> list[Any]:
        every = list(leaves)
        for i, leaf in zip(arrays, some, strict=True):
            every[i] = leaf
        return [every[i] for i in at]

    def called(some: list[Any], *args: Any) -> Any:
        return function(jax.tree.unflatten(structure, whole(some)), *args)

    found: Shrunk = shrink(called, [leaves[i] for i in arrays], args, multiple_of)
    return whole(found.leaves), {first[arrays[i]]: why for i, why in found.left.items()}, names
