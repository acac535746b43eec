"""What is known of one way to compute -KL: its formula, its source, and how wrong it is where."""

from __future__ import annotations

import math
from collections.abc import Callable
from dataclasses import dataclass
from typing import Any


@dataclass(frozen=True, slots=True)
class Interval:
    """A closed interval of log alpha; an infinite end stands for the limit there.

    Attributes
    ----------
    name : str
        How a person would call it, such as ``"alpha in (0, 1]"``.
    low, high : float
        Its ends, in log alpha.
    """

    name: str
    low: float
    high: float

    def __post_init__(self) -> None:
        if not self.low < self.high:
            raise ValueError(
                f"an interval of log_alpha needs low < high, but low={self.low!r} and "
                f"high={self.high!r} were given: exchange them or widen the interval"
            )

    def __contains__(self, log_alpha: float) -> bool:
        return self.low <= log_alpha <= self.high


#: Where every method is measured, whatever its own domain.
WIDE = Interval("log_alpha in [-10, 10]", -10.0, 10.0)


@dataclass(frozen=True, slots=True)
class Claim:
    """The worst errors that a method is declared to have over one interval.

    Each figure is an upper bound, rounded up in its third significant digit from what
    `logunif_kl.methods.measure` finds; a test measures it again and fails when it is too small
    or needlessly large.

    Attributes
    ----------
    interval : Interval
        Where the claim holds.
    value : float
        Worst absolute error of -KL, the same under every convention.
    value_best_constant : float
        Worst absolute error of -KL after the additive constant that makes it least.
    gradient : float
        Worst relative error of d(-KL)/d log alpha.
    """

    interval: Interval
    value: float
    value_best_constant: float
    gradient: float


@dataclass(frozen=True, slots=True)
class Method:
    """One way to compute -KL, with what one must know before using it.

    Attributes
    ----------
    name : str
        Its name in `logunif_kl.methods` and on the command line.
    function : callable
        ``function(log_alpha, *, zero_at=inf, log_c=None)``, the value of -KL.
    gradient : callable
        ``gradient(log_alpha)``, the derivative of ``function`` in log alpha.
    formula : str
        The formula in plain text.
    equation : str
        Where in the paper it stands.
    citation : str
        The paper.
    claims : tuple of Claim
        Worst errors: first over the valid domain, then over any other range that the paper
        names, and last over log_alpha in [-10, 10].
    constant : str
        How the additive constant that the formula leaves open is fixed.
    outside : str
        What the formula is outside its valid domain.
    """

    name: str
    function: Callable[..., Any]
    gradient: Callable[..., Any]
    formula: str
    equation: str
    citation: str
    claims: tuple[Claim, ...]
    constant: str
    outside: str

    @property
    def domain(self) -> Interval:
        """Where the method may be used: the interval of its first claim."""
        return self.claims[0].interval


EVERYWHERE = Interval("every alpha", -math.inf, math.inf)
