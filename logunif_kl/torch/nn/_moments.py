"""Mean and variance of a network's outputs in one pass, without samples.

`Moments` stand in a network for its input. They pass through the layers of this package, and
through those functions of torch that have a rule in `_moments_rules`; all others refuse them.
"""

# mypy: allow-untyped-calls, no-warn-return-any
from __future__ import annotations

import math
from collections.abc import Iterator
from typing import Any

import torch

from ..._refusals import real_number, type_name
from . import _moments_rules as rules

Tensor = torch.Tensor


class Moments:
    """The mean and the variance of each element of a tensor.

    Given to a network in place of a tensor, they come out as the mean and the variance of its
    outputs under the posterior over its weights: see `moments`. ``mean, variance = found`` unpacks
    them. They have `shape`, `ndim`, `dtype`, `device`, and those methods of tensors that arrange
    elements, such as `flatten` and `view`. Constants may be added and multiplied.

    Parameters
    ----------
    mean : Tensor
        Of a floating type.
    variance : Tensor, optional
        Of the same shape, and not negative, which is not checked; zero by default.
    steepness : float
        As for `moments`.

    Attributes
    ----------
    mean, variance : Tensor
        Of the same shape. Where the mean is of float16, the variance is of float32.
    steepness : float

    Raises
    ------
    TypeError
        If `mean` or `variance` is no tensor of real numbers, or `steepness` no number.
    ValueError
        If the shapes differ, or `steepness` is not positive.

    Examples
    --------
    >>> import torch
    >>> from logunif_kl.torch import nn
    >>> x = nn.Moments(torch.tensor([[3.0, -1.0]]), torch.tensor([[0.5, 0.5]]))
    >>> mean, variance = torch.nn.functional.relu(x)
    >>> mean, variance
    (tensor([[3., 0.]]), tensor([[0.5000, 0.0000]]))
    """

    def __init__(
        self, mean: Tensor, variance: Tensor | None = None, *, steepness: float = math.inf
    ) -> None:
        _check("mean", mean)
        if variance is not None:
            _check("variance", variance)
            if variance.shape != mean.shape:
                raise ValueError(
                    f"variance of shape {tuple(variance.shape)} was given with a mean of shape "
                    f"{tuple(mean.shape)}: pass one of the same shape"
                )
        self.mean, self._spread, self.steepness = mean, variance, _steepness(steepness)

    @property
    def variance(self) -> Tensor:
        """The variances: zeros where none were given."""
        return torch.zeros_like(self.mean) if self._spread is None else self._spread

    def __iter__(self) -> Iterator[Tensor]:
        """Unpack the mean and the variance."""
        yield self.mean
        yield self.variance

    def __repr__(self) -> str:
        """Show both."""
        return f"Moments(mean={self.mean}, variance={self.variance})"

    def _like(self, mean: Tensor, spread: Tensor | None) -> Moments:
        """Make others of the same steepness; nothing is checked."""
        found = object.__new__(type(self))
        found.mean, found._spread, found.steepness = mean, spread, self.steepness
        return found

    shape = property(lambda self: self.mean.shape)
    ndim = property(lambda self: self.mean.ndim)
    dtype = property(lambda self: self.mean.dtype)
    device = property(lambda self: self.mean.device)

    def size(self, dim: int | None = None) -> Any:
        """Return the shape, or a length of it."""
        return self.mean.shape if dim is None else self.mean.shape[dim]

    def dim(self) -> int:
        """Return the number of dimensions."""
        return self.mean.ndim

    def relu(self) -> Moments:
        """Rectify: see `moments`."""
        return rules.relu(self)

    def __getitem__(self, at: Any) -> Moments:
        """Take some of the elements."""
        return rules.arranged("__getitem__")(self, at)

    def __add__(self, other: Any) -> Moments:
        """Add a constant."""
        _check_constant("added to", other)
        return rules.shift(self, other)

    def __sub__(self, other: Any) -> Moments:
        """Subtract a constant."""
        _check_constant("subtracted from", other)
        return rules.shift(self, -other)

    def __mul__(self, other: Any) -> Moments:
        """Multiply by a constant."""
        _check_constant("multiplied by", other)
        return rules.scale(self, other)

    def __truediv__(self, other: Any) -> Moments:
        """Divide by a constant."""
        _check_constant("divided by", other)
        return rules.scale(self, 1.0 / other)

    __radd__, __rmul__ = __add__, __mul__

    @classmethod
    def __torch_function__(
        cls, function: Any, types: Any, args: Any = (), kwargs: Any = None
    ) -> Any:
        """Apply a rule in place of a function of torch."""
        rule = rules.RULES.get(function)
        others = [*args[1:], *(kwargs or {}).values()]
        first = bool(args) and isinstance(args[0], Moments)
        if rule is None or not first or any(isinstance(x, Moments) for x in others):
            name = getattr(function, "__name__", str(function))
            raise TypeError(
                f"moments do not pass through torch's {name!r}: use linear layers, convolutions, "
                "ReLU and pooling, or sample"
            )
        return rule(*args, **(kwargs or {}))


