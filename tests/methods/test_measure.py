"""The measured errors: known figures come out, and the declared bounds hold and are tight."""

import dataclasses
import math

import numpy as np
import pytest

import logunif_kl as lk
from logunif_kl.methods import METHODS, Interval, measure
from logunif_kl.methods._extrema import least_and_greatest, local_extrema, worst
from logunif_kl.methods._measure import gradient_error, value_error

CLOSED_FORMS = {name: method for name, method in METHODS.items() if method.kind == "closed form"}
CLAIMS = [
    pytest.param(method, claim, id=f"{method.name}, {claim.interval.name}")
    for method in CLOSED_FORMS.values()
    for claim in method.claims
]


@pytest.mark.parametrize(("method", "claim"), CLAIMS)
def test_declared_errors_are_upper_bounds_and_tight(method, claim):
    found = measure(method, claim.interval)
    for declared, measured in (
        (claim.value, abs(found.value.error)),
        (claim.value_best_constant, found.value_best_constant),
        (claim.gradient, abs(found.gradient.error)),
    ):
        assert measured <= declared <= 1.01 * measured


def test_figures_of_the_papers_formulae():
    molchanov = measure(METHODS["molchanov"])
    assert f"{abs(molchanov.value.error):.2e}" == "9.37e-03"
    assert f"{molchanov.value.log_alpha:.1f}" == "-3.5"
    assert f"{molchanov.gradient.error:.1%}" == "3.8%"
    unit, fitted, _ = (declared.interval for declared in METHODS["kingma"].claims)
    assert f"{measure(METHODS['kingma'], unit).value_best_constant:.1e}" == "2.0e-02"
    over_fitted = measure(METHODS["kingma"], fitted)
    assert 6e-3 <= over_fitted.value_best_constant < 7e-3
    assert f"{over_fitted.gradient.error:.0%}" == "15%"
    assert over_fitted.gradient.log_alpha == pytest.approx(0.0, abs=1e-6)


def test_the_refined_extremum_is_finer_than_the_grid():
    method = METHODS["molchanov"]
    coarse, fine = measure(method, points=201), measure(method, points=20001)
    assert coarse.value.error == pytest.approx(fine.value.error, rel=1e-10)
    assert coarse.gradient.error == pytest.approx(fine.gradient.error, rel=1e-10)
    beside = value_error(method)(coarse.value.log_alpha + np.array([-1e-3, 1e-3]))
    assert np.all(np.abs(beside) < abs(coarse.value.error))


def test_the_best_constant_levels_the_error():
    method = METHODS["kingma"]
    interval = method.claims[1].interval
    found = measure(method, interval)
    x = np.linspace(interval.low, interval.high, 20001)
    levelled = value_error(method)(x) + found.best_constant
    assert levelled.max() == pytest.approx(found.value_best_constant, rel=1e-6)
    assert levelled.min() == pytest.approx(-found.value_best_constant, rel=1e-6)


def test_an_error_approached_at_infinity_is_reported_there():
    found = measure(METHODS["kingma"], METHODS["kingma"].domain)
    assert found.value.log_alpha == -math.inf
    # the constant that makes the cubic exact at alpha = 1 is off by its whole error there
    limit = -(math.log(2.0) + np.euler_gamma) / 2.0
    expected = lk.neg_kl(0.0) - (1.16145124 - 1.50204118 + 0.58629921) - limit
    assert found.value.error == pytest.approx(expected, rel=1e-12)


def test_extrema_of_either_sign_are_found_in_order():
    grid = np.linspace(0.0, 10.0, 41)
    x, error = local_extrema(np.sin, grid)
    np.testing.assert_allclose(x, np.pi * np.array([0.5, 1.5, 2.5, 10.0 / np.pi]), atol=1e-6)
    np.testing.assert_allclose(error, [1.0, -1.0, 1.0, np.sin(10.0)], rtol=1e-13)
    least, greatest = least_and_greatest(lambda x: np.sin(x) - 2.0, grid, 0.0, 10.0, "value")
    assert (least.error, greatest.error) == (pytest.approx(-3.0), pytest.approx(-1.0))
    assert least.log_alpha == pytest.approx(1.5 * np.pi, abs=1e-6)


@pytest.mark.parametrize(("high", "where"), [(math.inf, math.inf), (40.0, 40.0)])
def test_what_is_approached_is_reported_at_an_infinite_end_alone(high, where):
    found = worst(np.tanh, np.linspace(0.0, 40.0, 401), 0.0, high, "value")
    assert (found.error, found.log_alpha) == (1.0, where)


def test_names_in_other_places():
    assert lk.methods.Claim is lk.methods.Declared  # the name in the first version
    assert lk.fitting.Extremum is lk.methods.Extremum


def test_without_a_gradient_the_value_alone_is_measured():
    method = dataclasses.replace(METHODS["kingma"], gradient=None)
    found = measure(method, method.domain)
    assert found.value == measure(METHODS["kingma"], method.domain).value
    assert found.gradient is None
    assert found.gradient_mean is None
    with pytest.raises(ValueError, match="kingma has no gradient to measure"):
        gradient_error(method)


REFUSED = [
    (lambda: measure(METHODS["monte_carlo"]), ValueError, "an estimate with a standard error"),
    (lambda: Interval("x", 1.0, 1.0), ValueError, r"needs low < high, but low=1\.0 and high=1\.0"),
    (lambda: measure(METHODS["kingma"], points=2), ValueError, "points must be at least 3"),
    (
        lambda: measure(METHODS["kingma"], points=9.5),
        TypeError,
        "points must be an integer, but",
    ),
    (
        lambda: measure("kingma"),
        TypeError,
        r"str 'kingma' was given: pass METHODS\['kingma'\]$",
    ),
    (lambda: measure(lk.methods.kingma), TypeError, r"<function kingma .* METHODS\['molchanov'\]$"),
    (
        lambda: measure(METHODS["kingma"], (-1.0, 1.0)),
        TypeError,
        r"\) was given: pass Interval\(n",
    ),
]


@pytest.mark.parametrize(("make", "kind", "sentence"), REFUSED, ids=lambda v: str(v)[:25])
def test_refusals(make, kind, sentence):
    with pytest.raises(kind, match=sentence):
        make()
