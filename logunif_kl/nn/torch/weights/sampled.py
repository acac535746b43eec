"""Gaussian weights of any module, drawn once in each call of the outermost module.

A conversion assigns a subclass to a module, whose attributes for the weights return the samples
within a call, and the means otherwise. The parameters keep their names.
"""

# mypy: allow-untyped-calls, no-warn-return-any
from __future__ import annotations

import sys
from functools import cache, partial
from typing import Any

import torch
from torch.nn import Parameter

from ....torch._internals import PLAIN_TYPES
from ...posteriors import Additive
from ...sparsity import SILENT
from ...terms import Given
from ..arguments import refuse_fusion
from ..hooks import mask_of, masked, means_assigned, own_parameter, reset_method
from ..noise.draws import Drawn, Draws, keep
from ..noise.local import draw_weights
from ..noise.recomputation import USED_AGAIN, may_be_checkpointed, share_samples
from ..noise.undrawn import reader, undrawn, unwrapped
from .weight import VariationalModule, Weight

Tensor = torch.Tensor

SUFFIX = "_log_sigma2"
_ADDITIVE = Additive()


class SampledModule(VariationalModule):
    """The base class of modules whose weights are Gaussian, and drawn once in each call.

    `to_variational` makes such modules of torch's attention, recurrent and other modules, and of
    user-defined modules. Use this class in `isinstance` checks.

    In training mode and within `sampling`, the weights are drawn when the module, or a module that
    contained it when it was converted, is called. They are the same for all examples, and stay the
    same until the outermost call ends: in all time steps of a recurrent cell, and wherever a weight
    is shared. Each call has its own samples, also if several threads call the network. Parts that a
    ``forward`` calls in other threads draw their own, and so does each call of a part by another
    method, such as ``model.encode`` or Lightning's ``training_step``: loop over time steps in a
    ``forward``. Outside a call, code outside of modules can look at a weight under `torch.no_grad`,
    but computing with it raises RuntimeError. Within a call a weight is the sample, so changing it
    in place does not change the parameter: use ``self._parameters[name]``. A call of a network's
    ``forward`` is no call of the network: it raises RuntimeError, and compiled alone it draws anew
    in each call of a part. A weight that was drawn before a `torch.utils.checkpoint.checkpoint`, or
    an autograd Function, that uses it raises RuntimeError. In a checkpoint compile no method alone
    and, with ``use_reentrant=True``, no part alone: their second runs may have another sample, and
    wrong gradients. Compile the network. After a KeyboardInterrupt in a call of the network, call
    the network again before a part of it: until then the parts repeat one sample.

    The options are those of the conversion: later assignments do not change them.
    `torch.fx.symbolic_trace` of a network in evaluation mode records its means.

    Raises
    ------
    TypeError
        If this class itself is instantiated.
    """

    # A module of the user may have attributes of any name, so all names here have a prefix.
    _lk_gaussian: tuple[str, ...]
    """The names of the Gaussian weights."""
    _lk_held: Draws
    _lk_options: dict[str, Any]
    _lk_own = ("_lk_gaussian", "_lk_held", "_lk_options", "_lk_penalty")

    _lk_estimator = "per_batch"

    def __init__(self, *args: Any, **kwargs: Any) -> None:
        raise TypeError(
            "SampledModule is the base class of converted modules: make a module of torch.nn, and "
            "convert it by logunif_kl.torch.nn.to_variational"
        )

    def __reduce_ex__(self, protocol: Any) -> Any:
        """Name the class by its base, because the class itself is made when it is needed."""
        return _empty, (self._lk_plain,), self.__getstate__()

    def __getattr__(self, name: str) -> Any:
        """Return the sample of a Gaussian weight within a call, and its mean otherwise."""
        given = self.__dict__
        if name in given.get("_lk_gaussian", ()) and (
            name in given["_parameters"] or masked(self, name)
        ):
            return self._lk_weight(name)
        return super().__getattr__(name)

    def __setattr__(self, name: str, value: Any) -> None:
        """Ignore the masked weights that the hooks of `prune` assign: `_lk_mean` computes them."""
        if self._lk_is_computed(name):
            return
        value = unwrapped(value)
        if isinstance(value, Parameter) and name in self.__dict__.get("_lk_gaussian", ()):
            refuse_fusion(self, sys._getframe(1))
            # FSDP2 assigns parameters within a call. `Module.__setattr__` would read the old one,
            # and so draw a sample of it.
            self._parameters[name] = value
            return
        super().__setattr__(name, value)

    def __delattr__(self, name: str) -> None:
        if not self._lk_is_computed(name):
            super().__delattr__(name)

    def _lk_is_computed(self, name: str) -> bool:
        given = self.__dict__
        if name.removesuffix(SUFFIX) not in given.get("_lk_gaussian", ()):
            return False
        return name not in given["_parameters"] and masked(self, name)

    def _lk_weight(self, name: str, depth: int = 4) -> Tensor:
        """Return the sample or the mean for the code that is `depth` frames above `reader`."""
        if not self._lk_draws:
            return self._lk_masked(name)
        sample = self._lk_held.again(self, name)
        if sample is not None:
            return sample
        held, mean = self._lk_held, self._lk_mean(name)
        samples = held.samples()
        if samples is None:
            return self._lk_outside(name, mean, depth)
        sharded = type(mean) not in PLAIN_TYPES and hasattr(mean, "placements")
        if sharded and reader(depth - 1) == "trusted":
            return mean  # FSDP2 reads the parameters in its first call, which may be a part's.
        if mean.is_meta:
            return mean  # A hook that loads parameters reads those that it will replace.
        parameters = self._lk_parameter(name), own_parameter(self, name + SUFFIX)
        mask, drawn = self._buffers.get(f"{name}_mask"), samples.get((*map(id, parameters),))
        inside = share_samples(held) if may_be_checkpointed() else []
        # In a checkpoint compute the sample of kept noise again, because the second run will.
        again = inside and self._lk_kept is not None and drawn and not drawn.is_within(inside)
        if drawn is None or again or not drawn.is_of(parameters) or drawn.mask is not mask:
            noise, drawn_in = held.noise_of(samples, self, name, mean, parameters)
            drawn = Drawn(parameters, mask, noise, self._lk_with_noise(name, noise), drawn_in)
            keep(samples, self, name, drawn)
        if inside and not drawn.is_within(inside):
            raise RuntimeError(USED_AGAIN.format(f"{name} of a {type(self).__name__}"))
        found, trained = drawn.sample, mean.requires_grad or parameters[1].requires_grad
        if torch.is_grad_enabled() and not found.requires_grad and trained:
            # The sample was drawn under `no_grad`: compute it again, with a graph.
            noise = drawn.noise.clone() if drawn.noise.is_inference() else drawn.noise
            found = self._lk_with_noise(name, noise)
            keep(samples, self, name, drawn._replace(noise=noise, sample=found))
        return found

    def _lk_outside(self, name: str, mean: Tensor, depth: int) -> Tensor:
        """Return the kept sample, or means that refuse to be computed with, outside all calls."""
        who = reader(depth)
        if who == "trusted":
            return mean
        sample = None if self._lk_kept is None else self._lk_sampled(name)
        if sample is not None and (who != "script" or hasattr(sample, "placements")):
            return sample
        owner = f"{name} of a {type(self).__name__}"
        return undrawn(owner, mean, who != "script" or self._lk_sampling > 0, sample)

    def _lk_with_noise(self, name: str, noise: Tensor) -> Tensor:
        mean = self._lk_masked(name)
        return draw_weights(mean, self._lk_log_variance(name), "log variance", noise)

    def _lk_masked(self, name: str) -> Tensor:
        """Return means without those that an `ELBO` masks."""
        mask, mean = self._lk_mask(), self._lk_mean(name)
        if mask is None:
            return mean
        log_alpha = partial(self._lk_log_alpha, name)
        return mask.applied((self, name), mean, log_alpha, [self._lk_log_variance(name)])

    def _lk_parameter(self, name: str) -> Any:
        """Return the parameter of a weight's means. Raise if the weight has none any more."""
        found = self._parameters.get(name)
        if found is None and masked(self, name):
            found = self._parameters[f"{name}_orig"]
        # FullyShardedDataParallel assigns a tensor to the attribute, which hides the samples.
        if found is None or name in self.__dict__:
            raise RuntimeError(
                f"{name} of a {type(self).__name__} is not a parameter any more, so its noise "
                "would be lost: remove the parametrization or the hook that computes it, and use "
                "fully_shard instead of FullyShardedDataParallel"
            )
        return found

    def _lk_mean(self, name: str) -> Tensor:
        found: Any = self._parameters.get(name)
        if found is not None:
            return found
        return self._lk_parameter(name) * mask_of(self, name)

    def _lk_log_variance(self, name: str) -> Tensor:
        name += SUFFIX
        found: Any = self._parameters.get(name)
        if found is not None:
            return found
        original = self._lk_parameter(name)
        return original.masked_fill(mask_of(self, name) == 0, SILENT)

    def _lk_initial_values(self) -> dict[str, float]:
        return {each + SUFFIX: self._lk_options["initial"] for each in self._lk_gaussian}

    def _lk_weights(self) -> list[Weight]:
        padding: Any = self.padding_idx if isinstance(self, torch.nn.EmbeddingBag) else None
        padding = padding if padding is None else padding % self.num_embeddings
        of_all = _ADDITIVE, self._lk_penalty
        return [Weight(self, name, *of_all, padding=padding) for name in self._lk_gaussian]

    def _lk_given(self, name: str) -> Given:
        mask = mask_of(self, name)
        return Given(self._lk_mean(name), self._lk_log_variance(name), mask=mask)

    def _lk_log_alpha(self, name: str) -> Tensor:
        return _ADDITIVE.log_alpha(torch, self._lk_given(name))

    def _lk_sampled(self, name: str) -> Tensor:
        mean = self._lk_mean(name)
        return self._lk_with_noise(name, self._lk_normals(mean.shape, mean, name))

    def _lk_become_plain(self) -> None:
        super()._lk_become_plain()
        self._modules.pop("_lk_penalty", None)

    @property
    def _lk_generator(self) -> torch.Generator | None:
        return self._lk_options["generator"]

    def extra_repr(self) -> str:
        """Show the arguments of the plain module, and the names of the Gaussian weights."""
        sampled = f"sampled={list(self._lk_gaussian)}"
        return ", ".join(filter(None, [super().extra_repr(), sampled]))