def _method(name: str) -> Any:
    function = rules.arranged(name)

    def method(self: Moments, *args: Any, **kwargs: Any) -> Moments:
        return function(self, *args, **kwargs)

    method.__name__ = name
    method.__doc__ = f"Apply `torch.Tensor.{name}` to both."
    return method


for _name in rules.ARRANGING:
    setattr(Moments, _name, _method(_name))


def moments(
    model: torch.nn.Module,
    x: Tensor,
    variance: Tensor | None = None,
    *,
    steepness: float = math.inf,
) -> Moments:
    """Compute the mean and the variance of a network's outputs without samples.

    Variance back-propagation ([1]_, section 2.3). Through a layer with weights N(mu, sigma^2), from
    inputs a that are taken for independent (Eqs. 3 and 4)::

        E[h_j]   = sum_i E[a_i] mu_ij + bias_j
        var[h_j] = sum_i E[a_i]^2 sigma_ij^2 + var[a_i] (mu_ij^2 + sigma_ij^2)

    A rectifier max(h, 0) is z h, the identity times a step that has a posterior of its own
    (the identity-delta decomposition): z is 1 where E[h] > 0, and 0 elsewhere, so that E[z h] is
    max(E[h], 0) and var[z h] is var[h] or 0.

    Parameters
    ----------
    model : torch.nn.Module
        Any module that takes a tensor and consists of `VariationalLinear`, `VariationalConv2d` and
        the like, `torch.nn.Linear` and convolutions, ReLU, average and maximum pooling, padding,
        and functions that arrange elements, as modules or in a ``forward`` of its own. Training and
        evaluation mode give the same.
    x : Tensor
        The input.
    variance : Tensor, optional
        The variance of the noise of the input, of its shape; none by default.
    steepness : float
        C of the relaxed step: z is a Bernoulli variable of P(z = 1) = sigmoid(C E[h]). The default
        is its limit, a step.

    Returns
    -------
    Moments
        Of the outputs, with the fields `mean` and `variance`. The mean is the output of
        ``model.eval()`` where the steepness is infinite.

    Raises
    ------
    TypeError
        If `model` is no module, or holds an operation that moments do not pass (an activation
        other than ReLU, batch normalisation, dropout layers of this package).
    ValueError
        If a layer has correlated noise, shapes do not fit, `steepness` is not positive, or dropout
        is in training mode.

    See Also
    --------
    VBP : a module that calls this, for `ELBO`.

    Notes
    -----
    The moments are exact through one layer, and through two without a rectifier between them.
    Beyond, the rectifier's step ignores that h itself decides on z, which is right where E[h] is
    several standard deviations from 0; and elements are taken for independent, which those of a
    convolution, or of a layer that reads the same random inputs, are not.
    `validation/papers/haussmann2018` measures both.

    The mean of elements in pooling has the sum of their variances, divided by the square of their
    number. The maximum is the element of the greatest mean ([1]_, section 2.3.3).

    No variance is negative: each is a sum of products that are not. Where training prunes whole
    units, a step on a CPU is faster after ``torch.set_flush_denormal(True)``.

    References
    ----------
    .. [1] Haussmann, Hamprecht, Kandemir, "Sampling-Free Variational Inference of Bayesian Neural
       Networks by Variance Backpropagation" (2018), arXiv:1805.07654.

    Examples
    --------
    >>> import torch
    >>> from logunif_kl.torch import nn
    >>> model = torch.nn.Sequential(
    ...     nn.VariationalLinear(4, 8), torch.nn.ReLU(), nn.VariationalLinear(8, 2)
    ... )
    >>> mean, variance = nn.moments(model, torch.ones(3, 4))
    >>> mean.shape, bool((variance > 0).all())
    (torch.Size([3, 2]), True)
    >>> mean.equal(model.eval()(torch.ones(3, 4)))
    True
    """
    if not isinstance(model, torch.nn.Module):
        raise TypeError(
            f"model must be a torch.nn.Module, but {type_name(model)} was given: pass the module"
        )
    found = model(Moments(x, variance, steepness=steepness))
    if not isinstance(found, Moments):
        raise TypeError(
            f"the model made {type_name(found)} of moments: pass one that returns one tensor"
        )
    return found


