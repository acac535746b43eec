"""Pack the choice of kept weights into text, and measure how far two choices overlap."""

import base64
from collections.abc import Sequence
from typing import Any

import numpy as np
import torch

from logunif_kl.torch import nn

Masks = dict[str, str]


def packed(model: torch.nn.Module, threshold: float) -> Masks:
    """Pack the choice of kept weights in each layer, eight weights to a byte."""
    plain, found = nn.to_deterministic(model, threshold), {}
    for name in nn.log_alpha(model):
        layer: Any = plain.get_submodule(name)
        kept = (layer.weight.detach() != 0).numpy().ravel()
        found[name] = base64.b64encode(np.packbits(kept).tobytes()).decode("ascii")
    return found


def unpacked(masks: Masks, sizes: dict[str, int]) -> dict[str, np.ndarray]:
    return {
        name: np.unpackbits(
            np.frombuffer(base64.b64decode(text), np.uint8), count=sizes[name]
        ).astype(bool)
        for name, text in masks.items()
    }


def overlap(a: dict[str, np.ndarray], b: dict[str, np.ndarray]) -> dict[str, float]:
    """Compare two choices of weights.

    ``overlap`` is the number of weights that both keep over the number that either keeps (Jaccard).
    ``by_chance`` is this ratio of expected numbers for random choices with the same shares by
    layer.
    """
    both = sum(int((a[name] & b[name]).sum()) for name in a)
    either = sum(int((a[name] | b[name]).sum()) for name in a)
    shares = [(len(a[name]), a[name].mean(), b[name].mean()) for name in a]
    both_by_chance = sum(n * p * q for n, p, q in shares)
    either_by_chance = sum(n * (p + q - p * q) for n, p, q in shares)
    return {
        "overlap": both / either if either else 1.0,
        "by_chance": float(both_by_chance / either_by_chance) if either else 1.0,
    }


def mean_overlap(pairs: Sequence[dict[str, float]]) -> dict[str, float]:
    return {key: float(np.mean([pair[key] for pair in pairs])) for key in pairs[0]}
