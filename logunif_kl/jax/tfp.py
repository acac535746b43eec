"""The log-uniform prior for TensorFlow Probability on JAX, and its divergences.

Importing this module registers KL from nine posteriors and the multivariate Gaussians (see
`ImproperLogUniform`) with `tensorflow_probability.substrates.jax.distributions.kl_divergence`, also
if they are Independent, Sample, Masked or BatchBroadcast.
"""

from __future__ import annotations

import contextlib
import math
import warnings
from collections.abc import Callable
from typing import Any, NoReturn

import jax.numpy as jnp

try:
    with warnings.catch_warnings():
        # TFP uses names that JAX deprecates.
        warnings.simplefilter("ignore", DeprecationWarning)
        from tensorflow_probability.substrates.jax import bijectors, distributions
except ModuleNotFoundError as error:
    if error.name != "tensorflow_probability":
        raise
    raise ImportError(
        "logunif_kl.jax.tfp needs TensorFlow Probability, which is not installed: "
        "pip install tfp-nightly"
    ) from None

from .._convention import ZERO_AT_INFINITY, Constants, prior_constants
from .._errors import check_prior, no_closed_form
from . import _divergences, _prior

__all__ = ["ImproperLogUniform"]


class ImproperLogUniform(distributions.Distribution):  # type: ignore[misc, unused-ignore]
    """The improper prior p(w) = C/|w| over the real line.

    Parameters
    ----------
    batch_shape : int or tuple of int, optional
        The shape of the weights, each of which has this prior. It broadcasts against that of the
        posterior, except in ``distributions.Independent``, which compares event shapes and needs
        the shape of the posterior here.
    zero_at : float, optional
        Choose C so that -KL(Normal || prior) vanishes at this alpha = sigma^2/mu^2, a ratio of
        variances: ``inf`` by default, for which log C = -2.054119955935...
    log_c : float, optional
        The logarithm of C instead. It shifts every divergence and every log density by the same
        amount, and no gradient.

    Attributes
    ----------
    log_c : float
        The logarithm of C, however it was chosen.

    Raises
    ------
    TypeError, ValueError
        As `logunif_kl.neg_kl` does for `zero_at` and `log_c`.

    See Also
    --------
    logunif_kl.jax.kl_normal : the divergence itself, from mu and log sigma^2.

    Notes
    -----
    `log_prob` is log C - log|w|. The prior cannot be sampled.

    With gamma = 0.5772... and J(a) = a + log Gamma(a) - a psi(a), KL is

    - for ``LogNormal(loc, scale)`` -1/2 log(2 pi e) - log scale - log C;
    - for ``Laplace(loc, scale)`` L(r) - 1 - log 2 - log C, where r = ``|loc|/scale`` and
      L(r) = log r + (e^r E1(r) - e^-r Ei(r))/2, which is -gamma at r = 0. The second derivative in
      ``loc`` is infinite at ``loc = 0``;
    - for ``Cauchy(loc, scale)`` 1/2 log(1 + loc^2/scale^2) - log(4 pi) - log C;
    - for ``Uniform(low, high)`` (high log|high| - low log|low|)/(high - low) - 1
      - log(high - low) - log C. The derivative in an edge is infinite where that edge is 0;
    - for ``StudentT(df, 0, scale)`` J((df + 1)/2) - J(df/2) - J(1/2) - log C. Derivatives in
      ``loc`` are exact up to the third. Another ``loc`` than 0 raises NotImplementedError, or, if
      it is traced, gives NaN: there is no closed form;
    - for ``Gamma(concentration, rate)`` -J(concentration) - log C;
    - for ``HalfNormal(scale)`` that of ``Normal(0, scale)`` plus log 2;
    - for ``Exponential(rate)`` -1 - gamma - log C;
    - for the multivariate Gaussians (``MultivariateNormalDiag``, ``TriL``, ``FullCovariance``,
      ``DiagPlusLowRank``, ``DiagPlusLowRankCovariance``, ``LinearOperator``) with the covariance S
      the sum of those of ``Normal(loc[i], sqrt(S[i, i]))`` plus half of
      sum(log S[i, i]) - log det S, because the entropy is 1/2 log det(2 pi e S).

    The prior of a vector is ``ImproperLogUniform()``, one prior for all weights, or one of the
    posterior's event shape: ``Independent(ImproperLogUniform(3), 1)`` for an ``Independent``,
    ``Sample(ImproperLogUniform(), 3)`` for a ``Sample``, and either for a multivariate Gaussian.
    Where a posterior is masked, KL is 0. Any other posterior raises NotImplementedError.

    Examples
    --------
    >>> import jax.numpy as jnp
    >>> from logunif_kl.jax.tfp import ImproperLogUniform
    >>> from tensorflow_probability.substrates.jax import distributions as tfd
    >>> posterior = tfd.Normal(jnp.array([1.0, 0.0]), jnp.array([1.0, 0.1]))
    >>> print(posterior.kl_divergence(ImproperLogUniform()).round(4))
    [0.4267 0.    ]
    """

    def __init__(
        self,
        batch_shape: int | tuple[int, ...] = (),
        *,
        zero_at: float = ZERO_AT_INFINITY,
        log_c: float | None = None,
        validate_args: bool = False,
        name: str = "ImproperLogUniform",
    ) -> None:
        parameters = {k: v for k, v in locals().items() if k not in ("self", "__class__")}
        self._constants = prior_constants(zero_at, log_c)
        self._shape = (batch_shape,) if isinstance(batch_shape, int) else tuple(batch_shape)
        super().__init__(
            dtype=None,
            reparameterization_type=distributions.NOT_REPARAMETERIZED,
            validate_args=validate_args,
            allow_nan_stats=True,
            parameters=parameters,
            name=name,
        )

    @property
    def log_c(self) -> float:
        """The logarithm of C in C/|w|."""
        return self._constants.log_c

    @classmethod
    def _parameter_properties(cls, dtype: Any, num_classes: Any = None) -> dict[str, Any]:
        return {}

    def _batch_shape(self) -> Any:
        return self._shape

    def _batch_shape_tensor(self) -> Any:
        return jnp.array(self._shape, dtype=jnp.int32)

    def _event_shape(self) -> Any:
        return ()

    def _event_shape_tensor(self) -> Any:
        return jnp.array((), dtype=jnp.int32)

    def _log_prob(self, value: Any) -> Any:
        return _prior.spread(_prior.log_prob(self._constants, value), self._shape)

    def _sample_n(self, n: int, seed: Any = None) -> Any:
        raise _prior.no_sample()

    def _mean(self) -> NoReturn:
        raise _prior.lacks("mean")

    def _variance(self) -> NoReturn:
        raise _prior.lacks("variance")

    def _stddev(self) -> NoReturn:
        raise _prior.lacks("variance")

    def _entropy(self) -> NoReturn:
        raise _prior.lacks("entropy")

    def _cdf(self, value: Any) -> NoReturn:
        raise _prior.lacks("cdf")

    def _log_cdf(self, value: Any) -> NoReturn:
        raise _prior.lacks("cdf")

    def _quantile(self, value: Any) -> NoReturn:
        raise _prior.lacks("quantile")

    def _default_event_space_bijector(self) -> Any:
        return bijectors.Identity(validate_args=self.validate_args)


