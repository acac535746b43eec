import itertools
import math
import sys
from concurrent.futures import ThreadPoolExecutor
from decimal import Decimal
from fractions import Fraction

import mpmath
import numpy as np
import pytest
from mpmath import libmp, mp, mpf

from logunif_kl import reference
from logunif_kl.reference import _agree, _functions, _input, _series, _tail

INF, NAN = math.inf, math.nan
OF_U = (reference.kl_gap, reference.kl_gap_grad, reference.kl_gap_hess)
OF_X = (reference.neg_kl, reference.neg_kl_grad, reference.neg_kl_hess)
U = (5e-324, 1e-300, 1e-5, 0.1, 0.5, 1.0, 2.2559, 10.0, 50.0, 150.0, 400.0, 1e4, 1e15, 1e308)
X = (-1e308, -745.0, -30.0, -5.5, -1.5067, -1.0, 0.0, 0.9, 5.0, 30.0, 745.0, 1e308)


def close(a, b, digits):
    """Whether two mpf agree to so many digits."""
    with mp.workdps(digits + 20):
        return abs(a - b) <= mpf(10) ** (1 - digits) * abs(b)


# --- values from independent software ------------------------------------------------------------


LANDMARKS = {0.5: "0.42668560429604480579", 1: "0.7394416300990793005"}
LANDMARKS |= {10: "2.1057151592798643824", 50: "2.9326888740470193148"}


@pytest.mark.parametrize("u", LANDMARKS)
def test_landmarks(u):
    assert mpmath.nstr(reference.kl_gap(u), 20) == LANDMARKS[u]


def test_mean_log_eps_vanishes_at_alpha_star():
    with mp.workdps(40):
        alpha = mpf("2.42124952103683604")
        mean = (mp.log(alpha) + mp.log(2) + mp.digamma(0.5)) / 2 + reference.kl_gap(1 / (2 * alpha))
        assert abs(mean) < 1e-17


@pytest.mark.parametrize("u", [0.01, 0.5, 3.0, 40.0])
class TestAgainstMpmath:
    def test_hypergeometric(self, u):
        with mp.workdps(40):
            f = u * mp.hyp2f2(1, 1, 1.5, 2, -mpf(u))
            assert close(reference.kl_gap(u, 40), f, 38)
            assert close(reference.kl_gap_grad(u, 40), mp.hyp1f1(1, 1.5, -mpf(u)), 38)
            assert close(reference.kl_gap_hess(u, 40), -mp.hyp1f1(2, 2.5, -mpf(u)) * 2 / 3, 38)

    def test_hron_digamma_series(self, u):
        with mp.workdps(40):
            terms = (mpf(u) ** k / mp.factorial(k) * mp.digamma(k + 0.5) for k in range(250))
            f = (mp.exp(-mpf(u)) * mp.fsum(terms) - mp.digamma(0.5)) / 2
            assert close(reference.kl_gap(u, 40), f, 36)


# --- the definitions -----------------------------------------------------------------------------


@pytest.mark.parametrize("kind", ["gap", "gap_grad", "gap_hess", "hess"])
@pytest.mark.parametrize("wp", [20, 53, 200, 700])
@pytest.mark.parametrize("u", [*U, 250.0, 300.0, 1000.0, 2000.0])
def test_all_definitions_agree(kind, wp, u):
    raw = libmp.from_float(u)
    values = []
    if u < 5000:
        values += [_series.direct(kind, raw, wp), _series.positive(kind, raw, wp)]
    if _tail.is_tail(raw, wp):
        values += [_tail.asymptotic(kind, raw, wp), _tail.expectation(kind, raw, wp)]
    assert len(values) >= 2
    with mp.workprec(wp + 50):
        numbers = [mp.make_mpf(v) for v in values]
        for a, b in itertools.combinations(numbers, 2):
            assert abs(a - b) <= abs(b) * mpf(2) ** -wp


