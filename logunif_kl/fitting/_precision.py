"""Bound the error of a formula that is computed in float32, and find the shortest for a bound."""

from __future__ import annotations

import dataclasses
import decimal
import math
from collections.abc import Callable
from typing import Any, TypeVar

import numpy as np

from ..methods._extrema import finite, worst
from ._error_measures import NOTHING, POINTS, fixed
from ._formula import Formula, shifted
from ._problem import Array, Problem

T = TypeVar("T")

UNIT = 2.0**-24
#: Smaller numbers may be flushed to zero.
TINY = 2.0**-126


class _Bounded:
    """A number with a bound of its error, which grows with each operation in float32."""

    __slots__ = ("error", "value")

    def __init__(self, value: Any, error: Any = 0.0) -> None:
        self.value, self.error = value, error

    def __neg__(self) -> _Bounded:
        return _Bounded(-self.value, self.error)

    def __add__(self, other: Any) -> _Bounded:
        other = _bounded(other)
        return _rounded(self.value + other.value, self.error + other.error, UNIT)

    def __sub__(self, other: Any) -> _Bounded:
        return self + -_bounded(other)

    def __mul__(self, other: Any) -> _Bounded:
        a, b = self, _bounded(other)
        error = abs(a.value) * b.error + (abs(b.value) + b.error) * a.error
        return _rounded(a.value * b.value, error, UNIT)

    __radd__, __rmul__ = __add__, __mul__


def _bounded(number: Any) -> _Bounded:
    return number if isinstance(number, _Bounded) else _Bounded(number)


def _rounded(value: Any, error: Any, units: float) -> _Bounded:
    return _Bounded(value, error + units * (np.abs(value) + error))


class _Namespace:
    """The functions that a formula calls. Those of a C library may be 2 ulp off."""

    @staticmethod
    def zeros_like(x: _Bounded) -> float:
        return 0.0

    @staticmethod
    def exp(x: _Bounded) -> _Bounded:
        # The code of a derivative has a product of two exponentials where the formula has one.
        value = np.exp(x.value)
        return _rounded(value, value * np.expm1(x.error) + TINY, 8.0 * UNIT)

    @staticmethod
    def logaddexp(zero: float, y: _Bounded) -> _Bounded:
        """Bound the error of max(y, 0) + log1p(exp(-|y|)), whose slope is below 1 and exp(y)."""
        power = np.exp(-np.abs(y.value))
        slope = np.exp(np.minimum(y.value + y.error, 0.0))
        error = slope * y.error + 4.0 * UNIT * (power + np.log1p(power))
        return _rounded(np.logaddexp(zero, y.value), error, UNIT)


def single(formula: Formula) -> Formula:
    """Round the constants to float32."""
    numbers = np.array([formula.constant, *formula.coefficients])
    with np.errstate(over="ignore", under="ignore"):
        constant, *coefficients = numbers.astype(np.float32).astype(np.float64).tolist()
    if not np.all(np.isfinite([constant, *coefficients])):
        raise ValueError(
            f"the formula has the constant {numbers[np.argmax(np.abs(numbers))]:.3g}, which leaves "
            "the range of float32: leave dtype='float32' out, or ask for fewer terms"
        )
    return Formula(formula.family, constant, tuple(coefficients))


def largest_error(
    formula: Formula,
    quantity: str,
    weight: str | Callable[[Any], Any] | None,
    log_alpha_range: tuple[float, float],
    dtype: str,
    shift: float = 0.0,
) -> float:
    """Return the largest error of the value or the gradient, if computed in `dtype`.

    The exact value plus ``shift`` is what the formula approximates. In float32 the result is an
    upper bound. An infinite end of the range stands for log alpha = +-40.
    """
    computed = single(formula) if dtype == "float32" else formula
    unshifted = dataclasses.replace(computed, constant=computed.constant - shift)
    (of,) = fixed(unshifted, quantity, weight)
    with_bounds = Formula(
        formula.family,
        _Bounded(computed.constant) if computed.constant else 0.0,  # type: ignore[arg-type]
        tuple(map(_Bounded, computed.coefficients)),  # type: ignore[arg-type]
    )

    def error(x: Array) -> Array:
        found = of.error(NOTHING, x)
        if dtype == "float64":
            return found
        evaluate = with_bounds.value if quantity == "value" else with_bounds.slope
        rounding = evaluate(_Namespace, _Bounded(x)).error * of.scale(x)
        return np.asarray(np.copysign(np.abs(found) + rounding, found))

    low, high = log_alpha_range
    points = Problem(of.family, (of,), low, high).grid(POINTS)
    with np.errstate(all="ignore"):
        found = abs(worst(error, points, low, high, quantity).error)
    return math.inf if math.isnan(found) else found


def error_of(fit: Any, dtype: str, weight: str | Callable[[Any], Any] | None) -> float:
    """Return the largest of the errors that a fit minimises, if computed in `dtype`."""
    names = ("value", "gradient") if fit.target == "both" else (fit.target,)
    formula = Formula(fit.family, fit.constant, fit.coefficients)
    return max(largest_error(formula, name, weight, fit.log_alpha_range, dtype) for name in names)


def comment(fit: Any, dtype: str, constant: float) -> str:
    """Describe a fit, to which a constant is added, in the comment of code that computes it."""
    low, high = fit.log_alpha_range
    value, slope = fit.max_error, fit.max_grad_error
    if dtype == "float32":
        formula = shifted(Formula(fit.family, fit.constant, fit.coefficients), constant)
        value = largest_error(formula, "value", None, (low, high), dtype, constant)
        slope = largest_error(formula, "gradient", None, (low, high), dtype)
        low, high = finite(low, high)
    every = math.isinf(low) and math.isinf(high)
    where = "every log_alpha" if every else f"log_alpha in [{low:.6g}, {high:.6g}]"
    return (
        f"-KL(q || p), to be maximised; for {where}\n"
        f"worst error {_up(value):.2e}, of the gradient {_up(100.0 * slope):.3g} %"
    )


def _up(number: float) -> float:
    """Round up to three digits."""
    with decimal.localcontext(prec=3, rounding=decimal.ROUND_CEILING):
        return float(+decimal.Decimal(number))


def shortest(
    make: Callable[[int], T],
    family: str,
    most: int,
    max_error: float,
    dtype: str,
    weight: str | Callable[[Any], Any] | None,
) -> T:
    """Return the fit of the fewest terms whose largest error in `dtype` is at most ``max_error``.

    ``make(terms)`` returns a fit.
    """
    best, best_terms = math.inf, 0
    for terms in range(1, most + 1):
        try:
            fit = make(terms)
            reached = error_of(fit, dtype, weight)
        except ValueError:
            if terms == 1:
                raise
            break  # the terms nearly cancel, or the range is too narrow for more of them
        if reached <= max_error:
            return fit
        if reached < best:
            best, best_terms = reached, terms
    raise ValueError(
        f"no {family} fit of at most {most} terms keeps max_error={max_error:g} in {dtype}: the "
        f"best that was found has {best_terms} terms and an error of {best:.2g}. Pass a larger "
        "max_error or a narrower range, or use logunif_kl.neg_kl, which is exact"
    )
