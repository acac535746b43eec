"""Check the arguments of `fit_polynomial` and `fit_sigmoid`."""

from __future__ import annotations

import math
from numbers import Real
from typing import Any

from .._errors import real_number, shown
from ..methods._arguments import choice

NORMS = ("minimax", "least_squares")
GRIDS = ("log", "linear", "dropout_rate")
TARGETS = ("value", "gradient", "both")
WEIGHTS = ("absolute", "relative")
DTYPES = ("float64", "float32")


def options(norm: Any, grid: Any, target: Any, weight: Any, *, exact_limit: bool) -> dict[str, Any]:
    """Check the options that both kinds of fit share, and return them as a dict."""
    known = weight is None or callable(weight) or (isinstance(weight, str) and weight in WEIGHTS)
    if not known:
        raise ValueError(
            f"weight={shown(weight)} is not known: pass one of {', '.join(map(repr, WEIGHTS))}, or "
            "a function of log_alpha that returns positive numbers"
        )
    return {
        "norm": choice("norm", norm, NORMS),
        "grid": choice("grid", grid, GRIDS),
        "target": choice("target", target, TARGETS),
        "weight": weight,
        "exact_limit": exact_limit,
    }


def within(max_error: Any, dtype: Any, terms: Any, name: str) -> float | None:
    """Check the largest error that a fit may have, which replaces a number of terms."""
    choice("dtype", dtype, DTYPES)
    if max_error is None:
        if dtype != DTYPES[0]:
            raise ValueError(
                f"dtype={dtype!r} was given without max_error: pass max_error, or give dtype to "
                "Fit.formula"
            )
        return None
    if terms is not None:
        raise ValueError(
            f"{name} and max_error were both given, but max_error chooses {name}: leave one out"
        )
    limit = real_number("max_error", max_error)
    if not 0.0 < limit < math.inf:
        raise ValueError(
            f"max_error must be a positive finite number, but {limit:g} was given: pass the "
            "largest error that the formula may have"
        )
    return limit


def log_alpha_range(given: Any) -> tuple[float, float]:
    """Check that a range is two ascending numbers, which may be infinite."""
    low, high = _pair("log_alpha_range", given)
    if not low < high:
        raise ValueError(
            f"log_alpha_range must ascend, but ({low:g}, {high:g}) was given, which is empty: "
            "pass (low, high) with low < high"
        )
    if low >= FARTHEST or high <= -FARTHEST:
        raise ValueError(
            f"log_alpha_range must overlap [-{FARTHEST:g}, {FARTHEST:g}], where -KL differs from "
            f"its limits, but ({low:g}, {high:g}) was given: move the range there"
        )
    return low, high


FARTHEST = 20.0


def alpha_range(given: Any) -> tuple[float, float]:
    """Check that a range is two ascending alphas, which must be finite and not negative."""
    low, high = _pair("alpha_range", given)
    if low < 0.0:
        what = "crosses 0" if high > 0.0 else "is negative"
        raise ValueError(
            f"alpha_range must hold alpha = sigma^2/mu^2 >= 0, but ({low:g}, {high:g}) was given, "
            f"which {what}: begin it at 0 or above, and pass alpha, not log alpha"
        )
    if not low < high:
        raise ValueError(
            f"alpha_range must ascend, but ({low:g}, {high:g}) was given, which is empty: "
            "pass (low, high) with low < high"
        )
    if not high <= LARGEST_ALPHA:
        raise ValueError(
            f"alpha_range must end at {LARGEST_ALPHA:g} at most, because a polynomial diverges "
            f"as alpha -> inf, but ({low:g}, {high:g}) was given: use fit_sigmoid for larger alpha"
        )
    if high < SMALLEST_ALPHA:
        raise ValueError(
            f"alpha_range must reach {SMALLEST_ALPHA:g}, because for smaller alpha -KL is "
            "1/2 log(alpha) + constant in double precision, but "
            f"({low:g}, {high:g}) was given: raise the end of the range"
        )
    return low, high


LARGEST_ALPHA = 1e6
SMALLEST_ALPHA = 1e-6


def _pair(name: str, given: Any) -> tuple[float, float]:
    try:
        low, high = given
    except (TypeError, ValueError):
        raise TypeError(
            f"{name} must be two numbers, but {shown(given)} was given: pass (low, high)"
        ) from None
    for end in (low, high):
        if isinstance(end, bool) or not isinstance(end, Real):
            raise TypeError(
                f"{name} must be two real numbers, but {shown(given)} was given: pass two floats"
            )
    low, high = real_number(name, low), real_number(name, high)
    if math.isnan(low) or math.isnan(high):
        raise ValueError(f"{name} must be two numbers, but {shown(given)} holds NaN: replace it")
    return low, high
