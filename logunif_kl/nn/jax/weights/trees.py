"""The KL of all weights in a pytree."""

# mypy: allow-untyped-calls
from __future__ import annotations

from collections.abc import Callable, Hashable, Iterator, Mapping
from functools import cache
from typing import Any

import jax
import jax.numpy as jnp

from ...._errors import derives, type_name
from ...penalty import check, check_of, is_exact
from ..priors.penalty import total
from ..priors.proper import ScaleMixturePrior
from .weight import Weight

Array = Any


def neg_kl(tree: Any, *, of: str | None = None, penalty: Any = "exact") -> Any:
    """-KL(q || p) of all weights in a tree from the log-uniform prior: *maximise* it (ELBO sign).

    The result is a sum over all `Weight` nodes: with the posterior `Additive` that of
    ``neg_kl_normal(mean, log_sigma2)``, and with `Multiplicative` that of ``neg_kl(log_alpha)``, as
    in `logunif_kl.jax`. A shared alpha counts once for each weight that uses it. Other leaves, such
    as biases, do not count.

    Parameters
    ----------
    tree : pytree
        Parameters, one `Weight`, or a model that is a pytree, such as an Equinox module. Pass a
        Flax NNX module itself, and not its state, in which Flax writes `Weight` nodes as dicts. In
        the module, store a weight as ``nnx.data(jax.tree.map(nnx.Param, weight))``, because
        Flax does not train bare arrays. `Weight` nodes that share all their NNX variables count
        once, as in ``nnx.state``, and raise if they differ in arrays that are no variables, or in
        the posterior. Use ``nnx.jit`` and ``nnx.grad``, because `jax.jit` and `jax.grad` separate
        shared variables.
        Nodes of bare arrays count at every place where they occur, because `jax.jit` does not tell
        which of its arguments were the same array.
    of : {"weights", "scales"}, optional
        Which KL to return. The default is the KL of the weights for independent noise, and that of
        the scales s_i for `Correlated` (Kingma et al. 2015, section 3.3).
    penalty : str, Fit or Prior, optional
        ``"exact"``, the name of a method in `logunif_kl.methods.METHODS` that has a gradient, or a
        `logunif_kl.fitting.Fit`. Approximations use ``zero_at=inf``. A `Prior`, such as a
        `StudentTPrior`, replaces the log-uniform prior; all posteriors must then be `Additive` or
        `Grouped`.

    Returns
    -------
    jax.Array
        A scalar of float32 or wider. The exact -KL is at most 0, and 0 in the limit alpha = inf.

    Raises
    ------
    ValueError
        If there is no `Weight` in the tree, if `penalty` is unknown, has no gradient or does not
        return -KL of each weight, if the arrays of a `Weight` do not fit its posterior, or if `of`
        does not. With `Correlated` the KL of the weights is infinite (Hron et al. 2017, section 3).
    TypeError
        If the arrays of a `Weight`, or `penalty`, have a wrong type, or if the tree is the State of
        a Flax NNX module with `Weight` nodes.

    See Also
    --------
    kl : the negative of this function, to be added to a loss.
    named_kl : KL of each `Weight`, by name.
    elbo : the bound from -KL and the likelihood of a minibatch.

    Notes
    -----
    Within `jax.shard_map`, compute the KL of sharded weights outside, or keep the weights that
    share a parameter in one shard. Each shard would count such a parameter as its own, and the KL
    of a group is not the sum of that of its parts.

    The second derivatives in the means of a group of zeros, and in a mean of zero by an
    approximation, are 0 here. The exact KL of other weights has its own, 1/sigma^2.

    Examples
    --------
    >>> import jax.numpy as jnp
    >>> from logunif_kl.jax import nn
    >>> params = {
    ...     "hidden": nn.Weight(jnp.ones((2, 3)), jnp.zeros((2, 3))),
    ...     "out": nn.Weight.from_mean(jnp.ones((3, 1)), nn.Multiplicative("layer", initial=0.0)),
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
    >>> print(nn.kl(nn.Weight(jnp.ones(10), jnp.zeros(10))).round(4))
    4.2669
    """
    return -neg_kl(tree, of=of, penalty=penalty)


def named_kl(tree: Any, *, of: str | None = None, penalty: Any = "exact") -> dict[str, Any]:
    """KL(q || p) of each `Weight` in a tree.

    Parameters
    ----------
    tree, of, penalty
        See `neg_kl`.

    Returns
    -------
    dict of str to jax.Array
        KL of each `Weight`, by its path in the tree, such as ``"layers.0.weight"``. If the tree
        itself is a `Weight`, its path is the empty string.

    Examples
    --------
    >>> import jax.numpy as jnp
    >>> from logunif_kl.jax import nn
    >>> layer = {"weight": nn.Weight(jnp.ones(10), jnp.zeros(10)), "bias": jnp.zeros(1)}
    >>> for name, value in nn.named_kl({"layers": [layer]}).items():
    ...     print(name, value.round(4))
    layers.0.weight 4.2669
    """
    return {name: -value for name, value in _each(tree, of, penalty)}


def _each(tree: Any, of: str | None, penalty: Any) -> list[tuple[str, Array]]:
    """Return the path and -KL of each weight. Each has samples of its own from a mixture."""
    found = []
    for i, (name, node) in enumerate(weights_of(tree)):
        own = penalty._of_posterior(i) if isinstance(penalty, ScaleMixturePrior) else penalty
        found.append((name, _neg_kl(node, of, own)))
    return found


