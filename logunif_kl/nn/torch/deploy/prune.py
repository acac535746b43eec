"""Mask the weights with log alpha above a threshold, by `torch.nn.utils.prune`."""

# mypy: allow-untyped-calls, no-warn-return-any
from __future__ import annotations

from typing import Any

import torch
from torch.nn.utils import prune as torch_prune

from ....torch._sharded import unsplit
from ...sparsity import SILENT, THRESHOLD, check_threshold, is_noisy
from ..arguments import check_parameters, check_shape, check_sharded, whole
from ..convert.conversion import priors
from ..hooks import masked
from ..weights.models import gaussians
from ..weights.weight import VariationalModule, Weight, weights
from .sparsity import kept_weights

Tensor = torch.Tensor


def prune(model: torch.nn.Module, threshold: float = THRESHOLD) -> torch.nn.Module:
    """Prune the weights with log alpha above a threshold, by `torch.nn.utils.prune`.

    Each variational layer gets a mask on its `weight`, by `torch.nn.utils.prune.custom_from_mask`.
    If the layer has `log_sigma2`, it gets a mask that sets the variance of pruned weights to 0.
    Pruned weights are therefore 0 in evaluation and in training, have no KL, and stay 0 in further
    training. Weights that share an alpha are pruned together: those of a unit with `Grouped` or
    ``Multiplicative("input")``, and of an input unit with `Scaled` (Louizos et al. 2017).

    Parameters
    ----------
    model : torch.nn.Module
        A layer, or a network with variational layers. The model is changed in place, as by
        `torch.nn.utils.prune`. An optimizer still updates the same parameters, whose names become
        ``weight_orig`` and ``log_sigma2_orig``.
    threshold : float
        The default, 3, is from Molchanov et al. (2017), section 5. With inf only zeros are pruned.

    Returns
    -------
    torch.nn.Module
        `model`.

    Raises
    ------
    TypeError
        If `model` is not a module, `threshold` is not a number, or another hook computes a weight.
    ValueError
        If there are no variational layers, a layer has no shape yet, `threshold` is NaN, or modules
        share a weight.

    See Also
    --------
    to_deterministic : a plain network with zeros, without masks.
    to_sparse : a network that stores and multiplies only the kept weights.

    Notes
    -----
    To prune more weights, call the function again, after training or with a lower threshold. As
    with all hooks of `torch.nn.utils.prune`, each call of the layer computes ``weight``, and
    `copy.deepcopy` fails after a call with gradients: copy the model by
    ``pickle.loads(pickle.dumps(model))``.

    `to_deterministic` makes the masks permanent in a plain network. `torch.nn.utils.prune.remove`
    makes them permanent in a variational layer, for inference only: ``remove(layer, "weight")``
    and, if the layer has `log_sigma2`, ``remove(layer, "log_sigma2")``. Pruned weights then have
    mean 0 and log sigma^2 = -9984. If training changes such a mean, the KL grows by thousands of
    nats. For ``"kingma"``, ``"lower_bound"``, `Fit`, `Prior` and the posterior `Scaled`, these
    weights can count in the KL.

    References
    ----------
    Louizos, Ullrich, Welling, "Bayesian Compression for Deep Learning" (2017).
    Molchanov, Ashukha, Vetrov, "Variational Dropout Sparsifies Deep Neural Networks" (2017).

    Examples
    --------
    >>> import torch
    >>> from logunif_kl.torch import nn
    >>> layer = nn.VariationalLinear(3, 1, bias=False, posterior=nn.Additive(initial=0.0))
    >>> layer.weight.data = torch.tensor([[1.0, 0.1, 0.5]])
    >>> nn.prune(layer).weight.detach()
    tensor([[1.0000, 0.0000, 0.5000]])
    >>> layer(torch.tensor([[0.0, 1.0, 0.0]])).detach()  # no noise either
    tensor([[0.]])
    """
    threshold = check_threshold(threshold)
    found = _of_network(model)
    whole(model, "prune the model before it is sharded")
    for name, weight, _ in found:
        check_shape(name, weight.module)
    _check_prunable(model)
    for _, weight, _ in found:
        with torch.no_grad():
            mask = kept_weights(weight, threshold)
            if weight.posterior.grouped:  # pruned whole, because its weights share their noise
                mask = ~is_noisy(weight.log_alpha(), threshold)
        torch_prune.custom_from_mask(weight.module, weight.name, mask)
        if not weight.posterior.relative:
            # A group with one variance is silent if all its weights are pruned.
            kept = mask.float().sum_to_size(weight.log_variance.shape) > 0
            _silence(weight.module, weight.parameters[0], kept)
    return model


