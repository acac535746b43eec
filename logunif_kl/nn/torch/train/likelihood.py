"""Check what a log-likelihood returns, and the parameters that it depends on."""

# mypy: allow-untyped-calls
from __future__ import annotations

import sys
import warnings
from collections.abc import Iterable, Iterator
from typing import Any

import torch

from ...._errors import type_name
from ....torch._internals import transformed
from ..convert.conversion import priors
from ..hooks import held, referred
from ..predict.vbp import VBP
from ..weights.weight import VariationalModule
from .partial import reads

Tensor = torch.Tensor


def checked(each: Any, dataset_size: int) -> Tensor:
    if not isinstance(each, Tensor) or not each.is_floating_point():
        given = f"a tensor of {each.dtype}" if isinstance(each, Tensor) else type_name(each)
        raise TypeError(
            f"log_likelihood must return a tensor of floats, but returned {given}: return one "
            "number for each example"
        )
    if not each.ndim:
        raise ValueError(
            "log_likelihood returned a scalar, which may be a sum or a mean: return one number for "
            "each example"
        )
    if not each.shape[0]:
        raise ValueError("the minibatch is empty: leave it out")
    if each.shape[0] > dataset_size:
        raise ValueError(
            f"the minibatch has {each.shape[0]} examples, more than dataset_size={dataset_size}: "
            "pass the size of the whole data set"
        )
    return each


def is_silent(part: Any, training: bool, moments: bool = False) -> bool:
    """Whether no variational layer draws noise, of those that are in no `VBP`.

    In `training`, frozen layers may be meant to have no noise. Without a `VBP`, `moments` can be
    computed of layers that draw none.
    """
    every = [*part.modules()] if isinstance(part, torch.nn.Module) else []
    found = [each for each in every if isinstance(each, VBP)]
    inside = {each for vbp in found for each in vbp.modules()} | (priors(part) if every else set())
    layers = [m for m in every if isinstance(m, VariationalModule) and m not in inside]
    if (moments and not found) or not layers or any(each._lk_draws for each in layers):
        return False
    return not training or any(x.requires_grad for layer in layers for x in layer.parameters())


def check_pairs(value: Tensor, given: Any, level: int) -> None:
    """Warn of a sum of shapes (M, 1) and (M,), which has a row and a column for each example."""
    count, square = len(value), tuple(value.shape[:2])
    if torch.compiler.is_compiling() or count < 2 or square != (count, count):
        return
    sizes = {n for x in held(given, objects=True) if isinstance(x, Tensor) for n in x.shape[1:]}
    # The log-likelihood of the next token has one element less than there are tokens.
    if sizes.isdisjoint((count, count + 1)):
        warnings.warn(
            f"log_likelihood returned shape {tuple(value.shape)} for {count} examples, perhaps "
            f"because shapes ({count}, 1) and ({count},) were added: sum over all dimensions but "
            "the first before",
            stacklevel=level,
        )


