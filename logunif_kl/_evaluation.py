"""The steps of every public function of -KL: whose the arguments are, the constant, the value."""

from __future__ import annotations

from typing import Any

from ._adapters import adapter
from ._arithmetic import functions, limits
from ._convention import additive_constant
from ._dispatch import Operation, evaluate
from ._numpy import ufuncs


def _normal_value(xp: Any, mu: Any, log_sigma2: Any) -> Any:
    return functions.neg_kl_normal(xp, mu, log_sigma2)[0]


def _negated_value(xp: Any, mu: Any, log_sigma2: Any) -> Any:
    return -_normal_value(xp, mu, log_sigma2)


def _negated(xp: Any, log_alpha: Any) -> Any:
    return -limits.neg_kl(xp, log_alpha)


_OPERATIONS = {
    "neg_kl": Operation(ufuncs.neg_kl, limits.neg_kl),
    "neg_kl_grad": Operation(ufuncs.neg_kl_grad, functions.neg_kl_grad),
    "neg_kl_hess": Operation(ufuncs.neg_kl_hess, functions.neg_kl_hess),
    "neg_kl_normal": Operation(ufuncs.neg_kl_normal_value, _normal_value),
    "kl": Operation(ufuncs.kl, _negated),
    "kl_normal": Operation(ufuncs.kl_normal, _negated_value),
}
_SIGN = {"neg_kl": 1.0, "neg_kl_normal": 1.0, "kl": -1.0, "kl_normal": -1.0}


def derivative(name: str, log_alpha: Any) -> Any:
    """Compute ``neg_kl_grad`` or ``neg_kl_hess``."""
    module = adapter(log_alpha=log_alpha)
    if module is not None:
        return getattr(module, name)(log_alpha)
    return evaluate(_OPERATIONS[name], log_alpha=log_alpha)


def value(name: str, zero_at: float, log_c: float | None, reduction: str, **arguments: Any) -> Any:
    """Compute -KL or KL of the arguments, whose names serve the error messages."""
    module = adapter(**arguments)
    if module is not None:
        function = getattr(module, name)
        return function(**arguments, zero_at=zero_at, log_c=log_c, reduction=reduction)
    constant = _SIGN[name] * additive_constant(zero_at, log_c)
    return evaluate(_OPERATIONS[name], constant, reduction, **arguments)
