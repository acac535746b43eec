"""Thousands of digits: powers are shared, and the values are those of one power a term."""

import mpmath
import pytest
from mpmath import libmp

from logunif_kl import reference
from logunif_kl.reference import _series

KINDS = ("gap", "gap_grad", "gap_hess", "hess")
SUMS = pytest.mark.parametrize("of", [_series.direct, _series.positive], ids=["direct", "positive"])


def alone(monkeypatch):
    """Let every term have a power of its own."""
    monkeypatch.setattr(_series, "_block", lambda v, bits: (1, 0))


@SUMS
@pytest.mark.parametrize("kind", KINDS)
@pytest.mark.parametrize("u", [1e-300, 1e-3, 0.5, 1.0, 3.7, 60.0, 900.0])
@pytest.mark.parametrize("wp", [53, 300, 4000])
def test_shared_powers_change_nothing(of, kind, u, wp, monkeypatch):
    raw = libmp.from_float(u)
    shared = of(kind, raw, wp)
    alone(monkeypatch)
    apart = libmp.mpf_sub(shared, of(kind, raw, wp), wp)
    # Both are right to wp bits but for the rounding of the last factors.
    assert not apart[1] or apart[2] + apart[3] <= shared[2] + shared[3] - wp + 2


def test_few_long_products():
    """At 5,000 digits and log alpha = -7: a tenth of one product for each term."""
    u, bits = libmp.from_float(548.3), libmp.dps_to_prec(5000)
    for v in (u, libmp.mpf_shift(u, 1)):
        terms, (m, _) = _series._terms(v, bits), _series._block(v, bits)
        assert 2 * m + 2 * terms / m < terms / 10


@pytest.mark.parametrize("log_alpha", [-7.0, 0.5])
def test_against_arb(log_alpha):
    flint = pytest.importorskip("flint")
    dps = 3000
    bits = libmp.dps_to_prec(dps) + 64
    found = reference.neg_kl(log_alpha, dps)
    ball = reference.enclosure(log_alpha, bits)
    with flint.ctx.workprec(bits + 64), mpmath.workdps(dps + 20):
        middle = mpmath.mpf(ball.mid().str(dps + 15, radius=False))
        assert abs(found / middle - 1) < mpmath.mpf(10) ** -dps


@pytest.mark.slow
def test_twenty_thousand_digits():
    """It took minutes; the agreement of the two definitions is the test."""
    with mpmath.workdps(20):
        many, few = (mpmath.nstr(reference.neg_kl(-10, dps), 15) for dps in (20_000, 30))
        assert many == few
