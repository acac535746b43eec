"""The log-uniform prior for TensorFlow Probability on JAX, and its divergences.

Importing this module registers KL(Normal || prior) and KL(LogNormal || prior) with
`tensorflow_probability.substrates.jax.distributions.kl_divergence`, which reduces Independent
distributions of equal event shapes to them.
"""

from __future__ import annotations

import warnings
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

from .._convention import ZERO_AT_INFINITY, prior_constants
from . import _prior

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
    `log_prob` is log C - log|w|. The prior cannot be sampled. The divergence from a log-normal
    posterior is -1/2 log(2 pi e) - log scale - log C.

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
        result = _prior.log_prob(self._constants, value)
        return jnp.broadcast_to(result, jnp.broadcast_shapes(result.shape, self._shape))

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


def _kl_normal(p: Any, q: Any, name: str | None = None) -> Any:
    return _broadcast(_prior.kl_of_normal(q._constants, p.loc, p.scale), q)


def _kl_log_normal(p: Any, q: Any, name: str | None = None) -> Any:
    return _broadcast(_prior.kl_of_log_normal(q._constants, p.loc, p.scale), q)


def _broadcast(divergence: Any, q: ImproperLogUniform) -> Any:
    return jnp.broadcast_to(divergence, jnp.broadcast_shapes(divergence.shape, q._shape))


distributions.RegisterKL(distributions.Normal, ImproperLogUniform)(_kl_normal)
distributions.RegisterKL(distributions.LogNormal, ImproperLogUniform)(_kl_log_normal)
