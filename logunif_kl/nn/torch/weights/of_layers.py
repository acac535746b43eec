"""The Gaussian weights of a layer: their parameters, means, variances and samples."""

# mypy: allow-untyped-calls, no-warn-return-any
from __future__ import annotations

from typing import Any

import torch
from torch.nn.parameter import is_lazy
from torch.nn.utils.parametrize import is_parametrized

from ....torch._sharded import unsplit
from ...posteriors import Additive
from ...terms import Given, Units, shared_shape
from .. import variances
from ..hooks import mask_of, own_parameters
from ..noise.local import Form, clamped, draw_weights
from ..noise.normal import COMPUTED
from ..noise.undrawn import reader, undrawn
from .weight import VariationalModule, Weight

Tensor = torch.Tensor


class GaussianWeights(VariationalModule):
    """A module with the parameters of one Gaussian posterior, and what is computed from them."""

    posterior: Additive = Additive()
    _units = Units(input=1, output=0)
    _lk_groups = 1
    _lk_padding: int | None = None
    penalty: Any
    weight: Tensor
    scale: Tensor
    scale_log_sigma2: Tensor
    _drawn_scales: Any  # (): random scales that are the same for all examples, to multiply `weight`

    def __getattr__(self, name: str) -> Any:
        """Return a parameter; see `noise.undrawn` for the means that other modules read."""
        given = self.__dict__
        parameters = given.get("_parameters", {})
        if name in parameters:
            found = parameters[name]
        elif name == "weight" and COMPUTED in given:
            found = given[COMPUTED]
        else:
            return super().__getattr__(name)
        if name == "weight" and (
            self._lk_draws or self._lk_masks or "scale_log_sigma2" in parameters
        ):
            ready = own_parameters(self, self._log_variance_name)
            return self._weight_of(found) if ready else found
        return found

    def __setattr__(self, name: str, value: Any) -> None:
        """Keep a weight that hooks compute, as those of `prune` and `weight_norm`."""
        computed = isinstance(value, Tensor) and not isinstance(value, torch.nn.Parameter)
        if (
            name == "weight"
            and computed
            and name not in self._parameters
            and not is_parametrized(self, name)
        ):
            self.__dict__[COMPUTED] = value
            return
        super().__setattr__(name, value)

    def __delattr__(self, name: str) -> None:
        if name == "weight" and COMPUTED in self.__dict__:
            name = COMPUTED
        super().__delattr__(name)

    def _lk_become_plain(self) -> None:
        super()._lk_become_plain()
        if COMPUTED in self.__dict__:
            self.__dict__["weight"] = self.__dict__.pop(COMPUTED)

    def _weight_of(self, mean: Any) -> Any:
        """Return the means or, where noise is missed, the kept sample or an `UndrawnWeight`."""
        who = reader(3)
        if who == "trusted" or (not torch.compiler.is_compiling() and is_lazy(mean)):
            return mean
        if who == "script" and (self._lk_kept is None or hasattr(mean, "placements")):
            return mean
        if not self._lk_draws:
            return self._means()
        sample = None if self._lk_kept is None else self._lk_sampled()
        if sample is not None and who != "script":
            return sample
        return undrawn(f"the weight of a {type(self).__name__}", mean, True, sample)

    def _lk_weights(self) -> list[Weight]:
        return [Weight(self, "weight", self.posterior, self.penalty, True, self._lk_padding)]

    def _lk_mean(self, name: str = "weight") -> Tensor:
        return self._lk_stored

    def _lk_log_variance(self, name: str = "weight") -> Tensor:
        return self._log_variance

    def _lk_given(self, name: str = "weight") -> Given:
        grouped = self.posterior.grouped
        return self._given(self._checked_log_variance() if grouped else self._bounded())

    @property
    def _log_variance_name(self) -> str:
        return self.posterior.parameters[0]

    @property
    def _log_variance(self) -> Tensor:
        """Return the second parameter: log sigma^2 or log alpha."""
        return getattr(self, self.posterior.parameters[0])

    def _shapes(self, weight: Any) -> dict[str, tuple[int, ...]]:
        """Return the shapes of the parameters of the posterior other than `weight` and `bias`."""
        return self.posterior.shapes(weight, self._units)

    def _checked_log_variance(self) -> Tensor:
        posterior, stored = self.posterior, self._lk_stored
        name = posterior.parameters[0]
        own = shared_shape(posterior.sharing, stored.shape, self._units)
        to = "groups" if posterior.grouped else "weight" if posterior.independent else "scales"
        found = variances.broadcastable(name, unsplit(getattr(self, name)), stored, own, to)
        return found.expand(own) if posterior.grouped else found

    def _bounded(self) -> Tensor:
        """Return log sigma^2 or min(log alpha, `max_log_alpha`), with `weight.ndim` dimensions."""
        found, posterior = self._checked_log_variance(), self.posterior
        if posterior.relative:
            return variances.bounded(found, posterior.max_log_alpha)
        stored = self._lk_stored
        return found if found.shape == stored.shape else found.expand_as(stored)

    def _given(self, log_variance: Tensor) -> Given:
        """Return the parameters of the posterior, with log sigma^2 or log alpha as it is given."""
        scales: tuple[Any, Any] = None, None
        if "scale" in self.posterior.parameters:
            scales = unsplit(self.scale), unsplit(self.scale_log_sigma2)
        mask = mask_of(self, "weight")
        return Given(self._lk_stored, log_variance, *scales, mask, self._units, self._lk_groups)

    def _typed(self) -> Tensor:
        """Return the result of `_bounded` in the dtype of the weight."""
        found, dtype = self._bounded(), self._lk_stored.dtype
        return found if found.dtype == dtype else found.to(dtype)

    def _masked(self) -> Tensor:
        """Return the means with which the layer computes: without those that an `ELBO` masks."""
        mask, mean = self._lk_mask(), self._lk_stored
        if mask is None:
            return mean
        parameters = [getattr(self, name) for name in self.posterior.parameters]
        return mask.applied(self, mean, self._lk_log_alpha, parameters)

    def _means(self) -> Tensor:
        """Return the means of the weights: `weight`, times the means of the scales."""
        mean = self._masked()
        if "scale" not in self.posterior.parameters:
            return mean
        return self.posterior.means(Given(mean, None, unsplit(self.scale)))

    def _scales(self) -> int:
        """Return the number of input units, each of which may have a scale."""
        # Do not use in_features, which is 0 in a lazy layer whose parameters were loaded.
        return self._lk_stored.shape[self._units.input] * self._lk_groups

    def _scale_moments(self, dtype: torch.dtype) -> tuple[Tensor, Tensor]:
        """Return the means and the standard deviations of the scales, one for each input unit."""
        mean, log_variance = self.posterior.scales(self._given(self._typed()))
        deviation = (0.5 * clamped(log_variance)).exp()[0].to(dtype)
        return torch.ones_like(deviation) if mean is None else mean[0].to(dtype), deviation

    def _weights(self, shape: Any) -> Tensor:
        """Draw samples of the weights; `shape` ends with the shape of the weights."""
        mean = self._masked()
        noise = self._lk_normals(shape, mean)
        return draw_weights(mean, self._typed(), self._form(), noise)

    def _lk_sampled(self, name: str = "weight") -> Tensor:
        """Draw the weights with which a plain layer computes, within `sampled`."""
        weight = self._masked()
        if self.posterior.independent:
            weight = self._weights(weight.shape)
        return weight * self._drawn_scales() if self.posterior.scaled else weight

    def _form(self) -> Form:
        """Say what `_typed` returns."""
        return "log alpha" if self.posterior.relative else "log variance"

    def _lk_log_alpha(self, name: str = "weight") -> Tensor:
        given = self._lk_given()
        if self.posterior.grouped:
            mean, log_variance = variances.alike(given.mean, given.log_variance)
            given = given._replace(mean=mean, log_variance=log_variance)
        return self.posterior.log_alpha(torch, given)
