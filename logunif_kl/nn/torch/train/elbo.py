"""Estimate the variational lower bound from the log-likelihood of a minibatch and the KL."""

# mypy: allow-untyped-calls, no-warn-return-any
from __future__ import annotations

import math
import warnings
from collections.abc import Callable, Iterator
from contextlib import contextmanager, nullcontext
from typing import TYPE_CHECKING, Any, NamedTuple

import torch

from ...._display import in_short
from ...._errors import real_number, type_name
from ...sparsity import check_threshold
from ..arguments import whole_number
from ..moments.moments import Moments
from ..noise.mask import Mask
from ..noise.normal import StochasticModule
from ..predict.inputs import call, logits_of
from ..predict.sampling import changing
from ..variances import single
from ..weights.models import gaussians, neg_kl
from .likelihood import Reached, check_pairs, checked, is_silent
from .partial import refuse_loss, registered

Tensor = torch.Tensor
LogLikelihood = Callable[[Any, Any], Tensor]


class Bound(NamedTuple):
    """The result of `ELBO`: a lower bound estimated from a minibatch, and its terms.

    Attributes
    ----------
    value : Tensor
        expected_log_likelihood + kl_weight * neg_kl, a 0-d tensor, to be *maximised*.
    expected_log_likelihood : Tensor
        N/M times the log-likelihood of the M examples (Kingma et al. 2015, Eq. 3).
    neg_kl : Tensor
        -KL(q || p) of the model, not yet multiplied by `kl_weight`.
    kl_weight : float or Tensor
        The factor of `neg_kl` in `value`.
    dataset_size : int
        N, the number of examples in the data set.
    """

    value: Tensor
    expected_log_likelihood: Tensor
    neg_kl: Tensor
    kl_weight: float | Tensor
    dataset_size: int

    @property
    def loss(self) -> Tensor:
        """``-value/dataset_size``, to be minimised; on the scale of a mean loss per example."""
        return -self.value / self.dataset_size

    def __repr__(self) -> str:
        return in_short(self)


