"""The papers' claims: what was found, and that the deciding functions can decide.

``python -m validation.record check`` decides all of them again, and compares every number.
"""

import json
import math

import pytest

from validation.papers import __main__ as papers
from validation.papers.kingma2015 import claims
from validation.papers.statement import STATEMENTS, Found, statement

COMMITTED = json.loads(papers.RESULT.read_text(encoding="utf-8"))
RECORDS = {record["name"]: record for record in COMMITTED["claims"]}
FAIL = {
    "hron-comparison-bound",
    "hron-first-summand",
    "hron-u",
    "kingma-cubic-accurate",
    "kingma-entropy-of-the-log",
    "kingma-figure-2-and-exact-at-zero",
    "kingma-float-ranges",
    "kingma-lower-bound",
    "kingma-not-tractable",
    "kingma-reparameterised-gradient",
    "molchanov-constants",
}


def test_every_claim_is_committed():
    assert list(RECORDS) == list(STATEMENTS)
    for record in RECORDS.values():
        assert record["command"] == f"python -m validation.papers {record['name']}"
        assert record["verdict"] in ("holds", "fails")
        assert all(record[key] for key in ("paper", "where", "claim", "measured", "note"))


def test_what_the_papers_get_wrong():
    assert {name for name, record in RECORDS.items() if record["verdict"] == "fails"} == FAIL


def measured(name):
    return RECORDS[name]["measured"]


def test_the_figures_of_the_design():
    """Each to the digits that are quoted for it."""
    cubic = measured("kingma-cubic-accurate")
    assert f"{cubic['value_best_constant_0.05_to_1']:.1e}" == "6.6e-03"
    assert f"{cubic['value_best_constant_0_to_1']:.1e}" == "2.0e-02"
    assert f"{cubic['gradient_relative']:.0%}" == "15%"
    assert cubic["gradient_relative_at_alpha"] == pytest.approx(1.0, abs=1e-6)
    fitted = measured("kingma-cubic-fitted")
    assert max(fitted["relative_differences"]) < 2e-3
    assert f"{measured('kingma-cubic-minimax')['minimax']:.2e}" == "5.26e-03"
    assert measured("kingma-lower-bound")["alpha_star"] == "2.42124952103683604"
    assert f"{measured('molchanov-tight')['value']:.2e}" == "9.37e-03"
    assert f"{measured('molchanov-tight')['value_at_log_alpha']:.1f}" == "-3.5"
    assert measured("molchanov-constants")["minimax"] <= 4.975e-3
    assert measured("kingma-float-ranges")["float32"]["bits_of_the_exponent"] == 8
    assert measured("kingma-float-ranges")["float64"]["bits_of_the_exponent"] == 11
    assert measured("hron-u")["off_with_u_1/alpha"] > 0.3
    assert measured("hron-remark-2")["float16_inputs"] == 31744


def test_the_spread_of_the_gradient_is_that_of_a_cauchy_law():
    """Its quartiles do not close in; those of the value do, like one over the square root."""
    found = measured("kingma-reparameterised-gradient")
    spread = found["interquartile_range_of_the_mean"]
    limit = found["interquartile_range_of_the_gradient_in_the_limit"]
    # The standard deviation of a sample's interquartile range, for a Cauchy law of this width.
    deviation = math.pi / 2 * limit / math.sqrt(found["seeds"])
    assert all(abs(width - limit) < 4 * deviation for width in spread["gradient"])
    shrinks = [a / b for a, b in zip(spread["value"], spread["value"][1:], strict=False)]
    assert all(2.7 < factor < 3.7 for factor in shrinks)
    grown = list(found["mean_magnitude_without_eps_below"].values())
    # A decade more of eps adds the same each time: 3 decades, then 6.
    assert (grown[2] - grown[1]) / (grown[1] - grown[0]) == pytest.approx(2.0, rel=1e-2)
    assert found["principal_value"] == pytest.approx(found["exact"], rel=1e-12)


def test_a_verdict_is_decided_and_not_written_down(monkeypatch):
    """With the cubic as good as it is called, the claim would hold."""
    monkeypatch.setattr(claims, "EXTREMELY", 0.2)
    assert STATEMENTS["kingma-cubic-accurate"].record()["verdict"] == "holds"


def test_alpha_star_to_more_digits():
    assert claims.alpha_star(18) == "2.42124952103683604"
    assert claims.alpha_star(30).startswith("2.4212495210368360")


def test_a_name_is_entered_once(monkeypatch):
    monkeypatch.setattr("validation.papers.statement.STATEMENTS", {})
    enter = statement("one", "paper", "where", "text")
    enter(lambda: Found(True, {}, ""))
    with pytest.raises(ValueError, match="the claim 'one' is entered twice"):
        statement("one", "paper", "where", "text")(lambda: Found(True, {}, ""))


def test_one_claim_from_the_command_line(capsys):
    before = papers.RESULT.read_bytes()
    assert papers.main(["hron-u"]) == 0
    assert capsys.readouterr().out.startswith("fails  hron-u: u = mu^2/(2 sigma^2) is 1/(2 alpha)")
    assert papers.RESULT.read_bytes() == before


def test_an_unknown_claim_is_refused(capsys):
    with pytest.raises(SystemExit):
        papers.main(["nothing"])
    assert "there is no claim 'nothing'" in capsys.readouterr().err
