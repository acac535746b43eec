"""The ladder: each term buys something, and each rung beats the literature's."""

import dataclasses
import itertools

import pytest

from logunif_kl.fitting import Fit, ladder


def descends(errors):
    return all(b < a for a, b in itertools.pairwise(errors))


@pytest.mark.parametrize(("family", "top"), [("sigmoid", 2), ("polynomial", 5)])
def test_each_rung_is_better_than_the_one_below(family, top):
    rungs = ladder(top, family)
    assert [rung.terms for rung in rungs] == list(range(1, top + 1))
    assert descends([rung.value.max_error for rung in rungs])
    assert descends([rung.gradient.max_grad_error for rung in rungs])
    for rung in rungs:
        assert rung.value.max_error < rung.gradient.max_error
        assert rung.gradient.max_grad_error < rung.value.max_grad_error


@pytest.mark.parametrize(
    ("family", "terms", "name"), [("sigmoid", 1, "molchanov"), ("polynomial", 3, "kingma")]
)
def test_the_literature_is_beaten_at_equal_cost(family, terms, name):
    rung = ladder(terms, family)[-1]
    assert rung.published is not None
    assert rung.published.name == name
    for fit in (rung.value, rung.gradient):
        assert isinstance(fit, Fit)
        assert len(fit.coefficients) == 3
    assert rung.value.max_error < rung.published.max_error
    assert rung.gradient.max_grad_error < rung.published.max_grad_error
    # the formula made for the value has the better gradient too
    assert rung.value.max_grad_error < rung.published.max_grad_error


def test_costs():
    assert [(r.constants, r.transcendentals) for r in ladder(2)] == [(3, 3), (6, 4)]
    assert [(r.constants, r.transcendentals) for r in ladder(2, "polynomial")] == [(2, 1), (3, 1)]


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


@pytest.mark.parametrize(
    ("arguments", "words"),
    [
        ((9,), "max_terms must be between 1 and 5, but 9 was given"),
        ((13, "polynomial"), "max_terms must be between 1 and 12, but 13 was given"),
        ((2, "spline"), "family='spline' is not known: pass one of 'sigmoid', 'polynomial'"),
    ],
)
def test_what_is_refused(arguments, words):
    with pytest.raises(ValueError, match=words):
        ladder(*arguments)
    with pytest.raises(ValueError, match="norm='l1' is not known"):
        ladder(1, norm="l1")
