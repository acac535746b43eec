"""Make arrays of any tree Gaussian, draw them, and make them plain again."""

# mypy: allow-untyped-calls
from __future__ import annotations

import math
from collections.abc import Callable
from dataclasses import replace
from itertools import count
from typing import Any

import jax
import jax.numpy as jnp

from ..._errors import shown, type_name
from ..posteriors import Additive
from ..sparsity import THRESHOLD, check_threshold, is_noisy
from ..terms import shared_shape
from .layers.base import sample_weights
from .noise import check_key, normals, widened
from .weights.trees import (
    copied,
    is_leaf,
    is_parameter,
    is_variable,
    is_weight,
    leaves_of,
    mapped,
    weights_of,
)
from .weights.weight import Weight, parts_of

Array = Any
Where = Callable[[str, Any], bool]

_NO_PARAMETERS = ("batch_stats", "cache", "intermediates", "perturbations")
"""The collections of Flax Linen beside "params"."""


def to_variational(
    tree: Any,
    where: Where | None = None,
    *,
    posterior: Additive = Additive(),  # noqa: B008 (frozen)
    input_axis: int = -2,
    output_axis: int = -1,
) -> Any:
    """Make arrays in a tree of parameters Gaussian: replace them by `Weight` nodes.

    Call the model with ``sample(tree, key)`` in training, and with ``to_deterministic(tree)`` in
    evaluation. This serves models of any library whose parameters are a pytree, such as those of
    Flax and Equinox, with all their modules. The weights are drawn once in a call, for all
    examples. Layers such as `dense` have gradients of smaller variance, because they draw outputs.

    Parameters
    ----------
    tree : pytree
        The parameters of a model. `Weight` nodes in it stay as they are.
    where : callable, optional
        ``where(path, leaf)`` is true for the arrays to replace. `path` is a dotted path, such as
        ``"layers.0.weight"``. By default all floating-point arrays of two dimensions or more,
        except those with "bias" in their path, those that Flax NNX keeps in a variable other than
        `flax.nnx.Param`, and the "batch_stats", "cache", "intermediates" and "perturbations" beside
        the "params" of Flax Linen.
    posterior, input_axis, output_axis : optional
        See `Weight.from_mean`. The axes are -2 and -1 in Flax, and 1 and 0 in Equinox.

    Returns
    -------
    pytree
        The same tree with `Weight` nodes, whose means are the arrays. Variables of Flax NNX that
        are shared in the tree are shared in the result.

    Raises
    ------
    TypeError
        If `where` cannot be called, `posterior` is not a posterior, or the tree is the State of a
        Flax NNX module with `Weight` nodes, which Flax writes as dicts: pass the module.
    ValueError
        If there is no such array, or it is a ``log_sigma2`` or ``log_alpha`` beside a ``mean``.

    See Also
    --------
    sample, to_deterministic : trees of plain arrays again.

    Notes
    -----
    In kernels that `flax.linen.scan` or `jax.vmap` stacks, of shape (layers, inputs, outputs),
    all layers share the parameters that weights of one kernel share: the variances of `Grouped`,
    the alphas of ``Multiplicative("output")``, the scales. To give each layer its own, convert such
    a part of the tree by ``jax.vmap(nn.to_variational)``; `Correlated` and `Scaled` have no KL
    then.

    Examples
    --------
    >>> import jax
    >>> import jax.numpy as jnp
    >>> from logunif_kl.jax import nn
    >>> params = {"kernel": jnp.ones((3, 2)), "bias": jnp.zeros(2)}
    >>> model = lambda params, x: x @ params["kernel"] + params["bias"]
    >>> params = nn.to_variational(params, posterior=nn.Additive(initial=-2.0))
    >>> model(nn.sample(params, jax.random.key(0)), jnp.ones((4, 3))).shape
    (4, 2)
    >>> print(model(nn.to_deterministic(params), jnp.ones(3)), f"{nn.kl(params):.2f}")
    [3. 3.] 9.26
    """
    if where is not None and not callable(where):
        raise TypeError(
            f"where must be a function of path and leaf, but {shown(where)} was given: pass None "
            "for all matrices"
        )
    chosen = _matrix if where is None else where
    made = False
    done: dict[int, Any] = {}
    paths: dict[int, list[Any]] = {}
    leaves = jax.tree_util.tree_flatten_with_path(tree, is_leaf=is_leaf)[0]
    for path, leaf in leaves:
        if is_variable(leaf):
            parameter = where is not None or is_parameter(leaf)
            paths.setdefault(id(leaf), []).extend([path] if parameter else [])
        elif is_weight(leaf):
            done |= {id(each): copied(each) for each in leaves_of(leaf) if is_variable(each)}

    # Where the trees of Flax Linen's variables are, each with its "params".
    linen: set[Any] = set()
    if where is None and not paths:
        for path, _ in leaves:
            linen |= {path[:at] for at, key in enumerate(path) if _name(key) == "params"}

    beside_means = {path[:-1] for path, _ in leaves if path and _name(path[-1]) == "mean"}

    def is_chosen(path: Any, leaf: Any) -> bool:
        if any(_name(key) in _NO_PARAMETERS and path[:at] in linen for at, key in enumerate(path)):
            return False
        name = jax.tree_util.keystr(path, simple=True, separator=".")
        if not chosen(name, leaf):
            return False
        if path and _name(path[-1]) in ("log_sigma2", "log_alpha") and path[:-1] in beside_means:
            raise ValueError(
                f"{name!r} is beside a mean, so it looks like a part of a Weight that became a "
                "dict: pass the module or tree that holds the Weight, or leave it out by where"
            )
        return True

    def replaced(path: Any, leaf: Any, variable: int = -1) -> Any:
        nonlocal made
        if is_weight(leaf):
            return jax.tree.map(lambda x: done.get(id(x), x), leaf, is_leaf=is_variable)
        if is_variable(leaf):
            if id(leaf) not in done:
                done[id(leaf)] = jax.tree_util.tree_map_with_path(
                    lambda rest, each: replaced(rest, each, id(leaf)), leaf, is_leaf=is_weight
                )
            return done[id(leaf)]
        # A variable that several modules share has several paths.
        if not any(is_chosen(first + path, leaf) for first in paths.get(variable, [()])):
            return leaf
        made = True
        return Weight.from_mean(leaf, posterior, input_axis=input_axis, output_axis=output_axis)

    found = jax.tree_util.tree_map_with_path(replaced, tree, is_leaf=is_leaf)
    if not made:
        if any(map(is_weight, jax.tree.leaves(tree, is_leaf=is_weight))):
            raise ValueError(
                "tree holds Weight nodes and no other array to make Gaussian: it is variational "
                "already"
            )
        raise ValueError(
            f"tree is of type {type_name(tree)} and holds no array to make Gaussian: pass the "
            "parameters of a model, or another function as where"
        )
    return found