class VBP(torch.nn.Module):
    """A network that returns the moments of its outputs in place of a sample.

    ``VBP(model)(x)`` is ``moments(model, x)``. With the expected log-likelihoods it makes `ELBO` a
    bound without noise (Haussmann et al. 2018); its penalty is that of the layers, the exact KL
    from the log-uniform prior, or that of a `NormalPrior`. The wrapped model keeps its parameters,
    so it can be sampled, pruned, converted and saved as before.

    Parameters
    ----------
    model : torch.nn.Module
        As for `moments`.
    steepness : float
        As for `moments`.

    Raises
    ------
    TypeError
        If `model` is no module, or `steepness` no number.
    ValueError
        If `steepness` is not positive.

    See Also
    --------
    expected_categorical_log_likelihood, expected_bernoulli_log_likelihood
    expected_normal_log_likelihood

    Examples
    --------
    >>> import torch
    >>> from logunif_kl.torch import nn
    >>> model = torch.nn.Sequential(
    ...     nn.VariationalLinear(4, 8), torch.nn.ReLU(), nn.VariationalLinear(8, 3)
    ... )
    >>> elbo = nn.ELBO(nn.VBP(model), nn.expected_categorical_log_likelihood, dataset_size=1000)
    >>> x, target = torch.randn(10, 4), torch.arange(10) % 3
    >>> elbo(x, target).loss.backward()
    >>> bool(elbo(x, target).loss == elbo(x, target).loss)
    True
    """

    def __init__(self, model: torch.nn.Module, steepness: float = math.inf) -> None:
        super().__init__()
        if not isinstance(model, torch.nn.Module):
            raise TypeError(
                f"model must be a torch.nn.Module, but {type_name(model)} was given: pass the "
                "module"
            )
        self.model, self.steepness = model, _steepness(steepness)

    def forward(self, x: Tensor, variance: Tensor | None = None) -> Moments:
        """Compute the moments of the outputs."""
        return moments(self.model, x, variance, steepness=self.steepness)

    def extra_repr(self) -> str:
        """Show the steepness, if it is finite."""
        return "" if self.steepness == math.inf else f"steepness={self.steepness}"


def _check(name: str, given: Any) -> None:
    if not isinstance(given, Tensor):
        raise TypeError(
            f"{name} must be a torch.Tensor, but {type_name(given)} was given: convert it with "
            "torch.as_tensor"
        )
    if not given.is_floating_point():
        raise TypeError(
            f"{name} must hold real numbers, but a tensor of {given.dtype} was given: convert it "
            "with .float()"
        )


def _check_constant(how: str, other: Any) -> None:
    if isinstance(other, Moments):
        raise TypeError(
            f"moments were {how} moments, which needs their covariance: sample such a network"
        )


def _steepness(given: Any) -> float:
    value = real_number("steepness", given)
    if not value > 0.0:
        raise ValueError(f"steepness must be positive, but {value} was given: pass math.inf")
    return value
