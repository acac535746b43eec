"""The ufuncs of the C extension, or ufuncs in Python if the extension is missing.

At import, the environment variable ``LOGUNIF_KL_KERNEL`` chooses a variant of the C extension
(``avx512``, ``avx2``, ``neon`` or ``baseline``) or the Python version (``python``). If the variable
is unset or empty, this module takes the fastest variant that the CPU runs.
"""

from __future__ import annotations

import os
import sys
from collections.abc import Callable
from contextlib import suppress
from importlib import import_module
from typing import TYPE_CHECKING, Any, NamedTuple

from .._arithmetic import functions, limits
from .._errors import shown
from .blocked import BlockedUFunc, in_float64
from .docs import DOCS

if TYPE_CHECKING:
    from .._types import UFunc

# Programs that bundle a Python, such as PyInstaller, set sys.frozen.
MISSING = "not bundled" if getattr(sys, "frozen", False) else "not built"
_COMPILED = ("avx512", "avx2", "neon", "baseline")


def _choose() -> tuple[Any, str, str | None]:
    """Return the C extension (or None), the kernel's name, and why Python is used (or None)."""
    wanted = os.environ.get("LOGUNIF_KL_KERNEL", "")
    if wanted == "python":
        return None, "python", "LOGUNIF_KL_KERNEL=python asks for it"
    if wanted and wanted not in _COMPILED:
        raise ImportError(
            f"LOGUNIF_KL_KERNEL={shown(wanted)} is not the name of a kernel: set it to avx512, "
            "avx2, neon, baseline or python, or unset it"
        )
    try:
        extension = import_module("._exact", __package__)
    except ModuleNotFoundError as error:
        if error.name != f"{__package__}._exact":
            raise
        if wanted:
            raise ImportError(
                f"LOGUNIF_KL_KERNEL={shown(wanted)} asks for the C extension, which was not built: "
                "install a C compiler and reinstall logunif_kl, or unset the variable"
            ) from None
        return None, "python", f"the C extension was {MISSING}"
    except ImportError as error:
        if wanted:
            raise
        return None, "python", f"the C extension cannot be loaded: {error}"
    return extension, extension.isa, None


def _kl(xp: Any, log_alpha: Any) -> Any:
    return -limits.neg_kl(xp, log_alpha)


def _neg_kl_normal_value(xp: Any, mu: Any, log_sigma2: Any) -> Any:
    return functions.neg_kl_normal(xp, mu, log_sigma2)[0]


def _kl_normal(xp: Any, mu: Any, log_sigma2: Any) -> Any:
    return -functions.neg_kl_normal(xp, mu, log_sigma2)[0]


class Form(NamedTuple):
    """The arithmetic of a ufunc, and the numbers of its inputs and outputs."""

    arithmetic: Callable[..., Any]
    nin: int = 1
    nout: int = 1


FORMS = {
    "kl_gap": Form(functions.gap),
    "kl_gap_grad": Form(functions.gap_grad),
    "kl_gap_hess": Form(functions.gap_hess),
    "neg_kl": Form(limits.neg_kl),
    "neg_kl_grad": Form(functions.neg_kl_grad),
    "neg_kl_hess": Form(functions.neg_kl_hess),
    "neg_kl_normal_and_grad": Form(functions.neg_kl_normal, 2, 3),
    "kl": Form(_kl),
    "kl_normal": Form(_kl_normal, 2),
    "neg_kl_normal_value": Form(_neg_kl_normal_value, 2),
}


def python_ufunc(name: str) -> BlockedUFunc:
    """Make a ufunc in Python, whether or not the extension exists."""
    form = FORMS[name]
    return BlockedUFunc(
        name,
        in_float64(form.arithmetic),
        module=__name__,
        nin=form.nin,
        nout=form.nout,
        doc=DOCS[name],
        # In blocks of this size the temporaries take less than 1 MiB.
        block=4096 if form.nin == 1 else 2048,
    )


def _ufunc(name: str) -> Any:
    if _extension is None:
        return python_ufunc(name)
    ufunc = getattr(_extension, name)
    # With __module__, pickle finds the ufunc in this module. Without it, pickle would search all
    # modules, and fail in a process without the extension. Some NumPy versions forbid setting it.
    with suppress(AttributeError):
        ufunc.__module__ = __name__
    return ufunc


_extension, _kernel_name, _why_python = _choose()

kl_gap: UFunc = _ufunc("kl_gap")
"""The gap of the log-uniform prior, F(u) = KL(q || p) - min KL."""
kl_gap_grad: UFunc = _ufunc("kl_gap_grad")
"""The first derivative of the gap, F'(u)."""
kl_gap_hess: UFunc = _ufunc("kl_gap_hess")
"""The second derivative of the gap, F''(u)."""
neg_kl = _ufunc("neg_kl")
neg_kl_grad = _ufunc("neg_kl_grad")
neg_kl_hess = _ufunc("neg_kl_hess")
neg_kl_normal_and_grad = _ufunc("neg_kl_normal_and_grad")
neg_kl_normal_value = _ufunc("neg_kl_normal_value")
kl = _ufunc("kl")
kl_normal = _ufunc("kl_normal")


def kernel_name() -> str:
    """Name the kernel in use: ``avx512``, ``avx2``, ``neon``, ``baseline`` or ``python``."""
    return _kernel_name


def available_kernels() -> tuple[str, ...]:
    """List the kernels that ``LOGUNIF_KL_KERNEL`` may name on this computer."""
    compiled = _extension.available if _extension is not None else ()
    return (*compiled, "python")


def why_python() -> str | None:
    """Return the reason why the kernel is ``"python"``, or None for another kernel."""
    return _why_python
