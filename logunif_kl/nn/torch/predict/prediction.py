"""Compute the mean, variance, entropy and mutual information of a prediction from samples."""

# mypy: allow-untyped-calls, no-warn-return-any
from __future__ import annotations

import math
from typing import Any

import torch

from ...._errors import real_number, type_name
from ...prediction import PROBIT, Prediction
from ..moments.moments import Moments
from .likelihoods import check_class_dim, pair

Tensor = torch.Tensor

WITH_VARIANCE = "normal, with log_sigma2 from the model"


class Tally:
    """Accumulates in float64 the moments and the mean entropy of samples that arrive in parts.

    In float32 the difference of two entropies would have few digits for a confident prediction.
    """

    def __init__(self) -> None:
        self._count = 0
        self._mean: Any = 0.0
        self._squares: Any = 0.0
        self._entropy: Any = 0.0

    def add(self, likelihood: str, outputs: Tensor) -> None:
        """Add outputs of shape (samples, examples, ...), as in Chan, Golub and LeVeque (1983)."""
        values, entropies = _values(likelihood, _wide(outputs))
        mean, more = values.mean(0), len(values)
        squares = (values - mean).square().sum(0)
        total = self._count + more
        step = mean - self._mean
        self._squares = self._squares + squares + step.square() * (self._count * more / total)
        self._mean = self._mean + step * (more / total)
        self._entropy = self._entropy + (entropies.mean(0) - self._entropy) * (more / total)
        self._count = total

    def moments(self) -> tuple[Tensor, Tensor, Tensor]:
        """Return the mean, the variance and the mean entropy of all samples."""
        return self._mean, self._squares / (self._count - 1), self._entropy


def prediction(
    likelihood: str,
    moments: list[tuple[Tensor, ...]],
    samples: int,
    log_sigma2: Any,
    like: Tensor,
    class_dim: int | None,
) -> Prediction[Tensor]:
    """Return the `Prediction` for all examples, in float32 unless the outputs are float64."""
    mean, variance, of_samples = (_joined(parts) for parts in zip(*moments, strict=True))
    if likelihood == WITH_VARIANCE:
        mean, sigma2 = mean.unbind(-1)
        variance = variance[..., 0]
        entropy = _of_normal((variance + sigma2).log())
        information = (entropy - of_samples).clamp(min=0.0)
    elif likelihood == "normal":
        log_sigma2 = _log_sigma2(log_sigma2, mean)
        # Use logarithms, because sigma^2 may overflow its dtype.
        log_variance = variance.log()
        entropy = _of_normal(torch.logaddexp(log_variance, log_sigma2))
        # If all samples are equal, the mutual information is 0 for any sigma^2.
        log_ratio = torch.where(variance == 0, log_variance, log_variance - log_sigma2)
        information = 0.5 * torch.logaddexp(log_ratio, torch.zeros_like(log_sigma2))
    else:
        entropy = _entropy(likelihood, mean, 1 - mean, 1)
        # Rounding may make the difference slightly negative.
        information = (entropy - of_samples).clamp(min=0.0)
    if likelihood == "categorical":
        dim = 1 if class_dim is None else class_dim
        mean, variance = (each.movedim(1, dim) for each in (mean, variance))
    dtype = like.dtype if like.dtype == torch.float64 else torch.float32
    return Prediction(
        mean.to(dtype), variance.to(dtype), entropy.to(dtype), information.to(dtype), samples
    )


def _joined(parts: tuple[Tensor, ...]) -> Tensor:
    return torch.cat(parts) if len(parts) > 1 else parts[0]


def no_samples() -> TypeError:
    return TypeError(
        "the model returned Moments, which have no samples: pass the model that VBP wraps, "
        "vbp.model"
    )


