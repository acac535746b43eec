"""The KL of all posteriors in a pytree."""

# mypy: allow-untyped-calls
from __future__ import annotations

from typing import Any

import jax
import jax.numpy as jnp

from ..._errors import type_name
from ..._layers import SILENT, one_of
from ._noise import widened
from ._penalty import of_alpha, of_normal
from ._posterior import Dropout, Normal, correlated, input_units

Array = Any


def neg_kl(tree: Any, *, of: str | None = None, penalty: Any = "exact") -> Any:
    """-KL(q || p) of all weights in a tree from the log-uniform prior: *maximise* it (ELBO sign).

    The sum over the `Normal` and `Dropout` nodes of the tree of ``neg_kl_normal(mu, log_sigma2)``
    and of ``neg_kl(log_alpha)``, functions of `logunif_kl.jax`. An alpha that weights share counts
    once for each of them. Leaves elsewhere in the tree, such as biases, do not count.

    Parameters
    ----------
    tree : pytree
        Parameters, a posterior alone, or a model that is a pytree, such as one of Equinox. A
        posterior in a module of Flax NNX is ``nnx.data(jax.tree.map(nnx.Param, posterior))``: with
        bare arrays in it, it counts, but it is not trained. A node that stands at two places counts
        twice.
    of : {"weights", "scales"}, optional
        Whose KL is meant. By default, whose it is: of the weights under independent noise, and of
        the scales s_i under correlated noise (Kingma et al. 2015, section 3.3).
    penalty : str or Fit, optional
        ``"exact"``, the name of one of `logunif_kl.methods.METHODS` that has a gradient, or a
        `logunif_kl.fitting.Fit`. An approximation keeps its own constant, as for ``zero_at=inf``.

    Returns
    -------
    jax.Array
        One number, of type float32 at least. By the exact form it is at most 0, and 0 in the limit
        of no information, alpha = inf.

    Raises
    ------
    ValueError
        If there is no posterior in the tree, if `of` names what is not there, if there is no such
        `penalty` or it has no gradient, or if the shapes of a posterior do not agree. The KL of the
        weights under correlated noise is infinite, because they lie in a set of measure 0 (Hron et
        al. 2017, section 3).
    TypeError
        If the parameters of a posterior, or `penalty`, are of a wrong type.

    See Also
    --------
    kl : the same with the other sign, to be added to a loss.
    named_kl : of each posterior, by name.

    Notes
    -----
    The KL is that of all the data. `elbo` weighs it against the likelihood of a minibatch.

    References
    ----------
    Hron, Matthews, Ghahramani, "Variational Gaussian Dropout is not Bayesian" (2017).
    Kingma, Salimans, Welling, "Variational Dropout and the Local Reparameterization Trick" (2015).

    Examples
    --------
    >>> import jax.numpy as jnp
    >>> from logunif_kl.jax import nn
    >>> params = {
    ...     "hidden": nn.Normal(jnp.ones((2, 3)), jnp.zeros((2, 3))),
    ...     "out": nn.Dropout.from_mean(jnp.ones((3, 1)), log_alpha=0.0, sharing="layer"),
    ...     "bias": jnp.zeros(3),
    ... }
    >>> print(nn.neg_kl(params).round(4), nn.kl(params).round(4))
    -3.8402 3.8402
    >>> print(f"{nn.neg_kl(params, penalty='molchanov'):.4f}")
    -3.8812
    """
    return jnp.sum(jnp.stack([_neg_kl(node, of, penalty) for _, node in posteriors(tree)]))


def kl(tree: Any, *, of: str | None = None, penalty: Any = "exact") -> Any:
    """KL(q || p), to be *added to a loss*: ``-neg_kl(tree, ...)``.

    Parameters
    ----------
    tree : pytree
        As for `neg_kl`.
    of : {"weights", "scales"}, optional
        As for `neg_kl`.
    penalty : str or Fit, optional
        As for `neg_kl`.

    Returns
    -------
    jax.Array
        One number, of type float32 at least.

    Raises
    ------
    TypeError, ValueError
        As for `neg_kl`.

    Examples
    --------
    >>> import jax.numpy as jnp
    >>> from logunif_kl.jax import nn
    >>> print(nn.kl(nn.Normal(jnp.ones(10), jnp.zeros(10))).round(4))
    4.2669
    """
    return -neg_kl(tree, of=of, penalty=penalty)


def named_kl(tree: Any, *, of: str | None = None, penalty: Any = "exact") -> dict[str, Any]:
    """KL(q || p) of each posterior in a tree.

    Parameters
    ----------
    tree : pytree
        As for `neg_kl`.
    of : {"weights", "scales"}, optional
        As for `neg_kl`.
    penalty : str or Fit, optional
        As for `neg_kl`.

    Returns
    -------
    dict
        The place of each posterior in the tree, joined by dots, with its KL: one number of type
        float32 at least. The place of a tree that is a posterior is the empty string.

    Raises
    ------
    TypeError, ValueError
        As for `neg_kl`.

    Examples
    --------
    >>> import jax.numpy as jnp
    >>> from logunif_kl.jax import nn
    >>> layer = {"weight": nn.Normal(jnp.ones(10), jnp.zeros(10)), "bias": jnp.zeros(1)}
    >>> for name, value in nn.named_kl({"layers": [layer]}).items():
    ...     print(name, value.round(4))
    layers.0.weight 4.2669
    """
    return {
        jax.tree_util.keystr(path, simple=True, separator="."): -_neg_kl(node, of, penalty)
        for path, node in posteriors(tree)
    }


def posteriors(tree: Any) -> list[tuple[Any, Normal | Dropout]]:
    """Return the posteriors in a tree, each with its path."""
    found = jax.tree_util.tree_flatten_with_path(tree, is_leaf=is_posterior)[0]
    posteriors = [(path, node) for path, node in found if is_posterior(node)]
    if not posteriors:
        raise ValueError(
            f"tree is of type {type_name(tree)} and holds no posterior: make weights Normal or "
            "Dropout nodes"
        )
    return posteriors


def is_posterior(node: Any) -> bool:
    return isinstance(node, (Normal, Dropout))


def _neg_kl(node: Normal | Dropout, of: str | None, penalty: Any) -> Array:
    mean, spread = node._checked()
    _check_of(node, of)
    if isinstance(node, Normal):
        # By the exact form a pruned weight has none; by others it may have an infinite one.
        pruned = (mean == 0) & (spread <= jnp.asarray(SILENT, spread.dtype))
        mean, spread = jnp.where(pruned, 1, mean), jnp.where(pruned, 0, spread)
        found = of_normal(penalty)(widened(mean), widened(spread))
        return jnp.where(pruned, 0, found).sum()
    counted = input_units(node) if correlated(node) else mean.size
    return counted // max(spread.size, 1) * of_alpha(penalty)(widened(spread)).sum()


def _check_of(node: Normal | Dropout, of: str | None) -> None:
    if of is None:
        return
    one_of("of", of, ("weights", "scales"))
    if correlated(node) and of == "weights":
        raise ValueError(
            "the KL of weights under correlated noise is infinite (Hron et al. 2017, section 3): "
            "pass of='scales'"
        )
    if not correlated(node) and of == "scales":
        raise ValueError(
            "there are no scales under independent noise: pass of='weights', or noise='correlated' "
            "to Dropout"
        )