def test_the_two_definitions_are_never_the_same():
    for u, wp in itertools.product((0.1, 10.0, 200.0, 300.0, 1e6), (60, 200, 210, 1000)):
        raw = libmp.from_float(u)
        tail = _tail.is_tail(raw, wp)
        one = _tail.asymptotic if tail else _series.direct
        other = _tail.expectation if tail else _series.positive
        assert _functions.first("gap", raw, wp) == one("gap", raw, wp)
        assert _functions.second("gap", raw, wp) == other("gap", raw, wp)


@pytest.mark.parametrize("dps", [1, 15, 25, 50, 100, 300, 1000])
@pytest.mark.parametrize(
    ("f", "x"),
    [
        *itertools.product(OF_U, ("1e-400", "0.3", "7", "90", "3e3", "1e500")),
        *itertools.product(OF_X, ("-1e40", "-7.5", "-1.5", "0.3", "70", "1e40")),
    ],
)
def test_digits_hold(f, x, dps):
    assert close(f(x, dps), f(x, dps + 30), dps)


def test_agree_gives_up():
    with pytest.raises(
        ArithmeticError,
        match=r"^F at u = 3: two definitions still differ at \d+ bits, so 15 digits are not "
        r"certain: ask for fewer digits, or move the argument away from a zero of the result\.",
    ):
        _agree.agree(lambda wp: libmp.fone, lambda wp: libmp.ftwo, 15, "F at u = {}", 3)


def test_two_zeros_do_not_count_as_agreement():
    values = iter([libmp.fzero, libmp.fone])
    raw = _agree.agree(lambda wp: next(values), lambda wp: libmp.from_int(wp > 150), 15, "one")
    assert raw == libmp.fone


def test_agree_raises_the_precision_until_both_say_the_same():
    seen = []

    def first(wp):
        seen.append(wp)
        return libmp.mpf_add(libmp.fone, libmp.mpf_shift(libmp.fone, 40 - wp))

    raw = _agree.agree(first, lambda wp: libmp.fone, 15, "one")
    assert raw == libmp.fone
    assert len(seen) == 2
    assert seen[1] - 40 >= libmp.dps_to_prec(15) + _agree.GUARD


# --- relations -----------------------------------------------------------------------------------


@pytest.mark.parametrize("u", U)
def test_differential_equation(u):
    with mp.workdps(700):
        f1, f2, v = reference.kl_gap_grad(u, 700), reference.kl_gap_hess(u, 700), mpf(u)
        assert abs(2 * v * f2 - 1 + (1 + 2 * v) * f1) < mpf(10) ** -380


@pytest.mark.parametrize("x", [x for x in X if abs(x) < 1e3])
def test_log_alpha_and_u_say_the_same(x):
    with mp.workdps(80):
        u = mp.exp(-mpf(x)) / 2
        assert close(reference.neg_kl(x), -reference.kl_gap(u), 49)
        assert close(reference.neg_kl_grad(x), u * reference.kl_gap_grad(u), 49)
    with mp.workdps(1000):
        u = mp.exp(-mpf(x)) / 2
        f1 = reference.kl_gap_grad(u, 1000)
        assert close(reference.neg_kl_hess(x), -(u / 2) * (1 + f1 - 2 * u * f1), 49)


def test_grad_rises_above_one_half_and_hess_changes_sign():
    top = mpmath.findroot(lambda x: reference.neg_kl_hess(x), (-1.6, -1.4), solver="anderson")
    assert mpmath.nstr(top, 15) == "-1.50670935523983"
    assert mpmath.nstr(reference.neg_kl_grad(top), 15) == "0.642374719828423"
    assert reference.neg_kl_hess(-1.5068) > 0 > reference.neg_kl_hess(-1.5066)


def test_digits_are_relative_beside_the_zero_of_hess():
    with mp.workdps(60):
        zero = mpf("-1.50670935523982940959760223676291785525785480859493640767157")
    for dps in (15, 40):
        value = reference.neg_kl_hess(zero, dps)
        assert 0 < abs(value) < mpf(10) ** -58
        assert close(value, reference.neg_kl_hess(zero, 120), dps)