def check_output(
    likelihood: str, output: Any, log_sigma2: Any, class_dim: int | None
) -> tuple[str, Tensor]:
    """Return the likelihood and the output of a model if they fit, otherwise raise an error.

    The classes of logits come second. A mean and log sigma^2 are stacked along the last dimension.
    """
    if isinstance(output, Moments):
        raise no_samples()
    if type(output) is tuple and likelihood in ("normal", WITH_VARIANCE):
        if log_sigma2 is not None:
            raise ValueError(
                "log_sigma2 was given, but the model returns its own: leave out the argument"
            )
        mean, of_data = torch.broadcast_tensors(*pair(output))
        return WITH_VARIANCE, torch.stack((mean, of_data), -1)
    if not isinstance(output, Tensor):
        raise TypeError(
            f"the model returned {type_name(output)}: wrap it in a module that returns one tensor"
        )
    if not output.is_floating_point():
        raise TypeError(
            f"the model returned a tensor of {output.dtype}: have it return real numbers"
        )
    if likelihood == "categorical":
        return likelihood, _check_logits(output, class_dim)
    return likelihood, output


def _check_logits(output: Tensor, class_dim: int | None) -> Tensor:
    given = output
    if class_dim is None and output.ndim == 3:
        raise ValueError(
            f"the model returned logits of shape {tuple(output.shape)}, whose classes may be in "
            "dimension 1 or -1: pass class_dim=1, or class_dim=-1 for sequences"
        )
    if class_dim is not None and output.ndim > 1:
        output = output.movedim(check_class_dim(class_dim, output), 1)
    if output.ndim < 2 or output.shape[1] < 2:
        raise ValueError(
            f"the model returned shape {tuple(given.shape)}, not (M, classes, ...): pass "
            "likelihood='bernoulli' or 'normal'"
        )
    if not output.numel():
        return output
    off = (_wide(output).sum(1) - 1.0).abs().max()
    if bool((output >= 0.0).all() & (off <= output.shape[1] * torch.finfo(output.dtype).eps)):
        raise ValueError(
            "the model returned probabilities, not logits: leave out its softmax, or take the log"
        )
    return output


def _wide(x: Tensor) -> Tensor:
    # Apple's GPUs have no float64.
    return x.float() if x.device.type == "mps" else x.double()


def _values(likelihood: str, outputs: Tensor) -> tuple[Tensor, Tensor]:
    """Return the probabilities, or the outputs for ``"normal"``, and the entropy of each sample."""
    if likelihood == "normal":
        return outputs, outputs.new_zeros(outputs.shape[:2])
    if likelihood == WITH_VARIANCE:
        mean, log_sigma2 = outputs.unbind(-1)
        return torch.stack((mean, log_sigma2.exp()), -1), _of_normal(log_sigma2)
    if likelihood == "categorical":
        values = outputs.softmax(2)
        return values, _entropy(likelihood, values, values, 2)
    link = _ndtr if likelihood == PROBIT else torch.sigmoid
    values = link(outputs)
    return values, _entropy(likelihood, values, link(-outputs), 2)


def _ndtr(x: Tensor) -> Tensor:
    """Compute Phi(x). PyTorch's ndtr is 1 + erf, which has no digits below -8 in float64."""
    return 0.5 * torch.special.erfc(-math.sqrt(0.5) * x)


def _entropy(likelihood: str, p: Tensor, others: Tensor, dim: int) -> Tensor:
    """Return -sum p log p over the classes in `dim`, or over the two classes of a Bernoulli."""
    if likelihood == "categorical":
        return torch.special.entr(p).sum(dim)
    return torch.special.entr(p) + torch.special.entr(others)


def _of_normal(log_variance: Tensor) -> Tensor:
    """Return the entropy of a normal distribution."""
    return 0.5 * (math.log(2.0 * math.pi * math.e) + log_variance)


def _log_sigma2(log_sigma2: Any, mean: Tensor) -> Tensor:
    given = 0.0 if log_sigma2 is None else log_sigma2
    if not isinstance(given, Tensor):
        given = real_number("log_sigma2", given)
    found = torch.as_tensor(given, dtype=mean.dtype, device=mean.device)
    if bool(found.isnan().any()):
        raise ValueError("log_sigma2 holds NaN: pass the logarithm of a variance")
    try:
        return found.broadcast_to(mean.shape)
    except RuntimeError:
        raise ValueError(
            f"log_sigma2 of shape {tuple(found.shape)} was given for outputs of shape "
            f"{tuple(mean.shape)}: reshape it"
        ) from None
