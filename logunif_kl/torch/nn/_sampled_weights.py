"""The weights of sampled and plain modules, as objects with the methods of a layer."""

# mypy: allow-untyped-calls, no-warn-return-any
from __future__ import annotations

from typing import Any, NamedTuple

import torch

from . import _terms

Tensor = torch.Tensor


class SampledWeight:
    """A Gaussian weight of a module, with the methods and options of a `VariationalLayer`."""

    posterior = "additive"
    sharing = "weight"
    noise = "independent"
    estimator = "per_batch"
    _grouped = False

    def __init__(self, module: Any, name: str) -> None:
        self.module, self.name = module, name

    @property
    def penalty(self) -> Any:
        return self.module._lk_options["penalty"]

    @property
    def weight(self) -> Tensor:
        return self.module._lk_mean(self.name)

    _lk_stored = weight

    @property
    def _log_variance(self) -> Tensor:
        return self.module._lk_log_sigma2(self.name)

    _bounded = _checked_log_variance = lambda self: self._log_variance

    @property
    def padding_idx(self) -> int | None:
        bag = isinstance(self.module, torch.nn.EmbeddingBag)
        return self.module.padding_idx if bag else None  # type: ignore[return-value]

    def _means(self) -> Tensor:
        return self.weight

    def _penalty_terms(self, whole: bool = False) -> list[tuple[Any, ...]]:
        terms = _terms.of_layer(self, self.module._buffers.get(f"{self.name}_mask"))
        return terms if whole else _terms.without_row(terms, self.padding_idx, len(self.weight))

    def _log_alpha(self) -> Tensor:
        return self._log_variance - 2.0 * self.weight.abs().log()

    log_alpha_of_weights = _log_alpha


class PlainWeight(NamedTuple):
    """A weight of a plain module, as an object with the attribute `weight`."""

    weight: Tensor