class ELBO(torch.nn.Module):
    r"""A module that estimates the variational lower bound of a model from minibatches.

    Kingma et al. (2015), Eqs. 1 and 3, with N examples in the data set and M in the minibatch:

    .. math::

        \text{bound} = \frac NM \sum_m \log p(y_m \mid x_m, w) - \mathrm{kl\_weight}\, \mathrm{KL}

    The model draws noise, so the value is random. With ``kl_weight=1`` its expectation is the
    bound. In evaluation mode layers draw no noise, so the value is not a bound and the ELBO raises
    an error or, under `torch.no_grad`, only warns. For a bound on test data use
    ``with nn.sampling(elbo):`` and pass the size of the test set as `dataset_size`.

    Parameters
    ----------
    model : torch.nn.Module
        A module with variational layers or a `SampledModule`. It is called as ``model(x)``, for a
        tuple of inputs as ``model(*x)``, and for a mapping (Hugging Face) as ``model(**x)``.
    log_likelihood : callable
        ``log_likelihood(output, target)`` returns log p of each example, with the minibatch as the
        first dimension. Further dimensions are summed. The sum of two tasks of shapes (M, 1) and
        (M,) would broadcast to (M, M), so write ``one.flatten(1).sum(1) + other``. The output is
        that of the model, or the logits of a ``ModelOutput`` of Hugging Face. To use a loss, return
        its negative. A weight of a `SampledModule` that the model and this function share has two
        samples in a call. If you pass a `functools.partial` that holds parameters or modules, such
        as a `log_sigma2`, or a method of a module, then ``parameters()`` and ``state_dict`` of the
        ELBO include them. The KL of variational layers that a module holds here is a part of the
        bound. A method of the module that will hold the ELBO, such as a ``LightningModule``, needs
        that module to hold the model already: otherwise it is registered with its own part, and
        PyTorch's ``state_dict()`` does not end. Its parameters are then those of that module alone,
        which an optimizer, a `DistributedDataParallel` or a ``prepare`` of accelerate needs to get
        instead of the ELBO. Parameters that a lambda or another function reads are left out: a
        warning tells of them, at the latest in one of the calls 1, 2, 4, 8... with gradients,
        unless the ELBO is compiled, sharded by FSDP or in a transform of `torch.func`. It tells of
        no plain tensors. The sum of two bounds that share layers counts their KL twice: pass
        ``kl_weight=0`` to one.
    dataset_size : int
        N, the number of examples in the data set, such as ``len(train_set)``.
    kl_weight : float
        The factor of -KL, at least 0; 1 gives the bound of the paper. You may assign another value
        later, to the ELBO itself: a `DistributedDataParallel` has attributes of its own. A 0-d
        tensor is accepted too, but its value is not checked.
    samples : int
        The number of times that the model runs on each minibatch. The log-likelihoods are averaged,
        so the bound has less noise, and takes so much more time and memory.
        There is no importance-weighted bound: all examples share the weights, so its estimate from
        a minibatch may exceed log p(data).
    mask_from : float, optional
        Leave out of the likelihood, but not of the KL, the means with a log alpha above this
        number. The programs of Molchanov et al. (2017) do so, with 3, and networks become sparser.
        In a checkpoint, the second run of the model has the same mask as the first. Like `samples`,
        this is for the calls that the ELBO makes itself, not for `bound`.

    Raises
    ------
    TypeError
        If an argument has a wrong type, or `log_likelihood` is a loss of `torch.nn`.
    ValueError
        If the model holds no variational layer, `dataset_size` is not positive, or `kl_weight` is
        negative or not finite, or if `samples` is not positive.

    See Also
    --------
    categorical_log_likelihood, bernoulli_log_likelihood, normal_log_likelihood
    VBP : a model without noise, for use with the expected log-likelihoods.
    linear_warm_up, cosine_warm_up : values of `kl_weight` for the first steps.

    Examples
    --------
    >>> import torch
    >>> from logunif_kl.torch import nn
    >>> model = nn.VariationalLinear(4, 3, posterior=nn.Additive(initial=-2.0))
    >>> elbo = nn.ELBO(model, nn.categorical_log_likelihood, dataset_size=1000)
    >>> x, target = torch.randn(10, 4), torch.arange(10) % 3
    >>> bound = elbo(x, target, kl_weight=nn.linear_warm_up(step=5, begin=0, end=10))
    >>> bound.loss.backward()
    >>> bool(bound.value == bound.expected_log_likelihood + 0.5 * bound.neg_kl)
    True
    """

    _lk_asked: tuple[Any, int] = (None, 0)
    """Of which state of the ELBO `Reached` has asked, and in how many calls."""

    def __init__(
        self,
        model: torch.nn.Module,
        log_likelihood: LogLikelihood,
        dataset_size: int,
        kl_weight: float = 1.0,
        *,
        samples: int = 1,
        mask_from: float | None = None,
    ) -> None:
        super().__init__()
        gaussians(model)
        if not callable(log_likelihood):
            raise TypeError(
                f"log_likelihood must be a function of output and target, but a value of type "
                f"{type_name(log_likelihood)} was given: pass categorical_log_likelihood"
            )
        refuse_loss(log_likelihood)
        self.model = model
        self.log_likelihood: LogLikelihood = log_likelihood
        self.dataset_size: int = _size(dataset_size)
        self.kl_weight = kl_weight
        self.samples: int = whole_number("samples", samples, "1")
        if self.samples < 1:
            raise ValueError(f"samples must be positive, but {samples} was given: pass 1")
        self.mask_from: float | None = None if mask_from is None else check_threshold(mask_from)

    def __setattr__(self, name: str, value: Any) -> None:
        """Set an attribute. Check a number that is assigned to `kl_weight`."""
        if name == "kl_weight":
            value = _weight(value)
        if name == "log_likelihood":
            self._modules.pop(name, None)
            value = registered(value, self.model)
        if name in ("model", "log_likelihood"):
            self._lk_asked = None, 0
        super().__setattr__(name, value)

    if TYPE_CHECKING:
        __call__: Callable[..., Bound]

    def forward(self, x: Any, target: Any, kl_weight: float | Tensor | None = None) -> Bound:
        """Run the model on a minibatch and estimate the bound.

        Parameters
        ----------
        x : Any
            The input of the model.
        target : Any
            What the log-likelihood compares the output with.
        kl_weight : float or Tensor, optional
            Replaces the `kl_weight` of the module in this call. The value of a 0-d tensor, or of a
            float under `torch.compile`, is not checked.

        Returns
        -------
        Bound
            Call ``backward`` on its `loss`.

        Raises
        ------
        TypeError, ValueError, RuntimeError
            As for `bound`.
        """
        reached = Reached(self, level=6)
        mask = None if self.mask_from is None else Mask(self.mask_from)
        with nullcontext() if mask is None else masked_by(self, mask):
            outputs = [call(self.model, x) for _ in range(self.samples)]
            likelihood = self._expected(x, outputs, target, reached)
        return self._bound(likelihood, outputs[0], kl_weight, reached)

    def bound(self, output: Any, target: Any, kl_weight: float | Tensor | None = None) -> Bound:
        """Estimate the bound from an output that the model has already returned.

        Parameters
        ----------
        output : Any
            What ``model`` returned for the minibatch.
        target, kl_weight
            As for `forward`.

        Returns
        -------
        Bound

        Raises
        ------
        TypeError
            If the log-likelihood is not a tensor of floating type, or `kl_weight` is not a number.
        ValueError
            If the log-likelihood is a scalar, the minibatch is empty or larger than the data set,
            a float `kl_weight` is negative or not finite, or the ELBO has a `mask_from` and
            gradients are enabled.
        RuntimeError
            If no variational layer drew noise, because none is in training mode or within
            `sampling`. If the bound does not require a gradient, this is only a warning.
        """
        if self.mask_from is not None and torch.is_grad_enabled():
            raise ValueError(
                f"mask_from={self.mask_from:g} masks the means when the ELBO calls the model, and "
                "bound() was given an output: call elbo(x, target), or set mask_from to None"
            )
        reached, outputs = Reached(self, level=4), [logits_of(output)]
        likelihood = self._expected(None, outputs, target, reached)
        return self._bound(likelihood, outputs[0], kl_weight, reached)

    def _expected(self, x: Any, outputs: list[Any], target: Any, reached: Reached) -> Tensor:
        """Estimate the expected log-likelihood of all data."""
        parts = []
        for output in outputs:
            reached.begin((x, output, target))
            each = checked(self.log_likelihood(output, target), self.dataset_size)
            reached.check(each)
            check_pairs(each, (output, target), reached.level)
            # A sum over many examples may overflow float16.
            share = self.dataset_size / (each.shape[0] * len(outputs))
            parts.append(single(each).sum() * share)
        return sum(parts[1:], parts[0])

    def _bound(
        self, likelihood: Tensor, output: Any, kl_weight: float | Tensor | None, reached: Reached
    ) -> Bound:
        weight = self.kl_weight if kl_weight is None else _weight(kl_weight)
        penalty = neg_kl(self)
        reached.check_penalty(penalty)
        value = likelihood + weight * penalty
        if is_silent(self.model, value.requires_grad, isinstance(output, Moments)):
            _refuse_means("The model", value, reached.level)
        elif is_silent(self.log_likelihood, value.requires_grad):
            _refuse_means("The module of log_likelihood", value, reached.level)
        return Bound(value, likelihood, penalty, weight, self.dataset_size)

    def extra_repr(self) -> str:
        """Show the size of the data set, the `kl_weight`, and `samples` if it is not 1."""
        more = f", samples={self.samples}" if self.samples > 1 else ""
        more += "" if self.mask_from is None else f", mask_from={self.mask_from:g}"
        return f"dataset_size={self.dataset_size}, kl_weight={self.kl_weight}{more}"


