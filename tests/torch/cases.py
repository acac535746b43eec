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


def layouts(device: str = "cpu") -> dict[str, tuple]:
    """Return a factor, means and variances of one shape in layouts of every kind, by name."""
    mu, log_sigma2 = (x.reshape(48, 36).to(device) for x in weights(48 * 36))
    factor = torch.linspace(-2, 3, 48 * 36, device=device).reshape(48, 36)
    number = torch.tensor(-3.0, device=device)
    channels_last = [
        x.reshape(2, 3, 24, 12).to(memory_format=torch.channels_last) for x in (mu, log_sigma2)
    ]
    return {
        "contiguous": (factor, mu, log_sigma2),
        "transposed": (factor.T, mu.T, log_sigma2.T),
        "one transposed": (factor.reshape(36, 48), mu.T, log_sigma2.reshape(36, 48)),
        "sliced": (factor[::2, 1::3], mu[::2, 1::3], log_sigma2[::2, 1::3]),
        "one sliced": (factor[:24], mu[::2], log_sigma2[:24]),
        "a number for log_sigma2": (factor, mu, number.expand(48, 36)),
        "a number for mu": (factor.T, number.expand(36, 48), log_sigma2.T),
        "a number and slices": (factor[:, :18], mu[:, ::2], number.expand(48, 18)),
        "numbers": (number.expand(7, 9), number.expand(7, 9), number.expand(7, 9)),
        "rows": (factor, mu, log_sigma2[:, :1].expand(48, 36)),
        "columns": (factor, mu, log_sigma2[:1].expand(48, 36)),
        "channels last": (factor.reshape(2, 3, 24, 12), *channels_last),
        "axes of length 1": (factor[:, None, :1], mu[:, None, :1], log_sigma2[:, None, :1]),
        "a transposed factor": (factor.T.contiguous().T, mu, log_sigma2),
        "an expanded factor": (number.expand(36, 48), mu.T, log_sigma2.T),
        "a factor of no dimensions": (number, mu.T, log_sigma2.T),
        "a factor that is part of more": (factor[3, 5], mu, log_sigma2),
        "a row for a factor": (factor[:1].expand(48, 36), mu, log_sigma2),
        "no elements": (factor[:0], mu[:0], log_sigma2[:0]),
        "no dimensions": (number, mu[0, 0], log_sigma2[0, 0]),
    }


def plain_copies(*tensors: torch.Tensor) -> list[torch.Tensor]:
    """Copy tensors into dense memory of their own, in the order of their axes."""
    return [x.clone(memory_format=torch.contiguous_format) for x in tensors]
