"""The log-uniform prior for NumPyro, and KL from NumPyro's posteriors to it.

Importing this module registers KL from eleven families of posteriors to the prior (see
`ImproperLogUniform`) with `numpyro.distributions.kl_divergence`. The posteriors may be Independent,
expanded or masked. `numpyro.infer.TraceMeanField_ELBO` then uses the exact divergence.

`numpyro.distributions.LogUniform` is a proper distribution on an interval [a, b] with a > 0, and
can be sampled. The prior here is C/|w| over the real line, whose integral is infinite.
"""

from __future__ import annotations

import copy
from typing import Any, NoReturn

try:
    from numpyro import distributions
    from numpyro.distributions import Delta, Distribution, Independent, constraints, kl_divergence
    from numpyro.distributions.distribution import ExpandedDistribution, MaskedDistribution
    from numpyro.distributions.util import validate_sample
except ModuleNotFoundError as _error:
    if _error.name != "numpyro":
        raise
    raise ImportError(
        "logunif_kl.jax.numpyro needs NumPyro, which is not installed: pip install numpyro"
    ) from None

from .._convention import ZERO_AT_INFINITY, prior_constants
from .._errors import no_closed_form
from . import _divergences, _prior

__all__ = ["ImproperLogUniform"]


class ImproperLogUniform(Distribution):  # type: ignore[misc, unused-ignore]
    """The improper prior p(w) = C/|w| over the real line.

    Parameters
    ----------
    zero_at : float, optional
        Choose C so that -KL(Normal || prior) vanishes at this alpha = sigma^2/mu^2. The default
        ``inf`` gives log C = -2.054119955935...
    log_c : float, optional
        The logarithm of C, instead of `zero_at`. It is added to every log density and subtracted
        from every divergence. Gradients do not depend on it.

    Attributes
    ----------
    log_c : float
        The logarithm of C, also if `zero_at` was given.

    Raises
    ------
    TypeError, ValueError
        If `zero_at` or `log_c` is not valid: see `logunif_kl.neg_kl`.

    See Also
    --------
    logunif_kl.jax.kl_normal : the divergence itself, from mu and log sigma^2.

    Notes
    -----
    This is the prior of one weight. `expand` and `to_event` turn it into a prior of many weights.
    `log_prob` is log C - log|w|. The prior cannot be sampled, so autoguides and MCMC must start
    with ``init_to_uniform`` or from given values.

    With gamma = 0.5772... and J(a) = a + log Gamma(a) - a psi(a), KL is

    - for ``LogNormal(loc, scale)``: -1/2 log(2 pi e) - log scale - log C;
    - for ``Laplace(loc, scale)``: L(r) - 1 - log 2 - log C, where r = ``|loc|/scale``,
      L(r) = log r + (e^r E1(r) - e^-r Ei(r))/2, and L(0) = -gamma. The second derivative in
      ``loc`` is infinite at ``loc = 0``;
    - for ``Cauchy(loc, scale)``: 1/2 log(1 + loc^2/scale^2) - log(4 pi) - log C;
    - for ``Uniform(low, high)``: (high log|high| - low log|low|)/(high - low) - 1
      - log(high - low) - log C. The derivative in one end is infinite if that end is 0;
    - for ``StudentT(df, 0, scale)``: J((df + 1)/2) - J(df/2) - J(1/2) - log C. Derivatives in
      ``loc`` are exact up to the third order. KL has no closed form for another ``loc``: then
      ``kl_divergence`` raises NotImplementedError, or returns NaN if ``loc`` is traced;
    - for ``Gamma(concentration, rate)``: -J(concentration) - log C;
    - for ``HalfNormal(scale)``: KL of ``Normal(0, scale)`` plus log 2;
    - for ``Exponential(rate)``: -1 - gamma - log C;
    - for ``MultivariateNormal`` and ``LowRankMultivariateNormal`` with the covariance S: the sum of
      KL of ``Normal(loc[i], sqrt(S[i, i]))`` plus (sum(log S[i, i]) - log det S)/2, because the
      entropy of the posterior is 1/2 log det(2 pi e S).

    For a posterior over vectors, pass ``ImproperLogUniform()``, which applies to each weight, or a
    prior of the same event shape, such as ``ImproperLogUniform().expand([3]).to_event(1)``. KL is 0
    where a posterior is masked. Any other posterior raises NotImplementedError, and
    `TraceMeanField_ELBO` then takes samples.

    Examples
    --------
    >>> import jax.numpy as jnp
    >>> from numpyro.distributions import Normal, kl_divergence
    >>> from logunif_kl.jax.numpyro import ImproperLogUniform
    >>> posterior = Normal(jnp.array([1.0, 0.0]), jnp.array([1.0, 0.1]))
    >>> print(kl_divergence(posterior, ImproperLogUniform()).round(4))
    [0.4267 0.    ]
    """

    arg_constraints: dict[str, Any] = {}  # noqa: RUF012
    support: Any = constraints.real
    pytree_aux_fields: tuple[str, ...] = ("_constants",)

    def __init__(
        self,
        *,
        zero_at: float = ZERO_AT_INFINITY,
        log_c: float | None = None,
        validate_args: bool | None = None,
    ) -> None:
        self._constants = prior_constants(zero_at, log_c)
        super().__init__(batch_shape=(), event_shape=(), validate_args=validate_args)

    def expand(self, batch_shape: Any) -> ImproperLogUniform:
        """Return the same prior with another batch shape."""
        new = copy.copy(self)
        new._batch_shape = super().expand(batch_shape).batch_shape
        return new

    @property
    def log_c(self) -> float:
        """The logarithm of C in C/|w|."""
        return self._constants.log_c

    @validate_sample  # type: ignore[misc, untyped-decorator, unused-ignore]
    def log_prob(self, value: Any) -> Any:
        """Compute log C - log|w|, infinite at 0."""
        return _prior.log_prob(self._constants, value, self.batch_shape)

    def sample(self, key: Any, sample_shape: tuple[int, ...] = ()) -> Any:
        """Raise NotImplementedError, because an improper prior has no samples."""
        raise _prior.no_sample()

    mean: property = property(_prior.lacking("mean"))
    variance: property = property(_prior.lacking("variance"))

    def entropy(self) -> NoReturn:
        """Raise NotImplementedError, because an improper distribution has no entropy."""
        raise _prior.lacks("entropy")

    def cdf(self, value: Any) -> NoReturn:
        """Raise NotImplementedError, because an improper distribution has no CDF."""
        raise _prior.lacks("cdf")

    def icdf(self, q: Any) -> NoReturn:
        """Raise NotImplementedError, because an improper distribution has no quantiles."""
        raise _prior.lacks("quantile")


