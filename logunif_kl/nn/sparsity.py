"""Count the weights that a threshold on log alpha keeps."""

from __future__ import annotations

import math
from dataclasses import dataclass, field
from typing import Any

import numpy as np

from .._display import Table, Tabular
from .._errors import real_number

THRESHOLD = 3.0
"""The log alpha of a dropout rate alpha/(1 + alpha) of 95 % (Molchanov et al. 2017, section 5)."""

SILENT = -9984.0
"""log sigma^2 of a pruned weight. Its exponential, the variance, is 0 in every dtype.

The number is exact in every dtype, so that it is recognised after a cast. With -inf the KL would
be NaN, because alpha = sigma^2/mu^2 would be 0/0.
"""


@dataclass(frozen=True)
class Sparsity(Tabular):
    """The number of kept weights of a model, in total and by layer.

    Attributes
    ----------
    kept, weights : int
        The number of kept weights and of all weights. Biases do not count.
    layers : dict of str to Sparsity
        The counts of each layer, by its name. The counts of a single layer have an empty dict.

    Examples
    --------
    >>> from logunif_kl.torch import nn
    >>> found = nn.Sparsity(kept=30, weights=1000, layers={"0": nn.Sparsity(30, 1000)})
    >>> found.compression, found.pruned
    (33.333333333333336, 0.97)
    >>> found
    <Sparsity: kept=30, weights=1000, layers=1>
    >>> print(found)
    layer  weights  kept   pruned  compression
    0         1000    30  97.00 %         33.3
    all       1000    30  97.00 %         33.3
    """

    kept: int
    weights: int
    layers: dict[str, Sparsity] = field(default_factory=dict)

    @property
    def pruned(self) -> float:
        """The fraction of weights that are pruned; 0 if there are no weights."""
        return 1.0 - self.kept / self.weights if self.weights else 0.0

    @property
    def compression(self) -> float:
        """The ratio ``weights / kept``; inf if no weight is kept, 1 if there are no weights."""
        if not self.kept:
            return math.inf if self.weights else 1.0
        return self.weights / self.kept

    @classmethod
    def of(cls, layers: dict[str, Sparsity]) -> Sparsity:
        """Add up the counts of layers.

        Parameters
        ----------
        layers : dict of str to Sparsity
            The counts of each layer, by its name.

        Returns
        -------
        Sparsity
        """
        return cls(
            sum(layer.kept for layer in layers.values()),
            sum(layer.weights for layer in layers.values()),
            layers,
        )

    def __repr__(self) -> str:
        layers = f", layers={len(self.layers)}" if self.layers else ""
        return f"<Sparsity: kept={self.kept}, weights={self.weights}{layers}>"

    def _tables(self) -> list[Table]:
        rows = [
            (
                name,
                str(each.weights),
                str(each.kept),
                f"{100.0 * each.pruned:.2f} %",
                f"{each.compression:.1f}",
            )
            for name, each in (*self.layers.items(), ("all", self))
        ]
        return [Table("", ("layer", "weights", "kept", "pruned", "compression"), rows)]


def check_threshold(threshold: Any, name: str = "threshold") -> float:
    """Return a threshold if it is a real number, otherwise raise TypeError or ValueError."""
    number = real_number(name, threshold)
    if math.isnan(number):
        raise ValueError(f"{name} must not be NaN: pass 3.0, or inf to prune only zeros")
    return number


def is_noisy(log_alpha: Any, threshold: float) -> Any:
    """Return which weights a threshold prunes: a log alpha that is equal to it, or NaN, is kept."""
    return log_alpha > threshold


def threshold_that_keeps(density: Any, log_alpha: np.ndarray) -> float:
    """Return the threshold on log alpha that keeps a share of the weights, or less.

    `log_alpha` is inf for weights that are 0, which are never kept.
    """
    share = real_number("density", density)
    if not 0.0 <= share <= 1.0:
        raise ValueError(f"density must be from 0 to 1, but {share} was given: pass 0.05")
    unknown = int(np.isnan(log_alpha).sum())
    if unknown:
        raise ValueError(
            f"log alpha of {unknown} weights is NaN, so no threshold can say whether to keep them: "
            "look for NaN and inf in the parameters"
        )
    found = np.sort(log_alpha)
    # The product may be a little below an integer: 0.29 * 100 is 28.999999999999996.
    kept = min(math.floor(share * len(found) + 1e-6), int((found < math.inf).sum()))
    # If the next weight has the same log alpha, keep none of that log alpha.
    if 0 < kept < len(found) and found[kept] == found[kept - 1]:
        kept = int(np.searchsorted(found, found[kept]))
    return _above(found[kept - 1 : kept + 1]) if kept else -math.inf


def _above(found: np.ndarray) -> float:
    """Return a float32 from the last kept log alpha on, and below the next one.

    It is a little above the last one, which a compiler may round otherwise, and so near to it that
    half types round it below the next one.
    """
    last, after = float(found[0]), float(found[-1])
    gap = after - last if len(found) > 1 else math.inf
    above = float(np.float32(last + min(0.25 * gap, 1e-5 * max(1.0, abs(last)))))
    return above if last <= above < last + gap else last
