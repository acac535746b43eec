"""A formula pasted as text gives the numbers of the fit."""

import ctypes
import math
import re
import shutil
import subprocess

import numpy as np
import pytest
from scipy.special import expit

import logunif_kl as lk
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


def compiled(text, compiler, number, folder):
    """The function and its derivative, from C code."""
    if shutil.which(compiler) is None:
        pytest.skip(f"there is no {compiler}")
    source, library = folder / "fit.c", folder / "fit.so"
    source.write_text(text)
    command = [compiler, "-std=c99", "-O1", "-Wall", "-Wextra", "-Wpedantic", "-Werror"]
    command += ["-Wdouble-promotion", "-Wno-missing-prototypes", "-shared", "-fPIC", str(source)]
    subprocess.run([*command, "-o", str(library), "-lm"], check=True)
    both = [getattr(ctypes.CDLL(str(library)), name) for name in ("neg_kl", "neg_kl_grad")]
    for function in both:
        function.restype, function.argtypes = number, [number]
    return both


@cases
@pytest.mark.parametrize("compiler", ["cc", "clang"])
def test_c(compiler, fit, convention, tmp_path):
    code = fit.formula("c", gradient=True, **convention)
    neg_kl, slope = compiled(code, compiler, ctypes.c_double, tmp_path)
    np.testing.assert_allclose([slope(x) for x in X], fit.neg_kl_grad(X), rtol=1e-12)
    assert_same([neg_kl(x) for x in X], fit, X, convention)
    assert math.isnan(neg_kl(math.nan))


@cases
def test_c_in_float32_keeps_the_error_that_its_comment_states(fit, convention, tmp_path):
    code = fit.formula("c", gradient=True, dtype="float32", **convention)
    found = re.search(r"\[(.+), (.+)\] .*\n.* error (.+), of the gradient (.+) %", code)
    low, high, value, gradient = map(float, found.groups())
    assert value <= 1.01 * fit.max_error + 1e-5
    assert gradient <= 101.0 * fit.max_grad_error + 1e-2
    neg_kl, slope = compiled(code, "cc", ctypes.c_float, tmp_path)
    single = np.linspace(low, high, 20001).astype(np.float32)[1:-1]
    x = single.astype(np.float64)
    errors = np.array([neg_kl(each) for each in x]) - lk.neg_kl(x, **convention)
    assert 0.9 * fit.max_error < np.max(np.abs(errors)) <= value
    errors = np.array([slope(each) for each in x]) / lk.neg_kl_grad(x) - 1.0
    assert 0.9 * fit.max_grad_error < np.max(np.abs(errors)) <= gradient / 100.0


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
            assert "worst error 4.97e-03, of the gradient 3.55 %" in text
            assert max(map(len, text.splitlines())) <= 110


def test_what_is_refused():
    fit = fit_sigmoid(1)
    with pytest.raises(ValueError, match=r"there is no language 'fortran': choose from python,"):
        fit.formula("fortran")
    with pytest.raises(ValueError, match="both given"):
        fit.formula("c", zero_at=1.0, log_c=0.0)
    with pytest.raises(ValueError, match="gradient=True was given with language 'latex'"):
        fit.formula("latex", gradient=True)
    with pytest.raises(ValueError, match="dtype='float32' was given with language 'torch'"):
        fit.formula("torch", dtype="float32")
    with pytest.raises(ValueError, match="leaves the range of float32"):
        fit.formula("c", dtype="float32", log_c=1e39)
    with pytest.raises(ValueError, match="name='f' was given with language 'latex'"):
        fit.formula("latex", name="f")
    for name in ["1st", "π", "a b", "", None]:
        with pytest.raises(ValueError, match="name must be an identifier"):
            fit.formula("c", name=name)
    # With these names, the function would call itself or hide what it computes with.
    for language, name in [("c", "exp"), ("c", "softplus"), ("numpy", "np"), ("python", "def")]:
        with pytest.raises(ValueError, match=f"the code uses the name '{name}' itself"):
            fit.formula(language, name=name)


@pytest.mark.parametrize("language", ["python", "c"])
def test_the_name_of_the_function(language):
    fit = fit_sigmoid(1)
    text = fit.formula(language, gradient=True)
    assert fit.formula(language, gradient=True, name="KL") == text.replace("neg_kl", "KL")
