"""The generated tables: what made them, that it makes them again, and that it fits well."""

import os

import mpmath
import pytest
from mpmath import mp, mpf

from logunif_kl import reference
from logunif_kl._arithmetic import coefficients
from validation import generated
from validation.coefficients import __main__ as generator
from validation.coefficients import derivatives, functions, isotropic, posteriors, write
from validation.paths import PACKAGE


@pytest.mark.parametrize(
    "fmt", ["float32", pytest.param("float32_in_float64", marks=pytest.mark.slow)]
)
def test_one_table_is_made_again_bit_for_bit(fmt):
    """The tables of neg_kl are those that take the least time."""
    spec, digest = generator.load_spec()
    [entry] = [e for e in spec["table"] if (e["function"], e["format"]) == ("neg_kl", fmt)]
    table = generator.fit_entry(entry, spec["digits"], spec["centre_bits"])
    with mp.workdps(spec["digits"]):
        if fmt == "float32":
            made = write.python_source([table], [], digest).split("TABLES")[1].split("\n", 1)[1]
            block, file = made.split("}\n")[0], "_arithmetic/coefficients.py"
        else:
            made = write.c_source([table], [], digest).split("LK_ALIGNED double\n")[1]
            block, file = made.split("\n/* 2^(j/8)")[0], "_numpy/c/exact_coefficients.h"
    assert block.strip()
    text = (PACKAGE / file).read_text()
    assert block in text
    assert digest in text


@pytest.mark.parametrize("module", [derivatives, isotropic, posteriors])
def test_the_interpolants_are_made_again(module, tmp_path, capsys):
    made = module.sources()
    assert generated.main(module.COMMAND, lambda: made, ["--check"]) == 0
    (text,) = made.values()
    elsewhere = {tmp_path / "tables.py": text}
    for arguments, status in ((["--check"], 1), ([], 0), (["--check"], 0)):
        assert generated.main(module.COMMAND, lambda: elsewhere, arguments) == status
    said = f"/tables.py differs from its source: run {module.COMMAND}\n"
    assert capsys.readouterr().err.endswith(said)


@pytest.mark.parametrize("path", generator.FILES, ids=lambda path: path.name)
def test_no_digit_is_changed_by_hand(path):
    text = path.read_text()
    assert write.sealed(text) == text
    assert write.sealed(text.replace("0x1.5", "0x1.6", 1)) != text.replace("0x1.5", "0x1.6", 1)


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


def test_bounds_in_log_alpha_fall_as_u_rises():
    for (function, fmt), ranges in coefficients.TABLES.items():
        bounds = [r.bound for r in ranges]
        rising = function.startswith("kl_gap") or fmt == "float32_in_u"
        assert bounds == sorted(bounds, reverse=not rising)
        assert mpmath.isinf(bounds[-1])
