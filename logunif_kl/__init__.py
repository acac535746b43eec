"""The exact KL divergence from a Gaussian to the log-uniform prior, with its derivatives."""

try:
    import typing as _typing
    from importlib import import_module as _import_module

    from . import log_alpha, special
    from ._api import kl, kl_normal, neg_kl, neg_kl_grad, neg_kl_hess, neg_kl_normal
    from ._config import show_config
    from ._version import __version__
except KeyboardInterrupt:  # Ctrl-C while NumPy is imported, which is most of the start-up time
    from .cli import end_if_started as _end_if_started

    _end_if_started()
    raise

__all__ = [
    "__version__",
    "accuracy",
    "fit_polynomial",
    "fit_sigmoid",
    "fitting",
    "isotropic",
    "kl",
    "kl_complex",
    "kl_complex_normal",
    "kl_normal",
    "kl_posterior",
    "kl_vector",
    "log_alpha",
    "methods",
    "neg_kl",
    "neg_kl_complex",
    "neg_kl_complex_grad",
    "neg_kl_complex_hess",
    "neg_kl_complex_normal",
    "neg_kl_grad",
    "neg_kl_hess",
    "neg_kl_normal",
    "neg_kl_posterior",
    "neg_kl_vector",
    "neg_kl_vector_grad",
    "posteriors",
    "reference",
    "show_config",
    "special",
]

# Name -> module, imported at its first use. Most of these modules import SciPy or mpmath.
_LAZY = {
    "accuracy": "accuracy",
    "fit_polynomial": "fitting",
    "fit_sigmoid": "fitting",
    "fitting": "fitting",
    "isotropic": "isotropic",
    "kl_complex": "isotropic",
    "kl_complex_normal": "isotropic",
    "kl_posterior": "posteriors",
    "kl_vector": "isotropic",
    "methods": "methods",
    "neg_kl_complex": "isotropic",
    "neg_kl_complex_grad": "isotropic",
    "neg_kl_complex_hess": "isotropic",
    "neg_kl_complex_normal": "isotropic",
    "neg_kl_posterior": "posteriors",
    "neg_kl_vector": "isotropic",
    "neg_kl_vector_grad": "isotropic",
    "posteriors": "posteriors",
    "reference": "reference",
}

# The user must import these subpackages, because importing a framework takes seconds.
_FRAMEWORKS = ("jax", "tensorflow", "torch")


if _typing.TYPE_CHECKING:
    # A type checker would take any name from `__getattr__`, and know none.
    from . import accuracy, fitting, isotropic, methods, posteriors, reference
    from .fitting import fit_polynomial, fit_sigmoid
    from .isotropic import (
        kl_complex,
        kl_complex_normal,
        kl_vector,
        neg_kl_complex,
        neg_kl_complex_grad,
        neg_kl_complex_hess,
        neg_kl_complex_normal,
        neg_kl_vector,
        neg_kl_vector_grad,
    )
    from .posteriors import kl_posterior, neg_kl_posterior
else:

    def __getattr__(name: str) -> _typing.Any:
        if name not in _LAZY:
            until = f" before `import {__name__}.{name}`" if name in _FRAMEWORKS else ""
            raise AttributeError(f"module {__name__!r} has no attribute {name!r}{until}")
        module = _import_module(f"{__name__}.{_LAZY[name]}")
        return module if name == _LAZY[name] else getattr(module, name)


def __dir__() -> list[str]:
    return sorted(__all__)
