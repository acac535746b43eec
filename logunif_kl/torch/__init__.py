"""The exact KL divergence for PyTorch tensors, differentiable any number of times.

The functions work in every transform of `torch.func`. If `logunif_kl.neg_kl` or another function of
the package gets a tensor, it calls the function of the same name in this module.
"""

import typing as _typing

try:
    import torch as _torch  # noqa: F401
except ModuleNotFoundError as _error:
    if _error.name != "torch":
        raise
    raise ImportError(
        "logunif_kl.torch needs PyTorch, which is not installed: pip install 'logunif_kl[torch]'"
    ) from None

from ._api import kl, kl_normal, neg_kl, neg_kl_grad, neg_kl_hess, neg_kl_normal
from ._conversions import converted as _converted  # noqa: F401
from ._formulas import formula as _formula  # noqa: F401

__all__ = [
    "ImproperLogUniform",
    "kl",
    "kl_normal",
    "neg_kl",
    "neg_kl_grad",
    "neg_kl_hess",
    "neg_kl_normal",
]


if _typing.TYPE_CHECKING:
    from ._distributions import ImproperLogUniform
else:

    def __getattr__(name: str) -> _typing.Any:
        if name not in ("ImproperLogUniform", "LogUniform"):
            raise AttributeError(f"module {__name__!r} has no attribute {name!r}")
        # Importing torch.distributions takes a quarter of a second, so wait for the first use.
        from . import _distributions

        return _distributions.by_name(name)


def __dir__() -> list[str]:
    return sorted(__all__)
