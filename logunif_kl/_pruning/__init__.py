"""What pruned models have in common in all frameworks: counts of weights, thresholds."""

from ._curve import ThresholdCurve, check_measured, check_thresholds
from ._sparsity import SILENT, THRESHOLD, Sparsity, check_threshold

__all__ = [
    "SILENT",
    "THRESHOLD",
    "Sparsity",
    "ThresholdCurve",
    "check_measured",
    "check_threshold",
    "check_thresholds",
]