def _register(family: type, divergence: _prior.Divergence, *priors: type) -> None:
    pair = "Could not find signature for kl_divergence: <{}, {}>"
    of = _prior.checked(divergence, ImproperLogUniform, "base_dist", pair)
    for kind in (ImproperLogUniform, *priors):
        kl_divergence.add((family, kind), of)


_register(distributions.Normal, _prior.of_parameters(_divergences.kl_of_normal, "loc", "scale"))
for _name, _family in _divergences.FAMILIES.items():
    _register(getattr(distributions, _name), _prior.of_parameters(_family.kl, *_family.parameters))
_register(
    distributions.MultivariateNormal,
    _prior.of_parameters(_divergences.kl_of_triangular, "mean", "scale_tril"),
    Independent,
)
_register(
    distributions.LowRankMultivariateNormal,
    _prior.of_parameters(_divergences.kl_of_low_rank, "mean", "cov_factor", "cov_diag"),
    Independent,
)

_independent, _masked, _expanded = _prior.wrappers(kl_divergence, "base_dist", "_mask")
_register(Independent, _independent)
_register(MaskedDistribution, _masked)
_register(ExpandedDistribution, _expanded)


def _others(p: Distribution, q: ImproperLogUniform) -> NoReturn:
    raise no_closed_form(p)


kl_divergence.add((Delta, ImproperLogUniform), kl_divergence.dispatch(Delta, Distribution))
kl_divergence.add((Distribution, ImproperLogUniform), _others)
