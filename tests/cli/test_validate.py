"""``logunif-kl validate``: what is declared is held, and a lie is found out."""

import dataclasses
import json
import math
import time

import numpy as np
import pytest

import logunif_kl as lk
from logunif_kl.cli import _declared_errors, main
from logunif_kl.methods import METHODS, Declared, Interval, Method

MOLCHANOV = METHODS["molchanov"]
CENTRE = Interval("log_alpha in [-3, 3]", -3.0, 3.0)


def changed(method, **changes):
    """The method with its first claim changed."""
    first, *others = method.claims
    claims = (dataclasses.replace(first, **changes), *others)
    return dataclasses.replace(method, claims=claims, name="altered")


def numerical(function, gradient=None, value=1e-13, slope=None, interval=CENTRE):
    claims = (Declared(interval, value, gradient=slope),)
    words = dict.fromkeys(("formula", "equation", "citation", "constant", "outside"), "none")
    return Method("altered", function, gradient, claims=claims, kind="numerical", **words)


def statistical(spread, stated, declared=1e-2):
    """An estimate whose true and stated standard errors are given."""

    def function(x, *, rng=None):
        noise = np.random.default_rng(rng).normal(size=np.shape(x))
        return lk.neg_kl(x) + spread * noise, np.full(np.shape(x), stated)

    return dataclasses.replace(numerical(function, value=declared), kind="statistical")


@pytest.fixture
def register(monkeypatch):
    """Put a method beside the others, under the name ``altered``."""

    def put(method):
        monkeypatch.setitem(METHODS, "altered", method)

    return put


def test_every_method_holds_what_it_declares(tmp_path, capsys):
    assert main(["validate", "--output", str(tmp_path)]) == 0
    out, err = capsys.readouterr()
    assert err == ""
    document = json.loads((tmp_path / "validate.json").read_text())
    assert document["passed"] is True
    assert document["faults"] == []
    assert document["seconds"] > 0.0
    assert [(row["method"], row["interval"]["name"]) for row in document["rows"]] == [
        ("exact", "every alpha"),
        *((m.name, claim.interval.name) for m in METHODS.values() for claim in m.claims),
        ("dawson", "every alpha"),
    ]
    for row in document["rows"]:
        assert row["nanoseconds"] > 0.0
        assert row["value"] or row["gradient"]
        assert row["method"] in out
    assert "WORSE" not in out
    for figure in ("validate_errors.png", "kingma_figure_2.png"):
        assert (tmp_path / figure).read_bytes()[:4] == b"\x89PNG"


@pytest.mark.parametrize(
    ("method", "words"),
    [
        (changed(MOLCHANOV, value=0.00937), "the value is 0.00937 at log_alpha = -3.51"),
        (changed(MOLCHANOV, gradient=0.03), "the error of the gradient is 0.0376 at"),
        (
            changed(MOLCHANOV, value_best_constant=1e-3),
            "the error of the value with the best constant is 0.00687",
        ),
        (numerical(lambda x: lk.neg_kl(x) + 1e-12), "the error of the value is 1e-12 at"),
        (
            numerical(lk.neg_kl, lambda x: lk.neg_kl_grad(x) * (1 + 1e-9), slope=1e-13),
            "the error of the gradient is 1e-09 at",
        ),
        (numerical(lambda x: np.where(x > 2.9, np.nan, lk.neg_kl(x))), "the value is nan at"),
        (numerical(lambda x: np.where(x == 3.0, 0.0, lk.neg_kl(x))), "at log_alpha = 3, where"),
        (
            numerical(
                lambda x: np.where(np.isinf(x), 1.0, lk.neg_kl(x)),
                interval=Interval("every alpha", -math.inf, math.inf),
            ),
            "the error of the value is nan at log_alpha = -inf",
        ),
        (statistical(1e-3, 1e-3, declared=5e-4), "the error of the value is 0.001 at"),
        (statistical(2e-3, 1e-3), "has wrong standard errors"),
        (statistical(5e-4, 1e-3), "has wrong standard errors"),
    ],
)
def test_a_method_worse_than_it_declares_is_named(method, words, register, tmp_path, capsys):
    """The results are handed over all the same."""
    register(method)
    path = tmp_path / "out.json"
    assert main(["validate", "altered", "--json", str(path)]) == 1
    out, err = capsys.readouterr()
    assert "WORSE" in out
    assert err.startswith("logunif-kl: error: altered ")
    assert words in err
    assert err.count("\n") == 1
    document = json.loads(path.read_text())
    assert document["passed"] is False
    assert [fault.split()[0] for fault in document["faults"]] == ["altered"]


def test_honest_methods_pass(register, capsys):
    for method in (numerical(lk.neg_kl, lk.neg_kl_grad, slope=1e-15), statistical(1e-3, 1e-3)):
        register(method)
        assert main(["validate", "altered", "--json", "-"]) == 0
        out, err = capsys.readouterr()
        assert err == ""
        assert [row["method"] for row in json.loads(out)["rows"]] == ["exact", "altered"]


def test_the_exact_functions_are_held_to_their_claims(monkeypatch):
    assert _declared_errors.check_exact(5).faults() == []
    monkeypatch.setattr(_declared_errors._api, "neg_kl", lambda x: lk.neg_kl(x) * (1 + 2**-49))
    assert "exact is worse than it declares" in _declared_errors.check_exact(5).faults()[0]


def test_a_false_alarm_is_as_rare_as_said():
    """Scores of an honest method, many times: at most one in ten thousand is accused."""
    method = statistical(1e-3, 1e-3)
    accused = 0
    for start in range(1000, 201_000, 1000):

        def function(x, *, rng, start=start):
            return method.function(x, rng=rng + start)

        shifted = dataclasses.replace(method, function=function)
        accused += not _declared_errors._statistical(shifted, shifted.claims[0]).honesty.holds
    # Two would be seen by chance once in five thousand times.
    assert accused <= 1


def test_the_time_of_an_element_is_that_of_the_function():
    def slow(x):
        time.sleep(1e-5 * np.size(x))
        return x

    assert 1e4 <= _declared_errors.nanoseconds(slow, CENTRE) < 3e4
