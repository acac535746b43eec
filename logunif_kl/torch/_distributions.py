"""The log-uniform prior as a `torch.distributions` object, and its registered divergences."""

# torch.distributions has few annotations.
# mypy: allow-untyped-calls, allow-untyped-decorators

from __future__ import annotations

import warnings
from collections.abc import Callable
from typing import Any, NoReturn

import torch
from torch import Tensor
from torch.distributions import (
    Distribution,
    Independent,
    LogNormal,
    LowRankMultivariateNormal,
    MultivariateNormal,
    Normal,
    constraints,
    kl_divergence,
    register_kl,
)

from .._arithmetic.unit import marginals, unit
from .._convention import HALF_LOG_2_PI_E, ZERO_AT_INFINITY, prior_constants
from .._errors import OF_COMPLEX, check_prior
from . import _divergences
from ._api import kl_normal
from ._internals import called_by_compiler
from ._namespace import exportable, working


class ImproperLogUniform(Distribution):
    """The improper prior p(w) = C/|w| on the whole real line.

    Its integral is not finite, so it cannot be sampled and has no moments, but it has a `log_prob`.
    Every divergence to this prior can be differentiated any number of times.
    `torch.distributions.kl_divergence` computes the divergence from the following distributions:

    - ``Normal(loc, scale)``: `logunif_kl.torch.kl_normal` of ``loc`` and ``2 log(scale)``, [1]_
      Eq. 1, exact at ``loc = 0``;
    - ``LogNormal(loc, scale)``: log w is Gaussian, so that -KL = 1/2 log(2 pi e scale^2) + log C
      for every ``loc``;
    - ``Laplace(loc, scale)``: KL = L(r) - 1 - log 2 - log C with r = ``|loc|/scale``,
      L(r) = log r + (e^r E1(r) - e^-r Ei(r))/2, and L(0) = -gamma = -0.577... The second
      derivative of KL in ``loc`` is infinite at ``loc = 0``;
    - ``Cauchy(loc, scale)``: KL = 1/2 log(1 + loc^2/scale^2) - log(4 pi) - log C;
    - ``Uniform(low, high)``: KL = (high log|high| - low log|low|)/(high - low) - 1
      - log(high - low) - log C. The derivative in one end is infinite if that end is 0;
    - ``StudentT(df, 0, scale)``: KL = J((df + 1)/2) - J(df/2) - J(1/2) - log C, with J(a) = a +
      log Gamma(a) - a psi(a). Derivatives in ``loc`` are exact up to the third order;
    - ``Gamma(concentration, rate)``: KL = -J(concentration) - log C;
    - ``HalfNormal(scale)``: the KL of ``Normal(0, scale)`` plus log 2;
    - ``Exponential(rate)``: KL = -1 - gamma - log C;
    - ``Independent`` of these: the sum of the KL over the event dimensions. The prior may be
      ``ImproperLogUniform()``, which then applies to each weight, or an ``Independent`` of it;
    - ``MultivariateNormal`` and ``LowRankMultivariateNormal`` with the covariance S: the sum of the
      KL of ``Normal(loc[i], sqrt(S[i, i]))`` plus (sum(log S[i, i]) - log det S)/2, because the
      entropy is 1/2 log det(2 pi e S). The prior may be the same as for an ``Independent``.

    From ``Laplace`` to ``Exponential``, the worst error found in a first derivative is 3.7 eps of
    the type, relative to the derivative. The worst error found in KL is 2.0 eps, relative to the
    larger of ``|KL|`` and 1, and for ``StudentT`` relative to KL minus KL of a Gaussian.

    KL is defined up to an additive constant, and can be negative for some values of the constant.

    Parameters
    ----------
    zero_at : float, optional
        The alpha = sigma^2/mu^2 at which KL of a Gaussian is zero, by default infinity. This
        fixes C:
        log C = F(1/(2 zero_at)) - (1/2 log(pi e) - 1/2 psi(1/2)),
        where F is `logunif_kl.special.kl_gap`.
    log_c : float, optional
        The logarithm of C, instead of `zero_at`.
    validate_args : bool, optional
        Whether `log_prob` checks its argument; by default as in torch.

    Attributes
    ----------
    log_c : float
        The logarithm of C, whether `zero_at` or `log_c` was given.
    batch_shape, event_shape : torch.Size
        Both empty. ``expand`` sets a batch shape, and ``Independent`` makes it an event shape.

    Raises
    ------
    TypeError
        If `zero_at` or `log_c` is not a real number.
    ValueError
        If both are given, if `zero_at` is not positive, or if `log_c` is not finite.
    NotImplementedError
        From the divergence of ``StudentT``, which has no closed form if ``loc`` is not 0. (In
        `torch.compile` and `torch.func`, where elements cannot be read, the divergence is NaN
        instead.) Also from ``sample``, ``rsample``, ``cdf``, ``icdf``, ``entropy``, ``mean``,
        ``mode``, ``variance`` and ``stddev``, which an improper distribution does not have.

    Notes
    -----
    For Pyro, use `logunif_kl.torch.pyro.ImproperLogUniform`.

    References
    ----------
    .. [1] J. Hron, A. G. de G. Matthews, Z. Ghahramani, "Variational Gaussian Dropout is not
       Bayesian" (2017).

    Examples
    --------
    >>> import torch
    >>> from torch.distributions import Normal, kl_divergence
    >>> from logunif_kl.torch import ImproperLogUniform
    >>> posterior = Normal(torch.tensor([0.0, 1.0, -3.0]), torch.tensor([0.1, 1.0, 0.1]))
    >>> kl_divergence(posterior, ImproperLogUniform())
    tensor([0.0000, 0.4267, 4.0358])
    >>> ImproperLogUniform(log_c=0.0).log_prob(torch.tensor([0.5, -2.0]))
    tensor([ 0.6931, -0.6931])
    """

    arg_constraints: dict[str, constraints.Constraint] = {}  # noqa: RUF012 (as torch declares it)
    support: constraints.Constraint = constraints.real
    has_rsample = False

    def __init__(
        self,
        *,
        zero_at: float = ZERO_AT_INFINITY,
        log_c: float | None = None,
        validate_args: bool | None = None,
    ) -> None:
        self.log_c: float
        self._constant, self.log_c = _constants(zero_at, log_c)
        self._given = "" if zero_at is ZERO_AT_INFINITY else f"zero_at={zero_at!r}"
        if log_c is not None:
            self._given = f"log_c={log_c!r}"
        super().__init__(validate_args=validate_args)

    def expand(self, batch_shape: Any, _instance: Any = None) -> ImproperLogUniform:
        """Return the same prior with another batch shape."""
        new: ImproperLogUniform = self._get_checked_instance(ImproperLogUniform, _instance)
        new.log_c, new._constant, new._given = self.log_c, self._constant, self._given
        super(ImproperLogUniform, new).__init__(torch.Size(batch_shape), validate_args=False)
        new._validate_args = self._validate_args
        return new

    def log_prob(self, value: Tensor) -> Tensor:
        """Compute log C - log|value|, which is infinite at 0, the pole of the density.

        Parameters
        ----------
        value : Tensor or float
            Weights, of a shape that broadcasts with the batch shape.

        Returns
        -------
        Tensor
            With the broadcast shape and the type of `value`. Integers give the default type.

        Raises
        ------
        ValueError
            If arguments are validated, and `value` is not a tensor, does not broadcast or has a
            NaN.
        TypeError
            If `value` is complex.
        """
        if self._validate_args:
            self._validate_sample(value)
        value = torch.as_tensor(value)
        if value.is_complex():
            raise TypeError(
                f"value must hold real numbers, but a tensor of dtype {value.dtype} was given: "
                + OF_COMPLEX
            )
        result = self.log_c - value.abs().log()
        return result.expand(torch.broadcast_shapes(result.shape, self.batch_shape))

    def sample(self, sample_shape: Any = None) -> NoReturn:
        """Raise: an improper distribution cannot be sampled."""
        raise _improper("cannot be sampled: sample the posterior instead")

    def rsample(self, sample_shape: Any = None) -> NoReturn:
        """Raise: an improper distribution cannot be sampled."""
        raise _improper("cannot be sampled: sample the posterior instead")

    def cdf(self, value: Tensor) -> NoReturn:
        """Raise: an improper distribution has no cumulative distribution function."""
        raise _improper("has no cumulative distribution function: use log_prob")

    def icdf(self, value: Tensor) -> NoReturn:
        """Raise: an improper distribution has no quantiles."""
        raise _improper("has no quantiles: use the quantiles of the posterior")

    def entropy(self) -> NoReturn:
        """Raise: an improper distribution has no entropy."""
        raise _improper("has no entropy: use kl_divergence from the posterior")

    @property
    def mean(self) -> NoReturn:
        """Raise: an improper distribution has no moments."""
        raise _improper("has no mean: use the mean of the posterior")

    @property
    def mode(self) -> NoReturn:
        """Raise: the density has a pole at 0, so it has no mode."""
        raise NotImplementedError(
            "ImproperLogUniform has a density C/|w| with a pole at 0, so it has no mode: use the "
            "mode of the posterior"
        )

    @property
    def variance(self) -> NoReturn:
        """Raise: an improper distribution has no moments."""
        raise _improper("has no variance: use the variance of the posterior")

    def __repr__(self) -> str:
        expanded = f".expand({tuple(self.batch_shape)})" if self.batch_shape else ""
        return f"{type(self).__name__}({self._given}){expanded}"


