"""Parts that the layers of all frameworks share: options, moments, sparsity, threshold curves."""

from ._moments import FORMS, LINKS, categorical_penalty, log_ndtr, product_variance, rectified
from ._options import check_cycle, check_flag, count, finite, one_of
from ._prediction import PROBIT, Prediction, check_likelihood
from ._priors import (
    HorseshoePrior,
    NormalPrior,
    PowerPrior,
    Prior,
    ScaleMixturePrior,
    StudentTPrior,
    is_prior,
    refused,
    returned,
)
from ._sparsity import (
    SILENT,
    THRESHOLD,
    Sparsity,
    check_threshold,
    is_noisy,
    threshold_that_keeps,
)
from ._student import log_beta
from ._threshold_curve import ThresholdCurve, check_measured, check_thresholds

__all__ = [
    "FORMS",
    "LINKS",
    "PROBIT",
    "SILENT",
    "THRESHOLD",
    "HorseshoePrior",
    "NormalPrior",
    "PowerPrior",
    "Prediction",
    "Prior",
    "ScaleMixturePrior",
    "Sparsity",
    "StudentTPrior",
    "ThresholdCurve",
    "categorical_penalty",
    "check_cycle",
    "check_flag",
    "check_likelihood",
    "check_measured",
    "check_threshold",
    "check_thresholds",
    "count",
    "finite",
    "is_noisy",
    "is_prior",
    "log_beta",
    "log_ndtr",
    "one_of",
    "product_variance",
    "rectified",
    "refused",
    "returned",
    "threshold_that_keeps",
]
