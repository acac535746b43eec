"""What fits and ladders refuse, each in one sentence."""

import math

import numpy as np
import pytest

from logunif_kl.fitting import fit_polynomial, fit_sigmoid, ladder

POLYNOMIAL = [
    ({"degree": 0}, "degree must be between 1 and 60, but 0 was given"),
    (
        {"degree": 60, "alpha_range": (0.0, 1e-6), "grid": "linear"},
        "the fit left the range of a double: ask for fewer coefficients or a narrower range",
    ),
    ({"degree": 30}, "degree 30 is too high for double precision: coefficients as large as"),
    ({"alpha_range": (-1.0, 1.0)}, r"\(-1, 1\) was given, which crosses 0"),
    ({"alpha_range": (-3.0, -1.0)}, r"\(-3, -1\) was given, which is negative"),
    ({"alpha_range": (1.0, 1.0)}, r"\(1, 1\) was given, which is empty"),
    ({"alpha_range": (0.05, math.inf)}, "a polynomial diverges as alpha -> inf"),
    ({"alpha_range": (0.0, 1e-9)}, "alpha_range must reach 1e-06"),
    ({"alpha_range": (math.nan, 1.0)}, "holds NaN"),
    ({"alpha_range": (0.1, 10**400)}, "alpha_range is too large for a float: pass a smaller"),
    ({"grid": "cubic"}, "grid='cubic' is not known: pass one of 'log', 'linear', 'dropout_rate'"),
    ({"weight": lambda x: -x}, "weight must return one positive finite number"),
    ({"weight": lambda x: np.ones(3)}, "weight must return one positive finite number"),
    (
        {"alpha_range": (0.0, 1.0), "norm": "least_squares"},
        "alpha_range begins at 0, where a grid uniform in log alpha cannot begin",
    ),
]
SIGMOID = [
    ({"terms": 0}, "terms must be between 1 and 5, but 0 was given"),
    ({"log_alpha_range": (1.0, -1.0)}, r"\(1, -1\) was given, which is empty"),
    ({"log_alpha_range": (30.0, 40.0)}, r"log_alpha_range must overlap \[-20, 20\]"),
    ({"log_alpha_range": (math.nan, 1.0)}, "holds NaN"),
]
BOTH = [
    ({"norm": "l1"}, "norm='l1' is not known: pass one of 'minimax', 'least_squares'$"),
    ({"target": "hessian"}, "target='hessian' is not known: pass one of 'value', 'gradient'"),
    ({"weight": "heavy"}, "weight='heavy' is not known: pass one of 'absolute', 'relative'"),
]
LADDER = [
    ({"max_terms": 9}, "max_terms must be between 1 and 5, but 9 was given"),
    ({"max_terms": 13, "family": "polynomial"}, "must be between 1 and 12, but 13 was given"),
    ({"family": "spline"}, "family='spline' is not known: pass one of 'sigmoid', 'polynomial'"),
    ({"norm": "l1"}, "norm='l1' is not known"),
]
WRONG_TYPES = [
    (fit_polynomial, {"degree": 2.5}, "degree must be an integer, but float 2.5 was given"),
    (fit_polynomial, {"degree": True}, "degree must be an integer, but bool True was given"),
    (fit_polynomial, {"alpha_range": 0.5}, "alpha_range must be two numbers, but 0.5 was given"),
    (fit_polynomial, {"alpha_range": ("a", 1.0)}, "alpha_range must be two real numbers"),
    (fit_sigmoid, {"terms": 1.0}, r"terms must be an integer, but float 1\.0 was given"),
    (
        fit_sigmoid,
        {"log_alpha_range": None},
        "log_alpha_range must be two numbers, but None was",
    ),
]


@pytest.mark.parametrize(
    ("function", "asked", "words"),
    [
        *((fit_polynomial, *case) for case in (*POLYNOMIAL, *BOTH)),
        *((fit_sigmoid, *case) for case in (*SIGMOID, *BOTH)),
        *((ladder, *case) for case in LADDER),
    ],
)
def test_values(function, asked, words):
    with pytest.raises(ValueError, match=words) as caught:
        function(**asked)
    assert "\n" not in str(caught.value)


@pytest.mark.parametrize(("function", "asked", "words"), WRONG_TYPES)
def test_types(function, asked, words):
    with pytest.raises(TypeError, match=words):
        function(**asked)
