"""Log alpha of a tree, how many weights a threshold keeps, and the tree without the others."""

# mypy: allow-untyped-calls
from __future__ import annotations

from collections.abc import Callable, Sequence
from dataclasses import replace
from typing import Any

import jax
import jax.numpy as jnp

from ..._errors import shown
from ..._layers import (
    SILENT,
    THRESHOLD,
    Sparsity,
    ThresholdCurve,
    check_measured,
    check_threshold,
    check_thresholds,
)
from ._posterior import Dropout, Normal
from ._trees import is_posterior, posteriors

Array = Any


def log_alpha(tree: Any) -> dict[str, Any]:
    """Compute log alpha of every weight, by the place of the posterior in a tree.

    Parameters
    ----------
    tree : pytree
        As for `neg_kl`.

    Returns
    -------
    dict of str to jax.Array
        The place of each posterior, joined by dots, with ``log_alpha_of_weights()``, of the shape
        of the weights; inf where the mean is 0.

    Raises
    ------
    TypeError, ValueError
        As for `neg_kl`.

    Examples
    --------
    >>> import jax.numpy as jnp
    >>> from logunif_kl.jax import nn
    >>> nn.log_alpha({"weight": nn.Normal(jnp.array([1.0, 0.0]), jnp.zeros(2))})
    {'weight': Array([ 0., inf], dtype=float32)}
    """
    return {name: node.log_alpha_of_weights() for name, node in _named(tree)}


def sparsity(tree: Any, threshold: float = THRESHOLD) -> Sparsity:
    """Count the weights that a threshold on log alpha keeps, by posterior and in all.

    A weight is kept if its mean is not 0 and its log alpha is not above the threshold: those that
    ``prune(tree, threshold)`` leaves other than 0. It counts arrays, so it is not for use under
    `jax.jit`.

    Parameters
    ----------
    tree : pytree
        As for `neg_kl`. Leaves that are no posterior, such as biases, do not count.
    threshold : float
        3 is that of Molchanov et al. (2017), section 5. With inf only zeros are pruned.

    Returns
    -------
    Sparsity
        With ``kept``, ``weights``, ``pruned`` (a share), ``compression`` (weights/kept), and
        ``layers``, which holds the same by the place in the tree.

    Raises
    ------
    TypeError
        As for `neg_kl`, and if `threshold` is no number.
    ValueError
        As for `neg_kl`, and if `threshold` is NaN.

    References
    ----------
    Molchanov, Ashukha, Vetrov, "Variational Dropout Sparsifies Deep Neural Networks" (2017).

    Examples
    --------
    >>> import jax.numpy as jnp
    >>> from logunif_kl.jax import nn
    >>> found = nn.sparsity({"weight": nn.Normal(jnp.array([1.0, 0.1, 0.0]), jnp.zeros(3))})
    >>> found.kept, found.weights, found.compression
    (1, 3, 3.0)
    """
    threshold = check_threshold(threshold)
    return Sparsity.of(
        {
            name: Sparsity(int(_kept(node, threshold).sum()), int(node._mean().size))
            for name, node in _named(tree)
        }
    )


