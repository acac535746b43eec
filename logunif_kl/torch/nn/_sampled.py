"""Gaussian weights of any module, drawn once in each call of the outermost module.

A conversion assigns a subclass to a module, whose attributes for the weights return the samples
within a call, and the means otherwise. The parameters keep their names.
"""

# mypy: allow-untyped-calls, no-warn-return-any
from __future__ import annotations

from collections.abc import Iterator
from functools import cache
from typing import Any, NamedTuple

import torch
from torch.nn import Parameter

from ..._layers import SILENT
from . import _penalty, _terms
from ._arguments import check_generator
from ._hooks import masked
from ._local import clamped, finite
from ._noise import StochasticModule

Tensor = torch.Tensor

SUFFIX = "_log_sigma2"


class Draws:
    """The samples that modules hold until the outermost call ends.

    All sampled modules of a network share one object. Its methods are hooks of these modules, and
    of the modules that contain them.
    """

    def __init__(self) -> None:
        self.depth = 0
        """The number of calls, one within another, and of `sampled` contexts."""
        self.samples: dict[str, Tensor] = {}

    def __reduce__(self) -> Any:
        """Copy without the samples, which do not hold for a copy."""
        return Draws, ()

    def enter(self, module: torch.nn.Module, args: Any) -> None:
        self.depth += 1

    def leave(self, module: torch.nn.Module, args: Any, output: Any) -> None:
        # If another hook raised an error before `enter`, the depth is 0 already.
        self.depth = max(self.depth - 1, 0)
        if not self.depth:
            self.samples = {}

    def hook(self, module: torch.nn.Module) -> None:
        """Count the calls of a module."""
        module.register_forward_pre_hook(self.enter)
        # Also after an error, so that the next call draws again.
        module.register_forward_hook(self.leave, always_call=True)


def unhook(module: torch.nn.Module) -> None:
    """Remove the hooks of all `Draws` from a module."""
    for hooks in (module._forward_pre_hooks, module._forward_hooks):
        for key, hook in [*hooks.items()]:
            if isinstance(getattr(hook, "__self__", None), Draws):
                del hooks[key]
                module._forward_hooks_always_called.pop(key, None)


class SampledModule(StochasticModule):
    """The base class of modules whose weights are Gaussian, and drawn once in each call.

    `to_variational` makes such modules of torch's attention, recurrent and other modules, and of
    user-defined modules. Use this class in `isinstance` checks.

    In training mode and within `sampling`, the weights are drawn when the module, or a module that
    contains it, is called. They are the same for all examples, and stay the same until the
    outermost call ends: in all time steps of a recurrent cell, and wherever a weight is shared.

    Attributes
    ----------
    penalty, generator
        As for `VariationalLinear`. You may assign other values.

    Raises
    ------
    TypeError
        If this class itself is instantiated.
    """

    _gaussian: dict[str, str]
    """For the name of each Gaussian weight: its key in the samples, which shared weights share."""
    _held: Draws
    _plain: type[torch.nn.Module]
    """The class of the module before its conversion."""
    penalty: Any

    def __init__(self, *args: Any, **kwargs: Any) -> None:
        raise TypeError(
            "SampledModule is the base class of converted modules: make a module of torch.nn, and "
            "convert it by logunif_kl.torch.nn.to_variational"
        )

    def __reduce_ex__(self, protocol: Any) -> Any:
        """Name the class by its base, because the class itself is made when it is needed."""
        return _empty, (self._plain,), self.__getstate__()

    def __getattr__(self, name: str) -> Any:
        """Return the sample of a Gaussian weight within a call, and its mean otherwise."""
        given = self.__dict__
        if name in given.get("_gaussian", ()) and (
            name in given["_parameters"] or masked(self, name)
        ):
            return self._weight(name)
        return super().__getattr__(name)

    def __setattr__(self, name: str, value: Any) -> None:
        """Check a value that is assigned to an option."""
        if name == "penalty":
            value = _penalty.check(value, "additive")
        elif name == "generator":
            value = check_generator(value)
        elif self._is_computed(name):
            return  # the hooks of `prune` assign a masked weight, which `_mean` computes
        elif isinstance(value, Parameter) and name in self.__dict__.get("_gaussian", ()):
            # FSDP2 assigns parameters within a call. `Module.__setattr__` would read the old one,
            # and so draw a sample of it.
            self._parameters[name] = value
            return
        super().__setattr__(name, value)

    def __delattr__(self, name: str) -> None:
        if not self._is_computed(name):
            super().__delattr__(name)

    def _is_computed(self, name: str) -> bool:
        given = self.__dict__
        if name.removesuffix(SUFFIX) not in given.get("_gaussian", ()):
            return False
        return name not in given["_parameters"] and masked(self, name)

    def _weight(self, name: str) -> Tensor:
        mean = self._mean(name)
        if not (self._draws and self._held.depth):
            return mean
        key, samples = self._gaussian[name], self._held.samples
        if key not in samples:
            samples[key] = self._sample(name)
        return samples[key]

    def _sample(self, name: str) -> Tensor:
        mean = self._mean(name)
        deviation = (0.5 * clamped(self._log_sigma2(name))).exp().to(mean.dtype)
        return finite(mean + deviation * self._normals(mean.shape, mean, name))

    def _mean(self, name: str) -> Tensor:
        found: Any = self._parameters.get(name)
        if found is not None:
            return found
        return self._parameters[f"{name}_orig"] * self._buffers[f"{name}_mask"]  # type: ignore[operator]

    def _log_sigma2(self, name: str) -> Tensor:
        name += SUFFIX
        found: Any = self._parameters.get(name)
        if found is not None:
            return found
        original: Any = self._parameters[f"{name}_orig"]
        return original.masked_fill(self._buffers[f"{name}_mask"] == 0, SILENT)

    def extra_repr(self) -> str:
        """Show the arguments of the plain module, and the names of the Gaussian weights."""
        return ", ".join(filter(None, [super().extra_repr(), f"sampled={list(self._gaussian)}"]))


