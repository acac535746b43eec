"""Noise in evaluation mode, within a ``with`` statement."""

# mypy: allow-untyped-calls, no-warn-return-any
from __future__ import annotations

from collections.abc import Iterator
from contextlib import contextmanager, nullcontext
from threading import Lock

import torch

from ._arguments import check_module
from ._models import kind_name
from ._noise import Drawing


@contextmanager
def sampling(model: torch.nn.Module) -> Iterator[None]:
    """Have a model draw its noise in evaluation mode too, within a ``with`` statement.

    Other modules (batch normalisation, binary dropout) stay in their mode. The context is of the
    model, so it holds in other threads that use the same model, until the last such context ends; a
    copy made within it is not in it. Within it the fast path of
    `torch.nn.TransformerEncoder` is disabled for the process (`torch.backends.mha`), since it reads
    the weights of the layers instead of calling them. A compiler does not trace this setting: call
    a compiled model within the context, rather than to compile the context with the model.

    Parameters
    ----------
    model : torch.nn.Module
        A model with variational layers, `GaussianDropoutA` or `GaussianDropoutLinear`.

    Raises
    ------
    TypeError
        If `model` is no module.
    ValueError
        If it holds no such layer.

    Examples
    --------
    >>> import torch
    >>> from logunif_kl.torch import nn
    >>> layer = nn.VariationalLinear(3, 1, initial=0.0).eval()
    >>> x = torch.ones(1, 3)
    >>> bool(layer(x) == layer(x))
    True
    >>> with nn.sampling(layer):
    ...     bool(layer(x) == layer(x))
    False
    """
    found = [m for m in check_module(model).modules() if isinstance(m, Drawing)]
    if not found:
        raise ValueError(
            f"a {kind_name(model)} was given in which no layer draws noise: pass a model with "
            "variational layers"
        )
    _count(found, 1)
    try:
        with without_fast_path():
            yield
    finally:
        # `to_deterministic` may have been called within.
        _count([module for module in found if isinstance(module, Drawing)], -1)


_lock = Lock()


def _count(modules: list[Drawing], step: int) -> None:
    with nullcontext() if torch.compiler.is_compiling() else _lock:
        for module in modules:
            module._sampling += step


_fast_path: list[bool] = []
"""What the setting was before each `sampling` that is under way, in any thread."""


@contextmanager
def without_fast_path() -> Iterator[None]:
    """Have `torch.nn.TransformerEncoderLayer` call its layers.

    In evaluation mode its fast path reads their weights instead, and would draw no noise.
    """
    mha = torch.backends.mha
    if torch.compiler.is_compiling():
        # A compiler refuses to trace the setting.
        yield
        return
    with _lock:
        _fast_path.append(mha.get_fastpath_enabled())
        mha.set_fastpath_enabled(False)
    try:
        yield
    finally:
        with _lock:
            # The first that began found the setting of the user; the last that ends restores it.
            last = _fast_path.pop()
            if not _fast_path:
                mha.set_fastpath_enabled(last)
