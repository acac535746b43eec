"""The methods in any number of digits, against the reference; and the cost of quadrature."""

import math
from concurrent.futures import ThreadPoolExecutor
from fractions import Fraction

import mpmath
import numpy as np
import pytest

from logunif_kl import reference
from logunif_kl.methods import METHODS, kummer_grad, quadrature, series_grad
from logunif_kl.methods.arbitrary_precision import quadrature as in_digits

VALUES = {name: METHODS[name].function for name in ("series", "kummer", "quadrature")}
GRADIENTS = {"series_grad": series_grad, "kummer_grad": kummer_grad}
FUNCTIONS = VALUES | GRADIENTS
# Both ends, and both sides of the places where a method changes its formula.
FEW = (-1000.0, -12.0, -6.0, -4.95, -4.5, -2.0, 0.0, 1e-9, 3.0, 12.0, 1000.0)
MANY = (
    *(-1e308, -1e4, -700.0, -40.0, -13.0, -12.48, -12.47, -12.0, -9.5, -7.3, -6.0, -5.0, -4.4),
    *(-4.3, -3.0, -1.5, -0.1, 0.0, 5e-324, 0.3, 1.0, 4.0, 12.0, 40.0, 700.0, 1e4, 1e308),
)

every_function = pytest.mark.parametrize("name", FUNCTIONS)
every_value = pytest.mark.parametrize("name", VALUES)


def error(name, x, dps, **convention):
    """The relative error of a function in dps digits; 0 if both are equal, or infinite."""
    exact = reference.neg_kl if name in VALUES else reference.neg_kl_grad
    truth = exact(x, dps + 10, **convention)
    found = FUNCTIONS[name](x, dps=dps, **convention)
    with mpmath.workdps(dps + 10):
        return mpmath.mpf(0) if found == truth else abs(found / truth - 1)


@every_function
@pytest.mark.parametrize("dps", [1, 5, 15, 50, 300])
def test_digits_agree_with_the_reference(name, dps):
    slow = name == "quadrature"
    places = MANY if not slow else FEW if dps == 50 else (-1.0,)
    if dps == 50:
        places = (*places, *np.linspace(-12.0, 12.0, 9 if slow else 61).tolist())
    for x in places:
        assert error(name, x, dps) < (1 if slow else 2) * mpmath.mpf(10) ** -dps, x


@every_value
def test_digits_under_each_convention(name):
    third = mpmath.mpf(1) / 3
    for x in (*((0.5,) if name == "quadrature" else (-9, 0, 2)), -math.inf, math.inf):
        for convention in ({"zero_at": 1.0}, {"zero_at": third}, {"log_c": -2.5}, {"log_c": third}):
            assert error(name, x, 50, **convention) < mpmath.mpf("1e-48")
    assert VALUES[name](0.0, zero_at=1, dps=50) == 0
    with pytest.raises(TypeError, match=r"zero_at must hold real numbers .* Fraction"):
        VALUES[name](0.0, zero_at=Fraction(1, 3), dps=20)


@every_function
def test_digits_come_in_the_shape_of_the_argument(name):
    function = FUNCTIONS[name]
    for scalar in (1, 1.0, np.float32(1.0), np.int8(1), mpmath.mpf(1), np.array(1.0)):
        one = function(scalar, dps=20)
        assert isinstance(one, mpmath.mpf)
        assert one == function(1.0, dps=20)
    table = function([[0.5, 1.0], [mpmath.mpf(2), math.nan]], dps=20)
    assert isinstance(table, np.ndarray)
    assert table.dtype == object
    assert table.shape == (2, 2)
    assert table[0, 1] == one
    assert mpmath.isnan(table[1, 1])
    assert function(np.empty((0, 3)), dps=20).shape == (0, 3)
    assert function((1.0,), dps=20)[0] == one
    assert function(-math.inf, dps=20) == (-mpmath.inf if name in VALUES else 0.5)
    assert function(math.inf, dps=20) == 0


@every_function
def test_digits_leave_mpmath_as_it_was(name):
    with mpmath.workdps(7):
        got = FUNCTIONS[name](-3.0, dps=40)
        assert mpmath.mp.dps == 7
    assert got == FUNCTIONS[name](-3.0, dps=40)
    assert got != FUNCTIONS[name](-3.0, dps=39)


@every_function
def test_digits_in_threads(name):
    function = FUNCTIONS[name]
    expected = function(-3.3, dps=120)
    with ThreadPoolExecutor(4) as pool:
        _, first, _, second = pool.map(lambda dps: function(-3.3, dps=dps), (30, 120, 60, 120))
    assert first == second == expected


@pytest.mark.parametrize(
    ("options", "name"),
    [({"rule": "gauss_legendre"}, "rule"), ({"n": 50}, "n"), ({"return_error": True}, "return")],
)
def test_digits_of_quadrature_do_not_go_with_a_rule(options, name):
    words = f"{name}.* was given with dps=50, .* leave out {name}"
    with pytest.raises(ValueError, match=words):
        quadrature(0.0, dps=50, **options)


@pytest.mark.parametrize(
    ("dps", "log_alpha", "nodes"),
    [(dps, x, 24 * dps) for dps in (100, 200) for x in (-12.0, 0.0, 4.0)]
    + [pytest.param(1000, x, 14_000, marks=pytest.mark.slow) for x in (-3.0, 4.0)],
)
def test_nodes_of_quadrature(dps, log_alpha, nodes, monkeypatch):
    """The step is not halved once more, to see that nothing changes."""
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
    assert error("quadrature", log_alpha, dps) < mpmath.mpf(10) ** -dps
    assert count < nodes


@pytest.mark.parametrize("sign", [-1, 1])
@pytest.mark.parametrize("at", [0, 3])
def test_an_interrupt_between_two_nodes_loses_none(sign, at, monkeypatch):
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
