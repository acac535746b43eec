"""The functions over tensors: values, limits, types, shapes, and refusals in one sentence."""

import math

import numpy as np
import pytest

import logunif_kl as lk
from tests.child import output, run
from tests.functions import Functions
from tests.ulp import EMIN, error

tf = pytest.importorskip("tensorflow")
import logunif_kl.tensorflow as lt  # noqa: E402
from tests.tensorflow.cases import WAYS, backward, value_and_slopes  # noqa: E402

OF_LOG_ALPHA = ["neg_kl", "neg_kl_grad", "neg_kl_hess"]
DTYPES = ["float16", "bfloat16", "float32", "float64"]
INF, NAN = math.inf, math.nan
by_graph = pytest.mark.parametrize("graph", ["eager", "autograph", "xla"])
floats = pytest.mark.parametrize("dtype", ["float32", "float64"])


def ulps(got, truth, dtype):
    """The worst error over arrays, against truth in float64; subnormal truths are flushed."""
    got, truth = np.asarray(got, "float64").ravel(), np.asarray(truth, "float64").ravel()
    kept = abs(truth) >= 2.0 ** EMIN[dtype]
    pairs = zip(got[kept].tolist(), truth[kept].tolist(), strict=True)
    return max(float(abs(error(*pair, dtype))) for pair in pairs)


@pytest.mark.parametrize("name", OF_LOG_ALPHA)
@by_graph
@floats
def test_accuracy_of_log_alpha(name, graph, dtype):
    reach = {"float32": 86.0, "float64": 700.0}[dtype]
    x = np.random.default_rng(1).uniform(-1, 1, 4000)
    # About the zero of the second derivative a sum that an optimiser rearranges shows.
    x = np.concatenate([x * 12, x[:1000] * reach, -1.507 + x[:1000] / 100]).astype(dtype)
    got = WAYS[graph](getattr(lt, name))(x)
    assert got.dtype == dtype
    # The truth of float64 is that of the ufunc, which is not exact itself.
    assert ulps(got, getattr(lk, name)(x.astype("float64")), dtype) <= 3.0


@by_graph
@floats
def test_accuracy_of_normal(graph, dtype):
    rng = np.random.default_rng(2)
    log_sigma2 = rng.uniform(-30, 30, 4000).astype(dtype)
    ratio = np.exp(rng.uniform(-12, 12, 4000) / 2)
    mu = (np.exp(log_sigma2 / 2) * ratio * rng.choice([-1, 1], 4000)).astype(dtype)

    got = WAYS[graph](value_and_slopes)(tf.constant(mu), tf.constant(log_sigma2))
    truths = lk.special.neg_kl_normal_and_grad(mu.astype("float64"), log_sigma2.astype("float64"))
    for g, truth in zip(got, truths, strict=True):
        assert ulps(g, truth, dtype) <= 3.2


@pytest.mark.parametrize("name", OF_LOG_ALPHA)
def test_all_of_half_types(name):
    """Computed in float32 and rounded once: the result of float64, but for ties of rounding."""
    bits = np.arange(2**16, dtype="uint16")
    for dtype in (tf.float16, tf.bfloat16):
        x = tf.bitcast(tf.constant(bits), dtype)
        got = getattr(lt, name)(x)
        assert got.dtype == dtype
        wide = tf.cast(x, tf.float64)
        truth = getattr(lk, name)(wide.numpy())
        once = tf.cast(tf.constant(truth), dtype)
        same = np.asarray((got == once) | (tf.math.is_nan(got) & tf.math.is_nan(once)))
        # Where the float32 in between is a tie, or a subnormal number was flushed.
        tiny = 2.0**-126 if dtype == tf.bfloat16 else 2.0**-14
        ordinary = (abs(truth) >= tiny) | (truth == 0.0) | np.isnan(truth)
        assert np.count_nonzero(~same & ordinary) <= 4
        near = ~same & ordinary
        if near.any():
            assert ulps(tf.cast(got, "float64").numpy()[near], truth[near], dtype.name) <= 0.51