@pytest.mark.parametrize(
    ("name", "given"),
    [
        *(("neg_kl", {"zero_at": 1.0}), ("neg_kl", {"zero_at": 0.05}), ("neg_kl", {"log_c": 0.0})),
        *(("neg_kl", {"log_c": "-3.5"}), ("neg_kl_normal", {"zero_at": 1.0})),
        ("neg_kl_normal", {"log_c": -1}),
    ],
)
def test_constant(name, given):
    f = getattr(reference, name)
    args = (0.7,) if name == "neg_kl" else (1.5, -0.5)
    with mp.workdps(70):
        if "zero_at" in given:
            constant = reference.kl_gap(1 / (2 * mpf(given["zero_at"])), 60)
        else:
            pi_e = mp.log(mp.pi * mp.e)
            constant = (pi_e - mp.digamma(0.5)) / 2 + mpf(given["log_c"])
        assert close(f(*args, **given), constant + f(*args, 60), 48)


def test_value_vanishes_where_it_should():
    assert reference.neg_kl(0.0, zero_at=1) == 0
    assert reference.neg_kl_normal(2.0, 0.0, zero_at=0.25) == 0
    assert reference.neg_kl(INF) == 0
    with mp.workdps(40):
        slope = mpf(5e-324) * reference.neg_kl_grad(0, 40)
    assert close(reference.neg_kl(5e-324, 20, zero_at=1), slope, 20)


@pytest.mark.parametrize("mu", [1.5, -1.5, 1e-200, -1e200, 5e-324])
@pytest.mark.parametrize("log_sigma2", [0.0, -10.0, 900.0, -1500.0])
def test_normal_is_neg_kl_of_log_alpha(mu, log_sigma2):
    with mp.workdps(80):
        x = mpf(log_sigma2) - 2 * mp.log(abs(mpf(mu)))
        assert close(reference.neg_kl_normal(mu, log_sigma2), reference.neg_kl(x), 49)
        by_mu, by_log_sigma2 = reference.neg_kl_normal_grad(mu, log_sigma2)
        grad = reference.neg_kl_grad(x)
        assert close(by_log_sigma2, grad, 49)
        assert close(by_mu, -2 * grad / mpf(mu), 49)


# --- special values ------------------------------------------------------------------------------


def same(value, expected):
    return mpmath.isnan(value) if math.isnan(expected) else value == expected


@pytest.mark.parametrize(
    ("f", "at"),
    [
        (reference.kl_gap, {0: 0, INF: INF, -1: NAN, -5e-324: NAN, -INF: NAN, NAN: NAN}),
        (reference.kl_gap_grad, {0: 1, INF: 0, -1: NAN, -INF: NAN, NAN: NAN}),
        (reference.kl_gap_hess, {INF: 0, -1: NAN, NAN: NAN}),
        (reference.neg_kl, {INF: 0, -INF: -INF, NAN: NAN}),
        (reference.neg_kl_grad, {INF: 0, -INF: 0.5, NAN: NAN}),
        (reference.neg_kl_hess, {INF: 0, -INF: 0, NAN: NAN}),
    ],
)
def test_special_values(f, at):
    for argument, expected in at.items():
        assert same(f(argument), expected), argument


def test_second_derivative_at_zero_has_all_digits():
    assert mpmath.nstr(reference.kl_gap_hess(0, 30), 30) == "-0." + "6" * 29 + "7"


@pytest.mark.parametrize("x", [-1e308, -1.7976931348623157e308, 1e308])
def test_largest_log_alpha(x):
    with mp.workdps(400):
        value, grad, hess = (f(x, 50) for f in OF_X)
        if x < 0:
            assert close(value, (mpf(x) - mp.log(2) - mp.euler) / 2, 50)
            assert grad == 0.5
            assert close(mp.log(hess), x - mp.log(2), 340)
        else:
            assert close(value, -grad, 50)
            assert close(mp.log(grad), -x - mp.log(2), 340)
            assert float(value) == 0


