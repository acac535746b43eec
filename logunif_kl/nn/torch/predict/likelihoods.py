"""Log-likelihoods of each example, for `ELBO`."""

# mypy: allow-untyped-calls, no-warn-return-any
from __future__ import annotations

import math
from typing import Any

import torch
from torch.nn import functional as F

from ...._errors import type_name
from ....torch._internals import plain, transformed
from ..arguments import whole_number
from ..moments.moments import Moments

Tensor = torch.Tensor


def categorical_log_likelihood(
    logits: Tensor, target: Tensor, *, class_dim: int | None = None, ignore_index: int = -100
) -> Tensor:
    """Compute log p(target) of each example for a categorical likelihood, for use in `ELBO`.

    This is ``-cross_entropy(..., reduction="none")``: the target's logit minus logsumexp(logits).

    Parameters
    ----------
    logits : Tensor
        Of shape (M, classes, ...), not normalised.
    target : Tensor
        Classes (integers of shape (M, ...)), or probabilities of the shape of `logits`.
    class_dim : int, optional
        The dimension of the classes in `logits`, and in `target` if it holds probabilities. The
        default is 1, but must be passed if the last dimension fits `target` as well. For language
        models with logits of shape (M, time, classes), pass
        ``functools.partial(nn.categorical_log_likelihood, class_dim=-1)`` to `ELBO`.
    ignore_index : int
        The class of labels that do not count, such as those of padding: log p is 0 for them, with
        no gradient. An example without other labels still counts in the M of `ELBO`.

    Returns
    -------
    Tensor
        Of shape (M, ...).

    Raises
    ------
    TypeError
        If `target` is not a tensor, or `class_dim` is not an integer.
    ValueError
        If `logits` has no dimension `class_dim` for the classes, or only one class, or if the
        dimension is the first, which is that of the examples; or if `target` does not have the
        shape of `logits`, without the classes if it holds integers.

    Examples
    --------
    >>> import torch
    >>> from logunif_kl.torch import nn
    >>> nn.categorical_log_likelihood(torch.zeros(2, 4), torch.tensor([0, 3]))
    tensor([-1.3863, -1.3863])
    """
    _no_moments(logits, "categorical")
    _check_target(target)
    if logits.ndim < 2:
        raise ValueError(
            f"logits must be of shape (M, classes), but {tuple(logits.shape)} was given: add the "
            "dimension of the minibatch"
        )
    dim = 1 if class_dim is None else check_class_dim(class_dim, logits)
    if class_dim is None and logits.ndim > 2 and _fits(target, logits, -1):
        also = " as well as class_dim=1" * _fits(target, logits, 1)
        raise ValueError(
            f"logits of shape {tuple(logits.shape)} and a target of shape {tuple(target.shape)} "
            f"fit class_dim=-1{also}: pass class_dim, to ELBO as functools.partial(likelihood, "
            "class_dim=-1)"
        )
    if target.is_floating_point():
        if target.shape != logits.shape:
            raise ValueError(
                f"target of {target.dtype} and shape {tuple(target.shape)} was given for logits of "
                f"shape {tuple(logits.shape)}: pass target.long() for classes, or probabilities of "
                "the shape of the logits"
            )
        target = target.movedim(dim, 1)
    logits = logits.movedim(dim, 1)
    if logits.shape[1] == 1:
        raise ValueError(
            f"logits of shape {tuple(logits.shape)} were given, but a softmax over one class is "
            "always 1: use bernoulli_log_likelihood for a single logit"
        )
    if not target.is_floating_point():
        if not _fits(target, logits, 1):
            raise ValueError(
                f"target of shape {tuple(target.shape)} was given for logits whose shape without "
                f"the classes is {tuple(logits.select(1, 0).shape)}: pass one class for each"
            )
        target = target.long()  # cross_entropy accepts no other integers
    return -F.cross_entropy(logits, target, reduction="none", ignore_index=ignore_index)


def bernoulli_log_likelihood(logits: Tensor, target: Tensor) -> Tensor:
    """Compute log p(target) of each element for a Bernoulli likelihood, for use in `ELBO`.

    This is target log s + (1 - target) log(1 - s), with s = sigmoid(logits).

    Parameters
    ----------
    logits : Tensor
        Of any shape whose first dimension is the minibatch.
    target : Tensor
        Of the same shape: 0 or 1, or probabilities of 1.

    Returns
    -------
    Tensor
        Of the same shape.

    Raises
    ------
    TypeError
        If `target` is not a tensor.
    ValueError
        If the shapes differ, or a target is NaN, below 0 or above 1. Targets are checked only on
        the CPU, and not under `torch.compile`.

    Examples
    --------
    >>> import torch
    >>> from logunif_kl.torch import nn
    >>> nn.bernoulli_log_likelihood(torch.zeros(2), torch.tensor([0.0, 1.0]))
    tensor([-0.6931, -0.6931])
    """
    _no_moments(logits, "bernoulli")
    check_same_shape("logits", logits, target)
    check_probabilities(target)
    return -F.binary_cross_entropy_with_logits(logits, target.to(logits.dtype), reduction="none")


