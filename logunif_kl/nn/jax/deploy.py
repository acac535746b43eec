"""Log alpha of the weights in a tree, their sparsity at a threshold, and pruning."""

# mypy: allow-untyped-calls
from __future__ import annotations

import math
from collections.abc import Callable, Sequence
from dataclasses import replace
from typing import Any

import jax
import jax.numpy as jnp
import numpy as np

from ..._errors import shown
from ...methods._progress import progress_bar
from ..sparsity import SILENT, THRESHOLD, Sparsity, check_threshold, is_noisy, threshold_that_keeps
from ..terms import summed
from ..threshold_curve import ThresholdCurve, check_measured, check_thresholds
from .weights.trees import mapped, weights_of
from .weights.weight import parts_of

Array = Any


def log_alpha(tree: Any) -> dict[str, Any]:
    """Compute log alpha of every weight in a tree.

    Parameters
    ----------
    tree : pytree
        See `neg_kl`.

    Returns
    -------
    dict of str to jax.Array
        ``log_alpha_of_weights()`` of each `Weight`, by its path in the tree. Log alpha is inf
        where the mean is 0.

    Examples
    --------
    >>> import jax.numpy as jnp
    >>> from logunif_kl.jax import nn
    >>> nn.log_alpha({"weight": nn.Weight(jnp.array([1.0, 0.0]), jnp.zeros(2))})
    {'weight': Array([ 0., inf], dtype=float32)}
    """
    return {name: node.log_alpha_of_weights() for name, node in weights_of(tree)}


def sparsity(tree: Any, threshold: float = THRESHOLD) -> Sparsity:
    """Count the weights that a threshold on log alpha keeps, in total and by `Weight`.

    A weight is kept if its mean is not 0 and its log alpha is not above the threshold. The function
    returns Python numbers, so it cannot be used under `jax.jit`.

    Parameters
    ----------
    tree : pytree
        See `neg_kl`.
    threshold : float
        The threshold on log alpha, 3 in Molchanov et al. (2017), section 5. With inf only weights
        of mean 0 are pruned.

    Returns
    -------
    Sparsity
        The counts ``kept`` and ``weights``, the fraction ``pruned`` and the ratio ``compression``.
        ``layers`` has the same for each `Weight`, by its path in the tree.

    Raises
    ------
    TypeError, ValueError
        For the reasons in `neg_kl`, and if `threshold` is not a number.

    Examples
    --------
    >>> import jax.numpy as jnp
    >>> from logunif_kl.jax import nn
    >>> found = nn.sparsity({"weight": nn.Weight(jnp.array([1.0, 0.1, 0.0]), jnp.zeros(3))})
    >>> found.kept, found.weights, found.compression
    (1, 3, 3.0)
    """
    threshold = check_threshold(threshold)
    kept = {name: _kept(node, threshold) for name, node in weights_of(tree)}
    return Sparsity.of({name: Sparsity(int(x.sum()), x.size) for name, x in kept.items()})


def prune(tree: Any, threshold: float = THRESHOLD, *, like: Any = None) -> Any:
    """Set the means and the variances of weights to 0 if log alpha is above a threshold.

    ``log_sigma2`` becomes -9984, which makes the variance and the KL 0. With ``log_alpha``, the
    variance is 0 because the mean is 0, but `neg_kl` still counts these weights: PyTorch's
    ``prune``, which has masks, leaves them out. Weights that share an alpha, because ``sharing`` is
    ``"input"`` or ``"output"``, are pruned together, like the units in Louizos, Ullrich, Welling,
    "Bayesian Compression for Deep Learning" (2017). The function can be used under `jax.jit`.

    Parameters
    ----------
    tree : pytree
        See `neg_kl`.
    threshold : float
        See `sparsity`.
    like : pytree, optional
        A pruned tree of the same structure. Weights that are 0 in `like` become 0. An optimizer
        would change pruned weights again, so call ``prune(tree, inf, like=pruned)`` after each step
        of further training.

    Returns
    -------
    pytree
        Of the same structure and types. Leaves outside of `Weight` nodes are unchanged.

    Raises
    ------
    TypeError, ValueError
        For the reasons in `sparsity`, and if `like` has another structure.

    Examples
    --------
    >>> import jax.numpy as jnp
    >>> from logunif_kl.jax import nn
    >>> nn.prune({"weight": nn.Weight(jnp.array([1.0, 0.1]), jnp.zeros(2))})["weight"].mean
    Array([1., 0.], dtype=float32)
    """
    threshold = check_threshold(threshold)
    like = tree if like is None else like
    structure: Any = jax.tree.structure(tree)
    if jax.tree.structure(like) != structure:
        raise ValueError(
            "the structures of tree and like differ: for like, pass the tree that prune returned"
        )
    for (name, node), (_, other) in zip(weights_of(tree), weights_of(like), strict=True):
        shape, wanted = (parts_of(each, None).mean().shape for each in (other, node))
        if shape != wanted:
            raise ValueError(
                f"like has weights of shape {shape} at {name!r}, where tree has {wanted}: pass "
                "what prune returned for the same model"
            )

    def both(node: Any, other: Any) -> Any:
        return _pruned(node, _kept(node, threshold) & (parts_of(other, None).mean() != 0))

    return mapped(both, tree, like)


