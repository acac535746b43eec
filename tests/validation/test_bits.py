"""A report is told from other code by bits, which a kernel in C gives on every processor."""

import pytest

from logunif_kl import accuracy
from logunif_kl._numpy import ufuncs
from validation.accuracy import bits, driver
from validation.accuracy.functions import COMPILED, FUNCTIONS


def committed(report, *kernels):
    """A committed report, less its rows on other kernels."""
    found = driver.read(driver.RESULTS / f"{report}.json")
    return found | {"rows": [row for row in found["rows"] if row["kernel"] in kernels]}


EVERY = accuracy.NUMPY_KERNELS


@pytest.mark.parametrize(
    ("report", "kernels"),
    [
        pytest.param("search", [ufuncs.kernel_name()], id="search"),
        pytest.param("exhaustive", ["python"], id="exhaustive"),
        pytest.param("isotropic", EVERY, id="isotropic"),
        pytest.param("neon", EVERY, id="neon"),
        pytest.param("search", EVERY, id="search, every kernel", marks=pytest.mark.slow),
        pytest.param("exhaustive", EVERY, id="exhaustive, every kernel", marks=pytest.mark.slow),
    ],
)
def test_today_s_kernels_are_those_that_were_measured(report, kernels):
    found = committed(report, *kernels)
    assert found["rows"] or ufuncs.kernel_name() == "neon"
    assert all(len(row["bits"]) == 16 for row in found["rows"])
    assert list(bits.complaints(found)) == []


def test_other_bits():
    kernel = ufuncs.available_kernels()[0]
    if kernel == "python":
        pytest.skip("whose bits are NumPy's too")
    record = committed("neon" if kernel == "neon" else "search", kernel)
    record["rows"] = record["rows"][:2]
    row = record["rows"][0]
    row["bits"] = "0"
    said = f"{kernel}: {row['function']} in {row['dtype']} gives other bits"
    assert list(bits.complaints(record)) == [said]
    assert list(bits.complaints(record, replay=False)) == []


def test_fused_and_unfused_arithmetic_are_told_apart():
    """And fused kernels agree, whatever computes them."""
    rows = [*committed("search", *COMPILED)["rows"], *committed("neon", "neon")["rows"]]
    found = {driver.key(row): row.get("bits") for row in rows if row["dtype"] == "float64"}
    for at in range(len(FUNCTIONS)):
        of = {kernel: found[at, "float64", kernel] for kernel in COMPILED}
        assert of["avx512"] == of["avx2"] == of["neon"] != of["baseline"]


def test_without_bits_the_worst_input_counts():
    row = {"function": "kl_gap", "dtype": "float64", "kernel": "jax", "inputs": ["0x1p+0"]}
    row |= {"got": "0x1p+0", "ulp": 1.0}
    for got, error, alike, said in (
        ("0x1p+0", 0.9, True, ""),
        ("0x1p+1", 0.9, True, "0x1p+1 at 0x1p+0, not 0x1p+0"),
        ("0x1p+1", 0.9, False, ""),
        ("0x1p+1", 1.1, False, "0x1p+1 at 0x1p+0: 1.1000 ulp, more than 1.0"),
    ):
        assert bits._difference(row, {"got": got, "ulp": error}, alike) == said


def test_what_is_not_here_is_named(monkeypatch, capsys):
    monkeypatch.setattr(driver, "kernels", lambda: ())
    assert list(bits.complaints(committed("jax", "jax"))) == []
    assert "measure jax: cannot be checked here: jax\n" in capsys.readouterr().err
