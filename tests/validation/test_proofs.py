"""The proofs of upper bounds: they hold, and fail if the kernels are changed."""

import re
import shutil
from importlib.util import find_spec

import numpy as np
import pytest

if find_spec("flint") is None or not (shutil.which("g++") and shutil.which("cc")):
    pytest.skip("the proofs need python-flint and compilers", allow_module_level=True)

from logunif_kl._numpy import ufuncs
from validation.accuracy.functions import FUNCTIONS
from validation.accuracy.proved import CLAIMS, FLOAT32_CLAIMS
from validation.accuracy.truth import truth
from validation.proofs import __main__ as command
from validation.proofs import (
    check,
    check_float32,
    exact_float32,
    exhaustive,
    float32,
    normal,
    normal_forms,
    rare_float32,
    rare_normal,
    scaling,
)
from validation.proofs.bounds import Bound
from validation.proofs.graph import HEADERS, trace
from validation.proofs.lemma import error_of_product_error
from validation.proofs.one_argument import LARGEST, prove_u
from validation.proofs.rare import prove_rare
from validation.proofs.special import specialise

FUSED = trace(fused=True)


def test_the_lemma():
    assert 2.0**-106 < error_of_product_error() <= 2.0**-100


def test_every_function_has_a_claim():
    assert list(CLAIMS) == list(FUNCTIONS)
    assert all(set(claim) == {"fused", "unfused"} for claim in CLAIMS.values())


def test_the_graph_is_the_kernel(monkeypatch):
    monkeypatch.setattr(check, "BATCH", 100_000)
    kernel = ufuncs.kernel_name()
    arithmetic = next(name for name, kernels in command.KERNELS.items() if kernel in kernels)
    graph = FUSED if arithmetic == "fused" else trace(fused=False)
    for name in FUNCTIONS:
        assert check.differing(graph, name, kernel, np.random.default_rng(0))[0] == 0


def test_a_bound_is_proved():
    bound = prove_u(FUSED, "kl_gap_grad", 400)
    assert 0.7 < bound.worst <= CLAIMS["kl_gap_grad"]["fused"]
    worst, share = check.largest_share(
        FUSED, "kl_gap_grad", bound, np.random.default_rng(1), 400_000
    )
    assert 0.6 < worst <= bound.worst
    assert share <= 1.0


def changed(tmp_path, name, pattern, by, program="symbols.cpp"):
    """Trace the headers with one change."""
    shutil.copytree(HEADERS, tmp_path / "c")
    path = tmp_path / "c" / name
    text, count = re.subn(pattern, by, path.read_text(), count=1, flags=re.DOTALL)
    assert count == 1
    path.write_text(text)
    return trace(fused=True, headers=path.parent, name=program)


# In k1 of kl_gap_grad: the last digit of the range with the largest error.
LOW_DIGIT = r"(KL_GAP_GRAD_D\[\]\[8\].*?base_lo \*/\n    \{[^,]*, -?0x[^,]*)[0-9a-f](p[^,]*,)"
RANGE = r"(KL_GAP_GRAD_D\[\]\[8\] = \{\n    \{0x1\.2000000000000p\+0, )0x1\.9000000000000p\+1"


@pytest.mark.slow
@pytest.mark.parametrize(
    ("name", "pattern", "by"),
    [
        ("exact_coefficients.h", LOW_DIGIT, r"\g<1>0\g<2>"),
        ("exact_coefficients.h", RANGE, r"\g<1>0x1.a000000000000p+1"),
        ("exact_elementary.h", r"MADD\(v, s_lo, product_error\(v, s_hi, q\)\)", "(v * s_lo)"),
    ],
    ids=["a low digit of a coefficient", "a wider range", "an error term that is dropped"],
)
def test_a_change_of_the_kernel_is_seen(name, pattern, by, tmp_path):
    graph = changed(tmp_path, name, pattern, by)
    try:
        bound = prove_u(graph, "kl_gap_grad", 400).worst
    except AssertionError:
        return
    assert bound > CLAIMS["kl_gap_grad"]["fused"]


@pytest.mark.parametrize("name", ["kl_gap", "kl_gap_grad", "kl_gap_hess"])
def test_the_rare_form_is_the_usual_one_in_the_window(name):
    forms = ("", ".rare", ".rare0", ".rare1", ".rare2")
    found = [specialise(FUSED, name, form, "u", 2.0**-300, 2.0**300) for form in forms]
    assert len({special.label(name) for special in found}) == 1


