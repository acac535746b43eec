"""The penalties of weights: exact, by a method or a `Fit` of the log-uniform prior, or a prior."""

from __future__ import annotations

from typing import Any

from .._errors import shown
from .checks import one_of
from .posteriors import Additive
from .priors import is_prior, refused

EXACT = "exact"


def is_exact(penalty: Any) -> bool:
    """Whether a penalty is the exact KL from the log-uniform prior."""
    return isinstance(penalty, str) and penalty == EXACT


def is_other_prior(penalty: Any) -> bool:
    """Whether a penalty is a prior of single weights, in place of the log-uniform prior."""
    from ..fitting import Fit

    return is_prior(penalty) and not isinstance(penalty, Fit)


def check(penalty: Any, posterior: Additive, what: str, instead: str) -> Any:
    """Return a penalty if weights with this posterior can have it, otherwise raise an error.

    `what` describes the posterior, and `instead` says which one can have a prior.
    """
    if is_exact(penalty):
        return penalty
    if is_other_prior(penalty):
        if posterior.relative or posterior.scaled:
            raise ValueError(f"penalty={shown(penalty)} was given with {what}: {instead}")
        return penalty
    _check_known(penalty)
    if posterior.grouped:
        raise ValueError(
            f"penalty={shown(penalty)} approximates the KL of single weights, but {what} has "
            "groups: pass 'exact' or a prior"
        )
    return penalty


def check_of(of: Any, posterior: Additive) -> None:
    """Raise ValueError if weights with this posterior do not have the KL that `of` names."""
    if of is None:
        return
    one_of("of", of, ("weights", "scales"))
    if of == "weights" and not posterior.independent:
        raise ValueError(
            "the KL of weights under correlated noise is infinite (Hron et al. 2017, section 3): "
            "pass of='scales'"
        )
    if of == "scales" and posterior.independent:
        raise ValueError(
            "there are no scales under independent noise: pass of='weights', or use the "
            "posterior nn.Correlated()"
        )


def _check_known(penalty: Any) -> None:
    from ..fitting import Fit
    from ..methods import METHODS

    if isinstance(penalty, Fit):
        return
    names = ", ".join(map(repr, (EXACT, *(n for n, m in METHODS.items() if m.gradient))))
    if not isinstance(penalty, str):
        raise refused(penalty, f"one of {names}")
    if penalty not in METHODS:
        raise ValueError(
            f"there is no penalty {shown(penalty)}: pass one of {names}, a Fit or a prior"
        )
    if METHODS[penalty].gradient is None:
        raise ValueError(
            f"penalty={penalty!r} was given, a method without a gradient: pass one of {names}"
        )
