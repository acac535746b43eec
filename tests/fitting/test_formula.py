"""A formula pasted as text gives the numbers of the fit."""

import ctypes
import math
import shutil
import subprocess

import numpy as np
import pytest
from scipy.special import expit

from logunif_kl.fitting import fit_polynomial, fit_sigmoid
from logunif_kl.fitting._formula import WRITERS

CASES = {
    "polynomial": (fit_polynomial(3), {"zero_at": 1.0}),
    "line": (fit_polynomial(1, (0.0, 0.5), free_constant=False), {"log_c": -0.5}),
    "sigmoid": (fit_sigmoid(1), {}),
    "sigmoids": (fit_sigmoid(2), {"zero_at": 0.01}),
}
X = np.concatenate([np.linspace(-12.0, 8.0, 401), [-700.0, -60.0, 25.0]])
EPS = np.finfo(np.float64).eps

cases = pytest.mark.parametrize(("fit", "convention"), CASES.values(), ids=CASES)


def assert_same(found, fit, x, convention, eps=EPS):
    """To rounding: some units in the last place of the largest term."""
    expected = fit.neg_kl(x, **convention)
    size = 3.0 + np.abs(x)
    if fit.family == "polynomial":
        alpha = np.exp(x)
        size = size + sum(abs(c) * alpha**k for k, c in enumerate(fit.coefficients, 1))
    assert np.all(np.abs(np.asarray(found, dtype=np.float64) - expected) <= 8.0 * eps * size)


def pasted(fit, language, convention):
    """The function and its derivative."""
    names = {}
    exec(compile(fit.formula(language, gradient=True, **convention), "pasted", "exec"), names)
    return names["neg_kl"], names["neg_kl_grad"]


@cases
@pytest.mark.parametrize("language", ["python", "numpy"])
def test_python_and_numpy(language, fit, convention):
    neg_kl, slope = pasted(fit, language, convention)
    assert neg_kl(-math.inf) == fit.neg_kl(-math.inf) == -math.inf
    if fit.family == "sigmoid":
        assert neg_kl(math.inf) == fit.neg_kl(math.inf, **convention)
    if language == "python":
        assert math.isnan(neg_kl(math.nan))
        neg_kl, slope = (np.vectorize(f, otypes=[float]) for f in (neg_kl, slope))
    assert_same(neg_kl(X), fit, X, convention)
    np.testing.assert_allclose(slope(X), fit.neg_kl_grad(X), rtol=1e-12)


@cases
def test_torch(fit, convention):
    torch = pytest.importorskip("torch")
    neg_kl, written_slope = pasted(fit, "torch", convention)
    x = torch.tensor(X, dtype=torch.float64, requires_grad=True)
    value = neg_kl(x)
    assert_same(value.detach().numpy(), fit, X, convention)
    (slope,) = torch.autograd.grad(value.sum(), x)
    for found in (slope, written_slope(x).detach()):
        np.testing.assert_allclose(found.numpy(), fit.neg_kl_grad(X), rtol=1e-12)
    single = neg_kl(torch.tensor(X, dtype=torch.float32))
    rounded = np.float64(np.float32(X))
    assert_same(single.numpy(), fit, rounded, convention, float(np.finfo(np.float32).eps))


@cases
def test_jax(fit, convention):
    jax = pytest.importorskip("jax")
    neg_kl, written_slope = pasted(fit, "jax", convention)
    single, x = float(np.finfo(np.float32).eps), np.float64(np.float32(X))
    assert_same(np.asarray(jax.jit(neg_kl)(jax.numpy.asarray(x))), fit, x, convention, single)
    for slope in (jax.vmap(jax.grad(neg_kl)), written_slope):
        found = np.asarray(slope(jax.numpy.asarray(x)))
        np.testing.assert_allclose(found, fit.neg_kl_grad(x), rtol=2e-5)


@cases
@pytest.mark.parametrize("compiler", ["cc", "clang"])
def test_c(compiler, fit, convention, tmp_path):
    if shutil.which(compiler) is None:
        pytest.skip(f"there is no {compiler}")
    source, library = tmp_path / "fit.c", tmp_path / "fit.so"
    source.write_text(fit.formula("c", gradient=True, **convention))
    command = [compiler, "-std=c99", "-O1", "-Wall", "-Wextra", "-Wpedantic", "-Werror"]
    command += ["-Wno-missing-prototypes", "-shared", "-fPIC", str(source), "-o", str(library)]
    subprocess.run([*command, "-lm"], check=True)
    neg_kl, slope = (getattr(ctypes.CDLL(str(library)), n) for n in ("neg_kl", "neg_kl_grad"))
    for function in (neg_kl, slope):
        function.restype, function.argtypes = ctypes.c_double, [ctypes.c_double]
    np.testing.assert_allclose([slope(x) for x in X], fit.neg_kl_grad(X), rtol=1e-12)
    assert_same([neg_kl(x) for x in X], fit, X, convention)
    assert math.isnan(neg_kl(math.nan))


@cases
def test_latex_is_accepted_and_evaluates_to_the_same_numbers(fit, convention):
    mathtext = pytest.importorskip("matplotlib.mathtext")
    text = fit.formula("latex", **convention)
    assert "e-" not in text
    mathtext.MathTextParser("path").parse(f"${text}$".replace(r"\tfrac", r"\frac"))
    code = text.partition(r"\approx")[2]
    for old, new in (
        *((r"\tfrac{1}{2}", "0.5"), (r" \log", "*log"), (r"log\alpha", "x"), (r"\,", "*")),
        *((r" \cdot ", "*"), ("^", "**"), ("\\", ""), ("{", "("), ("}", ")")),
    ):
        code = code.replace(old, new)
    found = eval(code, {"x": X, "alpha": np.exp(X), "log": np.log, "sigma": expit})
    assert_same(found, fit, X, convention)


def test_small_numbers_in_latex_are_powers_of_ten():
    assert r"\cdot 10^{-" in fit_polynomial(2, (1.0, 1e4)).formula("latex")


def test_every_language_says_what_it_is():
    for language in WRITERS:
        text = fit_sigmoid(1).formula(language)
        if language != "latex":
            assert "-KL(q || p), to be maximised; for every log_alpha" in text
            assert "worst error 5.0e-03, of the gradient 3.5 %" in text
            assert max(map(len, text.splitlines())) <= 110


def test_what_is_refused():
    fit = fit_sigmoid(1)
    with pytest.raises(ValueError, match=r"there is no language 'fortran': choose from python,"):
        fit.formula("fortran")
    with pytest.raises(ValueError, match="both given"):
        fit.formula("c", zero_at=1.0, log_c=0.0)
    with pytest.raises(ValueError, match="gradient=True was given with language 'latex'"):
        fit.formula("latex", gradient=True)