@pytest.mark.parametrize("form", ["", ".rare"])
@pytest.mark.parametrize(("lo", "hi"), [(2.0**-1074, 2.0**-1023), (1.0, 4.0), (2.0**400, LARGEST)])
def test_a_special_graph_computes_the_same(form, lo, hi):
    rng = np.random.default_rng(0)
    u = rng.integers(*np.array([lo, hi]).view(np.int64), 10_000).view(np.float64)
    for name in ("kl_gap", "kl_gap_grad", "kl_gap_hess"):
        special = specialise(FUSED, name, form, "u", lo, hi)
        want, got = FUSED.run(FUSED.label(name + form), u=u), special.run(special.label(name), u=u)
        np.testing.assert_array_equal(got.view(np.uint64), want.view(np.uint64))


def test_a_form_that_skips_a_step_is_not_for_arguments_that_need_it():
    assert specialise(FUSED, "kl_gap_grad", ".rare0", "u", 2.0**301, 2.0**302) is None


def rare_bound(graph, name):
    """The bound of the rare form outside of the window, where that of the usual form is 0."""
    domain = FUNCTIONS[name].domain
    if domain == "normal":
        return rare_normal.prove_rare(graph, name.removeprefix(normal.NAME))
    lo, hi = (2.0**-300, 2.0**300) if domain == "u" else (-200.0, 200.0)
    return prove_rare(graph, name, Bound(*(np.array([x]) for x in (lo, hi, 0.0)), {}))


def test_the_rare_form_is_proved():
    bound = rare_bound(FUSED, "kl_gap_grad")
    assert bound.lo.min() == 0.0
    assert bound.hi.max() == LARGEST
    assert 0.5 <= bound.worst < 0.51
    usual = prove_u(FUSED, "kl_gap_grad")
    bound = prove_rare(FUSED, "kl_gap_grad", usual)
    assert bound.worst == usual.worst
    rng = np.random.default_rng(1)
    worst, share = check.largest_share(FUSED, "kl_gap_grad", bound, rng, 400_000, rare=True)
    assert 0.6 < worst <= bound.worst
    assert share <= 1.0


CHANGES = """
kl_gap exact_float64.h: bits(u), bits(set1(LOW)) -> bits(u), bits(set1(0x1p-30))
kl_gap_grad exact_float64.h: choose(huge, set1(LOW), w) -> choose(huge, set1(0x1p-30), w)
kl_gap_grad exact_float64.h: size = unbits(bits(product) -> size = unbits(bits(z)
kl_gap_hess exact_float64.h: 2 * SHIFT, 0x1p378 -> 2 * SHIFT, 0x1p379
neg_kl exact_magnitudes.h: n + set1(900 -> n + set1(901
neg_kl exact_magnitudes.h: set1(0x1p-150) -> set1(0x1p-15)
neg_kl_grad exact_magnitudes.h: less(binade, set1(-1022 -> less(binade, set1(-1023
neg_kl_grad exact_magnitudes.h: (hi - (first - unit)) + lo -> lo
neg_kl_hess exact_float64.h: set1(-1500.0) -> set1(-730.0)
neg_kl_normal exact_float64.h: vmax(-log_sigma2, set1(-4500.0)) -> vmax(-log_sigma2, set1(-450.0))
neg_kl_normal exact_float64.h: vmax(n, set1(-300.0)) -> vmax(n, set1(-30.0))
neg_kl_normal exact_float64.h: (-log_sigma2 - t) * set1(0.5) -> (-log_sigma2 - t)
neg_kl_normal exact_float64.h: choose(recip, (-log -> choose(index_is(i, 0), (-log
neg_kl_normal exact_float64.h: (low, product, product_lo, n) -> (low, product, set1(0.0), n)
neg_kl_normal exact_float64.h: choose(infinite, set1(-PINF), r.value) -> r.value
neg_kl_normal exact_float64.h: set1(-1022.0), set1(0.0)); -> set1(-1021.0), set1(0.0));
neg_kl_normal exact_elementary.h: set1(HALF_LOG2_HI) + -> set1(0x1.62e42fefa0000p-2) +
neg_kl_normal.dmu exact_float64.h: less(set1(800.0), mag -> less(set1(1800.0), mag
neg_kl_normal.dmu exact_float64.h: less(set1(200.0), mag -> less(set1(2000.0), mag
neg_kl_normal.dmu exact_float64.h: n) - e + set1(1.0); -> n) - e;
neg_kl_normal.dmu exact_float64.h: (~bits(mu) & SIGN)); -> (bits(mu) & SIGN));
neg_kl_normal.dmu exact_magnitudes.h: n + set1(900 -> n + set1(901
neg_kl_normal.dmu exact_magnitudes.h: less(binade, set1(-1022 -> less(binade, set1(-1023
neg_kl_normal.dmu exact_magnitudes.h: (hi - (first - unit)) + lo -> lo
neg_kl_normal.dmu exact_magnitudes.h: less(set1(1023.0), binade) -> less(set1(1024.0), binade)
neg_kl_normal.dlog_sigma2 exact_magnitudes.h: set1(0x1p-150) -> set1(0x1p-50)
neg_kl_normal.dlog_sigma2 exact_float64.h: choose(infinite, set1(0.5) -> choose(infinite, set1(1.0)
neg_kl_normal.dlog_sigma2 exact_elementary.h: vmax(n, set1(-2044.0)) -> vmax(n, set1(-900.0))
"""


