"""The rule by which every page says that a statement holds, fails or is not decided."""

import math

import pytest

from validation.paths import ROOT
from validation.summary import interval
from validation.verdict import agreement, of_networks, verdict


@pytest.mark.parametrize(
    ("intervals", "agrees"),
    [
        ([(-0.2, 0.1)], True),
        ([(-0.07, 0.22)], None),  # "A2 beats binary dropout" at 400 units
        ([(-0.9, 0.11), (-0.35, 0.12), (-0.07, 0.22)], None),
        ([(0.2, 0.13), (0.02, 0.39)], False),
        ([(-0.2, 0.1), (0.2, 0.1)], False),  # one case suffices
        ([(-0.2, math.nan)], None),
        ([(0.0, 0.0)], None),  # it includes the end
        ([], None),
    ],
)
def test_a_difference_below_0(intervals, agrees):
    assert agreement(intervals) is agrees


def test_a_range():
    assert agreement([(2.0, 0.5)], 1.0, 4.0) is True
    assert agreement([(3.8, 0.5)], 1.0, 4.0) is None
    assert agreement([(5.0, 0.5)], 1.0, 4.0) is False
    assert agreement([interval([1.5])], 1.0, 4.0) is None  # one seed


@pytest.mark.parametrize(
    ("agrees", "of_a_formula", "of_ours"),
    [
        (True, "holds", ("agree", "holds")),
        (False, "fails", ("disagree", "not decided")),
        (None, "not decided", ("cannot tell", "not decided")),
    ],
)
def test_the_words(agrees, of_a_formula, of_ours):
    assert verdict(agrees) == of_a_formula
    assert of_networks(agrees) == of_ours


def test_no_other_module_writes_a_verdict():
    """The words are written once; the rule is on the page of the statements."""
    written = [
        path.relative_to(ROOT).as_posix()
        for path in sorted((ROOT / "validation").rglob("*.py"))
        if '"not decided"' in (text := path.read_text(encoding="utf-8")) or '"holds": ' in text
    ]
    assert written == [
        "validation/papers/kingma2015/minibatch_bound.py",  # of numbers, never shown
        "validation/reproduce/listing.py",
        "validation/verdict.py",
    ]
    assert "{computed}`RULE`" in (ROOT / "docs/papers/claims.md").read_text(encoding="utf-8")
