"""The weights of sampled and plain modules, as objects with the methods of a layer."""

# mypy: allow-untyped-calls, no-warn-return-any
from __future__ import annotations

from typing import Any, NamedTuple

import torch

from ...nn.penalty import is_exact
from ...nn.posteriors import Additive, Parameters, Term, Units, without_row

Tensor = torch.Tensor

UNITS = Units(input=1, output=0)


class SampledWeight:
    """A Gaussian weight of a module, with the methods and options of a `VariationalLayer`."""

    _posterior = Additive()
    noise = "independent"
    posterior = "additive"

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

    def _penalty_terms(self, whole: bool = False) -> list[Term]:
        mask = self.module._buffers.get(f"{self.name}_mask")
        given = Parameters(self.weight, self._log_variance)
        mask = mask if mask is None else mask.double()
        terms = self._posterior.terms(torch, given, is_exact(self.penalty), mask, UNITS, 1)
        if whole or self.padding_idx is None:
            return terms
        rows = len(self.weight)
        return [part for term in terms for part in without_row(term, self.padding_idx, rows)]

    def _log_alpha(self) -> Tensor:
        return self._log_variance - 2.0 * self.weight.abs().log()

    log_alpha_of_weights = _log_alpha


class PlainWeight(NamedTuple):
    """A weight of a plain module, as an object with the attribute `weight`."""

    weight: Tensor