def weights_of(tree: Any) -> list[tuple[str, Weight]]:
    """Return each `Weight` with its dotted path. Raise ValueError if the tree has none."""
    known: dict[Hashable, Hashable] = {}
    named: dict[str, Weight] = {}
    for path, node in _flat(tree):
        name = jax.tree_util.keystr(path, simple=True, separator=".")
        identity = _identity(node)
        is_first = identity is None or identity[1] not in known
        if identity is not None and known.setdefault(identity[1], identity) != identity:
            raise ValueError(
                f"the Weight {name!r} shares its variables with another one, but not its arrays or "
                "its posterior, so it is not clear whether they are one weight: make the arrays "
                "variables, too, such as nnx.Variable, and the posteriors equal"
            )
        if is_first:
            if name in named:
                raise ValueError(
                    f"two Weight nodes of the tree have the name {name!r}: use keys without dots"
                )
            named[name] = node
    if not named:
        raise ValueError(
            f"tree is of type {type_name(tree)} and holds no Weight: make its arrays Weight nodes, "
            "as to_variational does"
        )
    return list(named.items())


def mapped(function: Callable[..., Any], tree: Any, *others: Any) -> Any:
    """Replace each `Weight` by ``function(weight, *others)``, and copy all other leaves.

    Variables of Flax NNX that are shared in the tree are shared in the result, also with modules
    that read the variable of a `Weight` without noise, if the function returns a `Weight`.
    """
    done: dict[Hashable, Any] = {}
    given: dict[int, Any] = {}

    def changed(identity: Hashable, node: Any, *rest: Any) -> Any:
        if identity not in done:
            found = function(node, *rest)
            if is_weight(found):
                leaves = map(kept, leaves_of(node), leaves_of(found))
                found = jax.tree.unflatten(jax.tree.structure(found, is_leaf=is_variable), leaves)
            done[identity] = found
        return done[identity]

    def kept(old: Any, new: Any) -> Any:
        if not is_variable(old):
            return new
        if id(old) not in done:
            done[id(old)] = copied(old) if new is old else new
            given[id(old)] = new
        elif given[id(old)] is not new:
            raise ValueError(
                f"two Weight nodes share a variable of shape {old.shape} and not their other "
                "variables, so it cannot change for one alone: give each its own"
            )
        return done[id(old)]

    def replaced(node: Any, *rest: Any) -> Any:
        if is_weight(node):
            identity = _identity(node)
            return function(node, *rest) if identity is None else changed(identity, node, *rest)
        if not is_variable(node):
            return node
        if id(node) not in done:
            done[id(node)] = jax.tree.map(replaced, node, *rest, is_leaf=is_weight)
        return done[id(node)]

    def first(node: Any, *rest: Any) -> None:
        identity = _identity(node) if is_weight(node) else None
        if identity is not None:
            changed(identity, node, *rest)

    # Weights come first, because modules before them may read their variables.
    jax.tree.map(first, tree, *others, is_leaf=is_leaf)
    return jax.tree.map(replaced, tree, *others, is_leaf=is_leaf)


def copied(variable: Any) -> Any:
    return jax.tree.map(lambda leaf: leaf, variable)


def is_weight(node: Any) -> bool:
    return isinstance(node, Weight)


def _flat(tree: Any) -> Iterator[tuple[tuple[Any, ...], Any]]:
    """Yield the path and the node of each weight, those in one variable of Flax NNX once."""
    seen = set()
    for path, node in jax.tree_util.tree_flatten_with_path(tree, is_leaf=is_leaf)[0]:
        if is_weight(node):
            yield path, node
        elif is_variable(node) and id(node) not in seen:
            seen.add(id(node))
            inside = jax.tree_util.tree_flatten_with_path(node, is_leaf=is_weight)[0]
            yield from ((path + rest, each) for rest, each in inside if is_weight(each))


def is_leaf(node: Any) -> bool:
    named = isinstance(node, Mapping) and ("log_sigma2" in node or "log_alpha" in node)
    if named and is_variable(node.get("mean")):
        raise TypeError(
            "a State of a Flax NNX module was given, in which Flax writes Weight nodes as dicts: "
            "pass the module itself, or nnx.merge(graph, state)"
        )
    return is_weight(node) or is_variable(node)


def is_variable(node: Any) -> bool:
    """Return whether a node is a variable of Flax NNX, which several modules can share."""
    kind: Any = type(node)
    return _of_variables(kind)


def is_parameter(variable: Any) -> bool:
    """Return whether a variable of Flax NNX is a parameter, and no statistic or cache."""
    return derives(type(variable), "flax", "Param")


@cache
def _of_variables(kind: Any) -> bool:
    if derives(kind, "flax", "HijaxVariable"):
        raise TypeError(
            "a variable of Flax NNX with hijax=True was given, which is no pytree, so its array "
            "would be lost: make it with hijax=False"
        )
    return derives(kind, "flax", "Variable")


def _identity(node: Weight) -> tuple[Hashable, ...] | None:
    """Return the structure, the variables and the arrays of a node, or None without variables."""
    leaves = leaves_of(node)
    variables = tuple([id(leaf) for leaf in leaves if is_variable(leaf)])
    if not variables:
        return None
    arrays = tuple([id(leaf) for leaf in leaves if not is_variable(leaf)])
    return jax.tree.structure(node, is_leaf=is_variable), variables, arrays


def leaves_of(node: Weight) -> list[Any]:
    """Return the variables and arrays of a node."""
    return jax.tree.leaves(node, is_leaf=is_variable)


def _neg_kl(node: Weight, of: str | None, penalty: Any) -> Array:
    check_of(of, node.posterior)
    what = f"the posterior {node.posterior}"
    check(penalty, node.posterior, what, "use Additive or Grouped")
    return total(penalty, node.posterior.terms(jnp, node._given(), is_exact(penalty)))
