"""Activation checkpointing of layers that draw their noise from generators."""

# mypy: allow-untyped-calls, no-warn-return-any
from __future__ import annotations

from collections.abc import Callable, Iterator
from contextlib import AbstractContextManager, contextmanager
from typing import Any

import torch

from ..arguments import check_module
from ..noise.normal import own_generator

States = dict[torch.Generator, torch.Tensor]
Contexts = tuple[AbstractContextManager[None], AbstractContextManager[None]]


def checkpoint_contexts(model: torch.nn.Module) -> Callable[[], Contexts]:
    """Return a ``context_fn`` with which a checkpoint draws the same noise in its second run.

    `torch.utils.checkpoint.checkpoint` runs a part of a network again in the backward pass. For
    this, PyTorch restores its global generators, but not generators that were given to layers or
    to a `ScaleMixturePrior`. The returned ``context_fn`` also restores these. `torch.compile`
    ignores a ``context_fn``: do not give generators to layers in a compiled checkpoint.

    Parameters
    ----------
    model : torch.nn.Module
        The module that is checkpointed, or a module that contains it.

    Returns
    -------
    callable
        Pass it to `checkpoint` as ``context_fn``, with ``use_reentrant=False``. You need it only if
        layers or priors have their own generators.

    Raises
    ------
    TypeError
        If `model` is not a module.

    Examples
    --------
    >>> import torch
    >>> from torch.utils.checkpoint import checkpoint
    >>> from logunif_kl.torch import nn
    >>> layer = nn.VariationalLinear(3, 2, generator=torch.Generator().manual_seed(0))
    >>> x = torch.ones(1, 3)
    >>> contexts = nn.checkpoint_contexts(layer)
    >>> checkpoint(layer, x, use_reentrant=False, context_fn=contexts).sum().backward()
    """
    check_module(model)

    def contexts() -> Contexts:
        states: States = {}
        return _recording(model, states), _Replaying(states)

    return contexts


@contextmanager
def _recording(model: torch.nn.Module, states: States) -> Iterator[None]:
    """Record the states of a model's generators before the forward pass."""
    for module in model.modules():
        priors = [getattr(module, name, None) for name in ("penalty", "_lk_penalty")]
        for generator in (own_generator(module), *(getattr(x, "generator", None) for x in priors)):
            if isinstance(generator, torch.Generator) and generator not in states:
                states[generator] = generator.get_state()
    yield


class _Replaying(AbstractContextManager[None]):
    """On entry, set the generators to the recorded states. On exit, restore the previous states.

    Every backward pass enters this context. ``retain_graph=True`` allows several backward passes.
    """

    def __init__(self, states: States) -> None:
        self.states = states

    def __enter__(self) -> None:
        self.before = {generator: generator.get_state() for generator in self.states}
        for generator, state in self.states.items():
            generator.set_state(state)

    def __exit__(self, *_: Any) -> None:
        for generator, state in self.before.items():
            generator.set_state(state)
