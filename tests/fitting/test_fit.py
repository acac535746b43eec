"""`Fit`: immutable, callable on any framework's arrays, measured, written and read again."""

import contextlib
import copy
import dataclasses
import functools
import json
import math
import operator
import pickle
import re
import sys

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st

import logunif_kl as lk
from logunif_kl.cli import main
from logunif_kl.fitting import Fit, fit_polynomial, fit_sigmoid

FITS = {"polynomial": fit_polynomial(3), "sigmoid": fit_sigmoid(1), "sigmoids": fit_sigmoid(2)}
POLYNOMIAL, SIGMOID, SIGMOIDS = FITS.values()
fits = pytest.mark.parametrize("fit", FITS.values(), ids=FITS)
X = np.linspace(-9.0, 4.0, 53)


@fits
def test_it_is_the_formula_of_the_documentation(fit):
    if fit is POLYNOMIAL:
        powers = sum(c * np.exp(k * X) for k, c in enumerate(fit.coefficients, 1))
        spelled = fit.constant + 0.5 * X + powers
    else:
        k1, k2, k3 = np.reshape(fit.coefficients, (-1, 3)).T
        sigmoids = k1 / (1.0 + np.exp(-(k2 + np.multiply.outer(X, k3))))
        spelled = sigmoids.sum(axis=-1) - 0.5 * np.log1p(np.exp(-X)) - k1.sum()
    np.testing.assert_allclose(fit.neg_kl(X), spelled, rtol=1e-12, atol=1e-13)


@fits
def test_it_is_called_on_any_array(fit, xp):
    for dtype, eps in (("float64", 4e-16), ("float32", 3e-7)):
        array = xp.array(X, dtype)
        wide = np.asarray(X, dtype).astype(np.float64)
        for of in (fit.neg_kl, fit.neg_kl_grad):
            found = of(array)
            assert type(found) is type(array)
            assert str(found.dtype).endswith(dtype)
            expected = of(wide)
            scale = 1.0 + np.abs(expected) + (np.exp(3.0 * wide) if fit is POLYNOMIAL else 0.0)
            assert np.all(np.abs(xp.numpy(found) - expected) <= 16.0 * eps * scale)


@fits
def test_conventions_move_it_like_the_exact_value(fit):
    for convention in ({"zero_at": 1.0}, {"zero_at": 0.3}, {"log_c": 0.7}):
        moved = fit.neg_kl(X, **convention) - lk.neg_kl(X, **convention)
        np.testing.assert_allclose(moved, fit.neg_kl(X) - lk.neg_kl(X), rtol=1e-13, atol=1e-13)
    with pytest.raises(ValueError, match="both given"):
        fit.neg_kl(X, zero_at=1.0, log_c=0.0)


@fits
def test_scalars_lists_and_nan(fit):
    assert isinstance(fit.neg_kl(-1.0), np.float64)
    assert fit.neg_kl([-1.0, -2.0]).shape == (2,)
    found = fit.neg_kl(np.array([np.nan, -1.0]))
    assert np.isnan(found[0])
    assert found[1] == fit.neg_kl(-1.0)
    with pytest.raises(TypeError, match="log_alpha must hold real numbers"):
        fit.neg_kl(1j)


def test_sigmoids_have_the_limits():
    assert (SIGMOIDS.neg_kl(math.inf), SIGMOIDS.neg_kl(-math.inf)) == (0.0, -math.inf)
    assert (SIGMOIDS.neg_kl_grad(-math.inf), SIGMOIDS.neg_kl_grad(math.inf)) == (0.5, 0.0)
    # nothing cancels: the tail has its relative accuracy
    assert SIGMOID.neg_kl(40.0) == pytest.approx(lk.neg_kl(40.0), rel=1e-6)


@fits
def test_dask_and_pickles(fit, da):
    array = da.from_array(X, chunks=10)
    np.testing.assert_array_equal(fit.neg_kl(array).compute(scheduler="synchronous"), fit.neg_kl(X))
    again = pickle.loads(pickle.dumps(fit.neg_kl(array)))
    np.testing.assert_array_equal(again.compute(scheduler="synchronous"), fit.neg_kl(X))
    assert pickle.loads(pickle.dumps(fit)) == fit


