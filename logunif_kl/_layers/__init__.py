"""Parts that the layers of all frameworks share: options, sparsity, threshold curves."""

from ._options import check_flag, count, finite, one_of
from ._sparsity import SILENT, THRESHOLD, Sparsity, aligned, check_threshold
from ._threshold_curve import ThresholdCurve, check_measured, check_thresholds

__all__ = [
    "SILENT",
    "THRESHOLD",
    "Sparsity",
    "ThresholdCurve",
    "aligned",
    "check_flag",
    "check_measured",
    "check_threshold",
    "check_thresholds",
    "count",
    "finite",
    "one_of",
]