class _Recurrent(SampledModule):
    """A `torch.nn.RNNBase`, which keeps its parameters in a list too."""

    @property
    def _flat_weights(self) -> list[Any]:
        return [getattr(self, name, None) for name in self._flat_weights_names]

    @_flat_weights.setter
    def _flat_weights(self, _: Any) -> None:
        """Ignore the list, which would hold the means."""

    def _update_flat_weights(self) -> None:
        pass

    def flatten_parameters(self) -> None:
        """Do nothing: the samples have memory of their own."""


@cache
def _sampled_class(plain: Any) -> type[SampledModule]:
    base = _Recurrent if issubclass(plain, torch.nn.RNNBase) else SampledModule
    return type(f"Sampled{plain.__name__}", (base, plain), {"_plain": plain})


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
    held, keys, found = Draws(), dict[int, str](), set()
    for path, names in chosen.items():
        module: Any = model.get_submodule(path)
        own: dict[str, str] = {}
        for name in names:
            weight = module._parameters[name]
            variances = shared.setdefault(id(weight), {})
            if "log_sigma2" not in variances:
                variances["log_sigma2"] = Parameter(torch.full_like(weight, options["initial"]))
            module.register_parameter(name + SUFFIX, variances["log_sigma2"])
            own[name] = keys.setdefault(id(weight), f"{path}.{name}")
        module.__dict__.pop("_flat_weights", None)
        kind: Any = type(module)
        module.__class__ = _sampled_class(kind)
        module.__dict__.update(_gaussian=own, _held=held)
        module.penalty, module.generator = options["penalty"], options["generator"]
        found.add(module)
    for module in model.modules():
        if found.intersection(module.modules()):
            held.hook(module)


def make_plain(module: SampledModule) -> None:
    """Give a module its own class again, without the variances."""
    for name in module._gaussian:
        del module._parameters[name + SUFFIX]
    recurrent = isinstance(module, _Recurrent)
    plain: Any = module
    plain.__class__ = module._plain
    for name in ("_gaussian", "_held", "penalty", "generator", "_sampling", "_kept"):
        module.__dict__.pop(name, None)
    if recurrent:
        plain._init_flat_weights()


class SampledWeight:
    """A Gaussian weight of a module, with the methods and options of a `VariationalLayer`."""

    posterior = "additive"
    sharing = "weight"
    noise = "independent"
    estimator = "per_batch"
    _grouped = False

    def __init__(self, module: SampledModule, name: str) -> None:
        self.module, self.name = module, name

    @property
    def penalty(self) -> Any:
        return self.module.penalty

    @property
    def weight(self) -> Tensor:
        return self.module._mean(self.name)

    @property
    def _log_variance(self) -> Tensor:
        return self.module._log_sigma2(self.name)

    _bounded = _checked_log_variance = lambda self: self._log_variance

    def _means(self) -> Tensor:
        return self.weight

    def _penalty_terms(self, whole: bool = False) -> list[tuple[Any, ...]]:
        return _terms.of_layer(self, self.module._buffers.get(f"{self.name}_mask"))

    def log_alpha_of_weights(self) -> Tensor:
        return self._log_variance - 2.0 * self.weight.abs().log()


class PlainWeight(NamedTuple):
    """A weight of a plain module, as an object with the attribute `weight`."""

    weight: Tensor


def gaussians(name: str, module: SampledModule) -> Iterator[tuple[str, SampledWeight]]:
    """Yield the Gaussian weights of a module, with their full names."""
    for each in module._gaussian:
        yield f"{name}.{each}" if name else each, SampledWeight(module, each)


@cache
def _kinds() -> tuple[type[torch.nn.Module], ...]:
    return (
        *(torch.nn.MultiheadAttention, torch.nn.LSTM, torch.nn.GRU, torch.nn.RNN),
        *(torch.nn.LSTMCell, torch.nn.GRUCell, torch.nn.RNNCell, torch.nn.Bilinear),
        *(torch.nn.ConvTranspose1d, torch.nn.ConvTranspose2d, torch.nn.ConvTranspose3d),
        *(torch.nn.EmbeddingBag, torch.nn.modules.linear.NonDynamicallyQuantizableLinear),
    )


def has_sampled_form(module: torch.nn.Module) -> bool:
    """Whether `to_variational` converts a module to a sampled one, unless told otherwise."""
    kind = type(module)
    hugging_face = (kind.__module__, kind.__name__) == ("transformers.pytorch_utils", "Conv1D")
    return kind in _kinds() or hugging_face


def matrices(module: torch.nn.Module) -> list[str]:
    """Name the parameters of a module itself that have two dimensions or more, without biases."""
    return [
        name
        for name, parameter in module._parameters.items()
        if parameter is not None and parameter.ndim > 1 and "bias" not in name
    ]
