"""Eq. 3 by SciPy's Dawson function, and the exact gradient beside it."""

import numpy as np

import logunif_kl as lk
from logunif_kl.methods._dawson import dawson_grad
from tests.rounding import beside

# SciPy's own: at log_alpha = -8.3, where the reference finds it 9.6 ulp off.
ULP = 10.0


def test_the_exact_gradient_agrees_over_all_doubles():
    rng = np.random.default_rng(1927)
    bits = rng.integers(0, 2**64, 400_000, dtype=np.uint64).view(np.float64)
    ordinary = rng.uniform(-50.0, 50.0, 400_000)
    edges = beside(0.0, 0.693147, -8.295, 36.0, 708.4, 745.13, -36.7, -745.0, -709.8, steps=50)
    x = np.concatenate([bits[~np.isnan(bits)], ordinary, rng.uniform(-800, 800, 50_000), edges])
    exact = lk.neg_kl_grad(x)
    assert np.all(np.abs(dawson_grad(x) - exact) <= ULP * np.spacing(exact))