def normal_log_likelihood(
    mean: Tensor | tuple[Tensor, Tensor], target: Tensor, log_sigma2: Tensor | float = 0.0
) -> Tensor:
    """Compute log p(target) of each element for a normal likelihood, for use in `ELBO`.

    This is -(log(2 pi) + log_sigma2 + (target - mean)^2 / sigma^2) / 2. For a variance other than
    1, pass ``functools.partial(normal_log_likelihood, log_sigma2=...)`` to `ELBO`, or let the model
    return a tuple of the mean and log sigma^2.

    Parameters
    ----------
    mean : Tensor, or tuple of two Tensors
        Of any shape whose first dimension is the minibatch. A tuple also holds `log_sigma2`.
    target : Tensor
        Of the same shape.
    log_sigma2 : Tensor or float
        The logarithm of the variance of the data's noise: a number, or a tensor that broadcasts to
        the shape of `mean`. It is not used if `mean` is a tuple.

    Returns
    -------
    Tensor
        Of the same shape.

    Raises
    ------
    TypeError
        If `target` is not a tensor.
    ValueError
        If the shapes of `mean` and `target` differ, or `log_sigma2` does not broadcast to them.

    Examples
    --------
    >>> import torch
    >>> from logunif_kl.torch import nn
    >>> nn.normal_log_likelihood(torch.zeros(2), torch.tensor([0.0, 1.0]))
    tensor([-0.9189, -1.4189])
    """
    if isinstance(mean, tuple):
        mean, log_sigma2 = pair(mean)
    _no_moments(mean, "normal")
    check_same_shape("mean", mean, target)
    log_sigma2 = of_noise(log_sigma2, mean)
    if not _broadcasts(log_sigma2.shape, mean.shape):
        raise ValueError(
            f"log_sigma2 of shape {tuple(log_sigma2.shape)} was given, which does not broadcast to "
            f"the shape of mean, {tuple(mean.shape)}: reshape it"
        )
    dtype = torch.promote_types(target.dtype, log_sigma2.dtype)
    squares = (target.to(dtype) - mean.to(dtype)).square() * (-log_sigma2).exp()
    return -0.5 * (math.log(2.0 * math.pi) + log_sigma2 + squares)


def of_noise(log_sigma2: Any, mean: Tensor) -> Tensor:
    """Return log sigma^2 as a tensor with all its digits, also if the mean is of a half type."""
    dtype = torch.promote_types(mean.dtype, torch.float32)
    return torch.as_tensor(log_sigma2, dtype=dtype, device=mean.device)


def pair(output: tuple[Any, ...]) -> tuple[Tensor, Tensor]:
    """Return the mean and log sigma^2 that a model returned, or raise an error."""
    if len(output) != 2 or not all(isinstance(each, Tensor) for each in output):
        raise ValueError(
            f"the model returned a tuple of {len(output)}: have it return one tensor, or a tuple "
            "of the mean and log_sigma2"
        )
    return output  # type: ignore[return-value]


def _broadcasts(shape: torch.Size, to: torch.Size) -> bool:
    return len(shape) <= len(to) and all(
        n in (1, m) for n, m in zip(reversed(shape), reversed(to), strict=False)
    )


def check_class_dim(class_dim: int, logits: Tensor) -> int:
    """Return the dimension of the classes in logits, or raise an error."""
    dim = whole_number("class_dim", class_dim, "-1 for the last dimension")
    if not -logits.ndim < dim < logits.ndim or dim == 0:
        raise ValueError(
            f"class_dim={dim} was given for logits of {logits.ndim} dimensions, whose first "
            f"is that of the examples: pass one from 1 to {logits.ndim - 1}, or -1"
        )
    return dim


def _fits(target: Tensor, logits: Tensor, dim: int) -> bool:
    """Whether a target has the shape that it needs if the classes are in this dimension."""
    shape = list(logits.shape)
    if not target.is_floating_point():
        del shape[dim]
    return list(target.shape) == shape


def _check_target(target: Any) -> None:
    if not isinstance(target, Tensor):
        raise TypeError(
            f"target must be a torch.Tensor, but {type_name(target)} was given: convert it with "
            "torch.as_tensor"
        )


def _no_moments(output: Any, name: str) -> None:
    if isinstance(output, Moments):
        raise TypeError(
            f"moments were given to {name}_log_likelihood: pass "
            f"expected_{name}_log_likelihood to ELBO"
        )


def check_probabilities(target: Tensor) -> None:
    """Raise if a target of a Bernoulli likelihood is NaN, below 0 or above 1.

    Targets on an accelerator are not checked, because reading them would wait for the device.
    """
    if torch.compiler.is_compiling() or transformed() or not plain(target) or not target.is_cpu:
        return
    if target.dtype != torch.bool and target.numel():
        least, most = (x.item() for x in target.detach().aminmax())
        if least != least:
            raise ValueError("target holds NaN: leave out the examples that have no target")
        if not (least >= 0 and most <= 1):
            raise ValueError(
                f"target holds numbers from {least:g} to {most:g}, not from 0 to 1: pass "
                "(target + 1)/2 for labels of -1 and 1"
            )


def check_same_shape(name: str, first: Tensor, target: Tensor) -> None:
    """Raise if the target is not a tensor of the shape of the output `first`."""
    _check_target(target)
    if first.shape != target.shape:
        raise ValueError(
            f"{name} of shape {tuple(first.shape)} and target of shape {tuple(target.shape)} were "
            "given, which would broadcast to pairs of examples: reshape one of them"
        )
