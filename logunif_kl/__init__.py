"""The exact KL divergence from a Gaussian to the log-uniform prior, with its derivatives."""

from importlib import import_module as _import_module
from types import ModuleType as _ModuleType

from . import log_alpha, special
from ._api import kl, kl_normal, neg_kl, neg_kl_grad, neg_kl_hess, neg_kl_normal
from ._config import show_config
from ._version import __version__

__all__ = [
    "__version__",
    "kl",
    "kl_normal",
    "log_alpha",
    "methods",
    "neg_kl",
    "neg_kl_grad",
    "neg_kl_hess",
    "neg_kl_normal",
    "reference",
    "show_config",
    "special",
]

_LAZY = ("methods", "reference")


def __getattr__(name: str) -> _ModuleType:
    if name in _LAZY:
        return _import_module(f"{__name__}.{name}")
    raise AttributeError(f"module {__name__!r} has no attribute {name!r}")


def __dir__() -> list[str]:
    return sorted(__all__)
