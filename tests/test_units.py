"""Quantities and sparse arrays are refused in one sentence.

pint, astropy and unyt need not be installed: the classes here behave as theirs do towards NumPy.
"""

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


# The remedy in each message.
PLAIN = {
    "Pint": lambda q: q.to("dimensionless").magnitude,
    "Astropy": lambda q: q.to_value(""),
    "Unyt": lambda q: q.to_value("dimensionless"),
}


@FUNCTIONS
@pytest.mark.parametrize(
    ("make", "remedy"),
    [
        (lambda x: Pint(x), r'to\("dimensionless"\).magnitude'),
        (lambda x: np.asarray(x).view(Astropy), r'to_value\(""\)'),
        (lambda x: np.asarray(x).view(Unyt), r'to_value\("dimensionless"\)'),
    ],
    ids=["pint", "astropy", "unyt"],
)
def test_quantities(function, name, make, remedy):
    for x in (0.25, [0.25, 0.5]):
        quantity = make(x)
        kind = type(quantity).__name__
        with pytest.raises(
            TypeError,
            match=rf"^{name} must be a pure number, but a tests.{kind}, which has a unit, was "
            rf"given: pass {name}.{remedy}$",
        ):
            function(quantity)
        np.testing.assert_array_equal(PLAIN[kind](quantity), x)


@FUNCTIONS
@pytest.mark.parametrize("form", ["csr_array", "coo_array", "csc_matrix"])
def test_sparse(function, name, form):
    sparse = pytest.importorskip("scipy.sparse")
    with pytest.raises(
        TypeError,
        match=rf"^{name} must hold real numbers of at most 64 bits, but scipy.{form}, a sparse "
        r"array, was given: its zeros count, so pass its toarray\(\)$",
    ):
        function(getattr(sparse, form)(np.eye(2)))


def test_columns_named_units_are_not_quantities():
    pandas = pytest.importorskip("pandas")
    series = pandas.Series([0.25], name="units")
    assert lk.neg_kl(series).iloc[0] == lk.neg_kl(0.25)