@pytest.mark.slow
@pytest.mark.parametrize("change", CHANGES.strip().split("\n"))
def test_a_change_of_the_rare_form_is_seen(change, tmp_path):
    where, _, what = change.partition(": ")
    (name, file), (before, after) = where.split(), what.split(" -> ")
    graph = changed(tmp_path, file, re.escape(before), after)
    try:
        bound = rare_bound(graph, name).worst
    except AssertionError:
        return
    assert bound > CLAIMS[name]["fused"]


@pytest.mark.parametrize("suffix", ["", ".dmu", ".dlog_sigma2"])
def test_the_rare_form_from_mu_is_the_usual_one_but_for_its_ends(suffix):
    normal_forms.check_form(FUSED, suffix)


def test_scaling():
    scaling.check_scale(FUSED, 1001)
    with pytest.raises(AssertionError):
        scaling.check_scale(FUSED, 1100)
    assert 0 < scaling.error_of_assemble(FUSED) < 1e-6


def test_scaling_is_found_in_the_kernel():
    output = FUSED.label("neg_kl_normal.dmu.rare")
    (inputs,) = scaling.matches(FUSED, FUSED.label("assemble"), output).values()
    assert set(inputs) == {"hi", "lo", "n"}
    assert not scaling.matches(FUSED, FUSED.label("scale"), output)


@pytest.mark.slow
def test_the_rare_form_from_mu_is_proved():
    name = "neg_kl_normal.dlog_sigma2"
    bound = rare_bound(FUSED, name)
    assert (bound.lo.min(), bound.hi.max()) == (2.0**-301, np.nextafter(2.0**304, 0))
    assert 0.7 < bound.worst <= CLAIMS[name]["fused"]
    rng = np.random.default_rng(1)
    worst, share = check.largest_share(FUSED, name, bound, rng, 400_000, rare=True)
    assert 0.6 < worst <= bound.worst
    assert share <= 1.0


@pytest.mark.slow
def test_the_value_of_a_huge_u_is_proved():
    y = normal.exponentials(FUSED)
    bound, clipped = rare_normal.far_values(FUSED, y)
    assert 1.0 < bound.worst < 1.01  # beyond 2048, log(u)/2 loses a bit in a table
    assert clipped.worst == bound.worst


@pytest.mark.slow
def test_a_smaller_claim_fails(monkeypatch, capsys):
    monkeypatch.setitem(CLAIMS["neg_kl_grad"], "fused", 0.8)
    assert not command.report(FUSED, "fused", "neg_kl_grad", 400_000, verbose=True)
    assert "FAILED: more than 0.8, which is claimed" in capsys.readouterr().out


def test_an_unknown_function(capsys):
    with pytest.raises(SystemExit):
        command.main(["kl_gap_third"])
    assert "unknown function kl_gap_third: choose from kl_gap, " in capsys.readouterr().err


def test_the_graph_in_float32_is_the_kernel(monkeypatch):
    monkeypatch.setattr(check_float32, "BATCH", 100_000)
    fused = ufuncs.kernel_name() in command.KERNELS["fused"]
    found, tried = check_float32.differing(check_float32.graph_of(fused))
    assert found == 0
    assert tried > 1_600_000


def test_steps_are_run_on_every_number():
    graph = check_float32.graph_of(True)
    u = float32.take_apart(graph, "neg_kl_normal").u
    numbers = np.array([1.0, 1.0 + 2.0**-20], np.float32)
    line = np.eye(exhaustive.ORDER + 1)[1:2]  # x - centre
    pieces = exhaustive.Pieces(numbers[:1], numbers[1:], np.array([1.0]), line)
    least, most = exhaustive.sweep(graph, [u], {u: "x"}, f"(double)t{u} * t{u} - 1", pieces, False)
    assert (least[0], most[0]) == (0.0, 2.0**-20 + 2.0**-40)
    with pytest.raises(AssertionError, match="a step depends on "):
        exhaustive.sweep(graph, [u], {}, f"t{u}", pieces, False)


