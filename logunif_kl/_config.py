"""What is in use here: for bug reports, and to see whether the fast kernels were built."""

from __future__ import annotations

from typing import Any, Literal, overload


@overload
def show_config(mode: Literal["stdout"] = "stdout") -> None: ...


@overload
def show_config(mode: Literal["dict"]) -> dict[str, Any]: ...


def show_config(mode: str = "stdout") -> dict[str, Any] | None:
    """Say which kernel computes, which others could, and which optional libraries are there.

    Parameters
    ----------
    mode : {"stdout", "dict"}
        Print, or return a dictionary.

    Returns
    -------
    dict or None
        With the keys ``version``, ``kernel``, ``why_python`` (None unless the kernel is
        ``"python"``), ``available_kernels``, ``python``, ``numpy``, ``machine`` and ``optional``
        (library -> version or None).

    Raises
    ------
    ValueError
        If `mode` is something else.

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

    from . import _backend
    from ._version import __version__

    config: dict[str, Any] = {
        "version": __version__,
        "kernel": _backend.kernel_name(),
        "why_python": _backend.why_python(),
        "available_kernels": _backend.available_kernels(),
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
    optional = ", ".join(f"{name} {v}" for name, v in config["optional"].items() if v) or "none"
    for title, text in (
        ("logunif_kl", config["version"]),
        ("kernel", kernel),
        (
            "available",
            ", ".join(config["available_kernels"]) + "   (LOGUNIF_KL_KERNEL=... chooses)",
        ),
        ("Python", config["python"]),
        ("NumPy", config["numpy"]),
        ("machine", config["machine"]),
        ("optional", optional),
    ):
        print(f"{title:<12}{text}")
    return None


_OPTIONAL = ("scipy", "mpmath", "python-flint", "torch", "jax", "rich", "matplotlib")


def _installed(distribution: str) -> str | None:
    from importlib.metadata import PackageNotFoundError, version

    try:
        return version(distribution)
    except PackageNotFoundError:
        return None