def threshold_curve(
    tree: Any,
    measure: Callable[[Any], Any],
    thresholds: Sequence[float] | None = None,
    *,
    progress: bool = False,
) -> ThresholdCurve:
    """Measure the loss of the tree pruned at each of several thresholds, to choose a threshold.

    Measure the loss on a validation set, not on the examples for training or for the final test.

    Parameters
    ----------
    tree : pytree
        See `neg_kl`.
    measure : callable
        ``measure(prune(tree, threshold))`` returns the loss, a number.
    thresholds : sequence of float, optional
        Thresholds on log alpha. The default is -4 to 8 in steps of 0.5.
    progress : bool
        Show a progress bar on standard error, if it is a terminal and the call takes longer than
        two seconds. This needs the package rich.

    Returns
    -------
    ThresholdCurve
        The losses. Its methods are ``choose(tolerance)`` and ``plot(path)``.

    Raises
    ------
    TypeError
        For the reasons in `sparsity`, if `measure` is not a function that returns a number, or if
        `thresholds` is not a sequence of numbers.
    ValueError
        For the reasons in `sparsity`, and if `thresholds` is empty or holds NaN.

    Examples
    --------
    >>> import jax.numpy as jnp
    >>> from logunif_kl.jax import nn
    >>> weight = nn.Weight(jnp.array([[1.0], [0.5], [0.1]]), jnp.zeros((3, 1)))
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
    losses, counts = [], []
    with progress_bar("thresholds", len(found), progress) as advance:
        for threshold in found:
            losses.append(check_measured(measure(prune(tree, threshold))))
            counts.append(sparsity(tree, threshold))
            advance(1)
    return ThresholdCurve(found, tuple(losses), tuple(counts))


def density_threshold(tree: Any, density: float) -> float:
    """Return the threshold on log alpha that keeps a given share of the weights.

    With it `prune`, `sparsity` and `to_deterministic` keep that share, or less if several weights
    have the same log alpha. The function returns a Python number, so it cannot be used under
    `jax.jit`.

    Parameters
    ----------
    tree : pytree
        See `neg_kl`.
    density : float
        The share of the weights to keep, from 0 to 1. Weights that are 0 are never kept.

    Returns
    -------
    float
        -inf if no weight can be kept.

    Raises
    ------
    TypeError, ValueError
        For the reasons in `neg_kl`, if `density` is not a number from 0 to 1, or if a weight is
        NaN.

    Examples
    --------
    >>> import jax.numpy as jnp
    >>> from logunif_kl.jax import nn
    >>> weight = nn.Weight(jnp.array([1.0, 0.1, 0.5, 0.0]), jnp.zeros(4))  # 0, 4.6, 1.4, inf
    >>> threshold = nn.density_threshold(weight, 0.5)
    >>> print(f"{threshold:.4f}")
    1.3863
    >>> nn.sparsity(weight, threshold).kept
    2
    """
    parts = [parts_of(node, None) for _, node in weights_of(tree)]
    each = [np.where(np.asarray(x.mean()) == 0, math.inf, np.asarray(x.log_alpha())) for x in parts]
    return threshold_that_keeps(density, np.concatenate([x.astype(float).ravel() for x in each]))


def _kept(node: Any, threshold: float) -> Array:
    parts = parts_of(node, None)
    return (parts.mean() != 0) & ~is_noisy(parts.log_alpha(), threshold)


def _pruned(node: Any, kept: Array) -> Any:
    """Set weights that are not kept to 0. A leaf keeps its type, such as ``flax.nnx.Param``.

    A group or a scale is silent if none of its weights is kept.
    """
    posterior = node.posterior
    of_units = posterior.grouped or posterior.scaled

    def changed(leaves: Any, value: float) -> Any:
        def masked(leaf: Any) -> Array:
            mask = kept
            if of_units:
                every = (1,) * (kept.ndim - leaf.ndim) + leaf.shape
                mask = (summed(kept, every) > 0).reshape(leaf.shape)
            return jnp.where(mask, leaf, jnp.full((), value, leaf.dtype))

        return jax.tree.map(masked, leaves)

    silent = {"mean": 0.0}
    if not posterior.relative:
        silent |= {each: 0.0 if each == "scale" else SILENT for each in posterior.parameters}
    return replace(node, **{each: changed(getattr(node, each), x) for each, x in silent.items()})