class TestLimits:
    @by_graph
    @floats
    def test_gradients_where_others_have_none(self, graph, dtype):
        """At mu = 0, and for sigmas whose squares are no number."""
        mu = np.array([0.0, -0.0, 0.0, 1.0, 1.0], dtype)
        log_sigma2 = np.array([0.0, -80.0, 80.0, -1e4, 1e4], dtype)

        program = WAYS[graph](value_and_slopes)
        _, d_mu, d_log_sigma2 = program(tf.constant(mu), tf.constant(log_sigma2))
        np.testing.assert_array_equal(d_mu, [0.0, 0.0, 0.0, -1.0, 0.0])
        np.testing.assert_array_equal(d_log_sigma2, [0.0, 0.0, 0.0, 0.5, 0.0])

    def test_second_derivative_at_zero(self):
        def value(mu):
            return lt.neg_kl_normal(mu, math.log(0.25))

        second = backward(value, (2,))(tf.constant([0.0], tf.float64))
        np.testing.assert_allclose(second, [-4.0], rtol=1e-15)


NEITHER = "must be a tensor, a NumPy array or a number"
REAL = "must hold floating-point numbers of 16 to 64 bits, as for tf.exp, but "


class TestFunctions(Functions):
    module = lt
    compiled = staticmethod(tf.function)
    programs = (WAYS["xla"],)
    missing = {  # noqa: RUF012
        "tensorflow": ("logunif_kl.tensorflow", "TensorFlow", "'logunif_kl[tensorflow]'")
    }

    refused = [
        (make, f"{REAL}{given}")
        for make, given in (
            (lambda: tf.constant([1]), "a tensor of int32 was given: convert it with tf.cast"),
            (lambda: tf.constant([True]), "a tensor of bool was given: convert it with tf.cast"),
            (lambda: tf.constant(1j), "a tensor of complex128 was given: complex weights have"),
            (
                lambda: tf.constant("1"),
                "a tensor of string was given: convert it with tf.strings.to_num",
            ),
            (lambda: np.ones(2, int), "numpy.ndarray of int64 was given: convert it with tf.cast"),
            (lambda: np.ones(2, bool), "numpy.ndarray of bool was given: convert it with tf.cast"),
            (lambda: [1j], "list of complex128 was given: complex weights have"),
        )
    ] + [
        (lambda value=value: value, rf"{NEITHER}, but \w+ was given: {remedy}$")
        for value, remedy in (
            (None, "pass a tensor or a float"),
            ("1", "pass a tensor or a float"),
            (object(), "convert it with tf.convert_to_tensor"),
            ({1.0}, "convert it with tf.convert_to_tensor"),
        )
    ]

    def array(self, x, dtype="float32"):
        return tf.cast(x, dtype)

    @pytest.mark.parametrize("dtype", DTYPES)
    @pytest.mark.parametrize("name", ["neg_kl", "kl", "neg_kl_normal", "kl_normal"])
    def test_reduction(self, name, dtype):
        """A half type is rounded after it: the constant and 1000 terms would lose all digits."""
        x = tf.cast(tf.linspace(-2.0, 2.0, 1000), dtype)
        rest = (tf.constant(-1.0, dtype),) if "normal" in name else ()
        wide = [tf.cast(t, tf.float64) for t in (x, *rest)]
        elements = getattr(lt, name)(*wide, zero_at=0.5).numpy()
        for reduction, truth in (("sum", elements.sum()), ("mean", elements.mean())):
            got = getattr(lt, name)(x, *rest, zero_at=0.5, reduction=reduction)
            assert (got.shape, got.dtype) == ((), dtype)
            # The sum of magnitudes, in float32 at least, and half an ulp of the type.
            inner = 1e-15 if dtype == "float64" else 3e-7
            slack = inner * abs(elements).sum() / (1 if reduction == "sum" else 1000)
            last = {"float16": 2**-11, "bfloat16": 2**-8}.get(dtype, 0.0) * abs(truth)
            assert abs(float(got) - truth) <= 4 * slack + last

    @by_graph
    @pytest.mark.parametrize("reduction", ["sum", "mean"])
    def test_reduction_of_many_elements(self, reduction, graph):
        """Adding them one by one in float32, as XLA does, would lose 0.07 %."""
        size = 1_000_000
        got = WAYS[graph](lambda x: lt.neg_kl(x, reduction=reduction))(tf.zeros(size))
        truth = lk.neg_kl(0.0) * (size if reduction == "sum" else 1)
        assert float(got) == pytest.approx(truth, rel=3e-7)

    def test_a_tensor_is_no_constant(self):
        with pytest.raises(TypeError, match="zero_at must be one real number, but EagerTensor"):
            lk.neg_kl(tf.constant(0.0), zero_at=tf.constant(1.0))


