"""The KL of all posteriors in a pytree."""

# mypy: allow-untyped-calls
from __future__ import annotations

from collections.abc import Callable, Hashable, Iterator
from dataclasses import fields
from functools import cache
from typing import Any

import jax
import jax.numpy as jnp

from ..._errors import derives, type_name
from ...nn.penalty import check, check_of, is_exact
from ._base import Posterior
from ._penalty import total
from ._priors import ScaleMixturePrior

Array = Any


def neg_kl(tree: Any, *, of: str | None = None, penalty: Any = "exact") -> Any:
    """-KL(q || p) of all weights in a tree from the log-uniform prior: *maximise* it (ELBO sign).

    The result is the sum of ``neg_kl_normal(mu, log_sigma2)`` over all `Normal` nodes and of
    ``neg_kl(log_alpha)`` over all `Dropout` nodes, as in `logunif_kl.jax`. A shared alpha counts
    once for each weight that uses it. Other leaves, such as biases, do not count.

    Parameters
    ----------
    tree : pytree
        Parameters, one posterior, or a model that is a pytree, such as an Equinox module. In a
        Flax NNX module, store a posterior as ``nnx.data(jax.tree.map(nnx.Param, posterior))``,
        because Flax does not train bare arrays. Posteriors that share all their NNX variables
        count once, as in ``nnx.state``. Use ``nnx.jit`` and ``nnx.grad``, because `jax.jit` and
        `jax.grad` separate shared variables. Posteriors of bare arrays count at every place where
        they occur, because `jax.jit` does not tell which of its arguments were the same array.
    of : {"weights", "scales"}, optional
        Which KL to return. The default is the KL of the weights for independent noise, and that of
        the scales s_i for correlated noise (Kingma et al. 2015, section 3.3).
    penalty : str, Fit or Prior, optional
        ``"exact"``, the name of a method in `logunif_kl.methods.METHODS` that has a gradient, or a
        `logunif_kl.fitting.Fit`. Approximations use ``zero_at=inf``. A `Prior`, such as a
        `StudentTPrior`, replaces the log-uniform prior; all posteriors must then be `Normal`.

    Returns
    -------
    jax.Array
        A scalar of float32 or wider. The exact -KL is at most 0, and 0 in the limit alpha = inf.

    Raises
    ------
    ValueError
        If there is no posterior in the tree, if `penalty` is unknown, has no gradient or does not
        return -KL of each weight, if the shapes of a posterior do not agree, or if `of` does not
        fit the noise. With correlated noise the KL of the weights is infinite (Hron et al. 2017,
        section 3).
    TypeError
        If the parameters of a posterior, or `penalty`, have a wrong type.

    See Also
    --------
    kl : the negative of this function, to be added to a loss.
    named_kl : KL of each posterior, by name.
    elbo : the bound from -KL and the likelihood of a minibatch.

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
    return jnp.sum(jnp.stack([value for _, value in _each(tree, of, penalty)]))


def kl(tree: Any, *, of: str | None = None, penalty: Any = "exact") -> Any:
    """KL(q || p), to be *added to a loss*: ``-neg_kl(tree, ...)``.

    Parameters
    ----------
    tree, of, penalty
        See `neg_kl`.

    Returns
    -------
    jax.Array
        A scalar of float32 or wider.

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
    tree, of, penalty
        See `neg_kl`.

    Returns
    -------
    dict of str to jax.Array
        KL of each posterior, by its path in the tree, such as ``"layers.0.weight"``. If the tree
        itself is a posterior, its path is the empty string.

    Examples
    --------
    >>> import jax.numpy as jnp
    >>> from logunif_kl.jax import nn
    >>> layer = {"weight": nn.Normal(jnp.ones(10), jnp.zeros(10)), "bias": jnp.zeros(1)}
    >>> for name, value in nn.named_kl({"layers": [layer]}).items():
    ...     print(name, value.round(4))
    layers.0.weight 4.2669
    """
    return {name: -value for name, value in _each(tree, of, penalty)}


def _each(tree: Any, of: str | None, penalty: Any) -> list[tuple[str, Array]]:
    """Return the path and -KL of each posterior. Each has samples of its own from a mixture."""
    found = []
    for i, (name, node) in enumerate(posteriors(tree)):
        own = penalty._of_posterior(i) if isinstance(penalty, ScaleMixturePrior) else penalty
        found.append((name, _neg_kl(node, of, own)))
    return found


def posteriors(tree: Any) -> list[tuple[str, Any]]:
    """Return each posterior with its dotted path. Raise ValueError if the tree has no posterior."""
    seen = set()
    named = []
    for path, node in _flat(tree):
        identity = _identity(node)
        if identity is None or identity not in seen:
            seen.add(identity)
            named.append((jax.tree_util.keystr(path, simple=True, separator="."), node))
    if not named:
        raise ValueError(
            f"tree is of type {type_name(tree)} and holds no posterior: make weights Normal or "
            "Dropout nodes, as to_variational does"
        )
    return named


def mapped(function: Callable[..., Any], tree: Any, *others: Any) -> Any:
    """Replace each posterior by ``function(posterior, *others)``, and copy all other leaves.

    Variables of Flax NNX that are shared in the tree are shared in the result.
    """
    done: dict[Hashable, Any] = {}

    def replaced(node: Any, *rest: Any) -> Any:
        if is_posterior(node):
            identity = _identity(node)
        elif is_variable(node):
            identity = id(node)
        else:
            return node
        if identity in done:
            return done[identity]
        if is_posterior(node):
            found = function(node, *rest)
        else:
            found = jax.tree.map(replaced, node, *rest, is_leaf=is_posterior)
        if identity is not None:
            done[identity] = found
        return found

    return jax.tree.map(replaced, tree, *others, is_leaf=is_leaf)


def is_posterior(node: Any) -> bool:
    return isinstance(node, Posterior)


def _flat(tree: Any) -> Iterator[tuple[tuple[Any, ...], Any]]:
    """Yield the path and the node of each posterior, those in one variable of Flax NNX once."""
    seen = set()
    for path, node in jax.tree_util.tree_flatten_with_path(tree, is_leaf=is_leaf)[0]:
        if is_posterior(node):
            yield path, node
        elif is_variable(node) and id(node) not in seen:
            seen.add(id(node))
            inside = jax.tree_util.tree_flatten_with_path(node, is_leaf=is_posterior)[0]
            yield from ((path + rest, each) for rest, each in inside if is_posterior(each))


def is_leaf(node: Any) -> bool:
    return is_posterior(node) or is_variable(node)


def is_variable(node: Any) -> bool:
    """Return whether a node is a variable of Flax NNX, which several modules can share."""
    kind: Any = type(node)
    return _of_variables(kind)


@cache
def _of_variables(kind: Any) -> bool:
    return derives(kind, "flax", "Variable")


def _identity(node: Posterior) -> Hashable:
    """Return what two posteriors with the same variables have in common, or None for arrays."""
    found: list[Any] = [type(node)]
    for each in fields(node):  # type: ignore[arg-type]
        value = getattr(node, each.name)
        if each.metadata.get("static"):
            found.append(value)
        elif is_variable(value):
            found.append(id(value))
        else:
            return None
    return tuple(found)


def _neg_kl(node: Posterior, of: str | None, penalty: Any) -> Array:
    check_of(of, node._posterior)
    check(penalty, node._posterior, f"a {type(node).__name__} posterior", "use Normal")
    return total(penalty, node._terms(is_exact(penalty)))
