"""Types, limits, promotion, reductions and refusals of the functions over JAX."""

import math
from itertools import product

import numpy as np
import pytest

pytest.importorskip("jax")

import jax
import jax.numpy as jnp

import logunif_kl as lk
import logunif_kl.jax as lj
from tests import golden
from tests.child import output
from tests.functions import Functions

INF, NAN = math.inf, math.nan
UNARY = ["neg_kl", "neg_kl_grad", "neg_kl_hess"]
TINY = {"float64": 2.0**-1022, "float32": 2.0**-126}
# Worst errors in ulp at the golden points that are exact in the type, which XLA's fused
# multiplications and its exponential have their part in.
ULP = 3.0
WITH_X64 = {"float64": "float64, x64 on", "float32": "float32, x64 off"}


def total(function):
    return lambda *arguments: function(*arguments).sum()


slopes_of_normal = jax.grad(total(lj.neg_kl_normal), (0, 1))


def value_and_slopes(mu, log_sigma2):
    return lj.neg_kl_normal(mu, log_sigma2), *slopes_of_normal(mu, log_sigma2)


def golden_rows(name, dtype):
    """The inputs that the type has exactly, but for subnormals, which XLA takes for 0."""
    table = golden.load(name)
    inputs = table.args()
    with np.errstate(over="ignore"):
        kept = np.all([(x.astype(dtype) == x) | np.isnan(x) for x in inputs], axis=0)
    kept &= np.all([(np.abs(x) >= TINY[dtype]) | (x == 0) | np.isnan(x) for x in inputs], axis=0)
    assert kept.sum() > 60
    outputs = [table.expected(i)[kept] for i in range(golden.ARITY[name][1])]
    return [x[kept].astype(dtype) for x in inputs], outputs


def assert_within(got, truth, ulps):
    """Where the truth is subnormal, 0 will do as well."""
    got = np.asarray(got)
    dtype = got.dtype.name
    with np.errstate(over="ignore", invalid="ignore"):
        rounded = truth.astype(dtype)
        spacing = np.spacing(np.abs(rounded)).astype("float64")
        error = np.abs(got.astype("float64") - truth) / spacing
    fine = (error <= ulps) | (got == rounded) | (np.isnan(got) & np.isnan(truth))
    fine |= (np.abs(truth) < TINY[dtype] * 1.01) & (np.abs(got) <= TINY[dtype] * 1.01)
    assert fine.all(), (got[~fine], truth[~fine])


@pytest.mark.parametrize("dtype", ["float64", "float32"])
class TestGolden:
    @pytest.mark.parametrize("name", UNARY)
    def test_of_log_alpha(self, name, dtype, capability):
        capability(name, WITH_X64[dtype])
        (x,), (truth,) = golden_rows(name, dtype)
        with jax.enable_x64(dtype == "float64"):
            got = getattr(lj, name)(jnp.asarray(x))
            assert got.dtype == dtype
            assert_within(got, truth, ULP)

    def test_gradient_is_neg_kl_grad(self, dtype, capability):
        capability("neg_kl", f"grad, {WITH_X64[dtype]}")
        (x,), (truth,) = golden_rows("neg_kl_grad", dtype)
        with jax.enable_x64(dtype == "float64"):
            assert_within(jax.grad(total(lj.neg_kl))(jnp.asarray(x)), truth, ULP)

    def test_normal_and_its_gradients(self, dtype, capability):
        capability("neg_kl_normal", WITH_X64[dtype])
        capability("neg_kl_normal", f"grad, {WITH_X64[dtype]}")
        (mu, log_sigma2), truths = golden_rows("neg_kl_normal", dtype)
        with jax.enable_x64(dtype == "float64"):
            arguments = jnp.asarray(mu), jnp.asarray(log_sigma2)
            for got, truth in zip(value_and_slopes(*arguments), truths, strict=True):
                assert_within(got, truth, ULP + 1)


class TestLimits:
    @pytest.mark.parametrize("log_sigma2", [-80.0, -1.0, 0.0, 80.0])
    def test_mu_zero(self, log_sigma2):
        constant = np.float32(0.42668560429604480579)
        for zero in (0.0, -0.0):
            value, gradient = jax.value_and_grad(lj.neg_kl_normal, (0, 1))(zero, log_sigma2)
            assert (value, *gradient) == (0.0, 0.0, 0.0)
            assert lj.neg_kl_normal(zero, log_sigma2, zero_at=1.0) == constant

    def test_sigma_tiny_and_huge_against_the_reference(self):
        """Beyond what exp reaches in float32; the gradients that fit are finite and exact."""
        sizes = (1e-30, -1e-10, 1.0, 1e10, 1e30), (-1000, -200, -100, 100, 200, 1000)
        mu, log_sigma2 = np.array([*product(*sizes)], "float32").T
        points = zip(mu.tolist(), log_sigma2.tolist(), strict=True)
        reference = lk.reference
        truths = [(reference.neg_kl_normal(*p), *reference.neg_kl_normal_grad(*p)) for p in points]
        truths = np.array(truths, "float64").T
        assert (np.abs(truths) < 3e38).all()
        for got, truth in zip(value_and_slopes(mu, log_sigma2), truths, strict=True):
            assert_within(got, truth, ULP)

    def test_third_derivatives_at_mu_zero(self):
        """d^3/dmu^2 dlog_sigma2 of -mu^2/(2 sigma^2) is 1/sigma^2; the odd ones vanish."""
        third = jax.jacfwd(jax.hessian(lj.neg_kl_normal, (0, 1)), (0, 1))(0.0, 2.0)
        np.testing.assert_allclose(third[0][0][1], math.exp(-2.0), rtol=3e-7)
        np.testing.assert_allclose(third[1][0][0], math.exp(-2.0), rtol=3e-7)
        assert third[0][0][0] == third[1][1][0] == third[1][1][1] == 0.0

    def test_nan_stays_where_it_is(self):
        mu = jnp.array([1.0, NAN, 2.0])
        log_sigma2 = jnp.array([NAN, 0.0, 0.0])
        for g in slopes_of_normal(mu, log_sigma2):
            assert np.isnan(g).tolist() == [True, True, False]


