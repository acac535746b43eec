"""The measured errors: known figures come out, and what METHODS declares is no lie."""

import dataclasses
import math

import numpy as np
import pytest

import logunif_kl as lk
from logunif_kl.methods import METHODS, WIDE, Interval, measure
from logunif_kl.methods._measure import golden_section, gradient_error, value_error

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


@pytest.mark.parametrize("method", METHODS.values(), ids=METHODS)
def test_every_name_leads_to_its_method(method):
    assert METHODS[method.name] is method
    assert getattr(lk.methods, method.name) is method.function


@pytest.mark.parametrize("method", CLOSED_FORMS.values(), ids=CLOSED_FORMS)
def test_every_closed_form_is_claimed_over_its_domain_first_and_the_wide_range_last(method):
    assert method.domain is method.claims[0].interval
    assert method.claims[-1].interval is WIDE


def test_figures_of_the_papers_formulae():
    molchanov = measure(METHODS["molchanov"])
    assert f"{abs(molchanov.value.error):.2e}" == "9.37e-03"
    assert f"{molchanov.value.log_alpha:.1f}" == "-3.5"
    assert f"{molchanov.gradient.error:.1%}" == "3.8%"
    unit, figure_2, _ = (claim.interval for claim in METHODS["kingma"].claims)
    assert f"{measure(METHODS['kingma'], unit).value_best_constant:.1e}" == "2.0e-02"
    over_figure_2 = measure(METHODS["kingma"], figure_2)
    assert 6e-3 <= over_figure_2.value_best_constant < 7e-3
    assert f"{over_figure_2.gradient.error:.0%}" == "15%"
    assert over_figure_2.gradient.log_alpha == pytest.approx(0.0, abs=1e-6)


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
    exact_at_one = lk.neg_kl(0.0)
    assert found.value.error == pytest.approx(
        exact_at_one - (1.16145124 - 1.50204118 + 0.58629921) - limit, rel=1e-12
    )


def test_kingmas_coefficients_are_a_fit_with_a_free_constant():
    x = np.linspace(np.log(0.05), 0.0, 2001)
    alpha = np.exp(x)
    powers = np.stack([np.ones_like(x), alpha, alpha**2, alpha**3], axis=1)
    fitted = np.linalg.lstsq(powers, lk.neg_kl(x) - 0.5 * x)[0]
    np.testing.assert_allclose([1.16145124, -1.50204118, 0.58629921], fitted[1:], rtol=2e-3)


def test_exact_at_zero_and_indistinguishable_in_figure_2_exclude_each_other():
    method = METHODS["kingma"]
    _, figure_2, _ = (claim.interval for claim in method.claims)
    at_zero = measure(method, method.domain).value.error
    x = np.linspace(figure_2.low, figure_2.high, 4001)
    made_exact_at_zero = value_error(method)(x) - at_zero
    assert f"{made_exact_at_zero.min():.3f}" == "0.027"
    assert f"{made_exact_at_zero.max():.3f}" == "0.040"


def test_golden_section_finds_a_maximum():
    assert golden_section(lambda x: -((x - 0.3) ** 2), -1.0, 2.0) == pytest.approx(0.3, abs=1e-7)


def test_bad_intervals_and_grids_are_refused():
    with pytest.raises(ValueError, match=r"needs low < high, but low=1\.0 and high=1\.0"):
        Interval("nothing", 1.0, 1.0)
    with pytest.raises(ValueError, match="points must be at least 3"):
        measure(METHODS["kingma"], points=2)


def test_without_a_gradient_the_value_alone_is_measured():
    method = dataclasses.replace(METHODS["kingma"], gradient=None)
    found = measure(method, method.domain)
    assert found.value == measure(METHODS["kingma"], method.domain).value
    assert found.gradient is None
    assert found.gradient_mean is None
    with pytest.raises(ValueError, match="kingma has no gradient to measure"):
        gradient_error(method)


def test_an_estimate_is_not_measured():
    with pytest.raises(ValueError, match="monte_carlo gives an estimate with a standard error"):
        measure(METHODS["monte_carlo"])
