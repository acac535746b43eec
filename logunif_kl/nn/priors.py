"""Priors of weights, as the `penalty` of layers: the protocol, parameters and arithmetic.

``xp`` is the module `torch` or `jax.numpy`.
"""

from __future__ import annotations

import math
from dataclasses import dataclass
from typing import Any, Protocol, runtime_checkable

from .._errors import real_number, shown
from .._priors import positive
from .checks import count

Array = Any


@runtime_checkable
class Prior(Protocol):
    """What an object needs to be the `penalty` of layers: the method `neg_kl`.

    `neg_kl` takes the means of weights and the logarithms of their variances. Both arrays have the
    same shape, and both are float32 or both float64. It returns -KL(q || p) of each weight, with
    q = N(mu, sigma^2), as an array of the same shape and dtype that can be differentiated in both
    arguments. -KL is *maximised* (ELBO sign). A proper prior has -KL <= 0, and a constant that is
    left out changes no gradient.

    Each value must depend on its own weight alone, and not on a mean over the layer: the arrays may
    be some rows of an embedding, which leave out `padding_idx`, and may have other numbers in the
    place of pruned weights, whose values are not counted. To learn the scale of a prior, make it a
    module with parameters. Variational layers of such a module count in the KL and draw samples, as
    those of a hierarchical prior need: hold the posterior of an earlier task as tensors.

    A class need not inherit from this protocol. Make the object immutable, such as a frozen
    dataclass, because copies of a layer share it.

    See Also
    --------
    NormalPrior, ScaleMixturePrior, StudentTPrior, HorseshoePrior, PowerPrior : priors that this
        module provides.

    Examples
    --------
    -KL from the Laplace prior exp(-abs(w)/b)/(2 b), in PyTorch:

    >>> import math
    >>> from dataclasses import dataclass
    >>> import torch
    >>> from logunif_kl.torch import nn
    >>> @dataclass(frozen=True)
    ... class Laplace:
    ...     b: float
    ...
    ...     def neg_kl(self, mu, log_sigma2):
    ...         sigma = (0.5 * log_sigma2).exp()
    ...         x = mu / sigma
    ...         size = mu * torch.erf(x / math.sqrt(2))  # E|w|
    ...         size = size + sigma * math.sqrt(2 / math.pi) * (-0.5 * x * x).exp()
    ...         entropy = 0.5 * (math.log(2 * math.pi) + 1 + log_sigma2)
    ...         return entropy - math.log(2 * self.b) - size / self.b
    >>> layer = nn.VariationalLinear(3, 2, penalty=Laplace(0.5))
    >>> layer.kl().backward()
    >>> isinstance(layer.penalty, nn.Prior)
    True
    """

    def neg_kl(self, mu: Any, log_sigma2: Any) -> Any:
        """Compute -KL(q || p) of each weight, to be *maximised* (ELBO sign)."""
        ...


def is_prior(penalty: Any) -> bool:
    """Whether an object, not a class, has the method of a `Prior`."""
    return not isinstance(penalty, (str, type)) and callable(getattr(penalty, "neg_kl", None))


def refused(penalty: Any, names: str) -> TypeError:
    """Return the error for a penalty that is neither a name nor a `Fit` nor a prior."""
    given = f"the class {penalty.__name__}" if isinstance(penalty, type) else shown(penalty)
    return TypeError(
        "penalty must be a name, a Fit or an object with neg_kl(mu, log_sigma2), but "
        f"{given} was given: pass {names}"
    )


def returned(penalty: Any, mu: Any, found: Any) -> Any:
    """Return what the method of a prior gave, if it has the shape and dtype of the means."""
    given = getattr(found, "shape", None), getattr(found, "dtype", None)
    if given != (mu.shape, mu.dtype):
        what = (
            f"{type(found).__name__}"
            if None in given
            else f"an array of shape {tuple(found.shape)} and {found.dtype}"
        )
        raise ValueError(
            f"neg_kl of {type(penalty).__name__} returned {what} for weights of shape "
            f"{tuple(mu.shape)} and {mu.dtype}: return -KL of each weight, in the dtype of mu"
        )
    return found


@dataclass(frozen=True)
class NormalPrior:
    """The parameter of a normal prior, and its arithmetic."""

    variance: float = 1.0

    def __post_init__(self) -> None:
        """Check the variance."""
        object.__setattr__(self, "variance", positive("variance", self.variance))

    def _neg_kl(self, xp: Any, mu: Array, log_sigma2: Array) -> Array:
        t = log_sigma2 - math.log(self.variance)
        # expm1 keeps the digits of e^t - 1 - t where t is small.
        return -0.5 * (mu * mu / self.variance + (xp.expm1(t) - t))


@dataclass(frozen=True)
class StudentTPrior:
    """The parameters of a Student's t prior."""

    df: float = 1.0
    scale: float = 1.0

    def __post_init__(self) -> None:
        """Check the parameters."""
        for name in ("df", "scale"):
            object.__setattr__(self, name, positive(name, getattr(self, name)))


@dataclass(frozen=True)
class ScaleMixturePrior:
    """The parameters of a scale mixture of two normal distributions, and its arithmetic."""

    probability: float
    sigma1: float
    sigma2: float
    samples: int = 1

    def __post_init__(self) -> None:
        """Check the parameters."""
        for name in ("sigma1", "sigma2"):
            object.__setattr__(self, name, positive(name, getattr(self, name)))
        value = real_number("probability", self.probability)
        if not 0.0 < value < 1.0:
            raise ValueError(
                f"probability must be between 0 and 1, but {value} was given: pass 0.5, or a "
                "NormalPrior for one component"
            )
        object.__setattr__(self, "probability", value)
        count("samples", self.samples)

    def _draws(self, xp: Any, mu: Array, log_sigma2: Array, noise: Array) -> Array:
        """Return one estimate of -KL for each sample; `noise` has samples along its first axis."""
        w = mu + xp.exp(0.5 * log_sigma2) * noise
        parts = []
        for weight, sigma in ((self.probability, self.sigma1), (1 - self.probability, self.sigma2)):
            x = w / sigma
            # 1/2 log(2 pi) of the prior cancels that of the entropy, 1/2 log(2 pi e sigma^2).
            parts.append(math.log(weight) - math.log(sigma) + 0.5 - 0.5 * x * x)
        return 0.5 * log_sigma2 + xp.logaddexp(*parts)

    def _several(self) -> None:
        if self.samples < 2:
            raise ValueError("samples=1 gives no standard error: pass samples=2 or more")
