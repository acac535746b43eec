"""Stand-ins for frameworks that are not installed, so that docstrings can be read without them."""

from __future__ import annotations

import sys
from importlib import import_module
from importlib.util import find_spec
from typing import Any

import scipy.stats  # noqa: F401  # which would ask the stand-ins for their classes
from sphinx.ext.autodoc.mock import MockFinder, _MockObject, undecorate

from validation.experiment import names as names_of_experiments

FRAMEWORKS = (
    "torch",
    "triton",
    "pyro",
    "jax",
    "jaxlib",
    "numpyro",
    "tensorflow",
    "tensorflow_probability",
)


def missing() -> list[str]:
    """List the frameworks that cannot be imported."""
    return [name for name in FRAMEWORKS if find_spec(name) is None]


ROOMS = (
    "logunif_kl.torch",
    "logunif_kl.torch.nn",
    "logunif_kl.torch.isotropic",
    "logunif_kl.torch.pyro",
    "logunif_kl.jax",
    "logunif_kl.jax.nn",
    "logunif_kl.jax.isotropic",
    "logunif_kl.jax.numpyro",
    "logunif_kl.jax.tfp",
    "logunif_kl.tensorflow",
)


def import_rooms() -> None:
    """Import what stands on the frameworks, with stand-ins for those that are missing.

    The stand-ins are forgotten at the end: other packages ask `sys.modules` which frameworks are
    there.
    """
    names = missing()
    finder = MockFinder(names)
    sys.meta_path.insert(0, finder)
    try:
        _allow_unions(names)
        if "torch" in names:
            _make_functions_real()
        if "jax" in names:
            _make_registries_real()
        for room in (*ROOMS, *(f"validation.papers.{name}" for name in names_of_experiments())):
            import_module(room)
        _make_signatures_real()
    finally:
        sys.meta_path.remove(finder)
        for name in [name for name in sys.modules if name.partition(".")[0] in names]:
            del sys.modules[name]


def _allow_unions(names: list[str]) -> None:
    # Names of types such as `Tensor | None` are computed at the import.
    for name in names[:1]:
        stand_in = type(import_module(name).Anything)
        stand_in.__mro__[-2].__or__ = lambda self, other: Any


def _make_signatures_real() -> None:
    # autodoc would show that of the stand-in for each class that inherits from one.
    del _MockObject.__new__
    # Nor has a function a signature that a stand-in decorates, such as torch.no_grad.
    for module in [sys.modules[name] for name in sys.modules if name.startswith("logunif_kl.")]:
        for name, value in list(vars(module).items()):
            setattr(module, name, undecorate(value))


def _make_functions_real() -> None:
    # logunif_kl.torch takes a method of the base class of torch.autograd.Function at its import.
    import torch.autograd

    class Base:
        @classmethod
        def apply(cls, *args: object) -> None:
            raise NotImplementedError("torch is not installed")

    class Function(Base):
        pass

    torch.autograd.Function = Function


def _make_registries_real() -> None:
    # logunif_kl.jax.nn enters its primitive into these at its import, and its pytrees.
    import_module("jax.tree_util").register_dataclass = lambda kind, **fields: kind
    ad, batching = map(import_module, ("jax.interpreters.ad", "jax.interpreters.batching"))
    for registries, name in (
        (ad, "primitive_jvps"),
        (ad, "primitive_transposes"),
        (batching, "primitive_batchers"),
    ):
        setattr(registries, name, {})
