"""A formula pasted as text gives the numbers of the fit."""

import ctypes
import math
import re
import shutil
import subprocess

import numpy as np
import pytest

from logunif_kl.fitting import fit_polynomial, fit_sigmoid
from logunif_kl.fitting._formula import WRITERS

FITS = {
    "polynomial": fit_polynomial(3),
    "line": fit_polynomial(1, (0.0, 0.5), free_constant=False),
    "sigmoid": fit_sigmoid(1),
    "sigmoids": fit_sigmoid(2),
}
CONVENTIONS = [{}, {"zero_at": 1.0}, {"zero_at": 0.01}, {"log_c": -0.5}]
X = np.concatenate([np.linspace(-12.0, 8.0, 401), [-700.0, -60.0, 25.0]])
EPS = np.finfo(np.float64).eps

fits = pytest.mark.parametrize("fit", FITS.values(), ids=FITS)
conventions = pytest.mark.parametrize("convention", CONVENTIONS, ids=str)


def assert_same(found, fit, x, convention, eps=EPS):
    """To rounding: some units in the last place of the largest term."""
    expected = fit.neg_kl(x, **convention)
    size = 3.0 + np.abs(x)
    if fit.family == "polynomial":
        alpha = np.exp(x)
        size = size + sum(abs(c) * alpha**k for k, c in enumerate(fit.coefficients, 1))
    assert np.all(np.abs(np.asarray(found, dtype=np.float64) - expected) <= 8.0 * eps * size)


def pasted(fit, language, convention):
    names = {}
    exec(compile(fit.formula(language, **convention), "pasted", "exec"), names)
    return names["neg_kl"]


@fits
@conventions
def test_python(fit, convention):
    neg_kl = pasted(fit, "python", convention)
    assert_same([neg_kl(float(x)) for x in X], fit, X, convention)
    assert math.isnan(neg_kl(math.nan))


@fits
@conventions
def test_numpy(fit, convention):
    neg_kl = pasted(fit, "numpy", convention)
    assert_same(neg_kl(X), fit, X, convention)
    assert_same(neg_kl(np.float64(-1.5)), fit, -1.5, convention)


@fits
@conventions
def test_torch(fit, convention):
    torch = pytest.importorskip("torch")
    x = torch.tensor(X, dtype=torch.float64, requires_grad=True)
    value = pasted(fit, "torch", convention)(x)
    assert_same(value.detach().numpy(), fit, X, convention)
    (slope,) = torch.autograd.grad(value.sum(), x)
    np.testing.assert_allclose(slope.numpy(), fit.neg_kl_grad(X), rtol=1e-12)
    single = pasted(fit, "torch", convention)(torch.tensor(X, dtype=torch.float32))
    rounded = np.float64(np.float32(X))
    assert_same(single.numpy(), fit, rounded, convention, float(np.finfo(np.float32).eps))


@fits
@conventions
def test_jax(fit, convention):
    jax = pytest.importorskip("jax")
    neg_kl = pasted(fit, "jax", convention)
    single, x = float(np.finfo(np.float32).eps), np.float64(np.float32(X))
    assert_same(np.asarray(jax.jit(neg_kl)(jax.numpy.asarray(x))), fit, x, convention, single)
    slope = jax.vmap(jax.grad(neg_kl))(jax.numpy.asarray(x))
    np.testing.assert_allclose(np.asarray(slope), fit.neg_kl_grad(x), rtol=2e-5)


