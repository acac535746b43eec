"""The log-uniform prior for Pyro, with the methods that `pyro.sample` needs."""

# mypy: allow-untyped-calls
from __future__ import annotations

from typing import TYPE_CHECKING, Any

import torch
from torch.distributions import kl_divergence, register_kl

try:
    from pyro.distributions.torch_distribution import (
        ExpandedDistribution,
        MaskedDistribution,
        TorchDistributionMixin,
    )
except ModuleNotFoundError as _error:
    if _error.name != "pyro":
        raise
    raise ImportError(
        "logunif_kl.torch.pyro needs Pyro, which is not installed: pip install pyro-ppl"
    ) from None

from .._errors import check_prior
from . import _distributions

__all__ = ["ImproperLogUniform"]


class ImproperLogUniform(_distributions.ImproperLogUniform, TorchDistributionMixin):  # type: ignore[misc]
    """The improper prior in Pyro's models: ``pyro.sample("w", ImproperLogUniform())``.

    The parameters, attributes and errors are as for `logunif_kl.torch.ImproperLogUniform`, which
    lists posteriors with an exact divergence. If the guide uses one of these posteriors, even
    masked or expanded, `pyro.infer.TraceMeanField_ELBO` uses the exact divergence, which is 0 where
    the guide is masked. Other ELBO estimators use samples of ``log_prob``. The prior cannot be
    sampled, so the guide must sample "w", as in ``pyro.sample("w", dist.Normal(loc, scale))``.
    Autoguides use delta distributions, which have no exact divergence. Autoguides also need
    ``init_loc_fn=pyro.infer.autoguide.init_to_value(values={...})``. MCMC needs initial values:
    ``pyro.infer.NUTS(model, max_plate_nesting=0, init_strategy=init_to_value(values={...}))``.

    Examples
    --------
    >>> import torch, pyro, pyro.distributions as dist
    >>> from logunif_kl.torch.pyro import ImproperLogUniform
    >>> def model():
    ...     pyro.sample("w", ImproperLogUniform().expand([3]).to_event(1))
    >>> def guide():
    ...     pyro.sample("w", dist.Normal(torch.tensor([0.0, 1.0, -3.0]), 0.1).to_event(1))
    >>> round(pyro.infer.TraceMeanField_ELBO().loss(model, guide), 4)  # the sum of KL
    6.9685
    """


@register_kl(MaskedDistribution, _distributions.ImproperLogUniform)
def _kl_masked(p: MaskedDistribution, q: _distributions.ImproperLogUniform) -> torch.Tensor:
    """Apply the posterior's mask, as Pyro does if the prior's mask is True."""
    result = kl_divergence(p.base_dist, q)
    return torch.where(torch.as_tensor(p._mask, device=result.device), result, 0.0)


@register_kl(ExpandedDistribution, _distributions.ImproperLogUniform)
def _kl_expanded(p: ExpandedDistribution, q: _distributions.ImproperLogUniform) -> torch.Tensor:
    check_prior(p, q)
    result = kl_divergence(p.base_dist, q)
    return result.expand(torch.broadcast_shapes(p.batch_shape, q.batch_shape))


if not TYPE_CHECKING:
    # A type checker would take any name from `__getattr__`.

    def __getattr__(name: str) -> Any:
        if name != "LogUniform":
            raise AttributeError(f"module {__name__!r} has no attribute {name!r}")
        return _distributions.by_name(name, ImproperLogUniform)