@pytest.mark.parametrize(
    ("mu", "log_sigma2", "expected"),
    [
        *((0.0, 3.0, (0, 0, 0)), (-0.0, -1e308, (0, 0, 0)), (0.0, -INF, (NAN, NAN, NAN))),
        *((0.0, INF, (0, 0, 0)), (2.0, INF, (0, 0, 0)), (INF, INF, (NAN, NAN, NAN))),
        *((2.0, -INF, (-INF, -0.5, 0.5)), (-4, -INF, (-INF, 0.25, 0.5))),
        *((INF, 1.0, (-INF, 0, 0.5)), (-INF, -INF, (-INF, 0, 0.5)), (NAN, 1.0, (NAN, NAN, NAN))),
        (0.0, NAN, (NAN, NAN, NAN)),
    ],
)
def test_special_values_of_normal(mu, log_sigma2, expected):
    value = reference.neg_kl_normal(mu, log_sigma2)
    grads = reference.neg_kl_normal_grad(mu, log_sigma2)
    assert all(map(same, (value, *grads), expected))


# --- arguments ------------------------------------------------------------------------------------


def test_kinds_of_number():
    tenth = reference.kl_gap("0.1")
    assert tenth != reference.kl_gap(0.1)
    for decimal in (Fraction(1, 10), Decimal("0.1"), "1e-1", " 0.1", "1/10"):
        assert reference.kl_gap(decimal) == tenth
    half = reference.kl_gap(0.5)
    kinds = (np.float16, np.float32, np.float64, np.longdouble, np.array, mpf, Fraction, str)
    for kind in kinds:
        assert reference.kl_gap(kind(0.5)) == half
    assert reference.kl_gap(np.float32(0.1)) == reference.kl_gap(float(np.float32(0.1)))
    for one in (1, True, np.int8(1), np.uint64(1), np.array(1)):
        assert reference.kl_gap(one) == reference.kl_gap(1.0)
    for kind in (np.float32, np.longdouble, str, Decimal):
        assert mpmath.isnan(reference.kl_gap(kind("nan")))
        assert reference.kl_gap(kind("inf")) == INF


def test_all_bits_of_a_long_number_count():
    third = np.longdouble(1) / 3
    exact = Fraction(*third.as_integer_ratio())
    assert reference.kl_gap(third) == reference.kl_gap(exact)
    with mp.workdps(100):
        third = mpf(1) / 3
    assert reference.kl_gap(third) == reference.kl_gap(Fraction(1, 3))


@pytest.mark.parametrize(
    ("value", "given"),
    [
        ([1.0, 2.0], "list"),
        (np.ones(3), r"ndarray of shape \(3,\)"),
        (1j, "complex"),
        (np.complex64(1), "complex"),
        (None, "NoneType"),
        (mpmath.mpc(1), "mpc"),
    ],
)
@pytest.mark.parametrize("f", [reference.kl_gap, reference.neg_kl, reference.neg_kl_hess])
def test_not_one_real_number(f, value, given):
    name = "u" if f is reference.kl_gap else "log_alpha"
    with pytest.raises(
        TypeError,
        match=rf"^{name} must be one real number \(float, int, str, mpf or a NumPy scalar\), got "
        rf"{given}: the reference takes one number at a time, so loop over the elements\.$",
    ):
        f(value)


def test_not_a_number_in_words():
    words = r"^u must be a number, got 'x': write it like '0\.1', '-1e-300' or 'inf'\.$"
    with pytest.raises(ValueError, match=words):
        reference.kl_gap("x")


def test_bad_digits():
    for dps in (1.5, True, "50"):
        words = f"^dps must be an int, the number of decimal digits, got {type(dps).__name__}"
        with pytest.raises(TypeError, match=words):
            reference.kl_gap(1, dps)
    for function, x, dps, most in (
        (reference.neg_kl, 0, 0, 20_000),
        (reference.neg_kl, -1e5, 10**6, 20_000),
        (reference.neg_kl_complex, -40.0, 100_000, 1000),
    ):
        words = f"^dps must be between 1 and {most} decimal digits, got {dps}: pass another number"
        with pytest.raises(ValueError, match=words):
            function(x, dps=dps)


