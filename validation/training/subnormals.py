"""Arithmetic without subnormal numbers.

Weights that the divergence drives to zero leave subnormal numbers in gradients and in Adam's
averages, and a processor takes many times as long for each of them.
"""

import contextlib
from collections.abc import Iterator

import torch


@contextlib.contextmanager
def flushed() -> Iterator[None]:
    """Take and make zeros in place of subnormal numbers, in this thread, where that can be had."""
    torch.set_flush_denormal(True)
    try:
        yield
    finally:
        torch.set_flush_denormal(False)
