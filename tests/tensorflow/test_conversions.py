"""`logunif_kl.log_alpha` on tensors of TensorFlow."""

import numpy as np
import pytest

import logunif_kl as lk
from tests.conversions import Conversions

tf = pytest.importorskip("tensorflow")
la = lk.log_alpha


class TestConversions(Conversions):
    def evaluate(self, f, x):
        x = tf.constant(x)
        with tf.GradientTape() as tape:
            tape.watch(x)
            y = f(x)
        return y.numpy(), tape.gradient(y, x).numpy()

    def cast(self, x, dtype):
        return tf.cast(x, dtype)


def test_in_a_graph():
    mu, log_sigma2 = tf.random.normal([100], seed=1), tf.random.normal([100], seed=2)
    graph = tf.function(la.from_normal, autograph=False)
    np.testing.assert_allclose(graph(mu, log_sigma2), la.from_normal(mu, log_sigma2), rtol=1e-6)


def test_arguments_are_named():
    with pytest.raises(TypeError, match=r"^p must hold floating-point numbers of 16 to 64 bits"):
        la.from_dropout_rate(tf.constant([True]))
    with pytest.raises(ValueError, match=r"^log_alpha of shape \(2,\) and mu of shape \(3,\)"):
        la.to_log_sigma2(tf.zeros(2), tf.zeros(3))
