"""Describe a method: its formula, its source, and its declared errors."""

from __future__ import annotations

import math
from collections.abc import Callable
from dataclasses import dataclass
from typing import Any, Literal

from .._display import Table, Tabular
from .._errors import shown

Kind = Literal["closed form", "numerical", "statistical"]


@dataclass(frozen=True, slots=True)
class Interval:
    """A closed interval of log alpha. An infinite end stands for the limit there.

    Attributes
    ----------
    name : str
        A name for display, such as ``"alpha in (0, 1]"``.
    low, high : float
        The ends.
    """

    name: str
    low: float
    high: float

    def __post_init__(self) -> None:
        if not self.low < self.high:
            raise ValueError(
                f"an interval of log_alpha needs low < high, but low={shown(self.low)} and "
                f"high={shown(self.high)} were given: exchange them or widen the interval"
            )

    def __contains__(self, log_alpha: float) -> bool:
        return self.low <= log_alpha <= self.high


#: Every closed form is measured on this interval, whatever its own domain.
WIDE = Interval("log_alpha in [-10, 10]", -10.0, 10.0)


@dataclass(frozen=True, slots=True)
class Declared:
    """The worst errors that a method declares over one interval.

    Each figure is an upper bound. For a closed form, the bound is the result of
    `logunif_kl.methods.measure`, rounded up to three significant digits. For a numerical method, it
    bounds the rounding errors of double precision.

    Attributes
    ----------
    interval : Interval
        Where the bounds hold.
    value : float
        Worst error of -KL, for every `zero_at` or `log_c`. The error is absolute for a closed form
        and relative to max(1, |-KL|) for a numerical method. For a statistical method it is the
        largest standard error with the default number of samples.
    value_best_constant : float, optional
        Worst absolute error of -KL after adding the constant that minimises it; closed forms only.
    gradient : float, optional
        Worst relative error of d(-KL)/d log alpha; None if the method has no gradient.
    """

    interval: Interval
    value: float
    value_best_constant: float | None = None
    gradient: float | None = None


@dataclass(frozen=True, slots=True)
class Method(Tabular):
    """One way to compute -KL, with its source and its errors.

    Attributes
    ----------
    name : str
        Its name in `logunif_kl.methods` and on the command line.
    function : callable
        ``function(log_alpha, *, zero_at=inf, log_c=None)``, the value of -KL. A statistical method
        returns the pair (estimate, standard error), and takes ``rng=`` and ``n_samples=`` as well.
    gradient : callable or None
        ``gradient(log_alpha)``, the derivative of ``function`` in log alpha, or None.
    formula : str
        The formula in plain text.
    equation : str
        Where the formula stands in the paper, such as ``"Eq. 14"``.
    citation : str
        The paper.
    claims : tuple of Declared
        The declared worst errors: first for the valid domain, then for other ranges that the paper
        names. For a closed form, the last one is for log_alpha in [-10, 10].
    constant : str
        How the formula's additive constant is chosen, if the paper leaves it open.
    outside : str
        What the formula computes outside its valid domain.
    kind : {"closed form", "numerical", "statistical"}
        A closed form is a formula that differs from -KL even without rounding. A numerical method
        would be exact without rounding. A statistical method returns a standard error.
    """

    name: str
    function: Callable[..., Any]
    gradient: Callable[..., Any] | None
    formula: str
    equation: str
    citation: str
    claims: tuple[Declared, ...]
    constant: str
    outside: str
    kind: Kind = "closed form"

    @property
    def domain(self) -> Interval:
        """The interval where the method may be used, taken from the first entry of ``claims``."""
        return self.claims[0].interval

    def __repr__(self) -> str:
        return f"<Method {self.name}: {self.kind}, {self.citation}>"

    def _tables(self) -> list[Table]:
        about = ("formula", "citation", "equation", "kind", "constant", "outside")
        described = [(name, getattr(self, name)) for name in about]
        errors = [
            (
                each.interval.name,
                _number(each.value),
                _number(each.value_best_constant),
                _number(each.gradient),
            )
            for each in self.claims
        ]
        headings = ("over", "value", "with the best constant", "gradient")
        return [
            Table("", (self.name, ""), described, ("",)),
            Table("Declared worst errors", headings, errors),
        ]


def _number(error: float | None) -> str:
    return "" if error is None or math.isnan(error) else f"{error:.2e}"


class Methods(Tabular, dict[str, Method]):
    """Methods by name, which `print` and notebooks show as a table."""

    def __repr__(self) -> str:
        return f"<Methods: {', '.join(self)}>"

    def _tables(self) -> list[Table]:
        rows = [
            (
                method.name,
                method.citation.partition(", arXiv")[0],
                method.kind,
                method.domain.name,
                _number(method.claims[0].value),
                _number(method.claims[0].gradient),
            )
            for method in self.values()
        ]
        headings = ("method", "source", "kind", "domain", "value", "gradient")
        title = "Methods to compute -KL, with their declared worst errors"
        return [Table(title, headings, rows, headings[:4])]


EVERYWHERE = Interval("every alpha", -math.inf, math.inf)
