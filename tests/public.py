"""The public names and their signatures, as text.

    python -m tests.public > tests/golden/public.txt

A module's public names are those of its ``__all__``. Of a class, its public methods count too.
"""

from __future__ import annotations

import importlib
import importlib.util
import inspect
import sys
from collections.abc import Iterator
from typing import Any, ForwardRef

# Modules, and the packages that they need.
_ALONE = (
    "special special.array_api log_alpha methods posteriors isotropic fitting reference accuracy"
)
MODULES: dict[str, tuple[str, ...]] = {
    "logunif_kl": (),
    **{f"logunif_kl.{name}": () for name in _ALONE.split()},
    **{f"logunif_kl.torch{name}": ("torch",) for name in ("", ".isotropic", ".nn")},
    "logunif_kl.torch.pyro": ("torch", "pyro"),
    **{f"logunif_kl.jax{name}": ("jax",) for name in ("", ".isotropic", ".nn")},
    "logunif_kl.jax.numpyro": ("jax", "numpyro"),
    "logunif_kl.jax.tfp": ("jax", "tensorflow_probability"),
    "logunif_kl.tensorflow": ("tensorflow",),
}


FRAMEWORKS = ("torch", "jax", "tensorflow")


def framework(module: str) -> str:
    """The framework that a module is for, or nothing."""
    name = module.removeprefix("logunif_kl.").partition(".")[0]
    return name if name in FRAMEWORKS else ""


def installed(module: str) -> bool:
    """Whether the packages that a module needs are installed."""
    return all(importlib.util.find_spec(name) for name in MODULES[module])


def lines(module: str) -> list[str]:
    """One line for each public name of a module."""
    found = importlib.import_module(module)
    names = getattr(found, "__all__", None) or [n for n in vars(found) if not n.startswith("_")]
    values = ((f"{module}.{name}", getattr(found, name)) for name in sorted(names))
    return [line for name, value in values for line in _of(name, value)]


def _of(name: str, value: Any) -> Iterator[str]:
    if inspect.ismodule(value):
        yield f"{name}: module"
        return
    yield f"{name}{_signature(value)}"
    if inspect.isclass(value):
        for attribute, member in sorted(vars(value).items()):
            if not attribute.startswith("_"):
                yield f"{name}.{attribute}{_signature(member)}"


def _signature(value: Any) -> str:
    value = getattr(value, "__func__", value)
    if isinstance(value, property):
        return ": property"
    if not callable(value):
        return f": {type(value).__name__}"
    if not (inspect.isfunction(value) or inspect.isclass(value)):
        return ": callable"
    try:
        signature = inspect.signature(value)
    except ValueError:
        return ": callable"
    # How a reference is shown depends on the version of Python.
    given = [p.replace(annotation=_written(p.annotation)) for p in signature.parameters.values()]
    returned = _written(signature.return_annotation)
    return str(signature.replace(parameters=given, return_annotation=returned))


def _written(annotation: Any) -> Any:
    """The text of a reference to a name, as other annotations are."""
    return annotation.__forward_arg__ if isinstance(annotation, ForwardRef) else annotation


if __name__ == "__main__":
    for module in sys.argv[1:] or MODULES:
        print("\n".join(lines(module)))