def test_bad_convention():
    for a in (0, -1, NAN, "-inf"):
        words = rf"^zero_at must be an alpha above 0 \(inf is allowed\), got {a!r}: it is the "
        words += r"alpha at which -KL is zero, not its logarithm\.$"
        with pytest.raises(ValueError, match=words):
            reference.neg_kl(0, zero_at=a)
    for a in (1.0, INF):
        words = f"^zero_at and log_c both fix the constant, got zero_at={a} and log_c=0: give one "
        with pytest.raises(ValueError, match=words):
            reference.neg_kl(0, zero_at=a, log_c=0)
    words = r"^log_c must be finite, got inf: it is the log of the C in the prior C/\|w\|\.$"
    with pytest.raises(ValueError, match=words):
        reference.neg_kl_normal(1, 0, log_c=INF)


def test_log_alpha_beyond_the_limit():
    words = r"^log_alpha must be below 2\*\*4096 in size, because its exponential needs more "
    for text in ("1e20000", "-1e250000"):
        with pytest.raises(OverflowError, match=words + "than 4096 extra bits: for the limit"):
            reference.neg_kl(text)
        with pytest.raises(OverflowError, match=words):
            reference.neg_kl_complex(text)


@pytest.mark.parametrize("name", ["neg_kl", "neg_kl_grad", "neg_kl_complex", "neg_kl_complex_grad"])
def test_decimals_with_many_digits_before_the_point(name):
    """-KL is -u up to a factor: its logarithm is -log_alpha."""
    found = getattr(reference, name)("1e1000", dps=30)
    with mpmath.workdps(1040):
        shift = mpmath.log(2) if "complex" not in name else 0
        assert abs(mpmath.log(abs(found)) + mpmath.mpf(10) ** 1000 + shift) < mpmath.mpf(10) ** -29


# --- the precision of the caller, and threads -----------------------------------------------------


@pytest.mark.parametrize("prec", [10, 53, 1000])
def test_precision_of_the_caller_is_neither_read_nor_changed(prec):
    expected = [f(0.3, 60) for f in (*OF_U, *OF_X)]
    with mp.workprec(prec):
        values = [f(0.3, 60) for f in (*OF_U, *OF_X)]
        assert mp.prec == prec
    assert values == expected
    assert [v._mpf_ for v in values] == [v._mpf_ for v in expected]


def test_result_carries_its_digits():
    assert reference.kl_gap(0.3, 15)._mpf_[3] <= libmp.dps_to_prec(15)
    assert reference.kl_gap(0.3, 200)._mpf_[3] > libmp.dps_to_prec(190)


def test_threads():
    arguments = [(f, x, dps) for f in OF_X for x in (-9.0, 0.5, 4.0) for dps in (15, 60, 150, 400)]
    expected = {call: call[0](*call[1:]) for call in arguments}

    def work(shift):
        order = arguments[shift:] + arguments[:shift]
        return [(f, x, dps) for f, x, dps in order if f(x, dps) != expected[f, x, dps]]

    with ThreadPoolExecutor(8) as pool:
        assert not any(pool.map(work, range(0, len(arguments), 5)))


def test_numbers_read_know_whether_they_are_exact():
    assert _input.read(0.1, "u").exact
    assert _input.read(Fraction(3, 8), "u").exact
    assert not _input.read(Fraction(1, 3), "u").exact
    assert not _input.read("0.5", "u").exact


# --- enclosures ----------------------------------------------------------------------------------

PAIRS = {
    "enclosure": reference.neg_kl,
    "enclosure_grad": reference.neg_kl_grad,
    "enclosure_hess": reference.neg_kl_hess,
    "enclosure_gap": reference.kl_gap,
    "enclosure_gap_grad": reference.kl_gap_grad,
    "enclosure_gap_hess": reference.kl_gap_hess,
}


