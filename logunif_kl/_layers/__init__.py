"""Parts that the layers of all frameworks share: options, sparsity, threshold curves."""

from ._options import check_flag, count, finite, one_of
from ._priors import (
    NormalPrior,
    Prior,
    ScaleMixturePrior,
    StudentTPrior,
    is_prior,
    refused,
    returned,
)
from ._sparsity import SILENT, THRESHOLD, Sparsity, aligned, check_threshold
from ._student import log_beta
from ._threshold_curve import ThresholdCurve, check_measured, check_thresholds

__all__ = [
    "SILENT",
    "THRESHOLD",
    "NormalPrior",
    "Prior",
    "ScaleMixturePrior",
    "Sparsity",
    "StudentTPrior",
    "ThresholdCurve",
    "aligned",
    "check_flag",
    "check_measured",
    "check_threshold",
    "check_thresholds",
    "count",
    "finite",
    "is_prior",
    "log_beta",
    "one_of",
    "refused",
    "returned",
]