@contextmanager
def masked_by(model: torch.nn.Module, mask: Mask) -> Iterator[None]:
    """Let the layers of a model compute without the means that a mask leaves out."""
    found = [module for module in model.modules() if isinstance(module, StochasticModule)]
    with changing():
        for module in found:
            module._lk_masks = (*module._lk_masks, mask)
    try:
        yield
    finally:
        with changing():
            for module in found:
                module._lk_masks = tuple([each for each in module._lk_masks if each is not mask])


def _refuse_means(what: str, value: Tensor, level: int) -> None:
    said = f"{what} is in evaluation mode, so no noise was drawn"
    if value.requires_grad:
        raise RuntimeError(f"{said}. Call elbo.train() before training.")
    if not torch.compiler.is_compiling():
        use = "Use logunif_kl.torch.nn.sampling(elbo)."
        warnings.warn(f"{said}, and the value is not a bound. {use}", stacklevel=level)


def _size(value: Any) -> int:
    size = whole_number("dataset_size", value, "len(dataset)")
    if size < 1:
        raise ValueError(f"dataset_size must be positive, but {size} was given: pass len(dataset)")
    return size


def _weight(value: Any) -> float | Tensor:
    if isinstance(value, Tensor):
        if value.ndim:
            raise ValueError(
                f"kl_weight must be one number, but a tensor of shape {tuple(value.shape)} was "
                "given: pass a float"
            )
        return value
    if torch.compiler.is_compiling() and isinstance(value, float):
        # A comparison would make the compiler recompile for every new weight in a warm-up.
        return value
    weight = real_number("kl_weight", value)
    if not 0.0 <= weight < math.inf:
        raise ValueError(
            f"kl_weight must be finite and not negative, but {weight} was given: pass 1.0 for the "
            "bound"
        )
    return weight
