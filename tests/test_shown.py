"""A message shows at most a hundred characters of a value, on one line."""

import math

import numpy as np
import pytest

import logunif_kl as lk
from logunif_kl._errors import LONGEST, shown
from logunif_kl.methods import Interval, quadrature
from logunif_kl.posteriors import neg_kl_posterior

LONG = list(range(10**6))
TEXT = "x" * 10**6
MANY = 10**20_000


class Nested:
    """An object whose repr is long and has lines."""

    def __repr__(self):
        return "a line\n" * 10**5


class Silent:
    """An object whose repr raises an error."""

    def __repr__(self):
        raise RuntimeError("no text")


class TestShown:
    @pytest.mark.parametrize(
        "value",
        [
            *(LONG, tuple(LONG), set(LONG), dict.fromkeys(LONG), [[[[LONG]]]] * 9, TEXT),
            *(TEXT.encode(), MANY, -MANY, Nested(), Silent(), np.arange(10**6)),
            *(np.array([TEXT] * 3, dtype=object), ["long words in a list"] * 7),
        ],
        ids=lambda v: type(v).__name__,
    )
    def test_long_values(self, value):
        text = shown(value)
        assert 0 < len(text) <= LONGEST
        assert "\n" not in text

    @pytest.mark.parametrize(
        ("value", "text"),
        [
            (0.1, "0.1"),
            (math.inf, "inf"),
            (lk._convention.ZERO_AT_INFINITY, "inf"),
            ("exact", "'exact'"),
            (["a" * 99], f"['{'a' * 22}...{'a' * 23}']"),
            ([1.0, None], "[1.0, None]"),
            (LONG, "[0, 1, 2, 3, 4, 5, ...]"),
            (1 << 64, str(1 << 64)),
            (MANY, f"an integer of {MANY.bit_length()} bits"),
            (True, "True"),
            (np.array([[1.0, 2.0], [3.0, 4.0]]), "array([[1., 2.], [3., 4.]])"),
        ],
        ids=lambda v: str(v)[:20] if not isinstance(v, int) or v < 99 else "an int",
    )
    def test_text(self, value, text):
        assert shown(value) == text


MESSAGES = {
    "zero_at": lambda: lk.neg_kl(0.0, zero_at=LONG),
    "log_c": lambda: lk.neg_kl(0.0, log_c=LONG),
    "zero_at and log_c": lambda: lk.neg_kl(0.0, zero_at=LONG, log_c=LONG),
    "zero_at, an integer": lambda: lk.neg_kl(0.0, zero_at=-MANY),
    "log_alpha, an integer": lambda: lk.neg_kl(MANY),
    "log_alpha": lambda: lk.neg_kl(set(LONG)),
    "log_alpha, text": lambda: lk.neg_kl(TEXT),
    "method": lambda: neg_kl_posterior(_normal(), method=TEXT),
    "points": lambda: neg_kl_posterior(_normal(), points=[None, *LONG]),
    "scheme": lambda: lk.methods.monte_carlo(0.0, scheme=TEXT),
    "scheme, a list": lambda: lk.methods.monte_carlo(0.0, scheme=LONG),
    "n_samples": lambda: lk.methods.monte_carlo(0.0, n_samples=LONG),
    "n_samples, an integer": lambda: lk.methods.monte_carlo(0.0, n_samples=-MANY),
    "rule": lambda: quadrature(0.0, rule=TEXT),
    "n": lambda: quadrature(0.0, n=LONG),
    "n, an integer": lambda: quadrature(0.0, n=MANY),
    "dps": lambda: quadrature(0.0, dps=LONG),
    "dps, an integer": lambda: quadrature(0.0, dps=MANY),
    "dps and n": lambda: quadrature(0.0, dps=LONG, n=3),
    "log_alpha with dps": lambda: quadrature(TEXT, dps=30),
    "interval": lambda: Interval("empty", LONG, [-1]),
    "reference": lambda: lk.reference.neg_kl(TEXT),
    "reference, dps": lambda: lk.reference.neg_kl(0.0, dps=MANY),
    "reference, zero_at": lambda: lk.reference.neg_kl(0.0, zero_at=-MANY),
    "reference, both": lambda: lk.reference.neg_kl(0.0, zero_at=MANY, log_c=MANY),
    "grid": lambda: lk.fit_polynomial(3, grid=TEXT),
    "weight": lambda: lk.fit_polynomial(3, weight=TEXT),
    "degree": lambda: lk.fit_polynomial(LONG),
    "degree, an integer": lambda: lk.fit_polynomial(MANY),
    "alpha_range": lambda: lk.fit_polynomial(3, alpha_range=LONG),
    "language": lambda: lk.fit_polynomial(1).formula(TEXT),
    "digits": lambda: lk.fit_polynomial(1).rounded(LONG),
}


def _normal():
    stats = pytest.importorskip("scipy.stats")
    return stats.norm()


@pytest.mark.parametrize("name", MESSAGES)
def test_no_message_is_long(name):
    with pytest.raises((TypeError, ValueError)) as caught:
        MESSAGES[name]()
    text = str(caught.value)
    assert 30 < len(text) < 350
