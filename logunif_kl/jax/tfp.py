"""The log-uniform prior for TensorFlow Probability on JAX, and KL from TFP's posteriors to it.

Importing this module registers KL from nine families of posteriors and from the multivariate
Gaussians (see `ImproperLogUniform`) with the function `kl_divergence` of
`tensorflow_probability.substrates.jax.distributions`. The posteriors may be Independent, Sample,
Masked or BatchBroadcast.
"""

from __future__ import annotations

import contextlib
import math
from typing import Any, NoReturn

import jax.numpy as jnp

try:
    from tensorflow_probability.substrates.jax import bijectors, distributions
except ModuleNotFoundError as _error:
    if _error.name != "tensorflow_probability":
        raise
    raise ImportError(
        "logunif_kl.jax.tfp needs TensorFlow Probability, which is not installed: "
        "pip install tfp-nightly"
    ) from None

from .._convention import ZERO_AT_INFINITY, prior_constants
from .._errors import no_closed_form
from . import _divergences, _prior

__all__ = ["ImproperLogUniform"]


class ImproperLogUniform(distributions.Distribution):  # type: ignore[misc, unused-ignore]
    """The improper prior p(w) = C/|w| over the real line.

    Parameters
    ----------
    batch_shape : int or tuple of int, optional
        The shape of the weights, each of which has this prior. It broadcasts against the shape of
        the posterior, except in ``distributions.Independent``, which compares event shapes.
    zero_at, log_c : float, optional
        The constant C: see `logunif_kl.jax.numpyro.ImproperLogUniform`.

    Attributes
    ----------
    log_c : float
        The logarithm of C, also if `zero_at` was given.

    See Also
    --------
    logunif_kl.jax.kl_normal : the divergence from mu and log sigma^2.

    Notes
    -----
    `log_prob` is log C - log|w|. The prior cannot be sampled. KL from each family of posteriors is
    the formula in the notes of `logunif_kl.jax.numpyro.ImproperLogUniform`. The multivariate
    Gaussians are ``MultivariateNormalDiag``, ``TriL``, ``FullCovariance``, ``DiagPlusLowRank``,
    ``DiagPlusLowRankCovariance`` and ``LinearOperator``.

    For a posterior over vectors, pass ``ImproperLogUniform()``, which applies to each weight, or a
    prior of the same event shape. That is ``Independent(ImproperLogUniform(3), 1)`` for an
    ``Independent``, ``Sample(ImproperLogUniform(), 3)`` for a ``Sample``, and either of them for a
    multivariate Gaussian. KL is 0 where a posterior is masked. Any other posterior raises
    NotImplementedError.

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
        return _prior.log_prob(self._constants, value, self._shape)

    def _sample_n(self, n: int, seed: Any = None) -> Any:
        raise _prior.no_sample()

    _mean = _prior.lacking("mean")
    _variance = _stddev = _prior.lacking("variance")
    _entropy = _prior.lacking("entropy")
    _cdf = _log_cdf = _prior.lacking("cdf")
    _quantile = _prior.lacking("quantile")

    def _default_event_space_bijector(self) -> Any:
        return bijectors.Identity(validate_args=self.validate_args)


def _general(kind: type) -> type:
    """Return the base class of `kind`, which TFP uses for distributions that are not pytrees."""
    return kind.__bases__[0]


_INDEPENDENT, _SAMPLE = _general(distributions.Independent), _general(distributions.Sample)


def _register(family: type, divergence: _prior.Divergence, *priors: type) -> None:
    pair = (
        "No KL(distribution_a || distribution_b) registered for distribution_a type {} and "
        "distribution_b type {}"
    )
    of = _prior.checked(divergence, ImproperLogUniform, "distribution", pair)
    distributions.RegisterKL(family, ImproperLogUniform)(of)
    for kind in priors:
        # After importlib.reload the pair is registered already, and TFP raises ValueError.
        with contextlib.suppress(ValueError):
            distributions.RegisterKL(family, kind)(of)


def _gamma(p: Any, q: ImproperLogUniform) -> Any:
    rate = jnp.exp(p.log_rate) if p.rate is None else p.rate
    return _divergences.FAMILIES["Gamma"].kl(q._constants, p.concentration, rate)


def _sample(p: Any, q: ImproperLogUniform) -> Any:
    number = len(p.event_shape) - len(p.distribution.event_shape)
    return math.prod(tuple(p.event_shape)[:number]) * distributions.kl_divergence(p.distribution, q)


_register(distributions.Normal, _prior.of_parameters(_divergences.kl_of_normal, "loc", "scale"))
for _name, _family in _divergences.FAMILIES.items():
    _of_family = _prior.of_parameters(_family.kl, *_family.parameters)
    _register(getattr(distributions, _name), _gamma if _name == "Gamma" else _of_family)

_independent, _masked, _broadcast = _prior.wrappers(
    distributions.kl_divergence, "distribution", "validity_mask"
)
_register(_INDEPENDENT, _independent)
_register(_SAMPLE, _sample)
_register(_general(distributions.Masked), _masked)
_register(_general(distributions.BatchBroadcast), _broadcast)


def _multivariate(family: type, divergence: _prior.Divergence) -> None:
    _register(family, divergence, _INDEPENDENT, _SAMPLE)


_multivariate(
    distributions.MultivariateNormalLinearOperator,
    lambda p, q: _divergences.kl_of_matrix(q._constants, p.mean(), p.scale.to_dense()),
)
_multivariate(
    distributions.MultivariateNormalTriL,
    lambda p, q: _divergences.kl_of_triangular(q._constants, p.mean(), p.scale.to_dense()),
)
_multivariate(
    distributions.MultivariateNormalDiag,
    lambda p, q: _divergences.kl_of_normal(q._constants, p.mean(), p.stddev()).sum(-1),
)
_multivariate(
    distributions.MultivariateNormalDiagPlusLowRankCovariance,
    lambda p, q: _divergences.kl_of_low_rank(
        q._constants, p.mean(), p.cov_perturb_factor, p.cov_diag_factor
    ),
)


@distributions.RegisterKL(distributions.Distribution, ImproperLogUniform)
def _others(p: Any, q: ImproperLogUniform, name: str | None = None) -> NoReturn:
    raise no_closed_form(p)