def _general(kind: type) -> type:
    """Return the base class, which TFP uses for wrappers of distributions that are not pytrees."""
    return kind.__bases__[0]


_INDEPENDENT, _SAMPLE = _general(distributions.Independent), _general(distributions.Sample)


def _rule(family: type, *priors: type) -> Callable[[Any], Any]:
    """Register a divergence that checks the shapes of the posterior and the prior first."""

    def register(divergence: Any) -> Any:
        def of(p: Any, q: Any, name: str | None = None) -> Any:
            prior = q if isinstance(q, ImproperLogUniform) else q.distribution
            if not isinstance(prior, ImproperLogUniform):
                raise NotImplementedError(
                    "No KL(distribution_a || distribution_b) registered for distribution_a type "
                    f"{type(p).__name__} and distribution_b type {type(q).__name__}"
                )
            check_prior(p, q)
            return _prior.spread(divergence(p, prior), q.batch_shape)

        distributions.RegisterKL(family, ImproperLogUniform)(of)
        for kind in priors:
            # After importlib.reload the rule from before finds the new class by its name.
            with contextlib.suppress(ValueError):
                distributions.RegisterKL(family, kind)(of)
        return divergence

    return register


def _register(family: type, divergence: Callable[..., Any], *parameters: str) -> None:
    @_rule(family)
    def of(p: Any, q: Any) -> Any:
        return divergence(q._constants, *(getattr(p, parameter) for parameter in parameters))


