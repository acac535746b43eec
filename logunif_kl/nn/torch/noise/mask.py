"""The means that one run of a model with `ELBO(mask_from=)` leaves out."""

# mypy: allow-untyped-calls
from __future__ import annotations

from collections.abc import Callable
from operator import is_not
from threading import get_ident
from typing import Any

import torch
from torch.compiler import is_compiling

from ....torch._internals import unobserved
from ...sparsity import is_noisy

Tensor = torch.Tensor


def versions_of(tensors: list[Any]) -> int | None:
    """Count the changes of tensors in place, or return None if PyTorch does not count them."""
    try:
        return sum([each._version for each in tensors])
    except RuntimeError:  # for tensors that were made within torch.inference_mode
        return None


class Mask:
    """The means that one run of a model with `ELBO(mask_from=)` leaves out."""

    def __init__(self, threshold: float) -> None:
        self.threshold = threshold
        self._noisy: dict[Any, tuple[Tensor, list[Tensor], int | None]] = {}
        self.thread = 0 if is_compiling() else get_ident()

    def applied(
        self, key: Any, mean: Tensor, log_alpha: Callable[[], Tensor], parameters: list[Tensor]
    ) -> Tensor:
        """Return means without the noisy ones, found once for each key while nothing changes.

        `parameters` are those of the posterior: in one run of a model, `functional_call` may
        replace them, or the model may change them.
        """
        if is_compiling():
            noisy = is_noisy(log_alpha().detach(), self.threshold)
            return mean.masked_fill(noisy, 0.0)
        given = [mean, *parameters]
        versions = versions_of(given)
        found = self._noisy.get(key)
        if (
            found is None
            or versions is None
            or versions != found[2]
            or any(map(is_not, given, found[1]))
        ):
            with torch.no_grad(), unobserved():  # because a second run finds it
                found = is_noisy(log_alpha(), self.threshold), given, versions
            self._noisy[key] = found
        return mean.masked_fill(found[0], 0.0)
