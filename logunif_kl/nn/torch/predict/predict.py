"""Predictions of a model with dropout from many samples of its noise."""

# mypy: allow-untyped-calls, no-warn-return-any
from __future__ import annotations

import sys
from collections.abc import Callable, Iterator
from contextlib import nullcontext
from itertools import chain
from operator import itemgetter
from typing import Any

import torch

from ....methods._progress import progress_bar
from ...checks import check_flag
from ...prediction import Prediction, check_likelihood
from ..arguments import check_generator, check_module, whole_number
from ..weights.weight import VariationalModule
from .inputs import call, count_examples, each_tensor, logits_of, repeated, tensors
from .prediction import Tally, check_output, no_samples, prediction
from .sampling import check_kinds, drawing, drawn_by, in_training, noisy, without_fast_path
from .vbp import VBP

Tensor = torch.Tensor
Advance = Callable[[float], None]

# The default limits on the elements of a module's output in one pass. On a CPU caches hold them,
# but a pass also computes the variances of the weights, so it has at least LEAST rows.
ELEMENTS, MOST_ELEMENTS, LEAST = 2**20, 2**24, 16

_PROBED = 16  # examples


@torch.no_grad()
def predict(
    model: torch.nn.Module,
    x: Any,
    samples: int = 100,
    *,
    likelihood: str = "categorical",
    link: str = "logit",
    class_dim: int | None = None,
    log_sigma2: float | Tensor | None = None,
    modules: type | tuple[type, ...] = (),
    batched: bool = True,
    batch_size: int | None = None,
    generator: torch.Generator | None = None,
    progress: bool = False,
) -> Prediction[Tensor]:
    r"""Return the predictions of a model with dropout, and how uncertain they are.

    The model runs S times with the noise of training, and the predictions are averaged. If p_s are
    the class probabilities in sample s, and H is the entropy, the results are (Houlsby et al. 2011,
    Eq. 2; Gal 2016, section 3.3):

    .. math::

        \mathrm{mean} &= p = \frac1S \sum_s p_s \\
        \mathrm{entropy} &= H(p) = -\sum_c p_c \log p_c \\
        \mathrm{mutual\_information} &= H(p) - \frac1S \sum_s H(p_s)

    The entropy is large where classes overlap or samples contradict each other. The mutual
    information is large only where samples contradict each other.

    Noise is drawn by all layers of this library, by torch's dropout modules (`torch.nn.Dropout` to
    `torch.nn.FeatureAlphaDropout`), and by its attention and recurrent modules with a dropout rate.
    Other modules run in evaluation mode, and all modes are restored, even after an error. If a
    ``train`` of your own changes weights, call ``model.eval()`` before.

    Parameters
    ----------
    model : torch.nn.Module
        A module that returns one tensor: logits of shape (M, classes, ...), margins of any shape
        (M, ...) for ``"bernoulli"``, or means of any shape (M, ...) for ``"normal"``. Leave out a
        final softmax or sigmoid, because this function applies it. For ``"normal"`` it may return a
        tuple of the means and log sigma^2, as for `normal_log_likelihood`. The model may be
        compiled, and may return a ``ModelOutput`` of Hugging Face with logits.
    x : Tensor, tuple, mapping or DataLoader
        The examples, of shape (M, ...). A tuple of tensors is several inputs, and a mapping is
        inputs by name. Of the batches of a `torch.utils.data.DataLoader`, a list or tuple begins
        with the input; they are moved to the model's device. With ``batched=False``, any argument
        that the model takes.
    samples : int
        The number of samples S, at least 2. The call takes as long as S forward passes.
    likelihood : {"categorical", "bernoulli", "normal"}
        The likelihood that the model was trained with: see `categorical_log_likelihood`,
        `bernoulli_log_likelihood` and `normal_log_likelihood`.
    link : {"logit", "probit"}
        For ``"bernoulli"``: the function that turns a margin into a probability. If you trained
        with `expected_bernoulli_log_likelihood`, pass the same `link` as there.
    class_dim : int, optional
        For ``"categorical"``: the dimension of the classes in the logits; 1 by default, and -1 for
        language models. Pass it for logits of three dimensions, where both are common.
    log_sigma2 : float or Tensor, optional
        For ``"normal"``: the logarithm of the variance of the data's noise; 0 by default. A tensor
        must broadcast to the shape of the outputs.
    modules : type or tuple of types
        The types of further modules that draw noise in training mode, such as a module that calls
        ``torch.nn.functional.dropout(x, p, self.training)``.
    batched : bool
        Run several samples at once, by repeating the examples along the first dimension. If False,
        the model runs on `x` itself, once for each sample. Use False for models that share noise
        between examples, or whose inputs have the examples in another dimension.
    batch_size : int, optional
        The number of rows (examples times samples) to run at once. By default, a trial run of a few
        examples without noise chooses a number with which no output of a module has more than 2^20
        elements (on a GPU, or for up to 16 rows, 2^24). ``estimator="per_example"`` has the same
        limit for its weights. If memory runs out, the number is halved.
    generator : torch.Generator, optional
        Draws all noise; the states of other generators are restored. By default the global
        generators and the layers' own generators draw, so `torch.manual_seed` determines the noise.
    progress : bool
        Show a progress bar on standard error, if it is a terminal and the call takes longer than
        two seconds. This needs the package rich.

    Returns
    -------
    Prediction
        Named tensors without gradients, in float64 if the outputs are, otherwise in float32. `mean`
        and `variance` have the shape of the outputs. `entropy` and `mutual_information` have the
        same shape, but no dimension of classes for ``"categorical"``.

    Raises
    ------
    TypeError
        If an argument is of a wrong type, or the model does not return a tensor of real numbers.
    ImportError
        If a progress bar is requested but rich is not installed.
    ValueError
        If no module draws noise; if `samples` is below 2 or `batch_size` below 1; if an option is
        not one of its choices, or belongs to another likelihood; if `class_dim` is missing for
        logits of three dimensions; if the outputs have no dimension of classes, are probabilities
        instead of logits, or do not have as many rows as the input.
    RuntimeError
        If it is called within `sampled`, because all samples would be equal.

    See Also
    --------
    sampled : one sample of all weights, to average over networks.

    Notes
    -----
    For ``"normal"``, let v be the variance of the samples, and sigma^2 that of the data's noise.
    Each element is treated as normal: its entropy is log(2 pi e (v + sigma^2))/2, and its mutual
    information is log(1 + v/sigma^2)/2. The predictive variance is v + sigma^2 (Gal and Ghahramani
    2016, section 4). If the model returns log sigma^2 too, sigma^2 is averaged over the samples,
    and the mutual information is the entropy less the mean of log(2 pi e sigma^2)/2.

    For ``"categorical"`` and ``"bernoulli"`` the mutual information is too small by a factor of
    about 1 - 1/S on average, like a variance divided by S. For ``"normal"`` the variance of the
    samples is divided by S - 1. Sums are in float64, so small mutual information is accurate too.

    With ``estimator="local"``, a convolution draws independent noise at each position, although the
    positions share weights. Its samples vary less than those of networks with sampled weights: see
    `sampled`. Layers with ``estimator="per_batch"`` draw their weights once in each pass. The noise
    depends on the number of rows run at once: pass `batch_size` to get the same numbers everywhere.

    The call changes the modes of the model for a time: do not use it in another thread meanwhile.
    With `generator`, it seeds the global generator for a time, too: calls with `generator` in other
    threads wait, and what else draws in another thread meanwhile gets numbers that repeat.

    References
    ----------
    .. [1] Gal, Ghahramani, "Dropout as a Bayesian Approximation" (2016).
    .. [2] Gal, "Uncertainty in Deep Learning", thesis (2016).
    .. [3] Houlsby, Huszar, Ghahramani, Lengyel, "Bayesian Active Learning for Classification and
       Preference Learning" (2011).

    Examples
    --------
    >>> import torch
    >>> from logunif_kl.torch import nn
    >>> model = torch.nn.Sequential(torch.nn.Dropout(0.5), torch.nn.Linear(2, 2, bias=False))
    >>> _ = model[1].weight.data.copy_(torch.tensor([[20.0, 0.0], [0.0, 20.0]]))
    >>> x = torch.tensor([[1.0, 0.0], [1.0, 1.0], [0.0, 0.0]])
    >>> found = nn.predict(model, x, 1000, generator=torch.Generator().manual_seed(0))
    >>> found.entropy  # the classes of the second example are equally likely
    tensor([0.5539, 0.6931, 0.6931])
    >>> found.mutual_information  # 0 for the third example, where samples agree
    tensor([0.2178, 0.3680, 0.0000])
    >>> model.training
    True
    """
    check_module(model)
    _at_least("samples", samples, 2)
    check_flag("batched", batched)
    check_generator(generator)
    if batch_size is not None:
        _at_least("batch_size", batch_size, 1)
        if not batched:
            raise ValueError("batch_size was given with batched=False: leave one of them out")
    likelihood = check_likelihood(likelihood, link, log_sigma2)
    check_flag("progress", progress)
    if any(isinstance(module, VBP) for module in model.modules()):
        raise no_samples()
    kinds = check_kinds(modules)
    found = noisy(model, kinds)
    run = _Run(model, likelihood, samples, log_sigma2, class_dim)
    loaded = isinstance(x, torch.utils.data.DataLoader)
    moments: list[tuple[Tensor, ...]] = []
    with (
        drawn_by(generator, model, x),
        progress_bar("predictions", len(x) if loaded else samples, progress) as advance,
    ):
        for batch in _loaded(x, model) if loaded else [x]:
            examples = count_examples(batch) if batched else None
            rows = batch_size
            if rows is None and examples is not None:
                rows = _rows(model, batch, examples)
            step = (lambda done: None) if loaded else advance
            with drawing(model, found, kinds):
                if examples is None or rows is None:
                    moments.append(run.one_by_one(batch, step))
                else:
                    moments += run.in_blocks(batch, examples, rows, step)
            if loaded:
                advance(1)
    if not moments:
        raise ValueError("the DataLoader has no batches: pass one that has examples")
    return prediction(run.likelihood, moments, samples, log_sigma2, run.like, class_dim)


