"""The generated tables: what made them, that it makes them again, and that it fits well."""

import os

import mpmath
import pytest
from mpmath import mp, mpf

from logunif_kl import reference
from logunif_kl._arithmetic import coefficients
from validation import generated
from validation.coefficients import __main__ as generator
from validation.coefficients import functions, isotropic, posteriors, write
from validation.paths import PACKAGE


@pytest.mark.parametrize(
    ("function", "fmt"),
    [("kl_gap", "float32"), ("kl_gap", "float32_in_u"), ("neg_kl_grad", "float32_in_float64")],
)
def test_one_table_is_made_again_bit_for_bit(function, fmt):
    spec, digest = generator.load_spec()
    [entry] = [e for e in spec["table"] if (e["function"], e["format"]) == (function, fmt)]
    table = generator.fit_entry(entry, spec["digits"], spec["centre_bits"])
    with mp.workdps(spec["digits"]):
        if fmt in ("float32", "float32_in_u"):
            made = write.python_source([table], [], digest).split("TABLES")[1].split("\n", 1)[1]
            block, file = made.split("}\n")[0], "_arithmetic/coefficients.py"
        else:
            made = write.c_source([table], [], digest).split("LK_ALIGNED double\n")[1]
            block, file = made.split("\n/* 2^(j/8)")[0], "_numpy/c/exact_coefficients.h"
    assert block.strip()
    text = (PACKAGE / file).read_text()
    assert block in text
    assert digest in text


@pytest.mark.parametrize("module", [isotropic, posteriors])
def test_the_interpolants_are_made_again(module, tmp_path, monkeypatch, capsys):
    assert generated.main(module.COMMAND, module.sources, ["--check"]) == 0
    monkeypatch.setattr(module, "TABLES", tmp_path / "tables.py")
    assert generated.main(module.COMMAND, module.sources, ["--check"]) == 1
    said = f"/tables.py differs from its source: run {module.COMMAND}\n"
    assert capsys.readouterr().err.endswith(said)
    assert generated.main(module.COMMAND, module.sources, []) == 0
    assert generated.main(module.COMMAND, module.sources, ["--check"]) == 0


@pytest.mark.slow
def test_all_tables_are_made_again_bit_for_bit():
    for path, text in generator.sources(os.cpu_count() or 1).items():
        assert path.read_text() == text, f"{path.name} is not what spec.toml gives"


def test_fitted_functions_agree_with_the_reference():
    with mp.workdps(45):
        for u in map(mpf, ("1e-3", "0.5", "2.25", "7", "40", "149", "151", "1e4")):
            x = -mp.log(2 * u)
            pairs = [
                (functions.gap(u), reference.kl_gap(u, 40)),
                (functions.grad(u), reference.kl_gap_grad(u, 40)),
                (functions.hess(u), reference.kl_gap_hess(u, 40)),
                (u * functions.log_alpha_hess_over_u(u), reference.neg_kl_hess(x, 40)),
            ]
            for ours, theirs in pairs:
                assert abs(ours / theirs - 1) < mpf(10) ** -36
        assert abs(reference.neg_kl_hess(functions.inflection(), 40)) < mpf(10) ** -40


def test_float32_tables_hold_float32_numbers():
    import numpy as np

    for (_, fmt), ranges in coefficients.TABLES.items():
        if fmt in ("float32", "float32_in_u"):
            for r in ranges:
                numbers = [*r.coefficients, r.base_hi, r.base_lo]
                assert [float(np.float32(c)) for c in numbers] == numbers


def test_tail_sum_refuses_what_it_cannot_reach():
    with mp.workdps(300), pytest.raises(ArithmeticError, match="does not reach 300 digits at 200"):
        functions.grad(mpf(200))


def test_bounds_in_log_alpha_fall_as_u_rises():
    for (function, fmt), ranges in coefficients.TABLES.items():
        bounds = [r.bound for r in ranges]
        rising = function.startswith("kl_gap") or fmt == "float32_in_u"
        assert bounds == sorted(bounds, reverse=not rising)
        assert mpmath.isinf(bounds[-1])