@pytest.mark.parametrize("compiler", ["cc", "clang"])
def test_c(compiler, tmp_path):
    if shutil.which(compiler) is None:
        pytest.skip(f"there is no {compiler}")
    for i, (fit, convention) in enumerate((f, c) for f in FITS.values() for c in CONVENTIONS):
        source, library = tmp_path / f"fit{i}.c", tmp_path / f"fit{i}.so"
        source.write_text(fit.formula("c", gradient=True, **convention))
        command = [compiler, "-std=c99", "-O1", "-Wall", "-Wextra", "-Wpedantic", "-Werror"]
        command += ["-Wno-missing-prototypes", "-shared", "-fPIC", str(source), "-o", str(library)]
        subprocess.run([*command, "-lm"], check=True)
        neg_kl, slope = (getattr(ctypes.CDLL(str(library)), n) for n in ("neg_kl", "neg_kl_grad"))
        for function in (neg_kl, slope):
            function.restype, function.argtypes = ctypes.c_double, [ctypes.c_double]
        found = [slope(x) for x in X]
        np.testing.assert_allclose(found, fit.neg_kl_grad(X), rtol=1e-12)
        assert_same([neg_kl(x) for x in X], fit, X, convention)
        assert math.isnan(neg_kl(math.nan))


@fits
@pytest.mark.parametrize("language", ["python", "numpy", "torch", "jax"])
def test_the_gradient(fit, language):
    library = pytest.importorskip({"python": "math", "jax": "jax.numpy"}.get(language, language))
    names = {}
    exec(compile(fit.formula(language, gradient=True), "pasted", "exec"), names)
    array = {"torch": getattr(library, "tensor", None), "python": float}.get(language)
    found = [float(names["neg_kl_grad"]((array or library.asarray)(x))) for x in X]
    rtol = 1e-12 if language in ("python", "numpy") else 2e-5
    np.testing.assert_allclose(found, fit.neg_kl_grad(X), rtol=rtol)
    assert float(names["neg_kl"]((array or library.asarray)(-1.5))) < 0.0


@fits
def test_limits_survive(fit):
    for language in ("python", "numpy"):
        neg_kl = pasted(fit, language, {})
        assert neg_kl(-math.inf) == fit.neg_kl(-math.inf) == -math.inf
        if fit.family == "sigmoid":
            assert neg_kl(math.inf) == fit.neg_kl(math.inf) == 0.0


NUMBER = r"\d+(?:\.\d+)?(?: \\cdot 10\^\{-?\d+\})?"


def latex_numbers(text):
    plain = (n.replace(r" \cdot 10^{", "e").replace("}", "") for n in re.findall(NUMBER, text))
    return list(map(float, plain))


@fits
def test_latex_holds_every_digit_and_is_accepted(fit):
    text = fit.formula("latex", zero_at=1.0)
    for coefficient in fit.coefficients:
        assert abs(coefficient) in latex_numbers(text)
    assert text.count("{") == text.count("}")
    assert "e-" not in text
    from matplotlib.mathtext import MathTextParser

    MathTextParser("path").parse(f"${text}$".replace(r"\tfrac", r"\frac"))


def test_latex_evaluates_to_the_same_numbers():
    fit = FITS["polynomial"]
    body = fit.formula("latex").partition(r"\approx")[2]
    for old, new in (
        *((r"\tfrac{1}{2} \log\alpha", "0.5*x"), (r"\,", "*"), (r"\alpha^", "alpha**")),
        *((r"\alpha", "alpha"), ("{", "("), ("}", ")")),
    ):
        body = body.replace(old, new)
    assert_same([eval(body, {"x": x, "alpha": math.exp(x)}) for x in X], fit, X, {})


def test_small_numbers_in_latex_are_powers_of_ten():
    assert r"\cdot 10^{-" in fit_polynomial(2, (1.0, 1e4)).formula("latex")


def test_every_language_says_what_it_is():
    for language in WRITERS:
        text = FITS["sigmoid"].formula(language)
        if language != "latex":
            assert "-KL(q || p), to be maximised; for every log_alpha" in text
            assert "worst error 5.0e-03, of the gradient 3.5 %" in text
            assert max(map(len, text.splitlines())) <= 110


def test_what_is_refused():
    fit = FITS["sigmoid"]
    with pytest.raises(ValueError, match=r"there is no language 'fortran': choose from python,"):
        fit.formula("fortran")
    with pytest.raises(ValueError, match="both given"):
        fit.formula("c", zero_at=1.0, log_c=0.0)
    with pytest.raises(ValueError, match="gradient=True was given with language 'latex'"):
        fit.formula("latex", gradient=True)