class _Run:
    """Runs a model that draws noise, and collects the moments of its predictions."""

    def __init__(
        self,
        model: torch.nn.Module,
        likelihood: str,
        samples: int,
        log_sigma2: Any,
        class_dim: int | None,
    ) -> None:
        self._model, self._samples = model, samples
        self._log_sigma2, self._class_dim = log_sigma2, class_dim
        self.likelihood = likelihood
        self._one_by_one = any(
            isinstance(module, VariationalModule)
            and getattr(module, "_lk_estimator", "per_batch") == "per_batch"
            for module in model.modules()
        )
        self.like: Any = None
        """The last output of the model, which decides the dtype of the result."""

    def one_by_one(self, x: Any, advance: Advance) -> tuple[Tensor, ...]:
        """Run the model on the whole input, once for each sample."""
        tally = Tally()
        for _ in range(self._samples):
            output = self._output(logits_of(self._model(x)))
            tally.add(self.likelihood, output.unsqueeze(0))
            advance(1)
        return tally.moments()

    def in_blocks(
        self, x: Any, examples: int, rows: int, advance: Advance
    ) -> list[tuple[Tensor, ...]]:
        """Run the model on blocks of examples, each repeated for several samples."""
        found: list[tuple[Tensor, ...]] = []
        begin = 0
        while not found or begin < examples:
            end = min(begin + rows, examples)
            block = each_tensor(x, itemgetter(slice(begin, end)))
            try:
                moments = self._of_block(block, end - begin, rows)
            except RuntimeError as error:
                if rows == 1 or not _out_of_memory(error):
                    raise
                rows = max(1, min(rows, (end - begin) * self._samples) // 2)
                continue
            found.append(moments)
            advance(self._samples * (end - begin) / max(examples, 1))
            begin = end
        return found

    def _of_block(self, block: Any, examples: int, rows: int) -> tuple[Tensor, ...]:
        tally = Tally()
        at_once = 1 if self._one_by_one else max(1, rows // max(examples, 1))
        passes = -(-self._samples // at_once)
        for number in range(passes):
            # Use passes of almost the same size, so that a compiled model sees few shapes.
            samples = self._samples // passes + (number < self._samples % passes)
            # Copy the input, because the model may change it.
            output = self._output(call(self._model, repeated(block, samples)))
            if not output.ndim or len(output) != samples * examples:
                raise ValueError(
                    f"the model returned shape {tuple(output.shape)} for {samples * examples} "
                    "rows: pass batched=False if the output has no batch dimension"
                )
            tally.add(self.likelihood, output.reshape(samples, examples, *output.shape[1:]))
        return tally.moments()

    def _output(self, given: Any) -> Tensor:
        self.likelihood, self.like = check_output(
            self.likelihood, given, self._log_sigma2, self._class_dim
        )
        return self.like


def _loaded(loader: Any, model: torch.nn.Module) -> Iterator[Any]:
    """Yield the inputs of a `DataLoader`, on the device of the model."""
    first = next(chain(model.parameters(), model.buffers()), None)
    for batch in loader:
        # A named tuple, such as a `PackedSequence`, is one input.
        x = batch[0] if type(batch) in (list, tuple) else batch
        yield x if first is None else each_tensor(x, lambda x: x.to(first.device))


def _rows(model: torch.nn.Module, x: Any, examples: int) -> int:
    """Choose the number of rows in a pass by the size of the largest output or weight sample."""
    few, probed = each_tensor(x, lambda x: x[:_PROBED].clone()), max(1, min(_PROBED, examples))
    largest = max(1, *(each.numel() for each in tensors(few)))
    on_cpu = all(each.device.type == "cpu" for each in tensors(few))

    def look(module: Any, arguments: Any, output: Any) -> None:
        nonlocal largest
        if isinstance(output, Tensor):
            largest = max(largest, output.numel())
        if isinstance(module, VariationalModule) and module._lk_estimator == "per_example":
            sizes = [weight.stored.numel() for weight in module._lk_weights()]
            largest = max(largest, probed * sum(sizes))

    hooks = [module.register_forward_hook(look) for module in model.modules()]
    try:
        with _not_compiled(), in_training(model, []), without_fast_path():
            call(model, few)
    finally:
        for hook in hooks:
            hook.remove()
    most = max(1, MOST_ELEMENTS * probed // largest)
    return max(ELEMENTS * probed // largest, min(LEAST, most)) if on_cpu else most


def _out_of_memory(error: RuntimeError) -> bool:
    # The CPU allocator has no error type of its own.
    return isinstance(error, torch.OutOfMemoryError) or "DefaultCPUAllocator" in str(error)


def _not_compiled() -> Any:
    """Run compiled models eagerly, because hooks do not see the modules in a compiled graph."""
    if "torch._dynamo" not in sys.modules:
        return nullcontext()
    return torch.compiler.set_stance("force_eager")


def _at_least(name: str, value: Any, least: int) -> None:
    if (number := whole_number(name, value)) < least:
        raise ValueError(
            f"{name} must be at least {least}, but {number} was given: pass a larger one"
        )
