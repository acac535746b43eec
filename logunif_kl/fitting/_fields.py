"""The checks of a `Fit`'s fields. Its constructor makes them, so every `Fit` can be written."""

from __future__ import annotations

import math
from collections.abc import Callable
from numbers import Real
from typing import Any

from .._errors import shown
from ..methods import Extremum
from . import _request as request
from ._error_measures import Errors
from ._formula import MOST, POLYNOMIAL, SIGMOID

_SEQUENCE = (tuple, list)


def refused(name: str, must: str, given: Any) -> ValueError:
    """Make the error for a field that is not what it must be."""
    return ValueError(
        f"{name} of a Fit must be {must}, but {shown(given)} was given: take the Fit from "
        "fit_polynomial or fit_sigmoid, or its JSON from Fit.to_json"
    )


def checked(given: dict[str, Any]) -> dict[str, Any]:
    """Return the fields of a fit with floats for its numbers and tuples for its lists.

    Raises
    ------
    ValueError
        If a field is not what `Fit` documents. The message names it.
    """
    family = _one_of("family", given["family"], (POLYNOMIAL, SIGMOID))
    weight, exact = given["weight"], given["exact_limit"]
    if weight is not None:
        _one_of("weight", weight, (*request.WEIGHTS, "callable"))
    if type(exact) is not bool:
        raise refused("exact_limit", "True or False", exact)
    return {
        "family": family,
        "coefficients": _coefficients(family, given["coefficients"]),
        "constant": _number("constant", given["constant"]),
        "log_alpha_range": _range("log_alpha_range", given["log_alpha_range"]),
        "norm": _one_of("norm", given["norm"], request.NORMS),
        "target": _one_of("target", given["target"], request.TARGETS),
        "grid": _one_of("grid", given["grid"], request.GRIDS),
        "weight": weight,
        "exact_limit": exact,
        "level": _size("level", given["level"]),
        "extrema": _extrema(given["extrema"]),
        "inside": _errors("inside", given["inside"]),
        "wide": _errors("wide", given["wide"]),
    }


def _one_of(name: str, given: Any, known: tuple[str, ...]) -> str:
    if not isinstance(given, str) or given not in known:
        raise refused(name, f"one of {', '.join(known)}", given)
    return given


def _real(name: str, given: Any, must: str, holds: Callable[[float], bool]) -> float:
    try:
        if not isinstance(given, bool) and isinstance(given, Real) and holds(float(given)):
            return float(given)
    except OverflowError:
        pass
    raise refused(name, must, given)


def _number(name: str, given: Any) -> float:
    return _real(name, given, "one finite number", math.isfinite)


def _size(name: str, given: Any) -> float:
    return _real(name, given, "one number that is not negative", lambda v: v >= 0.0)


def _place(name: str, given: Any) -> float:
    return _real(name, given, "one number other than NaN", lambda v: not math.isnan(v))


def _coefficients(family: str, given: Any) -> tuple[float, ...]:
    each, most = (1 if family == POLYNOMIAL else 3), MOST[family]
    must = f"1 to {most} numbers" if each == 1 else f"three numbers for each of 1 to {most} terms"
    if not isinstance(given, _SEQUENCE) or len(given) not in range(each, each * most + 1, each):
        raise refused("coefficients", must, given)
    found = tuple(_number(f"coefficients[{i}]", c) for i, c in enumerate(given))
    if math.isinf(sum(map(abs, found))):
        raise refused("coefficients", "numbers of a finite sum", given)
    return found


def _range(name: str, given: Any) -> tuple[float, float]:
    try:
        return request.log_alpha_range(given)
    except (TypeError, ValueError, OverflowError):
        raise refused(
            name, f"two numbers that ascend and meet +-{request.FARTHEST:g}", given
        ) from None


def _extrema(given: Any) -> tuple[Extremum, ...]:
    if not isinstance(given, _SEQUENCE):
        raise refused("extrema", "a tuple of Extremum", given)
    found = []
    for i, each in enumerate(given):
        name = f"extrema[{i}]"
        if not isinstance(each, Extremum):
            raise refused(name, "an Extremum", each)
        found.append(
            Extremum(
                _place(f"{name}.log_alpha", each.log_alpha),
                _number(f"{name}.error", each.error),
                _one_of(f"{name}.quantity", each.quantity, request.TARGETS[:2]),
            )
        )
    return tuple(found)


def _errors(name: str, given: Any) -> Errors:
    if not isinstance(given, Errors):
        raise refused(name, "an Errors", given)
    return Errors(
        _range(f"{name}.log_alpha_range", given.log_alpha_range),
        _size(f"{name}.max_error", given.max_error),
        _place(f"{name}.max_error_at", given.max_error_at),
        _size(f"{name}.rms_error", given.rms_error),
        _size(f"{name}.max_grad_error", given.max_grad_error),
        _place(f"{name}.max_grad_error_at", given.max_grad_error_at),
    )
