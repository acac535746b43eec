"""How many nodes the quadrature takes for its digits, and from how many digits it is refused."""

import mpmath
import pytest

from logunif_kl import reference
from logunif_kl.methods import quadrature
from logunif_kl.methods.arbitrary_precision import quadrature as in_digits


def evaluated(log_alpha, dps, monkeypatch):
    """Evaluate with nodes counted; return the value and the number of nodes."""
    in_digits._sides.cache_clear()
    count = 0
    half = in_digits._half

    def counting(side, f, full, size):
        def counted(q):
            nonlocal count
            count += 1
            return f(q)

        return half(side, counted, full, size)

    monkeypatch.setattr(in_digits, "_half", counting)
    return quadrature(log_alpha, dps=dps), count


@pytest.mark.parametrize("log_alpha", [-12.0, 0.0, 4.0])
@pytest.mark.parametrize("dps", [100, 200])
def test_nodes(log_alpha, dps, monkeypatch):
    """A sum with twice the nodes, to see that nothing changes, is not taken."""
    found, count = evaluated(log_alpha, dps, monkeypatch)
    with mpmath.workdps(dps + 10):
        error = abs(found / reference.neg_kl(log_alpha, dps + 5) - 1)
        assert error < mpmath.mpf(10) ** -dps
    assert count < 24 * dps


def test_more_than_it_can_in_a_minute():
    with pytest.raises(
        ValueError,
        match=r"^dps must be at most 1000 decimal digits for quadrature, whose time grows with the "
        r"cube of their number, but 1001 was given: use logunif_kl.methods.series, or "
        r"logunif_kl.reference.neg_kl$",
    ):
        quadrature(0.0, dps=1001)


@pytest.mark.slow
@pytest.mark.parametrize("log_alpha", [-3.0, 4.0])
def test_as_many_as_it_can(log_alpha, monkeypatch):
    found, count = evaluated(log_alpha, 1000, monkeypatch)
    with mpmath.workdps(1010):
        error = abs(found / reference.neg_kl(log_alpha, 1005) - 1)
        assert error < mpmath.mpf(10) ** -1000
    assert count < 14_000


class TestNodes:
    """The nodes are kept for later calls, and an interrupt between two steps loses none."""

    @pytest.mark.parametrize("sign", [-1, 1])
    @pytest.mark.parametrize("at", [0, 3])
    def test_an_interrupt_loses_none(self, sign, at, monkeypatch):
        whole = list(in_digits._Side(90, 3, sign))
        side = in_digits._Side(90, 3, sign)
        nodes = iter(side)
        found = [next(nodes) for _ in range(at)]

        def interrupted(x):
            raise KeyboardInterrupt

        mp, before = in_digits._MP, in_digits._MP.prec
        with monkeypatch.context() as patch:
            patch.setattr(mp, "exp", interrupted)
            with pytest.raises(KeyboardInterrupt):
                next(nodes)
        assert mp.prec == before
        assert found == whole[:at]
        assert list(side) == whole
