"""A message shows at most a hundred characters of a value, on one line."""

import importlib
import math
from functools import partial

import numpy as np
import pytest

import logunif_kl as lk
from logunif_kl._errors import shown, type_name
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
def test_text(value, text):
    assert shown(value) == text


def over(function, *arguments, **values):
    """A call for each value of each option."""
    pairs = [(name, value) for name, several in values.items() for value in several]
    return [partial(function, *arguments, **{name: value}) for name, value in pairs]


def of_normal(**options):
    stats = pytest.importorskip("scipy.stats")
    return neg_kl_posterior(stats.norm(), **options)


@pytest.mark.parametrize(
    "call",
    [
        *(partial(lk.neg_kl, x) for x in (MANY, set(LONG), TEXT, TEXT.encode(), [TEXT, TEXT])),
        *(partial(lk.neg_kl, x) for x in (dict.fromkeys(LONG), Nested(), Silent())),
        *over(
            lk.neg_kl, 0.0, zero_at=(LONG, -MANY, [[[[LONG]]]] * 9), log_c=(LONG, np.arange(10**6))
        ),
        partial(lk.neg_kl, 0.0, zero_at=LONG, log_c=LONG),
        *over(of_normal, method=(TEXT,), points=([None, *LONG],)),
        *over(lk.methods.monte_carlo, 0.0, scheme=(TEXT, LONG), n_samples=(LONG, -MANY)),
        *over(quadrature, 0.0, rule=(TEXT,), n=(LONG, MANY), dps=(LONG, MANY)),
        *(partial(quadrature, 0.0, dps=LONG, n=3), partial(quadrature, TEXT, dps=30)),
        partial(Interval, "empty", LONG, [-1]),
        partial(lk.reference.neg_kl, TEXT),
        *over(lk.reference.neg_kl, 0.0, dps=(MANY,), zero_at=(-MANY,)),
        partial(lk.reference.neg_kl, 0.0, zero_at=MANY, log_c=MANY),
        *(partial(lk.fit_polynomial, degree) for degree in (LONG, MANY)),
        *over(lk.fit_polynomial, 3, grid=(TEXT,), weight=(TEXT,), alpha_range=(LONG,)),
        *(lambda: lk.fit_polynomial(1).formula(TEXT), lambda: lk.fit_polynomial(1).rounded(LONG)),
    ],
)
def test_no_message_is_long(call):
    with pytest.raises((TypeError, ValueError)) as caught:
        call()
    assert 30 < len(str(caught.value)) < 350
    assert "\n" not in str(caught.value)


def test_a_type_is_named_by_a_path_that_can_be_imported():
    pytest.importorskip("torch")
    nn = importlib.import_module("logunif_kl.torch.nn")
    assert type_name(nn.VariationalLinear(1, 1)) == "logunif_kl.torch.nn.VariationalLinear"
    assert [type_name(x) for x in ([], np.zeros(1))] == ["list", "numpy.ndarray"]