def in_double(x):
    with np.errstate(invalid="ignore"):  # NaN that signal
        return np.asarray(x).astype("float64")


def half_bits(dtype):
    """Every value of a half type; in bfloat16 no subnormals, which are those of float32."""
    x = np.arange(2**16, dtype="uint16").view(dtype)
    wide = in_double(x)
    return x[~((np.abs(wide) < TINY["float32"]) & (wide != 0))] if dtype != "float16" else x


@pytest.mark.parametrize("dtype", [jnp.float16, jnp.bfloat16], ids=["float16", "bfloat16"])
class TestHalfTypes:
    """Computed in float32 and rounded at the end: at most 0.51 ulp, over all inputs."""

    def check(self, got, truth, dtype):
        assert got.dtype == dtype
        info = jnp.finfo(dtype)
        largest, smallest = float(info.max), float(info.tiny)
        with np.errstate(divide="ignore", invalid="ignore", over="ignore"):
            binade = np.floor(np.log2(np.maximum(np.abs(truth), smallest)))
            spacing = 2.0**binade * float(info.eps)
            wide = in_double(got)
            error = np.abs(wide - truth) / spacing
        fine = (error <= 0.51) | (wide == truth) | (np.isnan(wide) & np.isnan(truth))
        fine |= np.isinf(wide) & (np.abs(truth) >= largest)
        fine |= (np.abs(truth) < TINY["float32"]) & (np.abs(wide) <= TINY["float32"])
        assert fine.all(), (wide[~fine], truth[~fine])

    @pytest.mark.parametrize("name", UNARY)
    def test_every_input(self, name, dtype, capability):
        capability(name, f"{np.dtype(dtype).name}")
        x = half_bits(dtype)
        self.check(getattr(lj, name)(x), getattr(lk, name)(in_double(x)), dtype)

    def test_every_gradient(self, dtype, capability):
        capability("neg_kl", f"grad, {np.dtype(dtype).name}")
        x = half_bits(dtype)
        got = jax.vmap(jax.grad(lj.neg_kl))(jnp.asarray(x))
        self.check(got, lk.neg_kl_grad(in_double(x)), dtype)

    def test_normal(self, dtype, capability):
        capability("neg_kl_normal", f"grad, {np.dtype(dtype).name}")
        rng = np.random.default_rng(3)
        mu = np.exp(rng.uniform(-8, 8, 4000)).astype(dtype)
        log_sigma2 = rng.uniform(-9, 9, 4000).astype(dtype)
        truths = lk.special.neg_kl_normal_and_grad(
            mu.astype("float64"), log_sigma2.astype("float64")
        )
        found = value_and_slopes(jnp.asarray(mu), jnp.asarray(log_sigma2))
        for got, truth in zip(found, truths, strict=True):
            self.check(got, truth, dtype)

    @pytest.mark.parametrize("reduction", ["sum", "mean"])
    def test_reductions_are_rounded_once(self, reduction, dtype):
        x = jnp.linspace(-3, 3, 3001).astype(dtype)
        got = lj.neg_kl(x, reduction=reduction, zero_at=2.0)
        truth = getattr(lk.neg_kl(np.asarray(x).astype("float64"), zero_at=2.0), reduction)()
        self.check(got, truth, dtype)


DTYPES = ("int8", "int32", "int64", "uint16", "float16", "bfloat16", "float32", "float64")
VALUES = {"float": 0.5, "int": 2, **{dtype: np.array([1, 2], dtype) for dtype in DTYPES}}
VALUES["numpy scalar"] = np.float32(1.0)