def _name(key: Any) -> Any:
    """Return the name in a key of a path, of a dict or of an attribute."""
    return getattr(key, "key", getattr(key, "name", None))


def sample(tree: Any, key: Any) -> Any:
    """Draw all weights in a tree, and return the tree with arrays in their place.

    The arrays are one sample of the weights: keep them over calls or time steps for Thompson
    sampling, rollouts and recurrent networks. Gradients reach the parameters of the posteriors.

    Parameters
    ----------
    tree : pytree
        See `neg_kl`.
    key : array
        A key of `jax.random`. Equal keys give equal weights.

    Returns
    -------
    pytree
        Arrays of the types of the means. Leaves outside of `Weight` nodes are unchanged.

    Raises
    ------
    TypeError
        If `key` is not a key.
    ValueError
        If there is no `Weight` in the tree, if `key` holds several keys, or if weights with random
        scales have several groups of channels.

    Notes
    -----
    A Flax NNX module is copied. In training mode its statistics and dropout keys change in the
    copy only: return them from the loss, as the recipe "Any module of Flax NNX" does.

    Examples
    --------
    >>> import jax
    >>> import jax.numpy as jnp
    >>> from logunif_kl.jax import nn
    >>> params = {"weight": nn.Weight(jnp.ones(3), jnp.zeros(3)), "bias": jnp.zeros(1)}
    >>> drawn = jax.vmap(nn.sample, (None, 0))(params, jax.random.split(jax.random.key(0), 10_000))
    >>> print(drawn["weight"].mean().round(1), drawn["weight"].std().round(1))
    1.0 1.0
    """
    check_key(key)
    weights_of(tree)
    numbers = count()

    return mapped(lambda node: _drawn(node, jax.random.fold_in(key, next(numbers))), tree)


