"""The Gaussian weights of a layer: their parameters, means, variances and samples."""

# mypy: allow-untyped-calls, no-warn-return-any
from __future__ import annotations

import math
from typing import Any

import torch
from torch.nn.parameter import is_lazy

from . import _posterior
from ._local import clamped, finite
from ._noise import StochasticModule, unsplit
from ._options import GROUPS
from ._undrawn import reader, undrawn

Tensor = torch.Tensor


class GaussianWeights(StochasticModule):
    """A module with the parameters of one Gaussian posterior, and what is computed from them."""

    # The dimensions of the weight that belong to the input units and to the output units.
    _units = {"output": 0, "input": 1}  # noqa: RUF012
    weight: Tensor
    scale: Tensor
    scale_log_sigma2: Tensor
    posterior: str
    sharing: str
    noise: str
    max_log_alpha: float | None
    _drawn_scales: Any  # (): random scales that are the same for all examples, to multiply `weight`

    def __getattr__(self, name: str) -> Any:
        """Return a parameter; see `_undrawn` for the means that other modules read."""
        parameters = self.__dict__.get("_parameters", {})
        if name not in parameters:
            return super().__getattr__(name)
        found = parameters[name]
        if name == "weight" and (self._lk_draws or self._lk_masks):
            return self._weight_of(found) if self._log_variance_name in parameters else found
        return found

    def _weight_of(self, mean: Any) -> Any:
        """Return the means or, where noise is missed, the kept sample or an `UndrawnWeight`."""
        who = reader(3)
        if who in ("trusted", "script") or is_lazy(mean):
            return mean
        if not self._lk_draws:
            return self._masked()
        if self._lk_kept is not None:
            return self._sampled_weight()
        owner = f"the weight of a {type(self).__name__}"
        return undrawn(owner, mean, who == "call" or self._lk_sampling > 0)

    @property
    def _log_variance_name(self) -> str:
        return "log_alpha" if self.posterior == "multiplicative" else "log_sigma2"

    @property
    def _log_variance(self) -> Tensor:
        """Return the second parameter: log sigma^2 or log alpha."""
        return getattr(self, self._log_variance_name)

    def _shapes(self, weight: Any) -> dict[str, tuple[int, ...]]:
        """Return the shapes of the parameters of the posterior other than `weight` and `bias`."""
        return _posterior.shapes(self.posterior, self.sharing, weight, self._units)

    @property
    def _grouped(self) -> bool:
        """Whether the prior is that of groups of weights, each with one variance."""
        return self.posterior == "additive" and self.sharing in GROUPS

    def _checked_log_variance(self) -> Tensor:
        own = self._shapes(self._lk_stored.shape)[self._log_variance_name]
        to = "scales" if self.noise == "correlated" else "groups" if self._grouped else "weight"
        name, given = self._log_variance_name, unsplit(self._log_variance)
        found = _posterior.broadcastable(name, given, self._lk_stored, own, to)
        return found.expand(own) if self._grouped else found

    def _bounded(self) -> Tensor:
        """Return log sigma^2 or min(log alpha, `max_log_alpha`), with `weight.ndim` dimensions."""
        found = self._checked_log_variance()
        if self.posterior != "multiplicative":
            return (
                found if found.shape == self._lk_stored.shape else found.expand_as(self._lk_stored)
            )
        return _posterior.bounded(found, self.max_log_alpha)

    def _typed(self) -> Tensor:
        """Return the result of `_bounded` in the dtype of the weight."""
        return self._bounded().to(self._lk_stored.dtype)

    def _root(self) -> Tensor:
        """Return sigma or, for the multiplicative posterior, sqrt(alpha) = sigma/|mean|."""
        return (0.5 * clamped(self._typed())).exp()

    def _deviations(self) -> Tensor:
        deviations = self._root()
        return self._masked() * deviations if self.posterior == "multiplicative" else deviations

    def _masked(self) -> Tensor:
        """Return the means with which the layer computes: without those that an `ELBO` masks."""
        mask = self._lk_mask()
        return self._lk_stored if mask is None else mask.applied(self._lk_stored, self, self)

    def _means(self) -> Tensor:
        """Return the means of the weights: `weight`, times the means of the scales."""
        mean = self._masked()
        return mean * unsplit(self.scale) if self.posterior == "scaled" else mean

    def _scale_moments(self, dtype: torch.dtype) -> tuple[Tensor, Tensor]:
        """Return the means and the standard deviations of the scales, one for each input unit."""
        if self.posterior == "scaled":
            deviation = (0.5 * clamped(unsplit(self.scale_log_sigma2))).exp()
            return unsplit(self.scale)[0].to(dtype), deviation[0].to(dtype)
        deviation = self._root()[0].to(dtype)
        return torch.ones_like(deviation), deviation

    def _weights(self, shape: Any) -> Tensor:
        """Draw samples of the weights; `shape` ends with the shape of the weights."""
        mean = self._masked()
        return finite(mean + self._deviations() * self._lk_normals(shape, mean))

    def _sampled_weight(self) -> Tensor:
        """Draw the weights with which a plain layer computes, within `sampled`."""
        weight = self._masked()
        if self.noise != "correlated":
            weight = self._weights(weight.shape)
        scaled = self.posterior == "scaled" or self.noise == "correlated"
        return weight * self._drawn_scales() if scaled else weight

    def _variances(self) -> tuple[Tensor, bool]:
        """Return the variances of the weights and False, or their logarithms and True."""
        if self.posterior == "multiplicative":
            return _posterior.multiplied(self._masked(), self._typed()), False
        return self._typed(), True

    def _log_alpha(self) -> Tensor:
        if self._grouped:
            given = _posterior.alike(self._lk_stored, self._checked_log_variance())
            found, size = _posterior.of_groups(*given)
            return (found + math.log(size)).expand(self._lk_stored.shape)
        if self.posterior == "additive":
            return self._bounded() - 2.0 * self._lk_stored.abs().log()
        if self.posterior == "scaled":
            found = unsplit(self.scale_log_sigma2) - 2.0 * unsplit(self.scale).abs().log()
            return found.expand(self._lk_stored.shape)
        return self._bounded().expand(self._lk_stored.shape)
