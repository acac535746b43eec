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


def draws(part: torch.nn.Module) -> bool:
    """Whether variational layers draw noise, or a `VBP` computes moments, or there are none."""
    found = [each for each in part.modules() if isinstance(each, (VBP, VariationalModule))]
    return not found or any(isinstance(each, VBP) or each._lk_draws for each in found)


def is_silent(function: Any) -> bool:
    """Whether variational layers of a log-likelihood are trained, but none draws noise."""
    if not isinstance(function, torch.nn.Module) or draws(function):
        return False
    layers = (each for each in function.modules() if isinstance(each, VariationalModule))
    return any(x.requires_grad for layer in layers for x in layer.parameters())


def check_pairs(value: Tensor, given: Any, level: int) -> None:
    """Warn of a sum of shapes (M, 1) and (M,), which has a row and a column for each example."""
    count, square = len(value), tuple(value.shape[:2])
    if torch.compiler.is_compiling() or count < 2 or square != (count, count):
        return
    sizes = {n for x in held(given) if isinstance(x, Tensor) for n in x.shape[1:]}
    # The log-likelihood of the next token has one element less than there are tokens.
    if sizes.isdisjoint((count, count + 1)):
        warnings.warn(
            f"log_likelihood returned shape {tuple(value.shape)} for {count} examples, perhaps "
            f"because shapes ({count}, 1) and ({count},) were added: sum over all dimensions but "
            "the first before",
            stacklevel=level,
        )


class Reached:
    """What a log-likelihood is given before a call, where the graph of its value ends.

    The graph tells of every parameter, however the function reads it. It is followed in the first
    call, in that of a copy, and in the first after other modules became variational.
    """

    def __init__(self, elbo: Any, given: Any) -> None:
        self._elbo = elbo
        self._asks = not torch.compiler.is_compiling() and self._is_new()
        tensors = (
            [x for x in held(given, objects=True) if isinstance(x, Tensor)] if self._asks else []
        )
        # Before the call, because the function may change a tensor in place.
        self._ends = {x.grad_fn for x in tensors}
        self._known = {id(x) for x in tensors}

    def _now(self) -> tuple[int, int]:
        return id(self._elbo), VariationalModule._lk_conversions

    def _is_new(self) -> bool:
        is_replica = getattr(self._elbo, "_is_replica", False)
        return not (self._elbo._lk_checked == self._now() or is_replica or transformed())

    def check(self, value: Tensor, level: int) -> None:
        """Warn of a parameter that `value` depends on.

        A module that holds the ELBO may have parameters of its own.
        """
        if not self._asks or not value.requires_grad:
            return
        self._elbo._lk_checked = self._now()
        parts = self._around()
        fsdp = sys.modules.get("torch.distributed.fsdp")
        if fsdp is not None:
            sharded = fsdp.FSDPModule, fsdp.FullyShardedDataParallel
            if any(isinstance(each, sharded) for each in parts):
                return  # The parameters of a call are others.
        inside = {*self._elbo.modules()}
        # A functional call has others, which may be computed from parameters.
        self._ends.update(x.grad_fn for x in self._elbo.parameters())
        own = self._known | {
            id(each)
            for module in parts
            if module in inside or not isinstance(module, VariationalModule)
            for each in module.parameters(recurse=False)
        }
        for leaf in _leaves(value, self._ends):
            if isinstance(leaf, torch.nn.Parameter) and id(leaf) not in own:
                warnings.warn(
                    f"log_likelihood depends on a parameter of shape {tuple(leaf.shape)} that the "
                    "ELBO does not have, so elbo.parameters() leaves it out, and the bound its KL "
                    "if it has one: pass functools.partial of a function that takes it as an "
                    "argument, or let its module hold the ELBO",
                    stacklevel=level,
                )
                return

    def _around(self) -> set[torch.nn.Module]:
        """Return the modules of the ELBO, and of modules that hold it, as far as they are known."""
        elbo, function = self._elbo, self._elbo.log_likelihood
        is_module = isinstance(function, torch.nn.Module)
        if is_module:
            read: list[Any] = [vars(each) for each in function.modules()]
        else:
            read = [x for _, x in reads(function, set())]
        known = [*held([elbo, function, read], objects=True)]
        known += [each for x in known for each in referred(x)]
        modules = (x for x in known if isinstance(x, torch.nn.Module))
        return {part for outer in modules if elbo in outer.modules() for part in outer.modules()}


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
            parts = held([node.run_function], objects=True)
            modules = [x for x in parts if isinstance(x, torch.nn.Module)]
            yield from (x for module in modules for x in module.parameters() if x.requires_grad)
