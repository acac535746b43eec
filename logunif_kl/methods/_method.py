"""What is known of one way to compute -KL: its formula, its source, and how wrong it is where."""

from __future__ import annotations

import math
from collections.abc import Callable
from dataclasses import dataclass
from typing import Any, Literal

Kind = Literal["closed form", "numerical", "statistical"]


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

    Each figure is an upper bound. Of a closed form it is rounded up in its third significant digit
    from what `logunif_kl.methods.measure` finds; a test measures it again and fails when it is too
    small or needlessly large. Of a numerical method it bounds the rounding of double precision.

    Attributes
    ----------
    interval : Interval
        Where the claim holds.
    value : float
        Worst error of -KL, the same under every convention: of a closed form absolute, of a
        numerical method relative to max(1, |-KL|), of a statistical one the largest standard error
        with its default number of samples.
    value_best_constant : float, optional
        Worst absolute error of -KL after the additive constant that makes it least; of closed
        forms only.
    gradient : float, optional
        Worst relative error of d(-KL)/d log alpha; None where the method has no gradient.
    """

    interval: Interval
    value: float
    value_best_constant: float | None = None
    gradient: float | None = None


@dataclass(frozen=True, slots=True)
class Method:
    """One way to compute -KL, with what one must know before using it.

    Attributes
    ----------
    name : str
        Its name in `logunif_kl.methods` and on the command line.
    function : callable
        ``function(log_alpha, *, zero_at=inf, log_c=None)``, the value of -KL. A statistical method
        returns the pair (estimate, standard error), and takes ``rng=`` and ``n_samples=`` as well.
    gradient : callable or None
        ``gradient(log_alpha)``, the derivative of ``function`` in log alpha; None where there is
        no such function.
    formula : str
        The formula in plain text.
    equation : str
        Where in the paper it stands.
    citation : str
        The paper.
    claims : tuple of Claim
        Worst errors: first over the valid domain, then over any other range that the paper
        names, and, of a closed form, last over log_alpha in [-10, 10].
    constant : str
        How the additive constant that the formula leaves open is fixed.
    outside : str
        What the formula is outside its valid domain.
    kind : {"closed form", "numerical", "statistical"}
        A closed form has an error of its own, and no arithmetic mends it. A numerical method would
        be exact without rounding. A statistical one says how far off it may be by chance.
    """

    name: str
    function: Callable[..., Any]
    gradient: Callable[..., Any] | None
    formula: str
    equation: str
    citation: str
    claims: tuple[Claim, ...]
    constant: str
    outside: str
    kind: Kind = "closed form"

    @property
    def domain(self) -> Interval:
        """Where the method may be used: the interval of its first claim."""
        return self.claims[0].interval


EVERYWHERE = Interval("every alpha", -math.inf, math.inf)
