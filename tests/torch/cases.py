"""The cases of `tests.derivatives` as functions of PyTorch."""

from typing import Any

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