def by_name(name: str, prior: Any = ImproperLogUniform) -> Any:
    """Return `prior`, with a warning if `name` is the former name of the class."""
    if name == "LogUniform":
        warnings.warn(
            "LogUniform is now ImproperLogUniform, because NumPyro has a proper LogUniform: use "
            "the new name",
            DeprecationWarning,
            stacklevel=3,
        )
    return prior


@called_by_compiler
def _constants(zero_at: float, log_c: float | None) -> tuple[float, float]:
    """Return the constant that is added to -KL, and log C."""
    added, log_c = prior_constants(zero_at, log_c)
    return added, log_c


def _improper(consequence: str) -> NotImplementedError:
    return NotImplementedError(
        "ImproperLogUniform is improper, its density C/|w| has no finite integral, so it "
        + consequence
    )


@register_kl(Normal, ImproperLogUniform)
@exportable
def _kl_normal_log_uniform(p: Normal, q: ImproperLogUniform) -> Tensor:
    check_prior(p, q)
    return _expanded(_kl_of_normal(p.loc, p.scale, q), q)


def _kl_of_normal(loc: Tensor, scale: Tensor, q: ImproperLogUniform) -> Tensor:
    dtype = loc.dtype
    if dtype in (torch.float16, torch.bfloat16):
        loc, scale = loc.float(), scale.float()
    factor = unit(torch, torch.rsqrt, loc.detach(), scale.detach())
    result = kl_normal(loc * factor, 2.0 * (scale * factor).log())
    if q._constant != 0.0:
        result = result - q._constant
    return result.to(dtype)


