"""The cases of `tests.derivatives` as functions of PyTorch."""

from typing import Any

import pytest
import torch

import logunif_kl.torch as lt
from tests import derivatives


class Case(derivatives.Case):
    """A function of `logunif_kl.torch`."""

    @property
    def function(self) -> Any:
        return getattr(lt, self.name)

    def arguments(self, dtype: torch.dtype = torch.float64, grad: bool = False) -> list:
        return [torch.tensor(p, dtype=dtype, requires_grad=grad) for p in self.points]


CASES = derivatives.cases(Case)
MAIN = [case for case in CASES if case.name in ("neg_kl", "neg_kl_normal")]
by_name = pytest.mark.parametrize("case", CASES, ids=lambda case: case.name)
main = pytest.mark.parametrize("case", MAIN, ids=lambda case: case.name)


def weights(n: int, dtype: torch.dtype = torch.float32, seed: int | None = None) -> tuple:
    """Return means and logarithms of variances."""
    generator = torch.Generator().manual_seed(n + 1 if seed is None else seed)
    mu = torch.randn(n, generator=generator, dtype=torch.float64)
    log_sigma2 = 4 * torch.randn(n, generator=generator, dtype=torch.float64) - 6
    return mu.to(dtype), log_sigma2.to(dtype)
