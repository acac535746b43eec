"""Priors that posteriors and layers share: their parameters and arithmetic."""

from __future__ import annotations

import math
from dataclasses import dataclass
from typing import Any

from .._errors import real_number

Array = Any


def positive(name: str, given: Any) -> float:
    value = real_number(name, given)
    if not 0.0 < value < math.inf:
        raise ValueError(f"{name} must be positive and finite, but {value} was given: pass 1.0")
    return value


@dataclass(frozen=True)
class HorseshoePrior:
    """The parameter of a horseshoe prior."""

    scale: float = 1.0

    def __post_init__(self) -> None:
        """Check the scale."""
        object.__setattr__(self, "scale", positive("scale", self.scale))


@dataclass(frozen=True)
class PowerPrior:
    """The power of an improper prior abs(w)^-c, and its arithmetic."""

    c: float

    def __post_init__(self) -> None:
        """Check the power."""
        value = real_number("c", self.c)
        if not 0.0 <= value <= 1.0:
            raise ValueError(
                f"c must be between 0 and 1, but {value} was given: pass 1.0 for the log-uniform "
                "prior; if c > 1, -KL has no maximum, and if c < 0, the prior grows with abs(w)"
            )
        object.__setattr__(self, "c", value)

    def _neg_kl(self, log_uniform: Array, log_sigma2: Array) -> Array:
        entropy = 0.5 * (math.log(2.0 * math.pi) + 1.0 + log_sigma2)
        return self.c * log_uniform + (1.0 - self.c) * entropy
