"""`Fit.errors` takes a range as every other function does: a pair."""

import math

import pytest

from logunif_kl.fitting import fit_polynomial


@pytest.fixture(scope="module")
def fit():
    return fit_polynomial(3)


@pytest.mark.parametrize("ends", [(-2.0, -0.5), [-4, -1], (-math.inf, 0.0)])
def test_a_pair(fit, ends):
    found = fit.errors(ends)
    assert found.log_alpha_range == tuple(ends)
    assert fit.errors(log_alpha_range=ends) == found


def test_the_range_of_the_fit(fit):
    assert fit.errors(fit.log_alpha_range) == fit.inside


@pytest.mark.parametrize(
    ("arguments", "kind", "sentence"),
    [
        (
            (None,),
            TypeError,
            r"log_alpha_range must be two numbers, but None was given: pass \(low, hig",
        ),
        (
            (1.0,),
            TypeError,
            r"log_alpha_range must be two numbers, but 1.0 was given: pass \(low, ",
        ),
        (((1.0, 0.0),), ValueError, "log_alpha_range must ascend"),
    ],
)
def test_no_pair(fit, arguments, kind, sentence):
    with pytest.raises(kind, match=sentence):
        fit.errors(*arguments)
