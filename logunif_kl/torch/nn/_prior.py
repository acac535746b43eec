"""A normal prior over the weights, in place of the log-uniform one."""

# mypy: allow-untyped-calls, no-warn-return-any
from __future__ import annotations

import math
from dataclasses import dataclass

import torch

from ..._errors import real_number

Tensor = torch.Tensor


@dataclass(frozen=True)
class NormalPrior:
    """The prior N(0, variance) of each weight, as the `penalty` of a layer.

    With t = log sigma^2 - log variance, the KL of a weight N(mu, sigma^2) is::

        KL(q || p) = 1/2 [mu^2/variance + e^t - 1 - t]

    It is zero where mu = 0 and sigma^2 is the variance of the prior. Layers take it with
    ``posterior="additive"``.

    Parameters
    ----------
    variance : float
        Positive and finite.

    Raises
    ------
    TypeError
        If it is no real number.
    ValueError
        If it is not positive or not finite.

    See Also
    --------
    VariationalLinear : its argument `penalty`.

    Examples
    --------
    >>> import torch
    >>> from logunif_kl.torch import nn
    >>> layer = nn.VariationalLinear(2, 1, initial=0.0, penalty=nn.NormalPrior(1.0))
    >>> torch.nn.init.constant_(layer.weight, 0.5)
    Parameter containing:
    tensor([[0.5000, 0.5000]], requires_grad=True)
    >>> nn.kl(layer).item()  # 2 weights, each with 0.5^2/2
    0.25
    """

    variance: float = 1.0

    def __post_init__(self) -> None:
        """Check the variance."""
        value = real_number("variance", self.variance)
        if not 0.0 < value < math.inf:
            raise ValueError(
                f"variance must be positive and finite, but {value} was given: pass 1.0"
            )
        object.__setattr__(self, "variance", value)

    def neg_kl(self, mu: Tensor, log_sigma2: Tensor) -> Tensor:
        """-KL(q || p) of each weight, to be *maximised* (ELBO sign).

        Parameters
        ----------
        mu, log_sigma2 : Tensor
            The means of the weights, and the logarithms of their variances.

        Returns
        -------
        Tensor
        """
        t = log_sigma2 - math.log(self.variance)
        # expm1 keeps the digits of e^t - 1 - t where t is small.
        return -0.5 * (mu * mu / self.variance + (torch.expm1(t) - t))
