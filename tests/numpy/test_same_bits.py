"""A kernel in C gives the same bits on every processor: claims about one hold on another."""

import os
import subprocess
import sys

import pytest

from logunif_kl._numpy import ufuncs
from tests import golden, same_bits
from validation.paths import ROOT

KERNELS = [kernel for kernel in ufuncs.available_kernels() if kernel != "python"]


@pytest.mark.parametrize("kernel", KERNELS)
def test_bits(kernel):
    done = subprocess.run(
        [sys.executable, "-m", "tests.same_bits"],
        env={**os.environ, "LOGUNIF_KL_KERNEL": kernel},
        cwd=ROOT,
        capture_output=True,
        text=True,
        check=True,
    )
    expected = (golden.HERE / same_bits.file_of(kernel)).read_text(encoding="utf-8")
    assert done.stdout.splitlines() == expected.splitlines()


def test_fused_and_unfused_arithmetic_are_told_apart():
    fused, unfused = (
        (golden.HERE / same_bits.file_of(kernel)).read_text(encoding="utf-8").splitlines()
        for kernel in ("neon", "baseline")
    )
    assert len(fused) == len(unfused)
    different = {a.split()[0] for a, b in zip(fused, unfused, strict=True) if a != b}
    assert set(same_bits.UNARY) | set(same_bits.OF_TWO) <= different