@pytest.mark.filterwarnings("ignore:Explicitly requested dtype")
@pytest.mark.parametrize("x64", [False, True], ids=["32", "64"])
class TestPromotion:
    """As functions of `jax.numpy` do."""

    @staticmethod
    def assert_alike(got, like):
        assert (got.dtype, got.weak_type, got.shape) == (like.dtype, like.weak_type, like.shape)

    @pytest.mark.parametrize("kind", VALUES)
    @pytest.mark.parametrize("name", ["neg_kl", "kl"])
    def test_one_argument(self, name, kind, x64, capability):
        capability(name, f"types and weak types, x64 {'on' if x64 else 'off'}")
        with jax.enable_x64(x64):
            function, value = getattr(lj, name), VALUES[kind]
            self.assert_alike(function(value, zero_at=1.0), jnp.exp(value))
            self.assert_alike(jax.jit(function)(value), jax.jit(jnp.exp)(value))

    @pytest.mark.parametrize("kind", ["float", "int", "int32", "float64"])
    def test_derivatives(self, kind, x64, capability):
        for name in ("neg_kl_grad", "neg_kl_hess"):
            capability(name, f"types and weak types, x64 {'on' if x64 else 'off'}")
            with jax.enable_x64(x64):
                self.assert_alike(getattr(lj, name)(VALUES[kind]), jnp.exp(VALUES[kind]))

    @pytest.mark.parametrize("first", VALUES)
    def test_two_arguments(self, first, x64, capability):
        for name in ("neg_kl_normal", "kl_normal"):
            capability(name, f"types and weak types, x64 {'on' if x64 else 'off'}")
        with jax.enable_x64(x64):
            for second in VALUES:
                arguments = VALUES[first], VALUES[second]
                got = jax.eval_shape(lj.neg_kl_normal, *arguments)
                self.assert_alike(got, jax.eval_shape(jnp.hypot, *arguments))
            arguments = VALUES[first], 0.5
            self.assert_alike(lj.kl_normal(*arguments), jnp.hypot(*arguments))

    def test_gradients_keep_weak_types(self, x64):
        with jax.enable_x64(x64):
            self.assert_alike(jax.grad(lj.neg_kl)(0.5), jax.grad(jnp.exp)(0.5))
            for got in jax.grad(lj.neg_kl_normal, (0, 1))(0.5, 0.25):
                self.assert_alike(got, jax.grad(jnp.hypot)(0.5, 0.25))


NEITHER = "must be a JAX or NumPy array or a number"
REAL, ARRAY = "must hold real numbers of at most 64 bits", r"numpy\.ndarray"


class TestFunctions(Functions):
    module = lj
    compiled = staticmethod(jax.jit)
    numpy_scalars_promote = True
    missing = {  # noqa: RUF012
        "jax": ("logunif_kl.jax", "JAX", "'logunif_kl[jax]'"),
        "numpyro": ("logunif_kl.jax.numpyro", "NumPyro", "numpyro"),
        "tensorflow_probability": ("logunif_kl.jax.tfp", "TensorFlow Probability", "tfp-nightly"),
    }

    refused = [
        (lambda value=value: value, f"{REAL}, but {given}")
        for value, given in (
            (True, "bool True was given: convert it to float32 if that is what is meant"),
            (1j, "complex 1j was given: complex weights have"),
            (np.ones(2, bool), f"{ARRAY} of dtype bool was given: convert it to float32 if"),
            (np.ones(2, "complex128"), f"{ARRAY} of dtype complex128 was given: complex"),
            (np.array(["a"]), f"{ARRAY} of dtype <U1 was given: convert it to float32 if"),
            (jax.random.key(0), "jax.Array of dtype key<fry> was given"),
        )
    ] + [
        (lambda value=value: value, rf"{NEITHER}, but {kind} was given: {remedy}$")
        for value, kind, remedy in (
            ([1.0], "list", "convert it with jax.numpy.asarray"),
            (None, "NoneType", "pass an array or a float"),
            ("x", "str", "pass an array or a float"),
        )
    ]

    def array(self, x, dtype="float32"):
        return jnp.asarray(x, dtype)

    def double(self):
        return jax.enable_x64(True)

    def test_gradients_of_reductions(self):
        x = jnp.linspace(-2.0, 2.0, 5)
        got = jax.grad(lambda x: lj.kl(x, reduction="mean", log_c=0.5))(x)
        np.testing.assert_allclose(got, -lj.neg_kl_grad(x) / 5, rtol=3e-7)
        assert jax.grad(total(lj.neg_kl))(jnp.zeros((0, 3))).shape == (0, 3)


class TestRefusals:
    @pytest.mark.parametrize("dtype", ["bool", "complex64"])
    def test_arrays_and_tracers_of_jax(self, dtype):
        message = f"log_alpha {REAL}, but jax.Array of dtype {dtype}"
        for call in (lj.neg_kl, jax.jit(lj.neg_kl), lk.neg_kl):
            with pytest.raises(TypeError, match=message):
                call(jnp.ones(3, dtype))

    def test_a_traced_constant(self):
        with pytest.raises(TypeError, match=r"^zero_at must be one real number, but .*Tracer"):
            jax.jit(lambda a: lj.neg_kl(0.0, zero_at=a))(1.0)


def test_only_what_was_asked_for_is_imported():
    code = """
import sys, jax.numpy as jnp, logunif_kl as lk
lk.neg_kl(jnp.ones(2))
foreign = ("numpyro", "tensorflow_probability", "torch", "flax")
print([name for name in foreign if name in sys.modules])
"""
    assert output(code) == "[]\n"
