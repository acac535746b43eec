"""The terms whose sum is the KL of a layer."""

from __future__ import annotations

from typing import Any

import torch

from ..._errors import OF_COMPLEX
from . import _penalty, _posterior
from ._noise import unsplit

Tensor = torch.Tensor


def of_layer(layer: Any, mask: Tensor | None) -> list[_penalty.Term]:
    """Return the terms of a layer whose weights have this mask of `torch.nn.utils.prune`.

    A term is ("normal", mu, log_sigma2, n) or ("alpha", log_alpha, n), where n weights or scales
    share each element. For weights with the prior N(0, 1) it is ("standard", mu, log_sigma2, 1),
    and for groups of k weights ("group", log_alpha, k, 1). Under a mask the last item is a tensor
    that counts kept weights. With the additive posterior and the exact penalty, it is 1 even then:
    the KL of a pruned weight or group is 0, because its mean is 0. Half types become float32.
    """
    weight = layer._lk_stored
    if weight.is_complex():
        raise TypeError(f"the weights of a layer are of {weight.dtype}: {OF_COMPLEX}")
    if layer._grouped and layer.penalty == _penalty.EXACT:
        given = _posterior.alike(weight, layer._checked_log_variance())
        return [("group", *_posterior.of_groups(*given), 1)]
    log_variance = _posterior.single(layer._bounded())
    if layer.posterior == "additive":
        kept = 1 if mask is None or layer.penalty == _penalty.EXACT else mask
        return [("normal", *_posterior.alike(weight, log_variance), kept)]
    if layer.posterior == "scaled":
        of_scales = _posterior.alike(unsplit(layer.scale), unsplit(layer.scale_log_sigma2))
        counts = 1 if mask is None else mask
        return [
            ("normal", *of_scales, _count(layer, mask, layer._scales(), layer.scale)),
            ("standard", *_posterior.alike(weight, log_variance), counts),
        ]
    scales = layer._scales() if layer.noise == "correlated" else None
    return [("alpha", log_variance, _count(layer, mask, scales, log_variance))]


def without_row(terms: list[_penalty.Term], row: int | None, rows: int) -> list[_penalty.Term]:
    """Leave out the row at `padding_idx`, unless counts of a mask leave it out already."""
    if row is None or isinstance(terms[0][-1], Tensor):
        return terms
    ((kind, *tensors, count),) = terms
    if len(tensors[0]) != rows:
        return [(kind, *tensors, count // rows * (rows - 1))]
    before, after = slice(row), slice(row + 1, None)
    return [(kind, *[x[part] for x in tensors], count) for part in (before, after)]


def _count(layer: Any, mask: Tensor | None, scales: int | None, of: Tensor) -> Any:
    """Count the kept weights, or scales if their number is given, of each element of `of`."""
    if mask is not None:
        return _posterior.kept(mask, layer._units, scales).sum_to_size(of.shape)
    return (layer._lk_stored.numel() if scales is None else scales) // max(of.numel(), 1)
