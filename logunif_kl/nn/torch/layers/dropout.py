"""Gaussian dropout with a fixed rate, a baseline for variational dropout.

Binary dropout is `torch.nn.Dropout`.
"""

# mypy: allow-untyped-calls, no-warn-return-any
from __future__ import annotations

import math
from typing import Any

import torch

from ...._errors import real_number, shown
from ...checks import check_flag
from ..arguments import check_dtype, check_generator
from ..moments.moments import check_input
from ..noise.local import sample_output, wide
from ..noise.normal import StochasticModule
from .linear import VariationalLinear

Tensor = torch.Tensor


class GaussianDropoutA(StochasticModule):
    """Gaussian dropout of type A: multiply the inputs of a linear layer by noise of N(1, p/(1-p)).

    Srivastava et al. (2014), section 10; Kingma et al. (2015), Eq. 9 and section 5. The noise is
    independent for each element. In evaluation mode the input is returned unchanged.

    Parameters
    ----------
    p : float
        The dropout rate, at least 0 and below 1. The variance of the noise is alpha = p/(1-p), as
        for binary dropout with this rate.
    generator : torch.Generator, optional
        The generator of the noise. By default the global generator of the device.

    Raises
    ------
    TypeError
        If `p` is not a real number, `generator` is not a generator, or an input does not hold real
        numbers.
    ValueError
        If `p` is not in [0, 1).

    Examples
    --------
    >>> import torch
    >>> from logunif_kl.torch import nn
    >>> drop = nn.GaussianDropoutA(0.5, generator=torch.Generator().manual_seed(0))
    >>> print(f"{drop(torch.ones(100_000)).var():.2f}")
    1.00
    >>> drop.eval()(torch.ones(2))
    tensor([1., 1.])
    """

    _lk_plain = torch.nn.Identity
    _lk_own = ("p", "generator")

    def __init__(self, p: float = 0.5, *, generator: torch.Generator | None = None) -> None:
        super().__init__()
        self.p: float = _rate(p)
        self.generator: torch.Generator | None = check_generator(generator)

    def forward(self, input: Tensor) -> Tensor:
        """Multiply the input by noise in training mode and within `sampling`."""
        check_input(input)
        self._lk_mask()  # raises if a checkpoint draws other noise
        if not self._lk_draws or not self.p:
            return input
        deviation = math.sqrt(_alpha(self.p))
        return input * (1.0 + deviation * self._lk_own_normals(input))

    def extra_repr(self) -> str:
        """Show the rate."""
        return f"p={self.p}"


class GaussianDropoutLinear(StochasticModule, torch.nn.Linear):
    r"""Gaussian dropout of type B: a linear layer that draws each output from a Gaussian.

    Wang and Manning (2013); Kingma et al. (2015), Eq. 10. For inputs a_mi of example m, weights
    theta_ij and alpha = p/(1-p), the outputs are:

    .. math::

        b_{mj} \sim \mathcal N\left(\sum_i a_{mi} \theta_{ij} + \mathrm{bias}_j,\;
        \alpha \sum_i a_{mi}^2 \theta_{ij}^2\right)

    Each output has independent noise. The bias has none. In evaluation mode the mean is returned.

    Parameters
    ----------
    in_features, out_features : int
        As for `torch.nn.Linear`.
    p : float
        The dropout rate of the inputs, at least 0 and below 1.
    bias : bool
        As for `torch.nn.Linear`. Here `p` comes before `bias`, so pass `bias` by its name.
    device, dtype
        As for `torch.nn.Linear`.
    generator : torch.Generator, optional
        The generator of the noise. By default the global generator of the device.

    Raises
    ------
    TypeError, ValueError
        The errors of `GaussianDropoutA`, and of `VariationalLinear` for `bias`, `dtype` and inputs.

    Examples
    --------
    >>> import torch
    >>> from logunif_kl.torch import nn
    >>> layer = nn.GaussianDropoutLinear(3, 1, p=0.2, generator=torch.Generator().manual_seed(0))
    >>> torch.nn.init.constant_(layer.weight, 2.0)
    Parameter containing:
    tensor([[2., 2., 2.]], requires_grad=True)
    >>> print(f"{layer(torch.ones(100_000, 3)).var():.1f}")  # 0.25 * 3 * 2^2
    3.0
    """

    _lk_plain = torch.nn.Linear
    _lk_own = ("p", "generator")

    def __init__(
        self,
        in_features: int,
        out_features: int,
        p: float = 0.5,
        bias: bool = True,
        device: Any = None,
        dtype: torch.dtype | None = None,
        *,
        generator: torch.Generator | None = None,
    ) -> None:
        if isinstance(p, bool):
            raise TypeError(
                f"p must be a dropout rate, but {p} was given: p stands before bias, so pass "
                f"bias={p} by its name"
            )
        check_dtype(dtype)
        check_flag("bias", bias)
        super().__init__(in_features, out_features, bias, device, dtype)
        self.p: float = _rate(p)
        self.generator: torch.Generator | None = check_generator(generator)

    def forward(self, input: Tensor) -> Tensor:
        """Draw the output in training mode and within `sampling`; return the mean otherwise."""
        check_input(input)
        self._check_shape(input)
        self._lk_mask()
        if not self._lk_draws or not self.p:
            return super().forward(input)
        weight = wide(self.weight)
        variances = _alpha(self.p) * (weight * weight)
        return sample_output(self, input, self.weight, self.bias, variances, "variance", self._draw)

    _check_shape: Any = VariationalLinear._check_shape
    _product = VariationalLinear._product
    _product_backward = VariationalLinear._product_backward

    def _draw(self, mean: Tensor) -> Tensor:
        return self._lk_own_normals(mean)

    def extra_repr(self) -> str:
        """Show the arguments of `torch.nn.Linear`, and the rate."""
        return f"{super().extra_repr()}, p={self.p}"


def _alpha(p: float) -> float:
    return p / (1.0 - p)


def _rate(p: Any) -> float:
    rate = real_number("p", p)
    if not 0.0 <= rate < 1.0:
        raise ValueError(f"p must be at least 0 and below 1, but {shown(p)} was given: pass a rate")
    return rate