class TestTypes:
    @by_graph
    @pytest.mark.parametrize("dtype", DTYPES)
    def test_type_and_shape_are_kept(self, graph, dtype):
        for shape in ((), (0,), (3,), (2, 1, 3)):
            x = tf.ones(shape, dtype)
            for name in OF_LOG_ALPHA:
                got = WAYS[graph](getattr(lt, name))(x)
                assert (got.shape, got.dtype) == (shape, dtype)
            got = lt.kl_normal(x, 0.5)
            assert (got.shape, got.dtype) == (shape, dtype)

    def test_gradient_of_half_types(self):
        for dtype in ("float16", "bfloat16"):
            x = tf.constant([-3.0, 0.0, 2.0], dtype)
            _, got = value_and_slopes(x, of=lt.neg_kl)
            assert got.dtype == dtype
            np.testing.assert_array_equal(got, lt.neg_kl_grad(x))

    def test_variables_and_the_weights_of_a_layer(self):
        variable, layer = tf.Variable([[0.5, -1.0]]), tf.keras.layers.Dense(2)
        layer.build((None, 3))
        for mean, other in ((variable, tf.Variable(0.0)), (layer.kernel, -8.0)):
            with tf.GradientTape() as tape:
                value = lk.kl_normal(mean, other)
            truth = lk.special.neg_kl_normal_and_grad(np.asarray(mean), np.float32(other))[1]
            np.testing.assert_allclose(tape.gradient(value, mean), -truth, rtol=1e-6)
        assert tf.is_tensor(lk.neg_kl(variable))

    def test_numbers_and_arrays_beside_a_tensor(self):
        mu = tf.constant([0.5, 1.0], tf.float64)
        truth = lk.neg_kl_normal(mu.numpy(), 0.1)
        for other in (0.1, [0.1, 0.1], np.float64(0.1), np.array([0.1])):
            np.testing.assert_allclose(lt.neg_kl_normal(mu, other), truth, rtol=1e-15)
        for other in (1, [1, 1], np.int8(1), 1.0):
            got = lt.neg_kl_normal(other, tf.constant(0.0))
            assert got.dtype == tf.float32
            assert float(tf.reduce_max(got)) == pytest.approx(-0.42668560429604, rel=1e-7)
        assert lt.neg_kl(0).dtype == tf.float32
        assert lt.neg_kl(np.float64(0.0)).dtype == tf.float64
        np.testing.assert_array_equal(lk.neg_kl_normal(mu, 0.1), lt.neg_kl_normal(mu, 0.1))


def test_sparse():
    for value in (
        tf.sparse.from_dense([1.0]),
        tf.ragged.constant([[1.0]]),
        tf.IndexedSlices(tf.ones(1), tf.constant([0]), tf.constant([3])),
    ):
        for function in (lk.neg_kl, lt.kl):
            with pytest.raises(TypeError, match=r"^log_alpha must be a dense tensor, but a \w+"):
                function(value)


