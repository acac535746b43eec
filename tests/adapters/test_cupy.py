"""CuPy, by a stand-in: its arrays have no ``__array_namespace__``, and refuse our ufuncs."""

import sys
from types import ModuleType

import array_api_strict as strict
import numpy as np
import pytest

import logunif_kl as lk
from tests import ulp
from tests.adapters.test_reference import points, truth

# What `dir(cupy)` of CuPy 14.2 has of what the library uses.
NAMES = """abs asarray astype broadcast_arrays clip exp expm1 finfo float32 float64 full_like int8
    int32 isdtype isinf isnan log log1p logaddexp maximum mean minimum ones_like positive
    result_type round sum take where zeros_like"""
OPERATORS = "add radd sub rsub mul rmul truediv rtruediv neg lt le gt ge eq ne and or invert"


class ndarray:
    __module__ = "cupy"

    def __init__(self, held):
        self.held = held

    def __array_ufunc__(self, *_, **__):
        return NotImplemented

    def __getattr__(self, name):
        if name.startswith("__array"):
            raise AttributeError(name)
        return lifted(getattr(self.held, name))


def lowered(x):
    return type(x)(map(lowered, x)) if isinstance(x, (list, tuple)) else getattr(x, "held", x)


def lifted(x):
    if isinstance(x, (list, tuple)):
        return type(x)(map(lifted, x))
    if isinstance(x, (np.ndarray, np.generic)):
        return ndarray(np.asarray(x))
    if not callable(x) or isinstance(x, type):
        return x
    return lambda *at, **options: lifted(x(*map(lowered, at), **options))


def operator(name):
    return lambda self, *others: self.__getattr__(name)(*others)


for each in OPERATORS.split():
    setattr(ndarray, f"__{each}__", operator(f"__{each}__"))


@pytest.fixture
def cupy(monkeypatch):
    module = ModuleType("cupy")
    for name in NAMES.split():
        setattr(module, name, lifted(getattr(np, name)))
    monkeypatch.setitem(sys.modules, "cupy", module)
    return module


@pytest.mark.parametrize("dtype", ["float64", "float32", "float16", "int32"])
def test_functions(cupy, dtype):
    x = np.linspace(-3.0, 3.0, 12).reshape(3, 4).astype(dtype)
    wide = "float32" if dtype == "float16" else dtype
    for function, given in (
        *((f, (x,)) for f in (lk.neg_kl, lk.neg_kl_grad, lk.neg_kl_hess, lk.special.kl_gap_grad)),
        (lambda x: lk.kl(x, zero_at=2.0, reduction="mean"), (x,)),
        (lk.log_alpha.to_alpha, (x,)),
        (lambda x: lk.neg_kl_vector(x, 3), (x,)),
        (lk.kl_normal, (x, x[:, :1])),
        (lambda x: lk.neg_kl_normal(x, -2.0), (x,)),
    ):
        got, truth = function(*map(ndarray, given)), function(*(x.astype(wide) for x in given))
        assert type(got) is ndarray
        expected = np.dtype("float64" if dtype == "int32" else dtype)
        assert got.dtype == expected
        np.testing.assert_allclose(got.held, truth, rtol=2 * np.finfo(expected).eps)


@pytest.mark.slow
@pytest.mark.parametrize(("dtype", "limit"), [("float32", 0.51), ("float64", 3.1)])
def test_errors(cupy, dtype, limit):
    """Against the reference, as in `test_reference`."""
    for function, orders in ((lk.neg_kl, (0,)), (lk.neg_kl_grad, (1,)), (lk.neg_kl_normal, (0, 0))):
        got = function(*map(ndarray, points(len(orders), dtype))).held
        each = zip(got, truth(orders, dtype), strict=True)
        assert max(abs(ulp.error(float(g), t, dtype)) for g, t in each) <= limit


def test_refused(cupy):
    x = ndarray(np.ones(2))
    for call in (lambda: lk.kl_normal(x, np.ones(2)), lambda: lk.kl_normal(x, strict.ones(2))):
        with pytest.raises(TypeError, match="were given together: convert one"):
            call()
    with pytest.raises(TypeError, match="log_alpha must hold real numbers"):
        lk.kl(ndarray(np.ones(2, "complex128")))
    with pytest.raises(ValueError, match="do not broadcast"):
        lk.kl_normal(x, ndarray(np.ones(3)))
