"""The record of the ladder: every rung is compared with what today's search finds."""

import copy

import pytest

from logunif_kl.fitting import ladder as climb
from validation import ladder


@pytest.mark.parametrize("exact", [1, 2])
def test_a_stale_rung_is_seen(exact, monkeypatch):
    monkeypatch.setattr(ladder, "EXACT", {"sigmoid": exact, "polynomial": 0})
    rungs = climb(2)
    monkeypatch.setattr(ladder, "ladder", lambda terms, family: rungs[:terms])
    made = {"rungs": ladder.document(rungs)}
    assert list(ladder.complaints(made)) == []
    stale = copy.deepcopy(made)
    stale["rungs"][1]["gradient"]["level"] *= 1.05
    (complaint,) = ladder.complaints(stale)
    assert complaint.startswith(
        "sigmoid 2: the gradient is 0.00954 off, not 0.01" if exact == 1 else "1 col"
    )