def test_a_mask_is_refused():
    masked = np.ma.masked_array([-1.0, 2.0], [False, True])
    words = r"^{} must be an array without a mask, but a MaskedArray .* pass {}.compressed\(\)$"
    with pytest.raises(TypeError, match=words.format("log_alpha", "log_alpha")):
        lt.kl(masked, reduction="sum")
    with pytest.raises(TypeError, match=words.format("log_sigma2", "log_sigma2")):
        lt.kl_normal(tf.constant([0.0, 1.0], tf.float64), masked)


@pytest.mark.parametrize(
    ("other", "words"),
    [
        (tf.constant(0.0, tf.float64), "^mu of float32 and log_sigma2 of float64 were given toget"),
        (None, "^log_sigma2 must be a .* was given: pass a tensor or a float"),
        (1j, "^log_sigma2 must hold .* was given: complex weights have"),
    ],
    ids=["another type", "nothing", "complex"],
)
def test_refused_beside_a_tensor(other, words):
    with pytest.raises(TypeError, match=words):
        lk.neg_kl_normal(tf.constant(0.0), other)


@pytest.mark.parametrize(
    ("name", "call"),
    [
        ("log_alpha", lambda x: lk.neg_kl_complex(x)),
        ("log_alpha", lambda x: lk.kl_vector(x, 3)),
        ("mu", lambda x: lk.neg_kl_complex_normal(x, 0.0)),
        ("log_sigma2", lambda x: lk.neg_kl_complex_normal(1j, x)),
    ],
)
def test_complex_weights_and_groups_are_refused(name, call):
    with pytest.raises(TypeError, match=rf"^{name} is of type .* does not support tensorflow"):
        call(tf.constant(1.0))


@pytest.mark.parametrize("library", ["torch", "jax", "jaxlib"])
def test_tensors_of_others(library):
    """NumPy could read them, but would lose their derivative."""
    other = type("Tensor", (), {"__module__": library, "__array__": lambda *_: np.ones(2)})()
    for pair in ((tf.ones(2), other), (other, tf.ones(2)), (other, 0.0)):
        for function in (lt.neg_kl_normal, lt.kl_normal):
            with pytest.raises(TypeError, match="were given together: convert one, so that"):
                function(*pair)
    with pytest.raises(TypeError, match=rf"but {library}.Tensor was given: convert it with tf.c"):
        lt.neg_kl(other)
    for held in ([other], [[1.0], [other]], ([1.0], (other,))):
        with pytest.raises(TypeError, match=r"but (list|tuple) was given: convert it with tf.con"):
            lt.neg_kl(held)


def test_no_warning_where_autograph_reads_the_dispatch():
    code = (
        "import tensorflow as tf, logunif_kl as lk\n"
        "print(float(tf.function(lambda x: lk.kl_normal(x, -8.0))(tf.ones(()))))"
    )
    done = run(code)
    assert float(done.stdout) == pytest.approx(float(lk.kl_normal(1.0, -8.0)), rel=1e-6)
    assert "AutoGraph could not transform" not in done.stderr


CHECKED = """
import tensorflow as tf, logunif_kl.tensorflow as lt
tf.debugging.enable_check_numerics()
for dtype in (tf.float32, tf.float64):
    mu = tf.constant([0.0, 1.0, 1.0, 1e-20, 3.0, 1e20, 1e-30], dtype)
    log_sigma2 = tf.constant([-8.0, -60.0, -14.0, 50.0, 3.0, -100.0, -3.0], dtype)
    with tf.GradientTape() as tape:
        tape.watch([mu, log_sigma2])
        found = lt.kl_normal(mu, log_sigma2)
    found = [found, *tape.gradient(found, [mu, log_sigma2])]
    print(bool(tf.reduce_all(tf.math.is_finite(found))))
"""


def test_no_infinity_inside_of_what_is_finite():
    """TensorFlow checks the output of every operation, once this was enabled."""
    assert output(CHECKED).split() == ["True", "True"]
