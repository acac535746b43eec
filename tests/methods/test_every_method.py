"""What every method has in common: names, types, limits, conventions, dask, and what is refused."""

import functools
import math
import pickle

import array_api_strict
import mpmath
import numpy as np
import pytest

import logunif_kl as lk
from logunif_kl.methods import METHODS, WIDE, dawson_grad, quadrature, quadrature_grad
from logunif_kl.methods._method import EVERYWHERE

DETERMINISTIC = [method for method in METHODS.values() if method.kind != "statistical"]
VALUES = {method.name: method.function for method in DETERMINISTIC}
GRADIENTS = {f"{method.name}_grad": method.gradient for method in DETERMINISTIC}
GRADIENTS["dawson_grad"] = dawson_grad
for rule in ("gauss_legendre", "gauss_hermite"):
    VALUES[rule] = functools.partial(quadrature, rule=rule)
    GRADIENTS[f"{rule}_grad"] = functools.partial(quadrature_grad, rule=rule)
FUNCTIONS = VALUES | GRADIENTS
WITH_DPS = ("series", "series_grad", "kummer", "kummer_grad", "quadrature")

every_function = pytest.mark.parametrize("name", FUNCTIONS)
every_value = pytest.mark.parametrize("name", VALUES)


@pytest.mark.parametrize("method", METHODS.values(), ids=METHODS)
def test_every_name_leads_to_its_method(method):
    assert METHODS[method.name] is method
    assert getattr(lk.methods, method.name) is method.function
    assert method.function.__name__ == method.name
    if method.gradient is not None:
        assert getattr(lk.methods, f"{method.name}_grad") is method.gradient
    assert method.domain is method.claims[0].interval
    if method.kind == "closed form":
        assert method.claims[-1].interval is WIDE
    elif method.kind == "numerical":
        assert method.domain is EVERYWHERE


@every_function
def test_types_and_shapes(name):
    function = FUNCTIONS[name]
    x = np.linspace(-13.0, 3.0 if name.startswith(("series", "kummer")) else 0.0, 60)
    x = x.reshape(3, 4, 5)
    for dtype in (np.float16, np.float32, np.float64):
        narrow = function(x.astype(dtype))
        assert (narrow.dtype, narrow.shape) == (dtype, x.shape)
        wide = function(x.astype(dtype).astype(np.float64))
        np.testing.assert_allclose(narrow, wide, rtol=np.finfo(dtype).eps, atol=0.0)
    assert isinstance(function(0.5), np.float64)
    assert function(1) == function(1.0)
    assert function(np.empty((0, 2))).shape == (0, 2)
    np.testing.assert_array_equal(function(x.tolist()), function(x))
    np.testing.assert_array_equal([function(v) for v in x.flat], function(x).ravel())
    np.testing.assert_array_equal(function(x[::-1, ::2].T), function(x)[::-1, ::2].T)


@every_function
def test_arrays_of_each_library(name, xp):
    function, x = FUNCTIONS[name], np.linspace(-6.0, 0.0, 12)
    found = function(xp.array(x.reshape(3, 4)))
    assert isinstance(found, type(xp.array([0.0])))
    np.testing.assert_allclose(xp.numpy(found), function(x).reshape(3, 4), rtol=1e-14)
    single = function(array_api_strict.asarray(x, dtype=array_api_strict.float32))
    assert single.dtype == array_api_strict.float32
    np.testing.assert_allclose(np.asarray(single), function(x), rtol=1e-5)


@every_function
def test_an_element_depends_on_nothing_but_itself(name):
    function, x = FUNCTIONS[name], np.random.default_rng(5).uniform(-14.0, 40.0, 600)
    together = function(x)
    np.testing.assert_array_equal(together[:60], [function(at) for at in x[:60]])
    x[::7] = np.nan
    spoilt = function(x)
    assert np.isnan(spoilt[::7]).all()
    others = np.delete(np.arange(600), np.s_[::7])
    np.testing.assert_array_equal(spoilt[others], together[others])


@every_function
def test_dask_evaluates_in_its_own_graph(name, da):
    function, x = FUNCTIONS[name], np.linspace(-13.0, 3.0, 1000)
    lazy = function(da.from_array(x, chunks=300))
    assert isinstance(lazy, da.Array)
    np.testing.assert_array_equal(pickle.loads(pickle.dumps(lazy)).compute(), function(x))


LIMITS = {
    "kingma": (-math.inf, math.inf),
    "kingma_grad": (0.5, math.inf),
    "lower_bound": (-math.inf, math.inf),
    "lower_bound_grad": (0.5, 0.5),
}


@every_function
def test_limits_come_without_a_warning(name):
    x = np.array([-np.inf, -1e308, -1e4, -745.0, 745.0, 1e4, 1e308, np.inf, np.nan])
    found = FUNCTIONS[name](x)
    exact = (0.5, 0.0) if name in GRADIENTS else (-math.inf, 0.0)
    assert (found[0], found[-2]) == LIMITS.get(name, exact)
    assert np.isnan(found[-1])
    assert not np.isnan(found[:-1]).any()
    if name not in LIMITS and not name.startswith("gauss_hermite"):
        exact = (lk.neg_kl_grad if name in GRADIENTS else lk.neg_kl)(x)
        rtol = 1e-3 if name.startswith("molchanov") else 4e-15
        np.testing.assert_allclose(found, exact, rtol=rtol, atol=1e-320)


@every_function
def test_what_is_not_a_real_number_is_refused(name):
    with pytest.raises(TypeError, match="log_alpha must hold real numbers"):
        FUNCTIONS[name](1j)
    for wrong in (1j, "0.5", None, np.array([True])) if name in WITH_DPS else ():
        with pytest.raises(TypeError, match=r"must hold real .* where dps is given"):
            FUNCTIONS[name](wrong, dps=20)


@every_value
def test_the_conventions_refuse_what_neg_kl_refuses(name):
    for options in ({}, {"dps": 30}) if name in WITH_DPS else ({},):
        with pytest.raises(ValueError, match="were both given"):
            VALUES[name](0.0, zero_at=1.0, log_c=0.0, **options)
        with pytest.raises(ValueError, match="zero_at must be a positive alpha"):
            VALUES[name](0.0, zero_at=-1.0, **options)


@pytest.mark.parametrize("name", WITH_DPS)
def test_digits_are_refused_unless_they_are_an_integer_in_range(name):
    for wrong in (2.0, "50", True):
        with pytest.raises(TypeError, match="dps must be an integer, but"):
            FUNCTIONS[name](0.0, dps=wrong)
    most = 1000 if name == "quadrature" else 10_000
    words = r" was given: use logunif_kl\.methods\.series" if name == "quadrature" else " was given"
    for wrong in (0, -3, most + 1):
        limits = f"^dps must be between 1 and {most}, but {wrong}{words}"
        with pytest.raises(ValueError, match=limits):
            FUNCTIONS[name](0.0, dps=wrong)
    with pytest.raises(OverflowError, match="log_alpha is above 2\\*\\*4096 in size"):
        FUNCTIONS[name](mpmath.ldexp(1, 5000), dps=20)
