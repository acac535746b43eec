"""Inputs of models: one, several in a tuple, or several by name in a mapping."""

# mypy: allow-untyped-calls, no-warn-return-any
from __future__ import annotations

from collections import UserDict
from collections.abc import Callable, Iterator, Mapping
from typing import Any

import torch

from ...._errors import type_name

Tensor = torch.Tensor

_NAMED = (dict, UserDict)
"""The mappings whose values are inputs by name. Others, such as a ``TensorDict``, are one input."""


def call(model: Any, x: Any) -> Any:
    """Call a model with an input, a tuple of inputs, or a mapping of names to inputs."""
    if type(x) is tuple:
        return logits_of(model(*x))
    return logits_of(model(**x) if isinstance(x, _NAMED) else model(x))


def logits_of(output: Any) -> Any:
    """Return the logits in a ``ModelOutput`` of Hugging Face, and other outputs unchanged."""
    # A dict remains what it is, because a log-likelihood of the user may read it.
    named = isinstance(output, Mapping) and type(output) is not dict
    return output["logits"] if named and "logits" in output else output


def each_tensor(x: Any, change: Callable[[Tensor], Tensor]) -> Any:
    """Change each tensor of an input, and leave other values as they are."""
    if isinstance(x, Tensor):
        return change(x)
    if type(x) is tuple:
        return tuple(each_tensor(each, change) for each in x)
    if isinstance(x, _NAMED):
        return {name: each_tensor(each, change) for name, each in x.items()}
    return x


def repeated(x: Any, times: int) -> Any:
    """Repeat each tensor of an input along its first dimension."""
    return each_tensor(x, lambda each: each.repeat(times, *[1] * (each.ndim - 1)))


def tensors(x: Any) -> Iterator[Tensor]:
    """Yield the tensors of an input."""
    if isinstance(x, Tensor):
        yield x
    elif type(x) is tuple or isinstance(x, _NAMED):
        for each in x.values() if isinstance(x, _NAMED) else x:
            yield from tensors(each)


def count_examples(x: Any) -> int:
    """Return the length of the first dimension of all tensors of an input, or raise an error."""
    found = list(tensors(x))
    if not found:
        raise TypeError(
            f"x must be a torch.Tensor, but {type_name(x)} was given: convert it, or pass "
            "batched=False"
        )
    if not all(each.ndim for each in found):
        raise ValueError("x must be of shape (M, ...), but a scalar was given: reshape it")
    lengths = {len(each) for each in found}
    if len(lengths) > 1:
        raise ValueError(
            f"inputs of {', '.join(map(str, sorted(lengths)))} examples were given: pass inputs of "
            "equal length, or batched=False"
        )
    return lengths.pop()