def prune(tree: Any, threshold: float = THRESHOLD, *, like: Any = None) -> Any:
    """Set the weights with log alpha above a threshold to 0, without variance.

    The means become 0. So do the variances of `Normal`, by ``log_sigma2 = -1e4``; those of
    `Dropout` are alpha times 0. Such weights have no noise, and those of `Normal` no KL. Weights
    that share an alpha (``sharing="input"`` or ``"output"``, a scale for each unit or channel as of
    Louizos et al. 2017) are pruned together, as a unit. It may be used under `jax.jit`.

    Parameters
    ----------
    tree : pytree
        As for `neg_kl`.
    threshold : float
        3 is that of Molchanov et al. (2017), section 5. With inf only zeros are pruned.
    like : pytree, optional
        A pruned tree of the same structure: weights that are 0 in it become 0 too, whatever their
        alpha. Steps of an optimizer would bring pruned weights back, so in further training follow
        each of them by ``prune(tree, inf, like=pruned)``.

    Returns
    -------
    pytree
        Of the same structure and types. Leaves that are no posterior are those of `tree`.

    Raises
    ------
    TypeError
        As for `neg_kl`, and if `threshold` is no number.
    ValueError
        As for `neg_kl`, if `threshold` is NaN, or if `like` is of another structure.

    References
    ----------
    Louizos, Ullrich, Welling, "Bayesian Compression for Deep Learning" (2017).
    Molchanov, Ashukha, Vetrov, "Variational Dropout Sparsifies Deep Neural Networks" (2017).

    Examples
    --------
    >>> import jax.numpy as jnp
    >>> from logunif_kl.jax import nn
    >>> nn.prune({"weight": nn.Normal(jnp.array([1.0, 0.1]), jnp.zeros(2))})["weight"].mu
    Array([1., 0.], dtype=float32)
    """
    threshold = check_threshold(threshold)
    posteriors(tree)
    if like is None:
        return jax.tree.map(
            lambda node: _pruned(node, _kept(node, threshold)) if is_posterior(node) else node,
            tree,
            is_leaf=is_posterior,
        )
    structures: list[Any] = [jax.tree.structure(each) for each in (like, tree)]
    if structures[0] != structures[1]:
        raise ValueError(
            "like is of another structure than tree: pass what prune returned for the same model"
        )

    for (name, node), (_, other) in zip(_named(tree), _named(like), strict=True):
        if node._mean().shape != other._mean().shape:
            raise ValueError(
                f"like has weights of shape {other._mean().shape} at {name!r}, where tree has "
                f"{node._mean().shape}: pass what prune returned for the same model"
            )

    def both(node: Any, other: Any) -> Any:
        if not is_posterior(node):
            return node
        return _pruned(node, _kept(node, threshold) & (other._mean() != 0))

    return jax.tree.map(both, tree, like, is_leaf=is_posterior)


def threshold_curve(
    tree: Any, measure: Callable[[Any], Any], thresholds: Sequence[float] | None = None
) -> ThresholdCurve:
    """Measure a loss of the pruned tree at several thresholds, to choose one.

    The loss is to be of examples that the model was not trained on, and is not tested on.

    Parameters
    ----------
    tree : pytree
        As for `neg_kl`.
    measure : callable
        ``measure(pruned)`` returns a number, the lower the better, such as the error on a
        validation set. ``pruned`` is ``prune(tree, threshold)``.
    thresholds : sequence of float, optional
        On log alpha; by default from -4 to 8 in steps of 0.5.

    Returns
    -------
    ThresholdCurve
        With ``choose(tolerance)`` and ``plot(path)``.

    Raises
    ------
    TypeError
        As for `sparsity`; if `measure` cannot be called or returns no number, or `thresholds` is no
        sequence of numbers.
    ValueError
        As for `sparsity`; if `thresholds` is empty or holds NaN.

    Examples
    --------
    >>> import jax.numpy as jnp
    >>> from logunif_kl.jax import nn
    >>> weight = nn.Normal(jnp.array([[1.0], [0.5], [0.1]]), jnp.zeros((3, 1)))
    >>> x = jnp.array([1.0, 2.0, 3.0])
    >>> curve = nn.threshold_curve(weight, lambda w: abs(nn.dense(x, w)[0] - 2), [-1.0, 3.0, 6.0])
    >>> [each.kept for each in curve.sparsities], curve.choose()
    ([0, 2, 3], 3.0)
    """
    if not callable(measure):
        raise TypeError(
            f"measure must be a function of the pruned tree, but {shown(measure)} was given: pass "
            "one that returns a loss"
        )
    found = check_thresholds(thresholds)
    losses = tuple(check_measured(measure(prune(tree, threshold))) for threshold in found)
    return ThresholdCurve(found, losses, tuple(sparsity(tree, each) for each in found))


def _named(tree: Any) -> list[tuple[str, Normal | Dropout]]:
    return [
        (jax.tree_util.keystr(path, simple=True, separator="."), node)
        for path, node in posteriors(tree)
    ]


def _kept(node: Normal | Dropout, threshold: float) -> Array:
    return (node._mean() != 0) & ~(node.log_alpha_of_weights() > threshold)


def _pruned(node: Normal | Dropout, kept: Array) -> Normal | Dropout:
    """Set the other weights to 0; leaves remain of their type, such as ``flax.nnx.Param``."""

    def zero(leaf: Any) -> Any:
        return jnp.where(kept, leaf, jnp.zeros((), leaf.dtype))

    def silent(leaf: Any) -> Any:
        return jnp.where(kept, leaf, jnp.full((), SILENT, leaf.dtype))

    if isinstance(node, Dropout):
        return replace(node, theta=jax.tree.map(zero, node.theta))
    return Normal(jax.tree.map(zero, node.mu), jax.tree.map(silent, node.log_sigma2))
