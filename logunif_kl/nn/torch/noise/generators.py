"""Generators of layers and priors in checkpoints, which restore PyTorch's own generators only."""

# mypy: allow-untyped-calls
from __future__ import annotations

import torch

from .recomputation import checkpoints, may_be_checkpointed


def check_restored(generator: torch.Generator | None, like: torch.Tensor) -> None:
    """Raise if the second run of a checkpoint would draw other numbers than the first."""
    if generator is None or like.is_meta:
        return
    found = [*checkpoints()] if may_be_checkpointed() else []
    if not found:
        return
    own, state = id(generator), hash(generator.get_state().numpy().tobytes())
    for again, region in found:
        states: dict[int, set[int]] = region.__dict__.setdefault("_lk_states", {})
        if not again:
            states.setdefault(own, set()).add(state)
        elif state not in states.get(own, {state}):
            raise RuntimeError(
                "the backward pass runs a layer or a prior with a generator again, for "
                "torch.utils.checkpoint, but PyTorch does not restore that generator: pass "
                "use_reentrant=False and context_fn=logunif_kl.torch.nn.checkpoint_contexts(model)"
                ", or, of a layer, set it to None"
            )
