"""Models of Keras, whose backend JAX computes and differentiates the operations."""

import os
from importlib.util import find_spec

import pytest

from tests.child import output

CODE = """
import sys
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
a, b = (np.linspace(0.1, 0.9, 5, dtype="float32") for _ in range(2))
for function in (
    lambda a, b: lk.kl(a, log_c=1.0), lambda a, b: lk.kl_normal(a, b, zero_at=2.0),
    lambda a, b: lk.neg_kl_vector(a, 3), lambda a, b: lk.neg_kl_grad(a),
    lambda a, b: lk.log_alpha.from_dropout_rate(a), lambda a, b: lk.log_alpha.from_normal(a, b),
    lambda a, b: lk.log_alpha.to_log_sigma2(a, b),
):
    inputs = [keras.Input(()) for _ in range(2)]
    made = keras.Model(inputs, function(*inputs))
    made.save(sys.argv[1] + "/saved.keras")
    assert (keras.saving.load_model(sys.argv[1] + "/saved.keras")([a, b]) == made([a, b])).all()
    assert np.allclose(made([a, b]), function(a, b), rtol=1e-6)
try:
    inputs = keras.Input(())
    keras.Model(inputs, lk.methods.kingma(inputs)).save(sys.argv[1] + "/formula.keras")
except NotImplementedError as error:
    assert "call model.save_weights" in str(error)
else:
    raise AssertionError
mean = model(1, "float32", reduction="mean", zero_at=2.0)(np.zeros(10**6, "float32"))
assert abs(float(mean) / lk.neg_kl(0.0, zero_at=2.0) - 1.0) < 1e-6
"""
CELLS = ("value", "gradient", "float32", "float64", "compiled", "vmapped")


@pytest.mark.slow
def test_models(record_property, tmp_path):
    if not (find_spec("keras") and find_spec("jax")):  # Keras imports the backend of its settings.
        pytest.skip("Keras or JAX is not installed")
    output(CODE, str(tmp_path), env={**os.environ, "KERAS_BACKEND": "jax", "JAX_ENABLE_X64": "1"})
    for what in (*CELLS, "second derivative", "float16", "bfloat16", "sums of many elements"):
        record_property("capability", f"neg_kl:keras:{what}")
    for what in CELLS:
        record_property("capability", f"neg_kl_normal:keras:{what}")
