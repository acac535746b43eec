"""The Gaussian weights of a module: what the KL, pruning, sparsity and conversions work on."""

# mypy: allow-untyped-calls, no-warn-return-any
from __future__ import annotations

from collections.abc import Iterator, Sequence
from operator import is_not
from typing import Any, NamedTuple

import torch

from ...._errors import OF_COMPLEX
from ....torch._internals import PLAIN_TYPES
from ....torch._sharded import distributed_as, settled
from ...penalty import is_exact
from ...sparsity import SILENT
from ...terms import Given, Term, without_row
from ..hooks import own_parameter, own_parameters, refresh
from ..noise.normal import StochasticModule

Tensor = torch.Tensor


class Weight(NamedTuple):
    """A weight of a module, with its posterior and its penalty. Both are None without noise."""

    module: Any
    name: str
    posterior: Any = None
    penalty: Any = None
    alone: bool = False
    """Whether the module is a layer, which has no other weight, and gives it no prefix."""
    padding: int | None = None
    """The row without noise of an embedding."""

    def path(self, module: str) -> str:
        """Return the name of the weight in a model, where its module has the given path."""
        return module if self.alone else f"{module}.{self.name}" if module else self.name

    def parameter(self, own: str) -> str:
        """Return the name in the module of one of the parameters of the posterior."""
        return own if self.alone else f"{self.name}_{own}"

    @property
    def parameters(self) -> list[str]:
        """The names in the module of the parameters of the posterior. The first sets variances."""
        return [self.parameter(own) for own in self.posterior.parameters]

    def own(self, name: str) -> Any:
        """Return a parameter of the module, also if it has a mask."""
        return own_parameter(self.module, name)

    def sources(self, name: str) -> list[Any]:
        """Return the parameters that a parameter of the module is, or is computed from."""
        return own_parameters(self.module, name)

    @property
    def stored(self) -> Tensor:
        """The parameter of the means or, if it has a mask, its product with the mask."""
        if self.posterior is None:
            return getattr(self.module, self.name)
        return self.module._lk_mean(self.name)

    @property
    def log_variance(self) -> Tensor:
        """Log sigma^2 or log alpha, as it is stored."""
        return self.module._lk_log_variance(self.name)

    def means(self) -> Tensor:
        """Return the means of the weights, which are the weights in evaluation mode."""
        if self.posterior is None:
            return self.stored
        return self.posterior.means(self.module._lk_given(self.name))

    def log_alpha(self) -> Tensor:
        """Return log alpha of every weight."""
        return self.module._lk_log_alpha(self.name)

    def terms(self, whole: bool = False) -> list[Term]:
        """Return the terms whose sum is -KL, for all rows of an embedding if `whole` is True."""
        mean = self.module._lk_mean(self.name)
        if mean.is_complex():
            raise TypeError(f"the weights of a layer are of {mean.dtype}: {OF_COMPLEX}")
        given, exact = self.module._lk_given(self.name), is_exact(self.penalty)
        if type(mean) not in PLAIN_TYPES:
            given = given._replace(mean=settled(mean), log_variance=settled(given.log_variance))
        at = None if whole else self.padding
        mask = given.mask
        if mask is not None and exact and not (self.posterior.relative or self.posterior.scaled):
            given = given._replace(mask=None)  # the exact KL is 0 where the mean is 0
        elif mask is not None:
            mask = mask.double()  # in which counts are exact
            if not self.posterior.relative:  # a mask of the means alone leaves the noise
                mask = torch.maximum(mask, (self.log_variance > SILENT).to(mask.dtype))
            if at is not None:
                rows = torch.arange(len(mask), device=mask.device)[:, None]
                mask = mask.masked_fill(distributed_as(rows == at, mask), 0.0)
            given = given._replace(mask=mask)
        terms = self.posterior.terms(torch, given, exact)
        if at is None:
            return terms
        return [part for term in terms for part in without_row(term, at, len(mean))]


class Distinct:
    """The weights of a model, in which those that modules share are one.

    They are shared if they are one parameter, or are computed alike from one parameter.
    """

    def __init__(self) -> None:
        # Keep the tensors: if one were freed, another tensor could get the same `id`.
        self._seen: dict[Any, tuple[Sequence[Tensor], list[tuple[int, Sequence[Tensor]]]]] = {}
        self._count = 0
        self._compiling = torch.compiler.is_compiling()

    def number(self, sources: Sequence[Tensor], tensors: Sequence[Tensor]) -> int:
        """Return the number of the tensors of a weight, and of the parameters of computed ones."""
        own, new = sources or tensors, self._count
        key: Any = self._key(own) if self._compiling else tuple(map(id, own))
        seen = self._seen.get(key)
        if seen is None:
            self._seen[key] = own, [(new, tensors)]
        else:
            for number, others in seen[1]:
                if all(map(_equal, tensors, others)):
                    return number
            seen[1].append((new, tensors))
        self._count += 1
        return new

    def _key(self, own: Sequence[Tensor]) -> Any:
        """Return the key of tensors in a graph: torch.compile guards on tensors, not on `id()`."""
        for key, (others, _) in self._seen.items():
            if len(own) == len(others) and not any(map(is_not, own, others)):
                return key
        return len(self._seen)


def _equal(one: Tensor, other: Tensor) -> bool:
    if one is other:
        return True
    if torch.compiler.is_compiling():
        raise RuntimeError(
            "two layers share a parameter from which a mask or a parametrization computes their "
            "weights, which torch.compile cannot compare: compute the KL outside of the graph"
        )
    return one.shape == other.shape and bool((one == other).all())


class VariationalModule(StochasticModule):
    """The base of modules with Gaussian weights."""

    _lk_conversions: int = 0
    """The number of calls of `to_variational` in this process."""

    def _lk_weights(self) -> list[Weight]:
        """Return the Gaussian weights of the module."""
        raise NotImplementedError

    def _lk_become_plain(self) -> None:
        for weight in self._lk_weights():
            for name in weight.parameters:
                del self._parameters[name]
        super()._lk_become_plain()

    _lk_mean: Any  # (name): the means of a weight, with its mask
    _lk_log_variance: Any  # (name): log sigma^2 or log alpha, as it is stored
    _lk_log_alpha: Any  # (name): log alpha of every weight
    _lk_sampled: Any  # (name): one sample of the weights
    _lk_estimator: Any  # how the noise is drawn

    def _lk_given(self, name: str) -> Given:
        """Return the parameters of the posterior of a weight, checked and bounded."""
        raise NotImplementedError


def weights(model: torch.nn.Module) -> Iterator[tuple[str, Weight]]:
    """Yield the Gaussian weights of a model with their names, shared ones several times."""
    for name, module in model.named_modules():
        if isinstance(module, VariationalModule):
            refresh(module)
            for weight in module._lk_weights():
                yield weight.path(name), weight
