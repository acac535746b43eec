"""The log-uniform prior for Pyro: `LogUniform` with the methods that `pyro.sample` asks for."""

from __future__ import annotations

try:
    from pyro.distributions.torch_distribution import TorchDistributionMixin
except ModuleNotFoundError as error:
    if error.name != "pyro":
        raise
    raise ImportError(
        "logunif_kl.torch.pyro needs Pyro, which is not installed: pip install pyro-ppl"
    ) from None

from . import _distributions

__all__ = ["LogUniform"]


class LogUniform(_distributions.LogUniform, TorchDistributionMixin):  # type: ignore[misc]
    """`logunif_kl.torch.LogUniform` in Pyro's models: ``pyro.sample("w", LogUniform())``.

    Parameters, attributes and errors are those of `logunif_kl.torch.LogUniform`. With a Gaussian
    (or log-normal) guide, `pyro.infer.TraceMeanField_ELBO` takes the exact divergence; other
    estimators of the ELBO take samples of ``log_prob``. A prior that cannot be sampled cannot run
    a model by itself: a model runs with its guide, and an autoguide wants
    ``init_loc_fn=pyro.infer.autoguide.init_to_value(values={...})``. The automatic guides put a
    delta distribution in the place of each weight, of which no exact divergence exists: write the
    guide with ``pyro.sample("w", dist.Normal(loc, scale))``.

    Examples
    --------
    >>> import torch, pyro, pyro.distributions as dist
    >>> from logunif_kl.torch.pyro import LogUniform
    >>> def model():
    ...     pyro.sample("w", LogUniform().expand([3]).to_event(1))
    >>> def guide():
    ...     pyro.sample("w", dist.Normal(torch.tensor([0.0, 1.0, -3.0]), 0.1).to_event(1))
    >>> round(pyro.infer.TraceMeanField_ELBO().loss(model, guide), 4)  # the sum of KL
    6.9685
    """
