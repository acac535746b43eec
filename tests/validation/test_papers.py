"""The papers' claims: what was found, and that the deciding functions can decide.

``python -m validation.record check`` decides all of them again, and compares every number.
"""

import json
import math
from itertools import pairwise

import pytest

from validation.papers import __main__ as papers
from validation.papers.kingma2015 import appendices, claims
from validation.papers.statement import STATEMENTS
from validation.reproduce import listing

COMMITTED = json.loads(papers.RESULT.read_text(encoding="utf-8"))
RECORDS = {record["name"]: record for record in COMMITTED["claims"]}


def test_every_claim_is_committed():
    assert sorted(RECORDS) == sorted(STATEMENTS)  # modules may be imported in any order
    for record in RECORDS.values():
        assert record["command"] == f"python -m validation.papers {record['name']}"
        assert record["verdict"] in ("holds", "fails", "not decided")
        assert all(record[key] for key in ("paper", "where", "claim", "measured", "note"))


def test_the_spread_of_the_gradient_is_that_of_a_cauchy_law():
    """Its quartiles do not close in; those of the value do, like one over the square root."""
    found = RECORDS["kingma-reparameterised-gradient"]["measured"]
    spread = found["interquartile_range_of_the_mean"]
    limit = found["interquartile_range_of_the_gradient_in_the_limit"]
    # The standard deviation of a sample's interquartile range, for a Cauchy law of this width.
    deviation = math.pi / 2 * limit / math.sqrt(found["seeds"])
    assert all(abs(width - limit) < 4 * deviation for width in spread["gradient"])
    assert all(2.7 < a / b < 3.7 for a, b in pairwise(spread["value"]))
    assert found["principal_value"] == pytest.approx(found["exact"], rel=1e-12)


def test_a_verdict_is_decided_and_not_written_down(monkeypatch):
    """With the cubic as good as it is called, the claim would hold."""
    monkeypatch.setattr(claims, "ACCURATE", 0.03)
    monkeypatch.setattr(claims, "STEEP", 0.2)
    assert STATEMENTS["kingma-cubic-accurate"]()["verdict"] == "holds"


def test_networks_support_a_statement_and_do_not_contradict_it(monkeypatch):
    assert STATEMENTS["kingma-stable-factor"]()["verdict"] == "not decided"
    for factor, error, expected in (
        (1.0, 0.01, "holds"),
        (1.0, 0.4, "not decided"),  # the interval reaches 1.5
        (2.0, 0.01, "not decided"),  # another training than the paper's
    ):
        found = dict.fromkeys(appendices.LAYERS, (factor, error))
        monkeypatch.setattr(appendices, "changes", lambda over, under, found=found: found)
        assert STATEMENTS["kingma-stable-factor"]()["verdict"] == expected
    assert listing._verdict("kingma-stable-factor") == "is not decided"
    assert listing._verdict("kingma-early") == "(the statement holds)"


def test_what_else_the_sources_state():
    """Statements that no list had, with the numbers that decide them."""
    verdicts = {
        "kingma-noise-of-correlated-weights": "holds",
        "kingma-table-2-caption": "holds",
        "kingma-large-alphas": "holds",
        "kingma-dropconnect": "fails",
        "hron-correlated-infinite": "holds",
        "hron-correlated-overfits": "holds",
        "vbp-relaxed-rectifier": "holds",
        "gal-sign-of-the-error": "fails",
        "gal-denominator": "fails",
    }
    assert {name: RECORDS[name]["verdict"] for name in verdicts} == verdicts
    found = {name: RECORDS[name]["measured"] for name in verdicts}
    ours = found["kingma-noise-of-correlated-weights"]["ours"].values()
    assert [round(ratio, 1) for ratio, _ in ours] == [4.2, 2.0, 2.7, 3.0]
    assert found["vbp-relaxed-rectifier"]["times_c"] == pytest.approx(0.27846, abs=1e-5)
    assert found["gal-sign-of-the-error"] == {"as_printed": -1.0, "with_minus": 1.0}
    kl = found["kingma-dropconnect"]["kl"]
    assert kl[-1] - kl[-2] == pytest.approx(8 * math.log(10))
    for name in ("vbp-proposition-1", "vbp-proposition-2"):
        assert "so this is a reconstruction" in RECORDS[name]["note"]


def test_one_claim_from_the_command_line(capsys):
    before = papers.RESULT.read_bytes()
    assert papers.main(["hron-u"]) == 0
    assert capsys.readouterr().out.startswith(
        "fails        hron-u: u = mu^2/(2 sigma^2) is 1/(2 alpha)"
    )
    assert papers.RESULT.read_bytes() == before


def test_an_unknown_claim_is_refused(capsys):
    with pytest.raises(SystemExit):
        papers.main(["nothing"])
    assert "there is no claim 'nothing'" in capsys.readouterr().err