class Reached:
    """The parameters that the terms of a bound depend on, in one call of an `ELBO`.

    The graphs of the terms tell of every parameter, however a function reads it. They are followed
    in the calls 1, 2, 4, 8... until one is told of, and again if the ELBO is another after a copy,
    or other modules become variational. Warnings point to the user's call, `level` frames above.
    """

    def __init__(self, elbo: Any, level: int) -> None:
        self.level = level
        self._elbo = elbo
        self._ends: set[Any] = set()
        self._known: set[int] = set()
        self._asks = False
        if torch.compiler.is_compiling() or not torch.is_grad_enabled() or transformed():
            return
        key = id(elbo), VariationalModule._lk_conversions
        before, calls = elbo._lk_asked
        if before == id(elbo):
            return  # It was told.
        calls = calls + 1 if before == key else 1
        elbo.__dict__["_lk_asked"] = key, calls
        self._asks = not calls & (calls - 1) and not getattr(elbo, "_is_replica", False)

    def begin(self, given: Any) -> None:
        """Note what the log-likelihood is given, where its graph ends.

        This is before it is called, because it may change a tensor in place.
        """
        if self._asks:
            tensors = [x for x in held(given, objects=True) if isinstance(x, Tensor)]
            self._ends.update(x.grad_fn for x in tensors)
            self._known.update(map(id, tensors))

    def check(self, likelihood: Tensor) -> None:
        """Warn of a parameter that the log-likelihood depends on and that the ELBO does not have.

        A module that holds the ELBO may have parameters of its own.
        """
        self._check(
            "log_likelihood",
            likelihood,
            "and the bound its KL if it has one: pass functools.partial of a function that takes "
            "it as an argument, or let its module hold the ELBO",
        )

    def check_penalty(self, neg_kl: Tensor) -> None:
        """Warn of a parameter that only the KL depends on, in a prior that is no module."""
        self._check("the KL", neg_kl, "and its state_dict: make the prior a torch.nn.Module")

    def _check(self, what: str, value: Tensor, so: str) -> None:
        if not self._asks or not value.requires_grad:
            return
        # A functional call has others, which may be computed from parameters.
        self._ends.update(x.grad_fn for x in self._elbo.parameters())
        own = self._known | {id(x) for x in self._elbo.parameters()}
        for leaf in _leaves(value, self._ends):
            if not isinstance(leaf, torch.nn.Parameter) or id(leaf) in own:
                continue
            for function in (self._near, self._far):  # The second may follow a whole data set.
                if id(leaf) not in own:
                    parts = self._around(function())
                    if _sharded(parts):
                        return  # The parameters of a call are others.
                    own |= self._of(parts)
            if id(leaf) not in own:
                self._asks = False
                self._elbo.__dict__["_lk_asked"] = id(self._elbo), 0
                warnings.warn(
                    f"{what} depends on a parameter of shape {tuple(leaf.shape)} that the ELBO "
                    f"does not have, so elbo.parameters() leaves it out, {so}",
                    stacklevel=self.level + 1,
                )
                return

    def _of(self, parts: Iterable[torch.nn.Module]) -> set[int]:
        """Return the `id` of the parameters of modules around the ELBO that have no KL."""
        return {
            id(each)
            for module in parts
            if not isinstance(module, VariationalModule)
            for each in module.parameters(recurse=False)
        }

    def _near(self) -> list[Any]:
        """Return what the log-likelihood reads."""
        function = self._elbo.log_likelihood
        is_module = isinstance(function, torch.nn.Module)
        functions = [*getattr(function, "_constants", {}).values()] if is_module else [function]
        return [function, *(x for each in functions for _, x in reads(each, set()))]

    def _far(self) -> list[Any]:
        """Return what its modules hold, too, without registering it."""
        function = self._elbo.log_likelihood
        modules = function.modules() if isinstance(function, torch.nn.Module) else ()
        return [*self._near(), *map(vars, modules)]

    def _around(self, read: list[Any]) -> set[torch.nn.Module]:
        """Return the modules of the ELBO, and of modules that hold it, of those that it reads."""
        known = [*held([self._elbo, read], objects=True)]
        known += [each for x in known for each in referred(x)]
        modules = (x for x in known if isinstance(x, torch.nn.Module))
        around = (outer for outer in modules if self._elbo in outer.modules())
        return {part for outer in around for part in outer.modules()}


def _sharded(parts: Iterable[torch.nn.Module]) -> bool:
    fsdp = sys.modules.get("torch.distributed.fsdp")
    kinds = () if fsdp is None else (fsdp.FSDPModule, fsdp.FullyShardedDataParallel)
    return any(isinstance(each, kinds) for each in parts)


def _leaves(value: Tensor, ends: Iterable[Any]) -> Iterator[Any]:
    """Yield the leaves of the graph of a value, and parameters that a checkpoint hides from it."""
    seen = {None, *ends}
    nodes: list[Any] = [value.grad_fn]
    while nodes:
        node = nodes.pop()
        if node in seen:
            continue
        seen.add(node)
        nodes += [following for following, _ in node.next_functions]
        yield getattr(node, "variable", None)
        if hasattr(node, "run_function"):  # torch.utils.checkpoint with use_reentrant=True
            parts = [*held([node.run_function], objects=True)]
            yield from (x for x in parts if isinstance(x, torch.nn.Parameter) and x.requires_grad)
            modules = [x for x in parts if isinstance(x, torch.nn.Module)]
            yield from (x for module in modules for x in module.parameters() if x.requires_grad)