@fits
def test_torch(fit):
    torch = pytest.importorskip("torch")
    x = torch.tensor(X, dtype=torch.float64, requires_grad=True)
    value = fit.neg_kl(x)
    np.testing.assert_allclose(value.detach().numpy(), fit.neg_kl(X), rtol=1e-12, atol=1e-13)
    (slope,) = torch.autograd.grad(value.sum(), x)
    np.testing.assert_allclose(slope.numpy(), fit.neg_kl_grad(X), rtol=1e-11)
    assert fit.neg_kl(torch.zeros(3, dtype=torch.float32)).dtype == torch.float32
    assert fit.neg_kl(torch.tensor([-1, 0])).dtype == torch.get_default_dtype()
    np.testing.assert_allclose(fit.neg_kl(x, zero_at=1.0).detach(), fit.neg_kl(X, zero_at=1.0))
    with pytest.raises(
        TypeError, match=r"must hold real numbers of 16 to 64 bits, but a tensor of torch.bool"
    ):
        fit.neg_kl(torch.tensor([True]))


@fits
def test_jax(fit):
    jax = pytest.importorskip("jax")
    x = jax.numpy.asarray(X)
    value = jax.jit(fit.neg_kl)(x)
    np.testing.assert_allclose(np.asarray(value), fit.neg_kl(X), rtol=2e-5, atol=2e-5)
    slope = jax.vmap(jax.grad(fit.neg_kl))(x)
    np.testing.assert_allclose(np.asarray(slope), fit.neg_kl_grad(X), rtol=2e-5)


def test_it_is_immutable_comparable_and_hashable():
    with pytest.raises(dataclasses.FrozenInstanceError):
        POLYNOMIAL.constant = 0.0
    assert fit_polynomial(3) == POLYNOMIAL
    assert len({POLYNOMIAL, fit_polynomial(3), SIGMOID}) == 2
    assert isinstance(POLYNOMIAL.coefficients, tuple)
    assert (POLYNOMIAL.terms, SIGMOID.terms, SIGMOIDS.terms) == (3, 1, 2)


@fits
def test_the_errors_are_measured(fit):
    for errors in (fit.inside, fit.wide, fit.errors((-4.0, -1.0))):
        low, high = errors.log_alpha_range
        x = np.linspace(max(low, -30.0), min(high, 30.0), 20001)
        exact = lk.neg_kl_grad(x)
        value = np.abs(fit.neg_kl(x) - lk.neg_kl(x))
        gradient = np.abs(fit.neg_kl_grad(x) / exact - 1.0)
        assert value.max() == pytest.approx(errors.max_error, rel=1e-5)
        assert value.max() <= errors.max_error * (1.0 + 1e-9)
        assert gradient.max() == pytest.approx(errors.max_grad_error, rel=1e-5)
        assert gradient.max() <= errors.max_grad_error * (1.0 + 1e-9)
        assert errors.rms_error <= errors.max_error
        if math.isfinite(errors.max_error_at):
            at = errors.max_error_at
            assert abs(fit.neg_kl(at) - lk.neg_kl(at)) == pytest.approx(errors.max_error, rel=1e-9)
    assert fit.inside.log_alpha_range == fit.log_alpha_range
    assert fit.wide.log_alpha_range == (-10.0, 10.0)
    if fit is POLYNOMIAL:  # which means nothing outside its range
        assert fit.wide.max_error > 1e12
        assert fit.wide.max_error_at == 10.0
    for name in ("max_error", "rms_error", "max_grad_error"):
        assert getattr(fit, name) == getattr(fit.inside, name)


def test_errors_over_a_pair():
    for ends in ((-2.0, -0.5), [-4, -1], (-math.inf, 0.0)):
        assert POLYNOMIAL.errors(ends).log_alpha_range == tuple(ends)
    assert POLYNOMIAL.errors(POLYNOMIAL.log_alpha_range) == POLYNOMIAL.inside
    with pytest.raises(ValueError, match="log_alpha_range must ascend"):
        POLYNOMIAL.errors((1.0, 0.0))


@fits
def test_it_is_printed_with_its_constants_and_errors(fit):
    shown = str(fit)
    assert all(repr(c) in shown for c in fit.coefficients)
    assert f"{fit.max_error:.2e}" in shown
    assert f"{fit.wide.max_error:.2e}" in shown
    alternates = len(fit.extrema) > len(fit.coefficients)
    head = f"The error alternates at {len(fit.extrema)} points" if alternates else "Largest errors"
    assert f"\n{head}\n" in shown
    assert max(map(len, shown.splitlines())) <= 80


def test_constants_are_named_as_in_the_formula():
    found = re.findall(r"^(k\d of term \d)  +(\S+)$", str(SIGMOIDS), re.MULTILINE)
    names = [f"k{k} of term {term}" for term in (1, 2) for k in (1, 2, 3)]
    assert found == [*zip(names, map(repr, SIGMOIDS.coefficients), strict=True)]


