"""One sample of all weights: kept within a context, or as a plain network."""

# mypy: allow-untyped-calls, no-warn-return-any
from __future__ import annotations

import copy
from collections.abc import Iterator
from contextlib import ExitStack, contextmanager
from typing import Any

import torch

from ..arguments import check_generator, check_module, check_shape, shown_name, whole
from ..hooks import copies
from ..layers.dropout import GaussianDropoutA, GaussianDropoutLinear
from ..noise.kept import KeptNoise
from ..noise.normal import StochasticModule, own_generator
from ..predict.sampling import assigned, changing, sampling
from ..weights.models import gaussians
from ..weights.weight import VariationalModule, weights
from .conversion import priors
from .convert import to_deterministic

Tensor = torch.Tensor


@contextmanager
def sampled(model: torch.nn.Module, generator: torch.Generator | None = None) -> Iterator[None]:
    """Keep one sample of all weights of a model, within a ``with`` statement.

    The model computes with the same weights in all calls, for all examples and time steps, in
    training and in evaluation mode. This samples a function: for Thompson sampling, rollouts, and
    recurrent networks. What is kept is the noise, so the weights follow the parameters if an
    optimizer changes them. Of contexts that are open at the same time, the one that began last
    holds, and each may end in any order. As for `sampling`, a context holds in all threads, and
    other modules stay in their mode. For a sample of its own in each thread or asynchronous task,
    use `to_sample`. If the model runs in a checkpoint, call ``backward`` within the context, too:
    afterwards it raises RuntimeError. Code outside of the model that computes with a weight, as in
    ``model.layer.weight.sum()``, computes with the sample; ``detach()`` and ``data`` are the means.
    A tensor that was read before its parameter changed stays the sample of that time: read the
    attribute again.

    Parameters
    ----------
    model : torch.nn.Module
        A model with variational layers or a `SampledModule`.
    generator : torch.Generator, optional
        Draws the noise. By default the generators of the layers draw it, or the global one.

    Raises
    ------
    TypeError
        If `model` is not a module, or `generator` is not a generator.
    ValueError
        If `model` has no such layers, or has `GaussianDropoutA` or `GaussianDropoutLinear`, whose
        noise does not belong to weights.

    See Also
    --------
    to_sample : a plain network with one sample of the weights.
    sampling : new noise in each call.

    Examples
    --------
    >>> import torch
    >>> from logunif_kl.torch import nn
    >>> layer = nn.VariationalLinear(3, 1, posterior=nn.Additive(initial=0.0))
    >>> x = torch.ones(2, 3)
    >>> with nn.sampled(layer):
    ...     first, second = layer(x), layer(x)
    >>> bool((first == second).all()), bool(first[0] == first[1])
    (True, True)
    """
    check_generator(generator)
    gaussians(model)
    keys: dict[tuple[StochasticModule, str], tuple[int, ...]] = {}
    found: list[StochasticModule] = []
    for name, module in model.named_modules():
        check_shape(name, module)
        if isinstance(module, (GaussianDropoutA, GaussianDropoutLinear)):
            raise ValueError(
                f"{shown_name(name)} is a {type(module).__name__}, whose noise does not belong to "
                "weights and cannot be kept: use VariationalLinear with posterior=nn.Correlated()"
            )
        if isinstance(module, StochasticModule):
            found.append(module)
        if isinstance(module, VariationalModule):
            for each in module._lk_weights():
                keys[module, each.name] = tuple([id(own) for own in each.sources(each.name)])
    kept = KeptNoise(keys, generator)
    with sampling(model), ExitStack() as opened:
        # Draw all noise here, so that it does not depend on the order of the calls, and before
        # another thread opens a context, which would draw it.
        with changing():
            opened.enter_context(assigned("_lk_kept", [(module, kept) for module in found]))
            with torch.no_grad():
                _weights(model)
            kept.drawn = True
        yield


@torch.no_grad()
def to_sample(model: torch.nn.Module, generator: torch.Generator | None = None) -> torch.nn.Module:
    """Copy a network and make its layers plain, with one sample of the weights.

    It is `to_deterministic` with sampled weights instead of the means.

    Parameters
    ----------
    model : torch.nn.Module
        A model with variational layers or a `SampledModule`.
    generator : torch.Generator, optional
        As for `sampled`.

    Returns
    -------
    torch.nn.Module
        The copy, in the same mode. Two calls with equal generators give equal networks.

    Raises
    ------
    TypeError, ValueError
        As for `sampled` and `to_deterministic`.

    Examples
    --------
    >>> import torch
    >>> from logunif_kl.torch import nn
    >>> layer = nn.VariationalLinear(3, 1, posterior=nn.Additive(initial=0.0))
    >>> nn.to_sample(layer)
    Linear(in_features=3, out_features=1, bias=True)
    """
    model = whole(check_module(model))
    modules = [module for module in model.modules() if isinstance(module, StochasticModule)]
    generators: dict[int, Any] = {id(each): each for each in map(own_generator, modules)}
    # Draw in the copy, because a context of the model would hold in other threads too.
    result = copy.deepcopy(model, {**copies(model), **generators})
    with sampled(result, generator):
        found = _weights(result)
    others = [each for each in result.modules() if not isinstance(each, VariationalModule)]
    to_deterministic(result, inplace=True)
    # A module without noise keeps the means, also those that it shares with another module.
    held = [id(parameter) for each in others for parameter in each._parameters.values()]
    given: dict[int, Tensor | None] = dict.fromkeys(held)
    for name, own, weight in found:
        plain: Any = result.get_submodule(name)
        parameter = plain._parameters[own]
        before = given.setdefault(id(parameter), weight)
        if before is None or not before.equal(weight):
            # Others share the means: a module without noise, or an embedding, which has none at
            # its `padding_idx`.
            setattr(plain, own, torch.nn.Parameter(weight, parameter.requires_grad))
            continue
        parameter.copy_(weight)
    return result


def _weights(model: torch.nn.Module) -> list[tuple[str, str, Tensor]]:
    """Return (module, name of the weight, sample) for all weights, within `sampled`."""
    names, others = {module: name for name, module in model.named_modules()}, priors(model)
    return [
        (names[each.module], each.name, each.module._lk_sampled(each.name))
        for _, each in weights(model)
        if each.module not in others
    ]