@torch.no_grad()
def zero_means(model: torch.nn.Module, threshold: float = THRESHOLD) -> None:
    """Set the means with log alpha above a threshold to 0, in place, during training.

    Call it after each step of the optimizer to make the network sparser. The variances stay as
    they are, and later steps may change the means again.

    Parameters
    ----------
    model : torch.nn.Module
        A layer, or a network with variational layers.
    threshold : float
        The default, 3, is from Molchanov et al. (2017), section 5.

    Raises
    ------
    TypeError
        If `model` is not a module, `threshold` is not a number, or a parametrization or another
        hook than that of `prune` computes a weight.
    ValueError
        If there are no variational layers, or `threshold` is NaN.
    RuntimeError
        If `torch.distributed.fsdp.fully_shard` keeps a gathered copy of a weight, as it does after
        an evaluation, which would lose the zeros: call ``reshard()`` of its modules first.

    See Also
    --------
    prune : mask weights, so that they remain 0.

    Examples
    --------
    >>> import torch
    >>> from logunif_kl.torch import nn
    >>> layer = nn.VariationalLinear(3, 1, posterior=nn.Additive(initial=0.0))
    >>> layer.weight.data = torch.tensor([[1.0, 0.1, 0.5]])
    >>> nn.zero_means(layer)  # after optimizer.step()
    >>> layer.weight.detach()
    tensor([[1.0000, 0.0000, 0.5000]])
    """
    threshold = check_threshold(threshold)
    found = _of_network(model)
    check_sharded(model, [weight.own(weight.name) for _, weight, _ in found])
    for name, weight, _ in found:
        own = weight.name + ("_orig" if masked(weight.module, weight.name) else "")
        check_parameters(name, weight.module, (own,))
        noisy = is_noisy(weight.log_alpha(), threshold)
        weight.own(weight.name).masked_fill_(noisy, 0.0)


def _of_network(model: torch.nn.Module) -> list[tuple[str, Weight, bool]]:
    """List the Gaussian weights of a model, but not those of its priors."""
    found, others = gaussians(model), priors(model)
    return [each for each in found if each[1].module not in others]


class _Silence(torch_prune.BasePruningMethod):
    """Set log sigma^2 of pruned weights to `SILENT`. Torch's own methods would set it to 0."""

    PRUNING_TYPE = "unstructured"

    def __init__(self, mask: Tensor) -> None:
        self.mask = mask

    def compute_mask(self, t: Tensor, default_mask: Tensor) -> Tensor:
        return default_mask * self.mask.to(default_mask.dtype)

    def apply_mask(self, module: Any) -> Tensor:
        name = self._tensor_name
        mask, original = getattr(module, f"{name}_mask"), getattr(module, f"{name}_orig")
        return unsplit(original).masked_fill(unsplit(mask) == 0, SILENT)


def _silence(module: Any, name: str, mask: Tensor) -> None:
    for hook in module._forward_pre_hooks.values():
        if isinstance(hook, _Silence) and hook._tensor_name == name:
            # Combine the masks here, because torch would multiply log sigma^2 by a second mask.
            module._buffers[f"{name}_mask"].mul_(mask)
            setattr(module, name, hook.apply_mask(module))
            return
    _Silence.apply(module, name, mask)


def _check_prunable(model: torch.nn.Module) -> None:
    first: dict[int, str] = {}
    for name, weight in weights(model):
        if not masked(weight.module, weight.name):
            own = (weight.name, weight.parameters[0])
            check_parameters(name, weight.module, own)
        _check_alone(first.setdefault(id(weight.own(weight.name)), name), name)
    for name, module in model.named_modules():
        if not isinstance(module, VariationalModule):
            for parameter in module._parameters.values():
                _check_alone(first.get(id(parameter), name), name)


def _check_alone(other: str, name: str) -> None:
    if other != name:
        raise ValueError(
            f"modules {other!r} and {name!r} share a weight, of which each would need a mask: use "
            "to_deterministic"
        )