class TestEnclosure:
    @pytest.fixture(autouse=True)
    def flint(self):
        return pytest.importorskip("flint")

    @pytest.mark.parametrize("name", PAIRS)
    @pytest.mark.parametrize("bits", [20, 128, 600])
    def test_contains_the_reference(self, flint, name, bits):
        f = PAIRS[name]
        arguments = (*U, 0, "0.1", "1/3") if "gap" in name else (*X, "0.1", -5.31, -5.3, -4.9)
        for argument in arguments:
            ball = getattr(reference, name)(argument, bits)
            truth = f(argument, 250)
            with flint.ctx.workprec(1200):
                value = flint.arb(truth)
                near = abs(ball - value) <= abs(value) * flint.arb(10) ** -240
                assert near or ball.overlaps(value), argument
                assert ball.rad() <= abs(ball.mid()) * flint.arb(2) ** -bits

    @pytest.mark.parametrize("u", [40.0, 150.0, 200.0, 240.0, 260.0, 1e3, 1e5])
    def test_both_ways_overlap(self, flint, u):
        from logunif_kl.reference._enclosure import _gap_tail

        with flint.ctx.workprec(100):
            tail = _gap_tail(flint.arb(u), flint.arb, 100)
        assert tail.overlaps(reference.enclosure_gap(u, 300))
        assert tail.is_finite()

    @pytest.mark.parametrize("name", PAIRS)
    def test_special_values(self, flint, name):
        f = getattr(reference, name)
        assert f(NAN).is_nan()
        if "gap" in name:
            assert f(-1.0).is_nan()
            assert f(-INF).is_nan()
        for argument in (INF, 0) if "gap" in name else (INF, -INF):
            ball, value = f(argument), PAIRS[name](argument)
            if not mpmath.isfinite(value):
                assert not ball.is_finite()
                assert (ball > 0) == (value > 0)
            elif (name, argument) != ("enclosure_gap_hess", 0):
                assert ball.is_exact()
                assert ball == float(value)

    def test_beside_the_zero_of_hess(self, flint):
        ball = reference.enclosure_hess(-1.5067093552398294, 100)
        assert ball.rel_accuracy_bits() > 100
        with mp.workdps(60):
            assert ball.overlaps(flint.arb(reference.neg_kl_hess(-1.5067093552398294, 60)))

    def test_decimals_are_enclosed_not_rounded(self):
        ball = reference.enclosure_gap("0.1", 40)
        assert not ball.overlaps(reference.enclosure_gap(0.1, 200))
        assert ball.contains(reference.enclosure_gap(Fraction(1, 10), 300))

    def test_refusal(self):
        words = r"^the ball at log_alpha = '1e400000' is wider than 2\*\*-8 of its midpoint even "
        words += r"with 40960 bits of precision: ask for fewer bits, or move away from a zero\.$"
        with pytest.raises(ArithmeticError, match=words):
            reference.enclosure("1e400000", 8)

    def test_bad_bits(self):
        for bits in (0, 10**9):
            words = rf"^bits must be between 1 and 100000, got {bits}: pass another number\.$"
            with pytest.raises(ValueError, match=words):
                reference.enclosure(NAN, bits)
        with pytest.raises(TypeError, match=r"^bits must be an int, got float\.$"):
            reference.enclosure_gap(1.0, 1e2)

    def test_one_bit(self):
        assert reference.enclosure(0.5, 1).overlaps(reference.enclosure(0.5, 100))

    def test_precision_of_the_caller_is_untouched(self, flint):
        with flint.ctx.workprec(77):
            reference.enclosure(0.0, 300)
            assert flint.ctx.prec == 77


def test_without_python_flint(monkeypatch):
    monkeypatch.setitem(sys.modules, "flint", None)
    words = r'^enclosures need python-flint, .* not installed: pip install "logunif_kl\[exact\]"\.$'
    with pytest.raises(ImportError, match=words):
        reference.enclosure(0.0)