def _kl_of_gamma(constants: Constants, concentration: Any, rate: Any, log_rate: Any) -> Any:
    return _divergences.kl_of_gamma(
        constants, concentration, jnp.exp(log_rate) if rate is None else rate
    )


_register(distributions.Normal, _divergences.kl_of_normal, "loc", "scale")
_register(distributions.LogNormal, _divergences.kl_of_log_normal, "loc", "scale")
_register(distributions.Laplace, _divergences.kl_of_laplace, "loc", "scale")
_register(distributions.Cauchy, _divergences.kl_of_cauchy, "loc", "scale")
_register(distributions.Uniform, _divergences.kl_of_uniform, "low", "high")
_register(distributions.StudentT, _divergences.kl_of_student, "df", "loc", "scale")
_register(distributions.Gamma, _kl_of_gamma, "concentration", "rate", "log_rate")
_register(distributions.HalfNormal, _divergences.kl_of_half_normal, "scale")
_register(distributions.Exponential, _divergences.kl_of_exponential, "rate")


@distributions.RegisterKL(distributions.Distribution, ImproperLogUniform)
def _others(p: Any, q: ImproperLogUniform, name: str | None = None) -> NoReturn:
    raise no_closed_form(p)


@_rule(_INDEPENDENT)
def _independent(p: Any, q: ImproperLogUniform) -> Any:
    number = len(p.event_shape) - len(p.distribution.event_shape)
    return distributions.kl_divergence(p.distribution, q).sum(tuple(range(-number, 0)))


@_rule(_SAMPLE)
def _sample(p: Any, q: ImproperLogUniform) -> Any:
    shape = tuple(p.event_shape)[: len(p.event_shape) - len(p.distribution.event_shape)]
    return math.prod(shape) * distributions.kl_divergence(p.distribution, q)


@_rule(_general(distributions.Masked))
def _masked(p: Any, q: ImproperLogUniform) -> Any:
    """Take the mask of the posterior for that of the prior."""
    return jnp.where(p.validity_mask, distributions.kl_divergence(p.distribution, q), 0.0)


@_rule(_general(distributions.BatchBroadcast))
def _broadcast(p: Any, q: ImproperLogUniform) -> Any:
    return _prior.spread(distributions.kl_divergence(p.distribution, q), p.batch_shape)


@_rule(distributions.MultivariateNormalLinearOperator, _INDEPENDENT, _SAMPLE)
def _matrix(p: Any, q: ImproperLogUniform) -> Any:
    return _divergences.kl_of_matrix(q._constants, p.mean(), p.scale.to_dense())


@_rule(distributions.MultivariateNormalTriL, _INDEPENDENT, _SAMPLE)
def _triangular(p: Any, q: ImproperLogUniform) -> Any:
    return _divergences.kl_of_triangular(q._constants, p.mean(), p.scale.to_dense())


@_rule(distributions.MultivariateNormalDiag, _INDEPENDENT, _SAMPLE)
def _diagonal(p: Any, q: ImproperLogUniform) -> Any:
    return _divergences.kl_of_normal(q._constants, p.mean(), p.stddev()).sum(-1)


@_rule(distributions.MultivariateNormalDiagPlusLowRankCovariance, _INDEPENDENT, _SAMPLE)
def _low_rank(p: Any, q: ImproperLogUniform) -> Any:
    return _divergences.kl_of_low_rank(
        q._constants, p.mean(), p.cov_perturb_factor, p.cov_diag_factor
    )