class _Recurrent(SampledModule):
    """A `torch.nn.RNNBase`, which keeps its parameters in a list too."""

    def __setattr__(self, name: str, value: Any) -> None:
        """Assign a parameter, as FSDP2 does, without reading all weights as `RNNBase` does."""
        if isinstance(value, Parameter) and name in self.__dict__.get("_flat_weights_names", ()):
            self._parameters[name] = value
            return
        super().__setattr__(name, value)

    @property
    def _flat_weights(self) -> list[Any]:
        found = []
        for name in self._flat_weights_names:
            gaussian = name in self._lk_gaussian
            found.append(self._lk_weight(name) if gaussian else getattr(self, name, None))
        return found

    @_flat_weights.setter
    def _flat_weights(self, _: Any) -> None:
        """Ignore the list, which would hold the means."""

    _update_flat_weights = _init_flat_weights = lambda self: None

    def _lk_become_plain(self) -> None:
        super()._lk_become_plain()
        self._init_flat_weights()

    def flatten_parameters(self) -> None:
        """Do nothing: the samples have memory of their own."""


class _List(SampledModule):
    """A `torch.nn.ParameterList`, whose slices are lists of samples."""

    def __getitem__(self, index: Any) -> Any:
        if isinstance(index, slice):
            return [self[each] for each in range(*index.indices(len(self)))]  # type: ignore[arg-type]
        return super().__getitem__(index)  # type: ignore[misc]