@pytest.mark.parametrize(
    ("name", "lo", "hi"),
    [("F/u", 0.5, 1.5), ("g", 0.5, 1.5), ("F", 1.0, 2.0**40), ("Ug", 1.0, 1e9)],
)
def test_the_polynomials_are_the_functions(name, lo, hi):
    cuts = np.float32(np.geomspace(lo, hi, 400)).tolist()
    of = exact_float32.of_u(name, tuple(sorted({*cuts, 150.0} if hi > 150 else cuts)))
    u = of.pieces.first.astype(np.float64)
    h = u - of.pieces.centre
    got = sum(c * h**k for k, c in enumerate(of.pieces.coefficients.T))
    full = {"F/u": "kl_gap", "F": "kl_gap", "g": "kl_gap_grad", "Ug": "kl_gap_grad"}[name]
    want = truth(full, u).hi * np.ldexp(1.0, truth(full, u).scale)
    want = want / u if name == "F/u" else want * u if name == "Ug" else want
    np.testing.assert_allclose(got, want, rtol=1e-13)
    assert (of.least <= want).all()
    assert (want <= of.most).all()


CHANGES_IN_FLOAT32 = """
neg_kl_normal a digit of exp: 0.49999994f -> 0.49999894f
neg_kl_normal a digit for small u: -0.33333325f -> -0.33333125f
neg_kl_normal a digit for large u: 0.981755f -> 0.981756f
neg_kl_normal a wider range: 1.75f -> 2.5f
neg_kl_normal the rest of log(2): MADD(t11[i], set1(-1.4286068e-06f), t13[i]) -> t13[i]
neg_kl_normal a term for large u: MADD(t69[i], t56[i], t55[i]) -> t55[i]
neg_kl_normal a lower limit of x: 234.9769f -> 134.9769f
neg_kl_normal.dmu a digit for moderate u: 0.034905292f -> 0.034905492f
neg_kl_normal.dmu a factor: -2.0f -> -4.0f
neg_kl_normal.dlog_sigma2 a digit for small u: 0.2666621f -> 0.2666721f
neg_kl_normal.dlog_sigma2 another argument: t31[i] * t74[i] -> mu[i] * t74[i]
"""


RARE_CHANGES_IN_FLOAT32 = """
neg_kl_normal a digit of exp: 0x1.fffffcp-2f -> 0x1.fffefcp-2f
neg_kl_normal a digit of log: 0x1.555792p-2f -> 0x1.545792p-2f
neg_kl_normal a digit of log(2): 0x1.62e4p-1f -> 0x1.62e5p-1f
neg_kl_normal another constant: 0.6351814227307392f -> 0.6361814227307392f
neg_kl_normal another factor: set1(-0.5f)) + -> set1(-0.25f)) +
neg_kl_normal a lost mean: m.x * (m.x * e.x) -> m.x * e.x
neg_kl_normal.dmu a wrong inverse: set1(-1.0f) / m.x -> set1(1.0f) / m.x
"""


def bound_of_rare_float32(graph, name):
    return max(rare_float32.prove_small(graph, name), rare_float32.prove_large(graph, name))


def bound_of_float32(graph, name):
    return float32.prove(graph, name).worst


@pytest.mark.slow
@pytest.mark.parametrize(
    ("file", "bound", "change"),
    [("float32_kernels.h", bound_of_float32, x) for x in CHANGES_IN_FLOAT32.strip().split("\n")]
    + [
        ("float32_rare.h", bound_of_rare_float32, x)
        for x in RARE_CHANGES_IN_FLOAT32.strip().split("\n")
    ],
)
def test_a_change_of_a_float32_kernel_is_seen(file, bound, change, tmp_path):
    about, _, what = change.partition(": ")
    name, (before, after) = about.split()[0], what.split(" -> ")
    graph = changed(tmp_path, file, re.escape(before), after, "symbols_float32.cpp")
    try:
        found = bound(graph, name)
    except AssertionError:
        return
    assert found > FLOAT32_CLAIMS[name]["fused"]


@pytest.mark.slow
def test_the_bounds_in_float32(monkeypatch, capsys):
    assert check_float32.report("fused", float32.NAMES, 600_000, verbose=False)
    monkeypatch.setitem(FLOAT32_CLAIMS["neg_kl_normal"], "fused", 5.0)
    assert not check_float32.report("fused", ["neg_kl_normal"], 600_000, verbose=True)
    assert "FAILED: more than 5.0, which is claimed" in capsys.readouterr().out
