"""The loss of a pruned model as a function of the threshold on log alpha."""

from __future__ import annotations

import math
from collections.abc import Iterable
from dataclasses import dataclass
from typing import Any

from .._atomic_io import new_axes, plain_log_scale, save_figure
from .._display import Table, Tabular
from .._errors import real_number, shown
from .sparsity import Sparsity, check_threshold


@dataclass(frozen=True)
class ThresholdCurve(Tabular):
    """The loss and the sparsity of the pruned model at several thresholds on log alpha.

    `threshold_curve` returns it.

    Attributes
    ----------
    thresholds : tuple of float
        The thresholds, in ascending order.
    losses : tuple of float
        The loss of the model that is pruned at each threshold.
    sparsities : tuple of Sparsity
        The number of weights that each threshold keeps.

    Examples
    --------
    >>> from logunif_kl.torch import nn
    >>> counts = [nn.Sparsity(kept, 100) for kept in (2, 5, 20)]
    >>> curve = nn.ThresholdCurve((0.0, 3.0, 6.0), (9.0, 1.5, 1.4), tuple(counts))
    >>> curve.choose(), curve.choose(tolerance=0.2)
    (6.0, 3.0)
    >>> curve
    <ThresholdCurve: 3 thresholds from 0 to 6, losses from 1.4 to 9>
    >>> print(curve)
    threshold  loss  kept   pruned
    0             9     2  98.00 %
    3           1.5     5  95.00 %
    6           1.4    20  80.00 %
    """

    thresholds: tuple[float, ...]
    losses: tuple[float, ...]
    sparsities: tuple[Sparsity, ...]

    def __repr__(self) -> str:
        thresholds, losses = self.thresholds, self.losses
        return (
            f"<ThresholdCurve: {len(thresholds)} thresholds from {min(thresholds):g} to "
            f"{max(thresholds):g}, losses from {min(losses):.6g} to {max(losses):.6g}>"
        )

    def _tables(self) -> list[Table]:
        points = zip(self.thresholds, self.losses, self.sparsities, strict=True)
        rows = [
            (f"{threshold:g}", f"{loss:.6g}", str(each.kept), f"{100.0 * each.pruned:.2f} %")
            for threshold, loss, each in points
        ]
        return [Table("", ("threshold", "loss", "kept", "pruned"), rows)]

    def choose(self, tolerance: float = 0.0) -> float:
        """Return the threshold that keeps the fewest weights at a loss close to the smallest loss.

        Parameters
        ----------
        tolerance : float
            How far the loss may exceed the smallest loss; usually one standard error of the loss.

        Returns
        -------
        float
            If several thresholds keep equally few weights, the one with the smallest loss. If their
            losses are equal too, the largest of these thresholds.

        Raises
        ------
        TypeError
            If `tolerance` is not a real number.
        ValueError
            If `tolerance` is negative or NaN, or if every loss is NaN.
        """
        allowed = real_number("tolerance", tolerance)
        if not allowed >= 0.0:
            raise ValueError(
                f"tolerance must not be negative, but {allowed} was given: pass 0.0 or more"
            )
        finite = [loss for loss in self.losses if not math.isnan(loss)]
        if not finite:
            raise ValueError("every loss of the curve is NaN: measure another loss")
        most = min(finite) + allowed
        candidates = zip(self.thresholds, self.losses, self.sparsities, strict=True)
        _, _, best = min(
            (counts.kept, loss, -threshold)
            for threshold, loss, counts in candidates
            if loss <= most
        )
        return -best

    def plot(
        self,
        path: Any = None,
        *,
        loss: str = "loss",
        chosen: float | None = None,
        ax: Any = None,
    ) -> Any:
        """Plot the loss and the percentage of kept weights against the threshold.

        Parameters
        ----------
        path : str or path, optional
            The file to save to. Its suffix gives the format.
        loss : str
            The label of the axis of the loss.
        chosen : float, optional
            A threshold to mark.
        ax : matplotlib.axes.Axes, optional
            The axes to draw in. By default, the axes of a new figure: that of pyplot, or a figure
            that is only saved if `path` is given.

        Returns
        -------
        matplotlib.axes.Axes
            The axes of the loss. Those of the weights share their horizontal axis.

        Raises
        ------
        ImportError
            If matplotlib is not installed.
        TypeError, ValueError
            If `chosen` is not a number.
        """
        mark = None if chosen is None else check_threshold(chosen, "chosen")
        axes = new_axes("ThresholdCurve.plot", 6.4, 4.0, path) if ax is None else ax
        axes.plot(self.thresholds, self.losses, "o-", color="#0072B2", markersize=3)
        axes.set_xlabel("threshold on log α")
        axes.set_ylabel(loss, color="#0072B2")
        counts = axes.twinx()
        kept = [100.0 * (1.0 - each.pruned) for each in self.sparsities]
        counts.plot(self.thresholds, kept, "s--", color="#D55E00", markersize=3)
        if any(kept):
            plain_log_scale(counts)
        counts.set_ylabel("weights that are kept, in %", color="#D55E00")
        if mark is not None:
            axes.axvline(mark, color="0.6", lw=0.8)
        if path is not None:
            save_figure(axes.figure, path, dpi=150)
        return axes


def check_thresholds(thresholds: Any) -> tuple[float, ...]:
    """Return the distinct thresholds in ascending order. For None, return numbers from -4 to 8."""
    if thresholds is None:
        return tuple(0.5 * step for step in range(-8, 17))
    if isinstance(thresholds, str) or not isinstance(thresholds, Iterable):
        raise TypeError(
            f"thresholds must be a sequence of numbers, but {shown(thresholds)} was given: pass a "
            "list"
        )
    # Iterating over an array or a tensor gives 0-d arrays, not numbers.
    given = thresholds.tolist() if hasattr(thresholds, "tolist") else thresholds
    found = tuple(sorted({check_threshold(each, "each of thresholds") for each in given}))
    if not found:
        raise ValueError("thresholds is empty: pass at least one threshold")
    return found


def check_measured(value: Any) -> float:
    """Return the result of a `measure` function as a float, or raise TypeError."""
    try:
        return float(value)
    except (TypeError, ValueError):
        raise TypeError(
            f"measure must return one number, but it returned {shown(value)}: return a loss"
        ) from None
