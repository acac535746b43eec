"""Elementwise functions, as a ufunc and as arithmetic, with their partial derivatives."""

from __future__ import annotations

from collections.abc import Callable
from functools import cache, partial
from typing import Any, NamedTuple

from .._arithmetic import functions
from . import ufuncs
from .blocked import BlockedUFunc, in_float64


class Operation(NamedTuple):
    """An elementwise function as a ufunc and as arithmetic over a namespace."""

    ufunc: Any
    """Called with NumPy arrays, and with objects that have ``__array_ufunc__``."""

    arithmetic: Callable[..., Any]
    """Called as ``arithmetic(xp, *arrays)`` with float32 or float64 arrays of one shape."""

    slopes: Callable[[], tuple[Operation, ...]] | None = None
    """Return the partial derivatives. If None, the derivative of the arithmetic is accurate."""

    host: bool = False
    """Whether only the ufunc computes, so that other arrays are copied to NumPy and back."""

    number: int = -1
    """The index in `NUMBERED`, by which graphs of torch.compile name the operation, or -1."""


NUMBERED: list[Operation] = []


def numbered(operation: Operation) -> Operation:
    """Append the operation to `NUMBERED`."""
    NUMBERED.append(operation._replace(number=len(NUMBERED)))
    return NUMBERED[-1]


def operation(name: str) -> Operation:
    """Return the ufunc of this name, with its arithmetic."""
    return Operation(getattr(ufuncs, name), ufuncs.FORMS[name].arithmetic)


_PREFIX = "derivative_"
_NAMES = ("neg_kl", "neg_kl_grad", "neg_kl_hess")


@cache
def of_log_alpha(order: int) -> Operation:
    """Return -KL of log alpha, or its derivative of any order."""
    # Functions of a module and partial objects of them can be pickled, as PyTensor needs.
    arithmetic = partial(_in_log_alpha, order)
    known = order < len(_NAMES)
    ufunc = getattr(ufuncs, _NAMES[order]) if known else _blocked(arithmetic, order)
    return Operation(ufunc, arithmetic, partial(_slope_of_log_alpha, order))


def _in_log_alpha(order: int, xp: Any, x: Any) -> Any:
    from .._arithmetic.derivatives import neg_kl_derivative

    return neg_kl_derivative(xp, x, order)


def _slope_of_log_alpha(order: int) -> tuple[Operation]:
    return (of_log_alpha(order + 1),)


@cache
def of_normal(mu_order: int = 0, log_sigma2_order: int = 0) -> Operation:
    """Return -KL of N(mu, sigma^2), or a derivative of any orders in mu and log_sigma2."""
    orders = mu_order, log_sigma2_order
    arithmetic = partial(_in_normal, *orders)
    ufunc = ufuncs.neg_kl_normal_value
    if any(orders):
        # A first derivative by the kernel in C is more accurate than by the arithmetic.
        ufunc = _blocked(partial(_by_kernel, *orders) if sum(orders) == 1 else arithmetic, *orders)
    return Operation(ufunc, arithmetic, partial(_slopes_of_normal, *orders))


def _in_normal(mu_order: int, log_sigma2_order: int, xp: Any, mu: Any, log_sigma2: Any) -> Any:
    from .._arithmetic.derivatives import neg_kl_normal_derivative

    if mu_order + log_sigma2_order > 1:
        return neg_kl_normal_derivative(xp, mu, log_sigma2, mu_order, log_sigma2_order)
    return functions.neg_kl_normal(xp, mu, log_sigma2)[mu_order + 2 * log_sigma2_order]


def _by_kernel(mu_order: int, log_sigma2_order: int, xp: Any, mu: Any, log_sigma2: Any) -> Any:
    return ufuncs.neg_kl_normal_and_grad(mu, log_sigma2)[mu_order + 2 * log_sigma2_order]


def _slopes_of_normal(mu_order: int, log_sigma2_order: int) -> tuple[Operation, Operation]:
    return of_normal(mu_order + 1, log_sigma2_order), of_normal(mu_order, log_sigma2_order + 1)


def _blocked(arithmetic: Callable[..., Any], *orders: int) -> BlockedUFunc:
    name = _PREFIX + "_".join(map(str, orders))
    return BlockedUFunc(name, in_float64(arithmetic), module=__name__, nin=len(orders))


def __getattr__(name: str) -> Any:
    """Find a ufunc by its name, as pickle does."""
    if name.startswith(_PREFIX):
        orders = tuple(map(int, name.removeprefix(_PREFIX).split("_")))
        return (of_log_alpha if len(orders) == 1 else of_normal)(*orders).ufunc
    raise AttributeError(f"module {__name__!r} has no attribute {name!r}")