def to_deterministic(tree: Any, threshold: float | None = None) -> Any:
    """Return a tree with the means in place of the `Weight` nodes.

    Parameters
    ----------
    tree : pytree
        See `neg_kl`.
    threshold : float, optional
        Weights with a log alpha above `threshold` become 0; 3 in Molchanov et al. (2017), section
        5. By default all weights are kept.

    Returns
    -------
    pytree
        Leaves outside of `Weight` nodes are unchanged. `dense`, `conv` and `embedding` take the
        arrays in place of these nodes, without a key.

    Raises
    ------
    TypeError, ValueError
        For the reasons in `neg_kl`, and if `threshold` is not a number.

    Examples
    --------
    >>> import jax.numpy as jnp
    >>> from logunif_kl.jax import nn
    >>> weight = nn.Weight(jnp.array([1.0, 0.1]), jnp.zeros(2))
    >>> print(nn.to_deterministic({"weight": weight}, threshold=3.0))
    {'weight': Array([1., 0.], dtype=float32)}
    """
    weights_of(tree)
    limit = math.inf if threshold is None else check_threshold(threshold)

    def mean(node: Any) -> Any:
        parts = parts_of(node, None)
        return jnp.where(is_noisy(parts.log_alpha(), limit), 0, parts.mean())

    return mapped(mean, tree)


def zero_means(tree: Any, threshold: float = THRESHOLD) -> Any:
    """Set the means with log alpha above a threshold to 0, during training.

    Call it after each step of the optimizer to make the network sparser. The variances stay as they
    are, and later steps may change the means again. The function can be used under `jax.jit`.

    Parameters
    ----------
    tree : pytree
        See `neg_kl`.
    threshold : float
        See `sparsity`.

    Returns
    -------
    pytree
        Of the same structure and types.

    Raises
    ------
    TypeError, ValueError
        For the reasons in `sparsity`.

    See Also
    --------
    prune : weights that remain 0.

    Examples
    --------
    >>> import jax.numpy as jnp
    >>> from logunif_kl.jax import nn
    >>> nn.zero_means(nn.Weight(jnp.array([1.0, 0.1]), jnp.zeros(2))).mean
    Array([1., 0.], dtype=float32)
    """
    weights_of(tree)
    threshold = check_threshold(threshold)

    def zeroed(node: Any) -> Any:
        noisy = is_noisy(node.log_alpha_of_weights(), threshold)
        return replace(node, mean=jax.tree.map(lambda leaf: jnp.where(noisy, 0, leaf), node.mean))

    return mapped(zeroed, tree)


def _matrix(path: str, leaf: Any) -> bool:
    dtype, ndim = getattr(leaf, "dtype", None), getattr(leaf, "ndim", 0)
    return (
        "bias" not in path
        and ndim > 1
        and dtype is not None
        and jnp.issubdtype(dtype, jnp.floating)
    )


def _drawn(node: Any, key: Array) -> Array:
    parts = parts_of(node, key)
    posterior, given = parts
    mean = given.mean
    if not posterior.scaled:
        return sample_weights(parts, key, (), mean.dtype)
    if given.groups > 1:
        raise ValueError(
            f"weights with random scales cannot be drawn in groups, but groups={given.groups} was "
            "given: use another posterior, such as Additive"
        )
    shape = shared_shape("input", mean.shape, given.units)
    means, deviations = parts.scale_moments()
    if posterior.independent:
        key, own = jax.random.split(key)
        mean = sample_weights(parts, own, (), mean.dtype)
    scales = means + deviations * normals(key, (math.prod(shape),), deviations.dtype)
    return (widened(mean) * scales.reshape(shape)).astype(mean.dtype)
