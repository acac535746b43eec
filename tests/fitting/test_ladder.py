"""The ladder: each term buys something, and each rung beats the literature's."""

import dataclasses
import functools
import itertools

import pytest

from logunif_kl.fitting import Fit, fit_polynomial, fit_sigmoid, ladder

climbed = functools.cache(ladder)


def descends(errors):
    return all(b < a for a, b in itertools.pairwise(errors))


@pytest.mark.parametrize(
    ("top", "family", "costs"),
    [
        (2, "sigmoid", [(3, 3), (6, 4)]),
        (5, "polynomial", [(2, 1), (3, 1), (4, 1), (5, 1), (6, 1)]),
    ],
)
def test_each_rung_is_better_than_the_one_below(top, family, costs):
    rungs = climbed(top, family)
    assert [rung.terms for rung in rungs] == list(range(1, top + 1))
    assert descends([rung.value.max_error for rung in rungs])
    assert descends([rung.gradient.max_grad_error for rung in rungs])
    assert [(rung.constants, rung.transcendentals) for rung in rungs] == costs
    for rung in rungs:
        assert rung.value.max_error < rung.gradient.max_error
        assert rung.gradient.max_grad_error < rung.value.max_grad_error


@pytest.mark.parametrize(
    ("top", "family", "terms", "name"),
    [(2, "sigmoid", 1, "molchanov"), (5, "polynomial", 3, "kingma")],
)
def test_the_literature_is_beaten_at_equal_cost(top, family, terms, name):
    rung = climbed(top, family)[terms - 1]
    assert rung.published.name == name
    for fit in (rung.value, rung.gradient):
        assert isinstance(fit, Fit)
        assert len(fit.coefficients) == 3
    assert rung.value.max_error < rung.published.max_error
    assert rung.gradient.max_grad_error < rung.published.max_grad_error
    # the formula made for the value has the better gradient too
    assert rung.value.max_grad_error < rung.published.max_grad_error


def test_a_ladder_over_another_range():
    for family, over in (
        ("sigmoid", {"log_alpha_range": (-200.0, 1.0)}),
        ("polynomial", {"alpha_range": (0.1, 0.5)}),
    ):
        top = 1 if family == "sigmoid" else 3
        rung = ladder(top, family, **over)[-1]
        make = fit_sigmoid if family == "sigmoid" else fit_polynomial
        assert rung.value == make(top, *over.values())
        assert rung.value.max_error < rung.published.max_error
        (name,) = over
        other = "polynomial" if family == "sigmoid" else "sigmoid"
        with pytest.raises(ValueError, match=f"{name} was given for the family '{other}', whose"):
            ladder(1, other, **over)


def test_progress_sees_every_rung():
    seen = []

    def progress(steps):
        for step in steps:
            seen.append(step)
            yield step

    rungs = ladder(3, "polynomial", norm="least_squares", progress=progress)
    assert seen == [1, 2, 3]
    assert all(rung.value.norm == "least_squares" for rung in rungs)
    with pytest.raises(dataclasses.FrozenInstanceError):
        rungs[0].terms = 2
