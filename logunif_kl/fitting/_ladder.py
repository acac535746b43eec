"""`ladder`: list the best errors for each number of terms, next to published formulae."""

from __future__ import annotations

import math
from collections.abc import Callable
from dataclasses import dataclass
from typing import Any

from ..methods import METHODS
from ..methods import measure as measure_method
from ..methods._arguments import choice, integer
from ..methods._method import Interval
from . import _arguments as arguments
from ._fit import Fit
from ._formula import MOST, POLYNOMIAL, SIGMOID
from ._polynomial import fit_polynomial
from ._sigmoid import fit_sigmoid

FAMILIES = (SIGMOID, POLYNOMIAL)
MAX_RUNGS = {SIGMOID: MOST[SIGMOID], POLYNOMIAL: 12}


@dataclass(frozen=True, slots=True)
class Published:
    """A published formula with as many constants as a `Rung`, measured over the rung's range.

    If the paper does not fix the additive constant, ``max_error`` is for the best constant.
    """

    name: str
    max_error: float
    max_grad_error: float


@dataclass(frozen=True, slots=True)
class Rung:
    """The best formulae with a given number of terms.

    Attributes
    ----------
    family : str
        ``"sigmoid"`` or ``"polynomial"``.
    terms : int
        The number of sigmoids, or the degree.
    constants : int
        The number of constants in the formula.
    transcendentals : int
        Exponentials and logarithms per element.
    value : Fit
        The fit to the value. It has the least ``max_error`` of the family.
    gradient : Fit
        The fit to the gradient. It has the least ``max_grad_error`` of the family.
    published : Published or None
        The published formula with as many constants, if there is one.
    """

    family: str
    terms: int
    constants: int
    transcendentals: int
    value: Fit
    gradient: Fit
    published: Published | None

    def __repr__(self) -> str:
        errors = (
            f"max_error={self.value.max_error:.3g}, "
            f"max_grad_error={self.gradient.max_grad_error:.3g}"
        )
        return f"<Rung: {self.family}, terms={self.terms}; {errors}>"


def ladder(
    max_terms: int = 3,
    family: str = SIGMOID,
    *,
    log_alpha_range: tuple[float, float] | None = None,
    alpha_range: tuple[float, float] | None = None,
    norm: str = "minimax",
    progress: Callable[[Any], Any] | None = None,
) -> tuple[Rung, ...]:
    """Find the smallest worst errors of value and gradient for 1, 2, 3, ... terms.

    Parameters
    ----------
    max_terms : int, default 3
        The largest number of terms: at most 5 sigmoids, or degree 12.
    family : {"sigmoid", "polynomial"}
        Sums of sigmoids, or polynomials in alpha.
    log_alpha_range : pair of float, optional
        The range of sigmoids, as for `fit_sigmoid`. The default is every alpha.
    alpha_range : pair of float, optional
        The range of polynomials, as for `fit_polynomial`. The default is (0.05, 1).
    norm : {"minimax", "least_squares"}
        The same as for `fit_sigmoid`.
    progress : callable, optional
        ``progress(steps)`` must yield each of the steps, and may show a progress bar.

    Returns
    -------
    tuple of Rung

    Raises
    ------
    TypeError, ValueError
        If an argument is of a wrong type or out of range.

    Examples
    --------
    >>> from logunif_kl.fitting import ladder
    >>> for rung in ladder(2):
    ...     print(rung.terms, f"{rung.value.max_error:.1e}", f"{rung.gradient.max_grad_error:.1e}")
    1 5.0e-03 1.5e-02
    2 1.4e-03 9.5e-03
    >>> rung
    <Rung: sigmoid, terms=2; max_error=0.0014..., max_grad_error=0.0095...>
    """
    choice("family", family, FAMILIES)
    most = MAX_RUNGS[family]
    max_terms = integer("max_terms", max_terms, 1, most, "pass a number between them")
    choice("norm", norm, arguments.NORMS)
    ranges = {SIGMOID: log_alpha_range, POLYNOMIAL: alpha_range}
    chosen = ranges.pop(family)
    if any(other is not None for other in ranges.values()):
        names = ("log_alpha_range", "alpha_range")
        right, wrong = names if family == SIGMOID else names[::-1]
        raise ValueError(
            f"{wrong} was given for the family {family!r}, whose range is {right}: pass that"
        )
    steps = range(1, max_terms + 1)
    return tuple(_rung(family, terms, chosen, norm) for terms in (progress or iter)(steps))


def _rung(family: str, terms: int, chosen: tuple[float, float] | None, norm: str) -> Rung:
    make: Any = fit_sigmoid if family == SIGMOID else fit_polynomial
    over = () if chosen is None else (chosen,)
    value = make(terms, *over, norm=norm, target="value")
    return Rung(
        family=family,
        terms=terms,
        constants=3 * terms if family == SIGMOID else terms + 1,
        # softplus(-x) takes exp and log1p, and each sigmoid takes exp; a polynomial takes one exp
        transcendentals=2 + terms if family == SIGMOID else 1,
        value=value,
        gradient=make(terms, *over, norm=norm, target="gradient"),
        published=_published(value),
    )


def _published(fit: Fit) -> Published | None:
    low, high = fit.log_alpha_range
    if math.isfinite(low):  # `measure_method` takes finite ends of up to 100
        low = max(low, -100.0)
    if math.isfinite(high):
        high = min(high, 100.0)
    interval = Interval("the range of the fit", low, high)
    if (fit.family, fit.terms) == (SIGMOID, 1):
        found = measure_method(METHODS["molchanov"], interval)
        return Published("molchanov", _size(found.value), _size(found.gradient))
    if (fit.family, fit.terms) == (POLYNOMIAL, 3):
        found = measure_method(METHODS["kingma"], interval)
        return Published("kingma", found.value_best_constant, _size(found.gradient))
    return None


def _size(worst: Any) -> float:
    return abs(float(worst.error))
