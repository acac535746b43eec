"""Classes around tensors: unwrapped by the protocol of their library, or refused."""

import os

import numpy as np
import pytest

from tests.child import output

torch = pytest.importorskip("torch")

from torch._subclasses import FakeTensorMode  # noqa: E402
from torch.masked import masked_tensor  # noqa: E402

import logunif_kl as lk  # noqa: E402

X = torch.tensor([0.5, -1.0])
ONE = [lk.neg_kl, lk.neg_kl_grad, lk.kl, lk.log_alpha.to_alpha, lk.neg_kl_complex]
TWO = [lk.kl_normal, lk.log_alpha.from_normal, lk.neg_kl_complex_normal]

KERAS = """
import keras
import numpy as np
import logunif_kl as lk
from logunif_kl import methods
x = np.array([0.5, -1.0], "float32")
variable = keras.Variable(x)
held = variable.value
backend = keras.backend.backend()
one = [lk.neg_kl, lk.kl, lk.neg_kl_grad, lk.neg_kl_hess, lk.log_alpha.to_alpha]
two = [lk.kl_normal, lk.neg_kl_normal, lk.log_alpha.from_normal]
if backend != "tensorflow":
    one += [lk.neg_kl_complex, lambda z: lk.neg_kl_vector(z, 3)]
    two += [lk.neg_kl_complex_normal]
calls = [(f, (variable,), (x,)) for f in one]
for pair in ((variable, variable), (variable, held), (held, variable), (variable, 0.5)):
    calls += [(f, pair, tuple(p if isinstance(p, float) else x for p in pair)) for f in two]
for function, given, plain in calls:
    got = function(*given)
    assert keras.ops.is_tensor(got), (function, type(got))
    np.testing.assert_allclose(keras.ops.convert_to_numpy(got), function(*plain), rtol=2e-6)
exact = lk.neg_kl_grad(x) * -1.0
if backend == "torch":
    lk.kl(variable, reduction="sum").backward()
    found = held.grad.numpy()
elif backend == "jax":
    import jax
    def loss(value):
        with keras.StatelessScope(state_mapping=[(variable, value)]):
            return lk.kl(variable, reduction="sum")
    found = jax.jit(jax.grad(loss))(held)
else:
    import tensorflow as tf
    with tf.GradientTape() as tape:
        loss = lk.kl(variable, reduction="sum")
    found = tape.gradient(loss, variable.value).numpy()
np.testing.assert_allclose(found, exact, rtol=2e-6)
symbolic = keras.Input((2,), name="x")
second = [lambda z, f=f: f(0.5, z) for f in two[:3]]
some = [*one, *second, lambda z: lk.kl_normal(z, z, zero_at=2.0, reduction="mean")]
for function in (*some, methods.METHODS["molchanov"].function):
    output = function(symbolic)
    model = keras.Model(symbolic, output)
    got = model(keras.ops.convert_to_tensor(x[None]))
    assert output.dtype == "float32" and output.shape in ((None, 2), ()), output
    np.testing.assert_allclose(keras.ops.convert_to_numpy(got), function(x[None]), rtol=2e-6)
wide = keras.Input((3, 2))
assert lk.kl_normal(wide, keras.Input((3, 1))).shape == (None, 3, 2)
for call, words in (
    (lambda: lk.kl_normal(wide, keras.Input((2, 2))), "do not broadcast"),
    (lambda: lk.kl(keras.Input((2,), dtype="bool")), "log_alpha must hold real numbers"),
    (lambda: lk.kl(symbolic, reduction="max"), "reduction must be"),
    (lambda: lk.kl(symbolic, zero_at=0.0), "zero_at must be a positive"),
    (lambda: lk.kl_normal(symbolic, x), "were given together"),
    (lambda: lk.special.kl_gap(symbolic), "this function does not support keras: pass numbers"),
):
    try:
        call()
    except (TypeError, ValueError) as error:
        assert words in str(error), error
    else:
        raise AssertionError(words)
layer = keras.layers.Dense(3)
penalty = lk.kl_normal(layer(symbolic), -2.0)
model = keras.Model(symbolic, penalty)
model.save("model.keras")
loaded = keras.models.load_model("model.keras")
np.testing.assert_array_equal(loaded.predict(x[None], verbose=0), model.predict(x[None], verbose=0))
model.compile(keras.optimizers.Adam(0.1), loss=lambda truth, kl: keras.ops.mean(kl))
losses = model.fit(np.tile(x, (64, 1)), np.zeros((64, 3)), epochs=20, verbose=0).history["loss"]
assert losses[-1] < 0.5 * losses[0], losses
"""


@pytest.mark.slow
@pytest.mark.parametrize("backend", ["torch", "jax", "tensorflow"])
def test_keras(backend, tmp_path):
    """A variable of Keras keeps its derivative, and a symbolic tensor makes an operation."""
    pytest.importorskip("keras")
    pytest.importorskip(backend)
    chosen = {"KERAS_BACKEND": backend, "CUDA_VISIBLE_DEVICES": "-1", "PYTHONPATH": os.getcwd()}
    output(KERAS, env={**os.environ, **chosen}, cwd=tmp_path)


def masked():
    return masked_tensor(X, torch.tensor([True, False]))


def fake():
    with FakeTensorMode():
        return torch.ones(2)


class Duck:
    """Torch's functions take it, and NumPy too."""

    __module__ = "duck"

    def __array__(self, dtype=None, copy=None):
        return X.numpy()

    @classmethod
    def __torch_function__(cls, function, types, args=(), kwargs=None):
        raise AssertionError(function)


REFUSED = {
    masked: "{} must be a dense tensor, but a MaskedTensor was given: its masked elements would "
    "have a divergence of their own; pass the elements of {}.get_data() that count",
    torch.nn.UninitializedParameter: "{} is an UninitializedParameter, which has no elements yet: "
    "call its module once, on a batch of inputs",
    fake: "{} is a FakeTensor, which has no elements: call the function under `with {}.fake_mode:`",
    Duck: "{} must be a torch.Tensor, but duck.Duck was given: pass a tensor",
}


@pytest.mark.filterwarnings("ignore:.*MaskedTensor")
@pytest.mark.parametrize("make", REFUSED)
def test_refused(make):
    value, words = make(), REFUSED[make]
    calls = [(f, (value,)) for f in ONE]
    calls += [(f, pair) for f in TWO for pair in ((value, 0.5), (0.5, value))]
    for function, given in calls:
        with pytest.raises(TypeError) as error:
            function(*given)
        name = str(error.value).partition(" ")[0]
        assert str(error.value) == words.format(name, name)


@pytest.mark.filterwarnings("ignore:.*quantize")
def test_quantized():
    x = torch.quantize_per_tensor(X, 0.1, 0, torch.qint8)
    with pytest.raises(TypeError, match=r"torch.qint8 was given: convert it with .dequantize\(\)"):
        lk.neg_kl(x)


class Holder:
    """NumPy can read it, and what it holds has a derivative."""

    def __init__(self, held):
        self.held = held

    def __array__(self, dtype=None, copy=None):
        return np.asarray(self.held.detach())


class Hidden:
    def __array__(self, dtype=None, copy=None):
        return np.asarray(X.clone().requires_grad_())


def test_array_protocol_alone():
    with pytest.raises(TypeError, match=r"a Holder that holds a torch.Tensor, whose derivative"):
        lk.kl(Holder(X.clone().requires_grad_()))
    with pytest.raises(TypeError, match="Hidden, which cannot be read as an array: pass"):
        lk.kl(Hidden())
