"""Objects that hold arrays of JAX, as variables of Flax do, are replaced by what they hold."""

from itertools import product

import numpy as np
import pytest

jax = pytest.importorskip("jax")

import jax.numpy as jnp  # noqa: E402

import logunif_kl as lk  # noqa: E402
from logunif_kl import jax as of_jax  # noqa: E402

X = jnp.array([0.5, -1.0])


class Variable:
    """The whole of the protocol; ``__array__`` would lose the derivative."""

    def __init__(self, value):
        self.value = value

    def __jax_array__(self):
        return self.value

    def __array__(self, dtype=None, copy=None):
        return np.asarray(self.value)


def _param(value):
    return pytest.importorskip("flax.nnx").Param(value)


def _partitioned(value):
    return pytest.importorskip("flax.linen").Partitioned(value, names=("a",))


@pytest.mark.parametrize("wrap", [Variable, _param, _partitioned])
def test_derivative(wrap):
    exact = -lk.neg_kl_grad(X)
    for module in (lk, of_jax):
        slope = jax.grad(lambda x, m=module: m.kl(wrap(x), reduction="sum"))
        for got in (slope(X), jax.jit(slope)(X)):
            assert jnp.allclose(got, exact, rtol=1e-6)


@pytest.mark.parametrize("wrap", [Variable, _param, _partitioned])
def test_every_function(wrap):
    one = [lk.neg_kl, lk.neg_kl_grad, lk.neg_kl_hess, lk.log_alpha.to_u, lk.neg_kl_complex]
    one += [lambda x: lk.neg_kl_vector(x, 3)]
    two = [lk.kl_normal, lk.log_alpha.from_normal, lk.neg_kl_complex_normal]
    pairs = [(wrap(X), X), (X, wrap(X)), (wrap(X), wrap(X))]
    for function, given in (*product(one, [(wrap(X),)]), *product(two, pairs)):
        got = function(*given)
        assert isinstance(got, jax.Array)
        assert (got == function(*[X] * len(given))).all()
    with pytest.raises(TypeError, match="log_alpha is a list that holds a "):
        lk.kl([wrap(X), wrap(X)])


def test_inside_xarray_and_dask():
    """Their ufuncs would read an array of JAX as one of NumPy."""
    xr, da = pytest.importorskip("xarray"), pytest.importorskip("dask.array")
    labelled = xr.DataArray(X)
    for held in (labelled, xr.Dataset({"a": labelled}), da.from_array(X, asarray=False)):
        with pytest.raises(TypeError, match=r"that holds a jaxlib.ArrayImpl, whose derivative"):
            lk.kl(held)
