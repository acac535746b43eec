"""Activation checkpointing of layers that draw their noise from generators."""

# mypy: allow-untyped-calls, no-warn-return-any
from __future__ import annotations

from collections.abc import Callable, Iterator
from contextlib import AbstractContextManager, contextmanager
from typing import Any

import torch

from ._arguments import check_module

States = dict[torch.Generator, torch.Tensor]
Contexts = tuple[AbstractContextManager[None], AbstractContextManager[None]]


def checkpoint_contexts(model: torch.nn.Module) -> Callable[[], Contexts]:
    """Make the ``context_fn`` with which a checkpoint draws the same noise twice.

    `torch.utils.checkpoint.checkpoint` computes a part of a network again in the backward. For this
    it restores the state of torch's global generators, but not of generators that were given to
    layers. These contexts restore both. Compilers ignore these contexts: under `torch.compile`,
    give no generator to layers in a checkpoint.

    Parameters
    ----------
    model : torch.nn.Module
        The module that is checkpointed, or one that holds it.

    Returns
    -------
    callable
        For the argument ``context_fn``, which needs ``use_reentrant=False``. Without generators in
        layers you do not need it.

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
    """Record the states of a model's generators before the first computation."""
    for module in model.modules():
        generator = getattr(module, "generator", None)
        if isinstance(generator, torch.Generator):
            states[generator] = generator.get_state()
    yield


class _Replaying(AbstractContextManager[None]):
    """Restore the recorded states of the generators, and at the end the previous states.

    A checkpoint enters this once for each backward through its graph (``retain_graph=True``).
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
