"""Report the kernel, the extensions and the libraries of this installation."""

from __future__ import annotations

import os
import sys
from typing import Any, Literal, overload


@overload
def show_config(mode: Literal["stdout"] = "stdout") -> None: ...


@overload
def show_config(mode: Literal["dict"]) -> dict[str, Any]: ...


def show_config(mode: str = "stdout") -> dict[str, Any] | None:
    """Show the kernel in use, the kernels that are available, and the optional libraries.

    Parameters
    ----------
    mode : {"stdout", "dict"}
        Whether to print the report or to return it as a dictionary.

    Returns
    -------
    dict or None
        With the keys ``version``, ``kernel``, ``available_kernels``, ``python``, ``numpy``,
        ``machine`` and four others. ``why_python`` says why the kernel is ``"python"``, or is None.
        ``optional`` gives the version of each optional library, or None. ``frameworks`` names, for
        each framework in use, the code that computes -KL of a Gaussian on the CPU in float32.
        ``extensions`` gives, for each extension, ``"built"``, ``"left out"`` (under
        ``LOGUNIF_KL_KERNEL=python``) or what is wrong. The extension ``_ufuncs`` serves NumPy.
        ``_single_ufuncs`` serves PyTorch on the CPU in float32 and the half types; without
        ``_single_ufuncs``, the slower ``_ufuncs`` is used. ``_torch_operators`` runs the kernels
        of ``_single_ufuncs`` on PyTorch's threads and in compiled graphs. ``_jax_calls`` runs the
        same kernels in JAX programs; without ``_jax_calls``, XLA compiles plain operations.

    Raises
    ------
    ValueError
        If `mode` is not one of the two.

    Examples
    --------
    >>> import logunif_kl as lk
    >>> lk.show_config("dict")["kernel"] in lk.show_config("dict")["available_kernels"]
    True
    """
    if mode not in ("stdout", "dict"):
        raise ValueError(
            f"mode must be 'stdout' or 'dict', but {mode!r} was given: pass one of them"
        )
    import platform

    import numpy as np

    from ._numpy import ufuncs
    from ._version import __version__

    config: dict[str, Any] = {
        "version": __version__,
        "kernel": ufuncs.kernel_name(),
        "why_python": ufuncs.why_python(),
        "available_kernels": ufuncs.available_kernels(),
        "extensions": {name: _state(name) for name in _EXTENSIONS},
        "frameworks": _frameworks(),
        "python": platform.python_version(),
        "numpy": np.__version__,
        "machine": f"{platform.system()} {platform.machine()}",
        "optional": {name: _installed(name) for name in _OPTIONAL},
    }
    if mode == "dict":
        return config
    kernel = config["kernel"]
    if config["why_python"]:
        kernel += f" (slow: {config['why_python']})"
    extensions = ", ".join(f"{name} {state}" for name, state in config["extensions"].items())
    optional = ", ".join(f"{name} {v}" for name, v in config["optional"].items() if v) or "none"
    for title, text in (
        ("logunif_kl", config["version"]),
        ("kernel", kernel),
        (
            "available",
            ", ".join(config["available_kernels"]) + "   (LOGUNIF_KL_KERNEL=... chooses)",
        ),
        ("extensions", extensions),
        *config["frameworks"].items(),
        ("Python", config["python"]),
        ("NumPy", config["numpy"]),
        ("machine", config["machine"]),
        ("optional", optional),
    ):
        print(f"{title:<12}{text}")
    return None


# The name of an extension in the report -> its module.
_EXTENSIONS = {
    "_ufuncs": "_numpy._exact",
    "_single_ufuncs": "_numpy._float32",
    "_torch_operators": "torch._library",
    "_jax_calls": "jax._ffi",
}
# Framework -> the module with `why_not`, the report if C kernels are used, the report if not.
_COMPUTES = {
    "torch": ("torch._kernels", "operators of C", "ufuncs of C and plain operations"),
    "jax": ("jax._custom_call", "calls of C from XLA", "plain operations of XLA"),
}
_FRAMEWORKS = ("torch", "triton", "jax", "tensorflow")
_OTHERS = ("mlx", "autograd", "paddlepaddle", "pytensor", "tinygrad", "numba")
_OPTIONAL = ("scipy", "mpmath", "python-flint", *_FRAMEWORKS, *_OTHERS, "rich", "matplotlib")
# Library -> another distribution that provides it.
_ALSO = {"tensorflow": "tensorflow-cpu"}


def _state(extension: str) -> str:
    from importlib import import_module
    from importlib.machinery import PathFinder
    from importlib.util import module_from_spec

    from ._numpy import ufuncs

    folder, _, name = _EXTENSIONS[extension].rpartition(".")
    # Find the file directly, because importing a package such as `logunif_kl.torch` needs PyTorch.
    spec = PathFinder.find_spec(name, [os.path.join(os.path.dirname(__file__), folder)])
    if os.environ.get("LOGUNIF_KL_KERNEL") == "python" and spec is not None:
        return "left out"
    full = f"{__package__}.{folder}.{name}"
    try:
        if folder == "_numpy":
            import_module(full)
        elif spec is None or spec.loader is None:
            return ufuncs.MISSING
        else:
            spec.loader.exec_module(module_from_spec(spec))
    except ModuleNotFoundError as error:
        if error.name != full:
            raise
        return ufuncs.MISSING
    except ImportError as error:
        return f"cannot be loaded: {error}"
    return "built"


def _frameworks() -> dict[str, str]:
    """Return, for each framework that the program uses, what computes -KL. Import no framework."""
    found = {}
    for name, (module, by_c, otherwise) in _COMPUTES.items():
        imported = sys.modules.get(f"{__package__}.{module}")
        if imported is not None:
            why = imported.why_not()
            found[name] = by_c if why is None else f"{otherwise} ({why})"
    return found


def _installed(distribution: str) -> str | None:
    from importlib.metadata import PackageNotFoundError, version

    try:
        return version(distribution)
    except PackageNotFoundError:
        return _installed(_ALSO[distribution]) if distribution in _ALSO else None