@cache
def _sampled_class(plain: Any) -> type[SampledModule]:
    base = SampledModule
    for kind, own in ((torch.nn.RNNBase, _Recurrent), (torch.nn.ParameterList, _List)):
        base = own if issubclass(plain, kind) else base
    methods: dict[str, Any] = {"_lk_plain": plain}
    # A module of the user may have no such method.
    if reset_method(plain) is not None:
        methods["reset_parameters"] = _reset_parameters
    return type(f"Sampled{plain.__name__}", (base, plain), methods)


def _reset_parameters(self: SampledModule) -> None:
    """Set the weights as torch does, and log sigma^2 to its initial value."""
    with means_assigned(self, self._lk_gaussian):
        reset_method(self._lk_plain)(self)
    self._lk_reset_variances()


def _empty(plain: Any) -> SampledModule:
    kind = _sampled_class(plain)
    return kind.__new__(kind)


def sample_weights(
    model: torch.nn.Module,
    chosen: dict[str, list[str]],
    shared: dict[int, dict[str, Parameter]],
    options: dict[str, Any],
) -> None:
    """Make parameters of modules Gaussian, and hook the modules that contain them.

    Parameters that are one tensor share their variances and samples. `shared` has the variances
    that this tensor has in a layer.
    """
    before = [m for m in model.modules() if isinstance(m, SampledModule)]
    held, found = before[0]._lk_held if before else Draws(), set(before)
    for each in before:
        each.__dict__["_lk_held"] = held  # They may have been converted apart.
    for path, names in chosen.items():
        module: Any = model.get_submodule(path)
        for name in names:
            weight = module._parameters[name]
            own = shared.setdefault(id(weight), {})
            if own and "log_sigma2" not in own:
                raise ValueError(
                    f"{path}.{name} is a weight that another module has with another posterior: "
                    "convert both with posterior=nn.Additive()"
                )
            if not own:
                initial = options["posterior"].initial
                own["log_sigma2"] = Parameter(torch.full_like(weight, initial))
            module.register_parameter(name + SUFFIX, own["log_sigma2"])
        module.__dict__.pop("_flat_weights", None)
        kind: Any = type(module)
        module.__class__ = _sampled_class(kind)
        kept = {"generator": options["generator"], "initial": options["posterior"].initial}
        module.__dict__.update(_lk_gaussian=tuple(names), _lk_held=held, _lk_options=kept)
        penalty = options["penalty"]
        registers = isinstance(penalty, torch.nn.Module)
        (module._modules if registers else module.__dict__)["_lk_penalty"] = penalty
        found.add(module)
    for module in model.modules():
        if found.intersection(module.modules()):
            held.hook(module)


def apart(model: torch.nn.Module) -> bool:
    """Whether a model has sampled modules that were converted without the model as a whole."""
    held = [module._lk_held for module in model.modules() if isinstance(module, SampledModule)]
    return bool(held) and not held[0].is_hooked(model)