def test_it_is_read_from_what_the_command_writes(tmp_path):
    path = tmp_path / "fit.json"
    assert main(["fit", "--terms", "1", "--json", str(path)]) == 0
    assert Fit.from_json(path.read_text()) == fit_sigmoid(1)


def test_rounding_is_measured_again():
    short = SIGMOID.rounded(3)
    assert short.coefficients == (0.63, 1.87, 1.5)
    assert short.max_error > SIGMOID.max_error
    assert short.max_error == pytest.approx(np.log(2.0) / 2 + np.euler_gamma / 2 - 0.63, rel=1e-9)
    assert SIGMOID.rounded(17) == SIGMOID
    for digits, kind in ((0, ValueError), (18, ValueError), (2.0, TypeError), (True, TypeError)):
        with pytest.raises(kind, match=r"digits must be (between 1 and 17|an integer), but"):
            SIGMOID.rounded(digits)


@fits
def test_json_is_read_back_to_the_last_bit(fit):
    again = Fit.from_json(fit.to_json())
    assert (again, again.to_json()) == (fit, fit.to_json())
    json.loads(fit.to_json(), parse_constant=pytest.fail)


@pytest.mark.parametrize(
    ("field", "value", "must"),
    [
        *(("family", value, "one of polynomial, sigmoid") for value in ("spline", {})),
        *(("coefficients", x, "1 to 60 numbers") for x in ([], [1.0] * 61, "123", {"a": 1})),
        ("coefficients", [1e308] * 2, "numbers whose magnitudes have a finite sum"),
        ("coefficients[1]", [0.0, math.nan], "one finite number"),
        *(("constant", value, "one finite number") for value in ("x", True, "inf", 10**400)),
        ("log_alpha_range", [5, -5], r"two ascending numbers that span a part of \[-20, 20\]"),
        ("log_alpha_range", [0, 10**400], r"two ascending numbers that span a part of \[-20, 20\]"),
        ("norm", "l3", "one of minimax, least_squares"),
        ("target", "all", "one of value, gradient, both"),
        ("grid", None, "one of log, linear, dropout_rate"),
        ("weight", "*/", "one of absolute, relative, callable"),
        ("exact_limit", 1, "True or False"),
        ("level", -1, "one number that is not negative"),
        ("level", math.nan, "one number that is not negative"),
        ("extrema", {}, "a tuple of Extremum"),
    ],
)
def test_json_with_a_wrong_field(field, value, must):
    document = json.loads(POLYNOMIAL.to_json())
    document[field.partition("[")[0]] = value
    words = f"^{re.escape(field)} of a Fit must be {must}, but .+ was given: take the Fit from fit"
    with pytest.raises(ValueError, match=words):
        Fit.from_json(json.dumps(document))


@pytest.mark.parametrize(
    ("spoil", "words"),
    [
        (lambda d: d.pop("level"), "'level' is missing"),
        (lambda d: d.update(more=1), "'more' is not a field"),
        (lambda d: d.update(format="other"), "\"format\" is not 'logunif_kl.Fit'"),
        (lambda d: d.update(wide=[]), "'wide.log_alpha_range' is missing"),
        (lambda d: d.update(extrema=[{}]), r"'extrema\[0\].error' is missing"),
    ],
)
def test_json_that_holds_no_fit(spoil, words):
    document = json.loads(POLYNOMIAL.to_json())
    spoil(document)
    words = f"the JSON does not hold a fit, because {words}: pass what Fit.to_json returned"
    with pytest.raises(ValueError, match=words):
        Fit.from_json(json.dumps(document))


@pytest.mark.parametrize("text", ["{", "[" * 100_000, b"\xff", '{"a":' * 100_000])
def test_text_that_is_not_json(text):
    with pytest.raises(ValueError, match="the text is not JSON, or is nested too deeply: pass"):
        Fit.from_json(text)
    with pytest.raises(TypeError, match="the JSON must be a str, but dict was given: pass"):
        Fit.from_json({})


def test_a_fit_made_by_hand_is_checked_like_one_from_json():
    changed = dataclasses.replace(SIGMOID, coefficients=[np.float32(0.5), 1, 2.0])
    assert changed.coefficients == (0.5, 1.0, 2.0)
    assert "0.5 * exp(-softplus(1.0 + 2.0 * log_alpha))" in changed.formula("c")
    with pytest.raises(ValueError, match=r"inside.rms_error of a Fit must be one number that is"):
        dataclasses.replace(SIGMOID, inside=dataclasses.replace(SIGMOID.inside, rms_error=math.nan))
    with pytest.raises(ValueError, match="inside of a Fit must be an Errors, but None was given"):
        dataclasses.replace(SIGMOID, inside=None)
    huge = dataclasses.replace(SIGMOID, constant=1.7e308)
    with pytest.raises(ValueError, match=r"leaves the range of a double: pass a log_c closer to 0"):
        huge.formula("c", log_c=1e308)