def _expanded(result: Tensor, q: Distribution) -> Tensor:
    return result.expand(torch.broadcast_shapes(result.shape, q.batch_shape))


def _register(family: type, divergence: Callable[[Any], _divergences.Found]) -> None:
    @register_kl(family, ImproperLogUniform)
    @exportable
    def _kl(p: Distribution, q: ImproperLogUniform) -> Tensor:
        check_prior(p, q)
        result, constant, kind = divergence(p)
        return _expanded((result + (constant - q.log_c)).to(kind), q)


for _family, _divergence in _divergences.DIVERGENCES.items():
    _register(_family, _divergence)


@register_kl(LogNormal, ImproperLogUniform)
@exportable
def _kl_log_normal_log_uniform(p: LogNormal, q: ImproperLogUniform) -> Tensor:
    check_prior(p, q)
    return _expanded((-HALF_LOG_2_PI_E - q.log_c) - p.scale.log(), q)


@register_kl(Independent, ImproperLogUniform)
def _kl_independent_log_uniform(p: Independent, q: ImproperLogUniform) -> Tensor:
    check_prior(p, q)
    result: Tensor = kl_divergence(p.base_dist, q)
    for _ in range(p.reinterpreted_batch_ndims):
        result = result.sum(-1)
    return result


@register_kl(MultivariateNormal, ImproperLogUniform)
@register_kl(MultivariateNormal, Independent)
def _kl_multivariate(p: MultivariateNormal, q: Distribution) -> Tensor:
    factor = working(p.scale_tril).tril()
    others = factor.tril(-1)
    return _kl_correlated(p, q, factor.diagonal(dim1=-2, dim2=-1), others)


@register_kl(LowRankMultivariateNormal, ImproperLogUniform)
@register_kl(LowRankMultivariateNormal, Independent)
def _kl_low_rank(p: LowRankMultivariateNormal, q: Distribution) -> Tensor:
    """Compute log det of the covariance from a small matrix, by the matrix determinant lemma."""
    diagonal, others = working(p.cov_diag).sqrt(), working(p.cov_factor)
    ratio = others / diagonal[..., None]
    small = ratio.mT @ ratio + torch.eye(ratio.shape[-1], dtype=ratio.dtype, device=ratio.device)
    log_det = torch.linalg.cholesky(small).diagonal(dim1=-2, dim2=-1).log().sum(-1)
    return _kl_correlated(p, q, diagonal, others, log_det)


def _kl_correlated(
    p: Distribution, q: Any, diagonal: Tensor, others: Tensor, less: float | Tensor = 0.0
) -> Tensor:
    """Return the sum of the marginals' KL, plus the total correlation of the weights."""
    prior = q.base_dist if isinstance(q, Independent) else q
    if not isinstance(prior, ImproperLogUniform):
        raise NotImplementedError(
            f"No KL(p || q) is implemented for p type {type(p).__name__} and q type Independent"
        )
    check_prior(p, q)
    size = torch.maximum(diagonal.detach().abs(), others.detach().abs().amax(-1))
    scale, excess = marginals(torch, size, diagonal, others)
    each = _kl_of_normal(working(p.mean), scale, prior)
    return _expanded((each.sum(-1) + (excess.sum(-1) - less)).to(p.mean.dtype), q)
