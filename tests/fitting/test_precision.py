"""The shortest formula for an error: of the fit, and of what is computed in float32."""

import numpy as np
import pytest

import logunif_kl as lk
from logunif_kl.fitting import fit_polynomial, fit_sigmoid
from logunif_kl.fitting._precision import error_of


@pytest.mark.parametrize(
    ("make", "options", "limit"),
    [
        (fit_sigmoid, {}, 2e-3),
        (fit_sigmoid, {"target": "both", "log_alpha_range": (-8.0, 8.0)}, 2e-2),
        (fit_sigmoid, {"weight": "relative", "fix_limit": True}, 1e-2),
        (fit_polynomial, {}, 1e-3),
        (fit_polynomial, {"alpha_range": (0.0, 1.0), "weight": lambda x: 2.0 + x**2}, 1e-2),
        (fit_polynomial, {"norm": "least_squares", "target": "gradient"}, 0.1),
    ],
)
@pytest.mark.parametrize("dtype", ["float64", "float32"])
def test_the_fit_with_the_fewest_terms_that_keeps_the_error(make, options, limit, dtype):
    fit = make(**options, max_error=limit, dtype=dtype)
    assert fit == make(fit.terms, **options)
    weight = options.get("weight")
    assert error_of(fit, dtype, weight) <= limit
    if fit.terms > 1:
        assert error_of(make(fit.terms - 1, **options), dtype, weight) > limit
    if weight is None and fit.target == "value":
        x = np.linspace(*np.clip(fit.log_alpha_range, -40.0, 40.0), 5001)
        found = fit.neg_kl(x.astype(dtype)) - lk.neg_kl(x.astype(dtype).astype(np.float64))
        assert np.max(np.abs(found)) <= limit


def test_rounding_in_float32_counts():
    limit = 1.001 * fit_polynomial(11).max_error
    assert fit_polynomial(max_error=limit).terms == 11
    with pytest.raises(ValueError, match=r"keeps max_error=.* in float32: the best that was found"):
        fit_polynomial(max_error=limit, dtype="float32")


@pytest.mark.parametrize(
    ("make", "options", "words"),
    [
        (fit_sigmoid, {"max_error": 0.0}, "max_error must be a positive finite number, but 0 was"),
        (fit_sigmoid, {"max_error": float("nan")}, "max_error must be a positive finite number"),
        (fit_polynomial, {"max_error": 1e-3, "degree": 3}, "degree and max_error were both given"),
        (fit_sigmoid, {"max_error": 1e-3, "terms": 3}, "terms and max_error were both given"),
        (fit_sigmoid, {"max_error": 1e-3, "dtype": "float16"}, "dtype='float16' is not known"),
        (fit_sigmoid, {"dtype": "float32"}, "dtype='float32' was given without max_error"),
        (fit_polynomial, {"max_error": 1e-9}, r"no polynomial fit of at most 60 terms keeps"),
    ],
)
def test_what_is_refused(make, options, words):
    with pytest.raises(ValueError, match=words):
        make(**options)