def _places(value, path=()):
    """List the paths to all values in a JSON document."""
    items = value.items() if isinstance(value, dict) else enumerate(value)
    for key, item in items:
        yield (*path, key)
        if isinstance(item, (dict, list)):
            yield from _places(item, (*path, key))


WORDS = ["", "1", "inf", "-inf", "nan", "NaN", "minimax", "log", "value", None, True]
VALUES = [[], {}, [5, -5], 0, 1, -1, 10**400, 1e308, math.nan, math.inf, [0.5] * 3, [0.5] * 61]
JUNK = st.sampled_from([*WORDS, *VALUES]) | st.floats(-1e3, 1e3)
NAMES = [*(field.name for field in dataclasses.fields(Fit)), "format"]


@fits
@given(data=st.data())
def test_changed_json_is_a_fit_that_can_be_written_or_one_error_that_names_a_field(fit, data):
    document = json.loads(fit.to_json())
    every = st.sampled_from(list(_places(document)))
    for *path, last in data.draw(st.lists(every, min_size=1, max_size=3)):
        with contextlib.suppress(KeyError, IndexError, TypeError):  # gone with a change before
            inner = functools.reduce(operator.getitem, path, document)
            inner[last] = copy.deepcopy(data.draw(JUNK))
    text = json.dumps(document)
    try:
        found = Fit.from_json(text)
    except ValueError:
        with pytest.raises(ValueError, match="|".join(NAMES)) as caught:
            Fit.from_json(text)
        assert re.search(r"Fit.to_json( returned)?$", str(caught.value))
        return
    assert Fit.from_json(found.to_json()) == found
    assert found.formula("c")


@pytest.mark.parametrize(
    ("fit", "suffix", "shaded"),
    [(POLYNOMIAL, ".png", 2), (SIGMOID, ".svg", 0), (SIGMOIDS, ".pdf", 0)],
)
def test_it_is_drawn(fit, suffix, shaded, tmp_path):
    """What is outside its range is shaded."""
    path = tmp_path / f"fit{suffix}"
    value, gradient = fit.plot(path)
    assert path.stat().st_size > 1000
    assert value.figure.axes == [value, gradient]
    assert len(value.patches) == shaded


@pytest.mark.parametrize(
    ("fit", "dots"),
    [
        (POLYNOMIAL, [5, 0]),
        (fit_sigmoid(1, target="gradient"), [0, 4]),
        (fit_polynomial(3, target="both"), [0, 4]),
        (fit_sigmoid(1, norm="least_squares"), [0, 0]),
    ],
)
def test_the_axes_fill_the_figure(fit, dots, tmp_path):
    """Without extrema too. (Empty lines once made the axes collapse.)"""
    axes = fit.plot(tmp_path / "a.png")
    markers = [[line for line in each.lines if line.get_marker() == "o"] for each in axes]
    assert [sum(len(line.get_xdata()) for line in lines) for lines in markers] == dots
    for each in axes:
        box = each.get_position()
        assert box.height > 0.3
        assert box.x0 < 0.15


class TestAxes:
    def test_they_are_those_of_pyplot_without_a_path(self, pyplot, tmp_path):
        POLYNOMIAL.plot(tmp_path / "a.png")
        assert pyplot.get_fignums() == []
        axes = POLYNOMIAL.plot()
        assert pyplot.gcf().axes == list(axes)

    def test_they_may_be_given(self, pyplot):
        _, given = pyplot.subplots(1, 2)
        assert list(POLYNOMIAL.plot(ax=given)) == list(given)
        assert all(each.lines for each in given)
        assert len(pyplot.get_fignums()) == 1

    def test_of_another_number(self, pyplot):
        _, one = pyplot.subplots()
        with pytest.raises(TypeError, match=r"ax must be two axes, .* but .* was given: pass"):
            POLYNOMIAL.plot(ax=one)


def test_without_matplotlib_the_remedy_is_named(monkeypatch, tmp_path):
    for name in [name for name in sys.modules if name.partition(".")[0] == "matplotlib"]:
        monkeypatch.delitem(sys.modules, name)
    monkeypatch.setitem(sys.modules, "matplotlib", None)
    for path in (None, tmp_path / "a.png"):
        words = r'needs matplotlib.*pip install "logunif_kl\[plot\]"'
        with pytest.raises(ImportError, match=words):
            POLYNOMIAL.plot(path)
