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
from validation.proofs import __main__ as command
from validation.proofs import (
    check,
    check_float32,
    float32,
    normal,
    rare_float32,
    rare_normal,
)
from validation.proofs.bounds import Bound
from validation.proofs.graph import HEADERS, trace
from validation.proofs.one_argument import LARGEST, prove_u
from validation.proofs.rare import prove_rare
from validation.proofs.special import specialise

FUSED = trace(fused=True)


def test_every_function_has_a_claim():
    assert list(CLAIMS) == list(FUNCTIONS)
    assert all(set(claim) == {"fused", "unfused"} for claim in CLAIMS.values())


def kernel_in_c():
    kernel = ufuncs.kernel_name()
    return pytest.skip("the kernel in use is in Python") if kernel == "python" else kernel


def test_the_graph_is_the_kernel(monkeypatch):
    monkeypatch.setattr(check, "BATCH", 25_000)
    kernel = kernel_in_c()
    arithmetic = next(name for name, kernels in command.KERNELS.items() if kernel in kernels)
    graph = FUSED if arithmetic == "fused" else trace(fused=False)
    for name in FUNCTIONS:
        assert check.differing(graph, name, kernel, np.random.default_rng(0))[0] == 0


def test_a_bound_is_proved(monkeypatch):
    monkeypatch.setattr(check, "BATCH", 50_000)
    bound = prove_u(FUSED, "kl_gap_grad", 400)
    assert 0.7 < bound.worst <= CLAIMS["kl_gap_grad"]["fused"]
    worst, share = check.largest_share(
        FUSED, "kl_gap_grad", bound, np.random.default_rng(1), 100_000
    )
    assert 0.6 < worst <= bound.worst
    assert share <= 1.0


@pytest.mark.parametrize("name", ["kl_gap", "kl_gap_grad", "kl_gap_hess"])
def test_the_rare_form_is_the_usual_one_in_the_window(name):
    forms = ("", ".rare", ".rare0", ".rare1", ".rare2")
    found = [specialise(FUSED, name, form, "u", 2.0**-300, 2.0**300) for form in forms]
    assert len({special.label(name) for special in found}) == 1


def rare_bound(graph, name):
    """The bound of the rare form outside of the window, where that of the usual form is 0."""
    domain = FUNCTIONS[name].domain
    if domain == "normal":
        return rare_normal.prove_rare(graph, name.removeprefix(normal.NAME))
    lo, hi = (2.0**-300, 2.0**300) if domain == "u" else (-200.0, 200.0)
    return prove_rare(graph, name, Bound(*(np.array([x]) for x in (lo, hi, 0.0)), {}))


@pytest.mark.slow
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


def test_an_unknown_function(capsys):
    with pytest.raises(SystemExit):
        command.main(["kl_gap_third"])
    assert "unknown function kl_gap_third: choose from kl_gap, " in capsys.readouterr().err


def test_the_graph_in_float32_is_the_kernel(monkeypatch):
    monkeypatch.setattr(check_float32, "BATCH", 25_000)
    fused = kernel_in_c() in command.KERNELS["fused"]
    found, tried = check_float32.differing(check_float32.graph_of(fused))
    assert found == 0
    assert tried > 400_000


@pytest.mark.slow
def test_the_bounds_in_float32(monkeypatch, capsys):
    assert check_float32.report("fused", float32.NAMES, 600_000, verbose=False)
    monkeypatch.setitem(FLOAT32_CLAIMS["neg_kl_normal"], "fused", 5.0)
    assert not check_float32.report("fused", ["neg_kl_normal"], 600_000, verbose=True)
    assert "FAILED: more than 5.0, which is claimed" in capsys.readouterr().out


# A function, one of the headers, and a change there that raises the function's error.
CHANGES = """
kl_gap exact_float64.h: bits(u), bits(set1(LOW)) -> bits(u), bits(set1(0x1p-30))
kl_gap_hess exact_float64.h: 2 * SHIFT, 0x1p378 -> 2 * SHIFT, 0x1p379
neg_kl exact_magnitudes.h: n + set1(900 -> n + set1(901
neg_kl_grad exact_magnitudes.h: (hi - (first - unit)) + lo -> lo
neg_kl_hess exact_float64.h: set1(-1500.0) -> set1(-730.0)
neg_kl_normal exact_float64.h: choose(infinite, set1(-PINF), r.value) -> r.value
neg_kl_normal.dmu exact_float64.h: less(set1(200.0), mag -> less(set1(2000.0), mag
neg_kl_normal.dlog_sigma2 exact_magnitudes.h: set1(0x1p-150) -> set1(0x1p-50)
"""
# In k1 of kl_gap_grad: the last digit of the range with the largest error.
LOW_DIGIT = r"(KL_GAP_GRAD_D\[\]\[8\].*?base_lo \*/\n    \{[^,]*, -?0x[^,]*)[0-9a-f](p[^,]*,)"
CHANGES_IN_FLOAT32 = """
neg_kl_normal float32_kernels.h: -0.33333325f -> -0.33333125f
neg_kl_normal float32_kernels.h: 1.75f -> 2.5f
neg_kl_normal.dmu float32_kernels.h: -2.0f -> -4.0f
neg_kl_normal.dlog_sigma2 float32_kernels.h: 0.2666621f -> 0.2666721f
neg_kl_normal float32_rare.h: m.x * (m.x * e.x) -> m.x * e.x
neg_kl_normal.dmu float32_rare.h: set1(-1.0f) / m.x -> set1(1.0f) / m.x
"""


def of_change(line):
    """The function, the header, and the pattern in it with its replacement."""
    where, _, what = line.partition(": ")
    before, after = what.split(" -> ")
    return *where.split(), re.escape(before), after


def rare_form_bound(graph, name):
    return rare_bound(graph, name).worst


def usual_bound(graph, name):
    return prove_u(graph, name, 400).worst


def float32_bound(graph, name):
    return float32.prove(graph, name).worst


def rare_float32_bound(graph, name):
    return max(rare_float32.prove_small(graph, name), rare_float32.prove_large(graph, name))


EXACT = [(rare_form_bound, *of_change(line)) for line in CHANGES.strip().split("\n")]
EXACT.append((usual_bound, "kl_gap_grad", "exact_coefficients.h", LOW_DIGIT, r"\g<1>0\g<2>"))
FLOAT32 = [
    (rare_float32_bound if "rare.h" in line else float32_bound, *of_change(line))
    for line in CHANGES_IN_FLOAT32.strip().split("\n")
]


@pytest.mark.slow
@pytest.mark.parametrize(("bound", "name", "file", "pattern", "by"), EXACT + FLOAT32)
def test_a_change_of_a_kernel_is_seen(bound, name, file, pattern, by, tmp_path):
    shutil.copytree(HEADERS, tmp_path / "c")
    path = tmp_path / "c" / file
    text, count = re.subn(pattern, by, path.read_text(), count=1, flags=re.DOTALL)
    assert count == 1
    path.write_text(text)
    in_float32 = file.startswith("float32")
    program = "symbols_float32.cpp" if in_float32 else "symbols.cpp"
    graph = trace(fused=True, headers=path.parent, name=program)
    try:
        found = bound(graph, name)
    except AssertionError:
        return
    assert found > (FLOAT32_CLAIMS if in_float32 else CLAIMS)[name]["fused"]
