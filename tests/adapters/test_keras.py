"""Models of Keras, whose backend JAX computes and differentiates the operations."""

import os
from importlib.util import find_spec

import pytest

from tests.child import output

CODE = """
import jax
import keras
import numpy as np
import logunif_kl as lk
from tests.adapters.test_adapters import FLOATS, POINTS, of, rounded, truth_of, ulps

def model(nin, dtype, **options):
    inputs = [keras.Input((), dtype=dtype) for _ in range(nin)]
    made = keras.Model(inputs, of(nin)(*inputs, **options))
    return lambda *at: made(list(at))

def slope(function, i):
    return jax.grad(lambda *at: function(*at).sum(), argnums=i)

def vmapped(function):
    return lambda *at: jax.vmap(function)(*(x[:, None] for x in at))[:, 0]

for dtype, limit in zip(FLOATS, (3.6, 4.0), strict=True):
    for orders in ((0,), (1,), (2,), (0, 0), (1, 0), (0, 1)):
        nin, points = len(orders), rounded(POINTS[len(orders)], dtype)
        function = model(nin, dtype)
        for i, order in enumerate(orders):
            for _ in range(order):
                function = slope(function, i)
        for transform in (lambda f: f, jax.jit, vmapped):
            got = transform(function)(*(jax.numpy.asarray(x, dtype) for x in points))
            assert ulps(got, truth_of(points, orders, dtype), dtype) <= limit, (orders, transform)
for dtype in ("float16", "bfloat16"):
    (x,) = rounded(POINTS[1], dtype)
    x = x[abs(x) < 9.0]
    got = model(1, dtype)(keras.ops.cast(x, dtype))
    assert keras.backend.standardize_dtype(got.dtype) == dtype
    assert ulps(got, lk.neg_kl(x), dtype) <= 0.51
mean = model(1, "float32", reduction="mean", zero_at=2.0)(np.zeros(10**6, "float32"))
assert abs(float(mean) / lk.neg_kl(0.0, zero_at=2.0) - 1.0) < 1e-6
"""
CELLS = ("value", "gradient", "float32", "float64", "compiled", "vmapped")


@pytest.mark.slow
def test_models(record_property):
    if not (find_spec("keras") and find_spec("jax")):  # Keras imports the backend of its settings.
        pytest.skip("Keras or JAX is not installed")
    output(CODE, env={**os.environ, "KERAS_BACKEND": "jax", "JAX_ENABLE_X64": "1"})
    for what in (*CELLS, "second derivative", "float16", "bfloat16", "sums of many elements"):
        record_property("capability", f"neg_kl:keras:{what}")
    for what in CELLS:
        record_property("capability", f"neg_kl_normal:keras:{what}")
