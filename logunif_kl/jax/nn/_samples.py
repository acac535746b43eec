"""Make arrays of any tree Gaussian, draw them, and make them plain again."""

# mypy: allow-untyped-calls
from __future__ import annotations

import math
from collections.abc import Callable
from dataclasses import fields, replace
from itertools import count
from typing import Any

import jax
import jax.numpy as jnp

from ..._errors import shown, type_name
from ..._layers import THRESHOLD, check_threshold, is_noisy
from ...nn.posteriors import shared_shape
from ._base import units_of
from ._layer import sample_weights
from ._noise import check_key, normals, widened
from ._posterior import Normal
from ._trees import is_leaf, is_posterior, is_variable, mapped, posteriors

Array = Any
Where = Callable[[str, Any], bool]


def to_variational(tree: Any, where: Where | None = None, *, log_sigma2: float = -10.0) -> Any:
    """Make arrays in a tree of parameters Gaussian: replace them by `Normal` nodes.

    Call the model with ``sample(tree, key)`` in training, and with ``to_deterministic(tree)`` in
    evaluation. This serves models of any library whose parameters are a pytree, such as those of
    Flax and Equinox, with all their modules. The weights are drawn once in a call, for all
    examples. Layers such as `dense` have gradients of smaller variance, because they draw outputs.

    Parameters
    ----------
    tree : pytree
        The parameters of a model. Posteriors in it stay as they are.
    where : callable, optional
        ``where(path, leaf)`` is true for the arrays to replace. `path` is a dotted path, such as
        ``"layers.0.weight"``. By default all floating-point arrays of two dimensions or more,
        except those with "bias" in their path.
    log_sigma2 : float, optional
        The logarithm of the initial variances.

    Returns
    -------
    pytree
        The same tree with `Normal` nodes, whose means are the arrays. Variables of Flax NNX that
        are shared in the tree are shared in the result.

    Raises
    ------
    TypeError
        If `where` cannot be called.
    ValueError
        If there is no such array, or `log_sigma2` is not finite.

    See Also
    --------
    sample, to_deterministic : trees of plain arrays again.

    Examples
    --------
    >>> import jax
    >>> import jax.numpy as jnp
    >>> from logunif_kl.jax import nn
    >>> params = {"kernel": jnp.ones((3, 2)), "bias": jnp.zeros(2)}
    >>> model = lambda params, x: x @ params["kernel"] + params["bias"]
    >>> params = nn.to_variational(params, log_sigma2=-2.0)
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

    def replaced(path: Any, leaf: Any) -> Any:
        nonlocal made
        if is_posterior(leaf):
            return leaf
        if is_variable(leaf):
            if id(leaf) not in done:
                done[id(leaf)] = jax.tree_util.tree_map_with_path(
                    lambda rest, each: replaced(path + rest, each), leaf, is_leaf=is_posterior
                )
            return done[id(leaf)]
        if not chosen(jax.tree_util.keystr(path, simple=True, separator="."), leaf):
            return leaf
        made = True
        return Normal.from_mean(leaf, log_sigma2)

    found = jax.tree_util.tree_map_with_path(replaced, tree, is_leaf=is_leaf)
    if not made:
        if any(map(is_posterior, jax.tree.leaves(tree, is_leaf=is_posterior))):
            raise ValueError(
                "tree holds posteriors and no other array to make Gaussian: it is variational "
                "already"
            )
        raise ValueError(
            f"tree is of type {type_name(tree)} and holds no array to make Gaussian: pass the "
            "parameters of a model, or another function as where"
        )
    return found


def sample(tree: Any, key: Any) -> Any:
    """Draw all posteriors in a tree, and return the tree with arrays in their place.

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
        Arrays of the types of the means. Leaves outside of posteriors are unchanged.

    Raises
    ------
    TypeError
        If `key` is not a key.
    ValueError
        If there is no posterior in the tree, if `key` holds several keys, or if a posterior with
        random scales has several groups of channels.

    Examples
    --------
    >>> import jax
    >>> import jax.numpy as jnp
    >>> from logunif_kl.jax import nn
    >>> params = {"weight": nn.Normal(jnp.ones(3), jnp.zeros(3)), "bias": jnp.zeros(1)}
    >>> drawn = jax.vmap(nn.sample, (None, 0))(params, jax.random.split(jax.random.key(0), 10_000))
    >>> print(drawn["weight"].mean().round(1), drawn["weight"].std().round(1))
    1.0 1.0
    """
    check_key(key)
    posteriors(tree)
    numbers = count()

    return mapped(lambda node: _drawn(node, jax.random.fold_in(key, next(numbers))), tree)


def to_deterministic(tree: Any, threshold: float | None = None) -> Any:
    """Return a tree with the means in place of the posteriors.

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
        Leaves outside of posteriors are unchanged. `dense`, `conv` and `embedding` take the arrays
        in place of posteriors, without a key.

    Raises
    ------
    TypeError, ValueError
        For the reasons in `neg_kl`, and if `threshold` is not a number.

    Examples
    --------
    >>> import jax.numpy as jnp
    >>> from logunif_kl.jax import nn
    >>> weight = nn.Normal(jnp.array([1.0, 0.1]), jnp.zeros(2))
    >>> print(nn.to_deterministic({"weight": weight}, threshold=3.0))
    {'weight': Array([1., 0.], dtype=float32)}
    """
    posteriors(tree)
    limit = math.inf if threshold is None else check_threshold(threshold)

    def mean(node: Any) -> Any:
        noisy = is_noisy(node.log_alpha_of_weights(), limit)
        return jnp.where(noisy, 0, node._mean())

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
    >>> nn.zero_means(nn.Normal(jnp.array([1.0, 0.1]), jnp.zeros(2))).mu
    Array([1., 0.], dtype=float32)
    """
    posteriors(tree)
    threshold = check_threshold(threshold)

    def zeroed(node: Any) -> Any:
        noisy = is_noisy(node.log_alpha_of_weights(), threshold)
        name = fields(node)[0].name
        means = jax.tree.map(lambda leaf: jnp.where(noisy, 0, leaf), getattr(node, name))
        return replace(node, **{name: means})

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
    mean, posterior = node._mean(), node._posterior
    if not posterior.scaled:
        return sample_weights(node, key, (), mean.dtype)
    if node.groups > 1:
        raise ValueError(
            f"the posterior has random scales in groups={node.groups}, for which no weights can be "
            "drawn: use Normal"
        )
    shape = shared_shape("input", mean.shape, units_of(mean, "input", node.input_axis, -1))
    means, deviations = node._scale_moments()
    if posterior.independent:
        key, own = jax.random.split(key)
        mean = sample_weights(node._weights(), own, (), mean.dtype)
    scales = means + deviations * normals(key, (math.prod(shape),), deviations.dtype)
    return (widened(mean) * scales.reshape(shape)).astype(mean.dtype)
