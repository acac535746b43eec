"""Quantities and sparse arrays are refused in one sentence.

pint, astropy and unyt need not be installed: the classes here behave as theirs do towards NumPy.
"""

import re

import numpy as np
import pytest

import logunif_kl as lk

FUNCTIONS = pytest.mark.parametrize(
    ("function", "name"),
    [
        *((function, "log_alpha") for function in (lk.neg_kl, lk.neg_kl_grad, lk.kl)),
        *((function, "log_alpha") for function in (lk.methods.molchanov, lk.methods.monte_carlo)),
        (lambda x: lk.neg_kl_normal(x, 0.0), "mu"),
        (lambda x: lk.kl_normal(0.5, x), "log_sigma2"),
        (lk.log_alpha.from_alpha, "alpha"),
    ],
)


class Pint:
    """Like pint's: a wrapper whose ``__array_ufunc__`` refuses unknown ufuncs."""

    def __init__(self, magnitude):
        self._magnitude = np.asarray(magnitude)

    @property
    def magnitude(self):
        return self._magnitude

    @property
    def units(self):
        return "dimensionless"

    def __getattr__(self, name):
        return getattr(self._magnitude, name)

    def __array_ufunc__(self, ufunc, method, *inputs, **options):
        return NotImplemented

    def to(self, units):
        return self


class Astropy(np.ndarray):
    """Like astropy's: a subclass of ndarray that raises an error for unknown ufuncs."""

    @property
    def unit(self):
        return ""

    def to_value(self, unit):
        return self.view(np.ndarray)

    def __array_ufunc__(self, ufunc, method, *inputs, **options):
        raise TypeError(f"Unknown ufunc {ufunc.__name__}. Please raise an issue")


class Unyt(np.ndarray):
    """Like unyt's: a subclass of ndarray whose instances, but not the class, have units."""

    def in_units(self, units):
        return self

    def to_value(self, units):
        return self.view(np.ndarray)

    def __array_ufunc__(self, ufunc, method, *inputs, **options):
        return NotImplemented


@FUNCTIONS
@pytest.mark.parametrize(
    ("kind", "remedy"),
    [
        (Pint, 'to("dimensionless").magnitude'),
        (Astropy, 'to_value("")'),
        (Unyt, 'to_value("dimensionless")'),
    ],
)
def test_quantities(function, name, kind, remedy):
    """The message names the remedy, which works."""
    words = (
        f"{name} must be a pure number, but a tests.{kind.__name__}, which has a unit, was given"
    )
    for x in (0.25, [0.25, 0.5]):
        quantity = Pint(x) if kind is Pint else np.asarray(x).view(kind)
        with pytest.raises(TypeError, match=f"^{re.escape(f'{words}: pass {name}.{remedy}')}$"):
            function(quantity)
        np.testing.assert_array_equal(eval(f"quantity.{remedy}", {"quantity": quantity}), x)


@FUNCTIONS
@pytest.mark.parametrize("form", ["csr_array", "coo_array", "csc_matrix"])
def test_sparse(function, name, form):
    sparse = pytest.importorskip("scipy.sparse")
    words = f"^{name} must hold real numbers of at most 64 bits, but scipy.sparse.{form}, "
    with pytest.raises(
        TypeError, match=rf"{words}a sparse array, was given: its zeros .* pass its toarray\(\)$"
    ):
        function(getattr(sparse, form)(np.eye(2)))


class Column(np.ndarray):
    """Like astropy's: an array of a table, whose ufuncs keep the unit, and which may have none."""

    unit = None

    @property
    def quantity(self):
        return np.asarray(self).view(Astropy)


@FUNCTIONS
def test_columns_of_astropy(function, name):
    column = np.array([0.25, 0.5]).view(Column)
    assert np.shape(function(column))[-1] == 2
    column.unit = "m"
    with pytest.raises(TypeError, match=rf'unit, was given: pass {name}.quantity.to_value\(""\)$'):
        function(column)


@FUNCTIONS
def test_quantities_in_lists(function, name):
    for given in ([Pint(0.25)], (0.5, Pint(0.25)), [[Pint(0.25)]]):
        words = f"{name} is a {type(given).__name__} that holds a tests.Pint, which has a unit: "
        remedy = 'replace each such element x by x.to("dimensionless").magnitude'
        with pytest.raises(TypeError, match=f"^{re.escape(words + remedy)}$"):
            function(given)


def of(library, **attributes):
    """An object that NumPy reads as an array of objects, of a class of this library."""
    return type("Made", (), {"__module__": library, **attributes})()


@FUNCTIONS
@pytest.mark.parametrize(
    ("library", "remedy"),
    [
        ("casadi.casadi", "numpy.array(casadi.evalf({})), for the value without its derivative"),
        ("uncertainties.core", "{}.nominal_value"),
    ],
)
def test_objects_of_other_libraries(function, name, library, remedy):
    with pytest.raises(TypeError, match=f"{re.escape(': pass ' + remedy.format(name))}$"):
        function(of(library))


def test_booleans_of_awkward():
    """Its arrays have no dtype, and NumPy's ufuncs would take booleans as float16."""
    made = of("awkward", __array_ufunc__=lambda *_, **__: 1.0, type="3 * var * bool")
    made = type("Array", (type(made),), {"__module__": "awkward"})()
    with pytest.raises(TypeError, match=r"^log_alpha must hold real numbers"):
        lk.neg_kl(made)


def test_columns_named_units_are_not_quantities(pd):
    series = pd.Series([0.25], name="units")
    assert lk.neg_kl(series).iloc[0] == lk.neg_kl(0.25)
