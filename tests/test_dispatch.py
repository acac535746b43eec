"""The type of the argument decides what computes, or what is refused and how."""

import decimal
import math
import re
from functools import partial
from itertools import product

import array_api_strict as xs
import numpy as np
import pytest
from scipy import stats

import logunif_kl as lk
from logunif_kl._dispatch import Operation, evaluate
from tests import child
from tests.functions import Temperature
from tests.ufunc_battery import same

X = np.linspace(-3, 3, 7)


def label(function):
    """The name of a function as a user writes it after the package."""
    inner = function.__module__.removeprefix("logunif_kl.")
    return f"{inner}.{function.__name__}" if inner == "log_alpha" else function.__name__


OF_LOG_ALPHA = [lk.neg_kl, lk.neg_kl_grad, lk.neg_kl_hess, lk.kl]
FUNCTIONS = [*OF_LOG_ALPHA, lk.log_alpha.to_alpha, lk.log_alpha.to_dropout_rate]

NAMES = ["neg_kl", "neg_kl_grad", "neg_kl_hess", "kl", "neg_kl_normal", "kl_normal"]
WIDE, RATES = np.linspace(-30, 30, 301), np.linspace(0.01, 0.99, 301)
LOG_SIGMA2, POSITIVE = np.linspace(-9, 2, 301), np.linspace(0.0, 30.0, 301)
# A function, its arguments, and the size of the constant, whose rounding is an absolute error.
CALLS = {
    **{
        name: (getattr(lk, name), [WIDE, LOG_SIGMA2][: 1 + ("normal" in name)], 3) for name in NAMES
    },
    **{
        f"{name}, {option}": (partial(getattr(lk, name), **{option: number}), given, 4.0)
        for name, given in (("neg_kl", [WIDE]), ("kl", [WIDE]), ("kl_normal", [WIDE, LOG_SIGMA2]))
        for option, number in (("zero_at", 1.0), ("log_c", -2.0))
    },
    **{
        f"log_alpha.{name}": (getattr(lk.log_alpha, name), given, 0.0)
        for name, given in {
            "from_dropout_rate": [RATES],
            "to_dropout_rate": [WIDE],
            "from_alpha": [RATES],
            "to_alpha": [WIDE],
            "from_u": [RATES],
            "to_u": [WIDE],
            "from_normal": [RATES, LOG_SIGMA2],
            "to_log_sigma2": [WIDE, RATES],
        }.items()
    },
    **{
        f"array_api.{name}": (getattr(lk.special.array_api, name), [POSITIVE], 0.0)
        for name in ("kl_gap", "kl_gap_grad", "kl_gap_hess")
    },
}


@pytest.mark.parametrize("dtype", ["float64", "float32"])
@pytest.mark.parametrize("name", CALLS)
def test_value(xp, name, dtype, record_property):
    """NumPy and other namespaces: the type, the shape and the numbers of the result."""
    if name in NAMES:
        framework, _, manner = xp.name.replace("numpy-", "numpy, ").partition(", ")
        manner = ", ".join(filter(None, [dtype, manner]))
        record_property("capability", f"{name}:{framework}:{manner}")
    function, given, constant = CALLS[name]
    for shape in ((301,), (7, 43), (1, 3), (2, 0), (0,), ()):
        cut = [x[: math.prod(shape)].reshape(shape).astype(dtype) for x in given]
        arguments = [xp.array(x, dtype) for x in cut]
        got = function(*arguments)
        assert type(got) is type(arguments[0]) or shape == ()
        assert got.dtype == arguments[0].dtype
        exact = function(*(x.astype("float64") for x in cut))
        assert got.shape == exact.shape == shape
        error = np.abs(xp.numpy(got) - exact)
        assert (error <= 2 * np.finfo(dtype).eps * np.maximum(np.abs(exact), constant)).all()


@pytest.mark.parametrize("name", ["neg_kl_normal", "kl_normal, zero_at", "log_alpha.from_normal"])
def test_two_arguments_broadcast(xp, name):
    function, given, constant = CALLS[name]
    mu, log_sigma2 = given[0][-3:, None], given[1][:4]
    got = xp.numpy(function(xp.array(mu), xp.array(log_sigma2)))
    exact = function(*(x.copy() for x in np.broadcast_arrays(mu, log_sigma2)))
    assert got.shape == (3, 4)
    np.testing.assert_allclose(got, exact, rtol=2.0**-51, atol=constant * 2.0**-51)


def tensor_of(module: str) -> type:
    """A class that its module attributes to a framework."""
    return type("Tensor", (), {"__module__": f"{module}.core", "__array__": lambda self: X})


@pytest.mark.parametrize("library", ["torch", "jaxlib", "mlx", "paddle"])
def test_tensors_that_float_would_read_are_refused(library):
    """The derivative of a parameter, of a density or of a number would be lost."""
    members = {"shape": (), "item": lambda self: 0.5, "__float__": lambda self: 0.5}
    number = type("Tensor", (), {"__module__": f"{library}.core", **members})()
    density = lk.posteriors.Density(lambda w: number, support=(0.0, 2.0))
    for call, words in (
        (lambda: lk.neg_kl_posterior(stats.norm(number, 1.0)), "^loc is of type .*support"),
        (
            lambda: lk.posteriors.neg_kl_split(stats.norm(0.5, number)),
            "^scale is of type .*support",
        ),
        (lambda: lk.neg_kl_posterior(density), "must return one real number.*: return a float"),
        (lambda: lk.reference.neg_kl(number), "^log_alpha is of type .*support"),
        (lambda: lk.reference.kl_gap(number), "^u is of type .*support"),
    ):
        with pytest.raises(TypeError, match=words):
            call()


@pytest.mark.parametrize("dtype", ["float64", "float32"])
def test_sign_of_zero_by_the_arithmetic_of_torch(dtype):
    """`tests.functions` has the kernels, and the other frameworks."""
    torch = pytest.importorskip("torch")
    x, zero = np.array([np.inf, 1e4, np.inf], dtype), np.array([0.0, -0.0, 1.0], dtype)
    for name in ("neg_kl", "kl", "neg_kl_normal", "kl_normal"):
        function, arguments = getattr(lk, name), (zero, x)["normal" not in name :]
        got = torch.func.vmap(function)(*map(torch.asarray, arguments))
        assert same(got.numpy(), function(*arguments)), name


class TestProtocol:
    @pytest.mark.parametrize("function", FUNCTIONS)
    def test_dask(self, function, record_property, da):
        record_property("capability", f"{label(function)}:dask:lazy, block by block")
        lazy = function(da.from_array(X, chunks=3))
        assert isinstance(lazy, da.Array)
        assert lazy.chunks == ((3, 3, 1),)
        assert same(lazy.compute(scheduler="threads"), function(X))

    @pytest.mark.parametrize("name", ["neg_kl_normal", "kl_normal"])
    def test_dask_normal(self, name, record_property, da):
        record_property("capability", f"{name}:dask:lazy, block by block")
        function = getattr(lk, name)
        mu, log_sigma2 = da.from_array(X, chunks=2), np.linspace(-5, 5, 4)[:, None]
        for other in (log_sigma2, da.from_array(log_sigma2, chunks=2)):
            lazy = function(mu, other, zero_at=1.0)
            assert isinstance(lazy, da.Array)
            truth = function(X, log_sigma2, zero_at=1.0)
            assert same(lazy.compute(scheduler="threads"), truth)
        narrow = X.astype("float32")
        lazy = function(da.from_array(narrow, chunks=2), np.float32(-1.0), log_c=0.5)
        assert lazy.dtype == "float32"
        assert same(lazy.compute(scheduler="sync"), function(narrow, np.float32(-1.0), log_c=0.5))

    def test_dask_in_other_processes(self, da):
        """The functions are pickled by name."""
        cloudpickle = pytest.importorskip("cloudpickle")
        x = da.from_array(X, chunks=4)
        for lazy in (lk.neg_kl(x), lk.kl_normal(x, 0.0), lk.log_alpha.from_alpha(x + 9)):
            assert same(cloudpickle.loads(cloudpickle.dumps(lazy)).compute(), lazy.compute())

    @pytest.mark.parametrize("function", FUNCTIONS)
    def test_xarray(self, function, record_property, xr):
        record_property("capability", f"{label(function)}:xarray:labels are kept")
        x = xr.DataArray(X, dims="weight", coords={"weight": np.arange(7)}, name="x")
        got = function(x)
        assert isinstance(got, xr.DataArray)
        assert got.dims == ("weight",)
        assert got.coords["weight"].equals(x.coords["weight"])
        assert same(got.to_numpy(), function(X))
        assert same(x.to_numpy(), X)

    def test_xarray_normal_aligns_by_name(self, record_property, xr):
        record_property("capability", "kl_normal:xarray:aligned by name")
        other = np.array([-1.0, 1.0])
        arrays = xr.DataArray(X, dims="weight"), xr.DataArray(other, dims="layer")
        got = lk.kl_normal(*arrays, log_c=1.0)
        assert got.dims == ("weight", "layer")
        assert same(got.to_numpy(), lk.kl_normal(X[:, None], other, log_c=1.0))

    def test_xarray_over_dask(self, record_property, xr, da):
        record_property("capability", "neg_kl_normal:xarray:over dask")
        x = xr.DataArray(da.from_array(X, chunks=3), dims="weight")
        got = lk.neg_kl_normal(x, -1.0, zero_at=1.0)
        assert isinstance(got.data, da.Array)
        assert same(got.to_numpy(), lk.neg_kl_normal(X, -1.0, zero_at=1.0))

    def test_tables(self, xr, pd):
        letters = list("abcdefg")
        for table in (xr.Dataset({"a": ("t", X - 1), "x": ("t", X)}), pd.DataFrame({"x": X})):
            assert same(lk.kl(table, zero_at=1.0)["x"].to_numpy(), lk.kl(X, zero_at=1.0))
        got = lk.kl(pd.Series(X, index=letters), zero_at=1.0)
        assert list(got.index) == letters
        assert same(got.to_numpy(), lk.kl(X, zero_at=1.0))

    @pytest.mark.parametrize("function", FUNCTIONS)
    @pytest.mark.parametrize("dtype", ["Float64", "Float32", "Int16", "UInt64"])
    def test_polars(self, function, dtype, pl):
        series = pl.Series("x", [0, 1, None, 3], dtype=getattr(pl, dtype))
        got, exact = function(series), function(series.drop_nulls().to_numpy())
        assert got.name == "x"
        assert got.is_null().to_list() == [False, False, True, False]
        assert same(got.drop_nulls().to_numpy(), exact)
        column = pl.DataFrame(series).select(function(pl.col("x")))["x"]
        assert same(column.to_numpy()[:2], exact[:2])

    def test_polars_beside_others(self, pl, pd, da):
        mu = pl.Series(X.astype("float32"))
        for other in (-1.0, np.float32(-1.0), X.astype("float32"), pl.Series(X.astype("float32"))):
            exact = lk.kl_normal(X.astype("float32"), other, zero_at=1.0)
            assert same(lk.kl_normal(mu, other, zero_at=1.0).to_numpy(), exact)
        sentence = r"^mu of type polars.Series and log_sigma2 of type {} were given together: conv"
        for other, name in (
            (pd.Series(X), "pandas.Series"),
            (da.from_array(X), "dask.array.Array"),
        ):
            with pytest.raises(TypeError, match=sentence.format(name)):
                lk.kl_normal(mu, other)

    def test_columns_of_dask_beside_an_array(self, pd):
        pytest.importorskip("pyarrow")
        dd = pytest.importorskip("dask.dataframe")
        column = dd.from_pandas(pd.DataFrame({"mu": X}), npartitions=2).mu
        got = lk.kl_normal(column, np.float32(-1.0)).compute()
        assert same(got.to_numpy(), lk.kl_normal(X, -1.0))
        sentence = r"^mu of type dask.dataframe.Series and log_sigma2 of type numpy.ndarray"
        with pytest.raises(TypeError, match=sentence):
            lk.kl_normal(column, X)

    def test_wrong_type_inside(self, da):
        with pytest.raises(TypeError, match=r"but dask.array.Array of dtype complex128 was given"):
            lk.neg_kl(da.from_array(X * 1j))


class TestNamespace:
    @pytest.mark.parametrize("error", [AttributeError, NotImplementedError])
    def test_an_array_that_lacks_an_operation(self, error):
        """Like the formats of pydata/sparse other than COO."""

        def arithmetic(xp, x):
            raise error("broadcast_to")

        words = (
            "^log_alpha is of type array_api_strict.Array of dtype array_api_strict.float64, for "
            "which array_api_strict cannot compute this function: convert it to float64, or t"
        )
        with pytest.raises(TypeError, match=words):
            evaluate(Operation(None, arithmetic), log_alpha=xs.asarray(X))

    def test_integers_take_the_default_type(self):
        got = lk.neg_kl(xs.asarray([0, 1]))
        assert got.dtype == xs.float64
        assert same(np.asarray(got)[0], lk.neg_kl(0.0))

    def test_mixed_types_are_promoted(self):
        narrow, wide = xs.asarray([1.0], dtype=xs.float32), xs.asarray([1.0])
        assert lk.neg_kl_normal(narrow, wide).dtype == xs.float64
        assert lk.neg_kl_normal(narrow, xs.asarray([1])).dtype == xs.float32
        assert lk.neg_kl_normal(2, narrow).dtype == xs.float32
        assert lk.neg_kl_normal(xs.asarray([1]), 0.5).dtype == xs.float64

    def test_python_scalars_may_be_special(self):
        got = np.asarray(lk.neg_kl_normal(xs.asarray([1.0, 0.0]), float("-inf")))
        np.testing.assert_array_equal(got, [-np.inf, np.nan])

    @pytest.mark.parametrize("function", [lk.neg_kl, lk.neg_kl_grad, lk.neg_kl_hess])
    def test_float32_is_computed_in_float64(self, function):
        x = np.linspace(-9, 9, 500, dtype="float32")
        got = function(xs.asarray(x))
        assert got.dtype == xs.float32
        assert same(np.asarray(got), function(x.astype("float64")).astype("float32"))

    def test_float32_where_there_is_no_float64(self):
        if "no_float64" not in str(xs.__array_namespace_info__().devices()):
            pytest.skip("this array-api-strict has no device without float64")
        x = np.linspace(-9, 9, 500, dtype="float32")
        got = lk.neg_kl(xs.asarray(x, device=xs.Device("no_float64")))
        assert got.dtype == xs.float32
        got = np.asarray(got.to_device(xs.Device("CPU_DEVICE")))
        exact = lk.neg_kl(x.astype("float64"))
        assert not same(got, exact.astype("float32"))
        assert np.abs(got / exact - 1).max() < 4 * np.finfo("float32").eps

    @pytest.mark.parametrize("types", [None, ("float32",), ("float32", "float64")])
    def test_half_precision_is_rounded_once(self, types):
        class Half:
            """An array with NumPy's functions that is not a `numpy.ndarray`."""

            device = "here"

            def __init__(self, values):
                self.values = values
                self.dtype = values.dtype

            def __array_namespace__(self, api_version=None):
                return HalfNamespace

        seen = []

        class HalfNamespace:
            float32, float64 = np.dtype("float32"), np.dtype("float64")
            isdtype = staticmethod(np.isdtype)
            result_type = staticmethod(np.result_type)

            @staticmethod
            def astype(array, dtype, *, copy):
                return Half(array.values.astype(dtype))

            @staticmethod
            def dtypes(*, device, kind):
                assert (device, kind) == ("here", "real floating")
                return {name: np.dtype(name) for name in types}

        if types is not None:
            HalfNamespace.__array_namespace_info__ = lambda: HalfNamespace

        def arithmetic(xp, x):
            seen.append(x.dtype)
            return Half(x.values * 2)

        got = evaluate(Operation(None, arithmetic), x=Half(np.ones(2, "float16")))
        assert seen == [np.dtype((types or ("float64",))[-1])]
        assert got.dtype == np.dtype("float16")

    @pytest.mark.parametrize("dtype", ["complex128", "bool"])
    def test_wrong_type(self, dtype):
        x = xs.asarray([1], dtype=getattr(xs, dtype))
        with pytest.raises(TypeError, match=r"log_alpha must hold real .* array_api_strict.Array"):
            lk.neg_kl(x)


class OfAnotherNamespace:
    def __array_namespace__(self, api_version=None):
        return np.linalg


# The KL of a complex Gaussian is not that of its real part.
OF_COMPLEX = (
    "was given: complex weights have a KL of their own, so pass their means to "
    "neg_kl_complex_normal, or parameters of real weights$"
)
REFUSED = [
    (1j, f"complex 1j {OF_COMPLEX}"),
    (np.ones(2) * 1j, f"numpy.ndarray of dtype complex128 {OF_COMPLEX}"),
    ([1j], rf"list \[1j\] {OF_COMPLEX}"),
    (np.complex64(1), f"numpy.complex64 of dtype complex64 {OF_COMPLEX}"),
    (True, "bool True was given: pass a float"),
    (np.array([True]), "numpy.ndarray of dtype bool was given: convert it to float64"),
    (None, "NoneType None was given: pass a float"),
    ("0.5", "str '0.5' was given: pass a float"),
    (b"1", "bytes b'1' was given: pass a float"),
    ({1.0}, r"set \{1.0\} was given: pass a float"),
    (decimal.Decimal("0.5"), r"decimal.Decimal Decimal\('0.5'\) was given: pass a float"),
    (np.array([1.0], object), "numpy.ndarray of dtype object was given: convert it to float64"),
    (np.longdouble(1), "numpy.longdouble of dtype .* was given: convert it to float64"),
    (np.zeros(2, "M8[s]"), "numpy.ndarray of dtype datetime64"),
    (np.zeros(2, "V4"), "numpy.ndarray of dtype"),
    (["a" * 99], r"list \['a{20,}\.\.\.a{9,}'\] was given: convert it to float64"),
]


@pytest.mark.parametrize(("value", "given"), REFUSED, ids=lambda v: str(v)[:20])
def test_refused(value, given):
    def sentence(name):
        return f"^{name} must hold real numbers of at most 64 bits, but {given}"

    for function in OF_LOG_ALPHA:
        with pytest.raises(TypeError, match=sentence("log_alpha")):
            function(value)
    with pytest.raises(TypeError, match=sentence("mu")):
        lk.neg_kl_normal(value, 0.0)
    with pytest.raises(TypeError, match=sentence("log_sigma2")):
        lk.kl_normal(0.0, value)
    with pytest.raises(TypeError, match=sentence("p")):
        lk.log_alpha.from_dropout_rate(value)


@pytest.mark.parametrize("library", ["casadi"])
def test_frameworks_without_an_adapter_are_not_converted_in_silence(library):
    tensor = tensor_of(library)()
    derived = type("Parameter", (type(tensor),), {"__module__": "mine"})()
    for value in (tensor, derived):
        with pytest.raises(TypeError, match=rf"this function does not support {library}: pass"):
            lk.neg_kl(value)
        with pytest.raises(TypeError, match=r"^log_sigma2 is of type "):
            lk.neg_kl_normal(1.0, value)


@pytest.mark.parametrize(
    ("library", "number"), [("mlx", "numpy.array(mu)"), ("paddle", "mu.numpy()")]
)
def test_the_remedy_for_complex_tensors_keeps_the_imaginary_part(library, number):
    tensor = type("Tensor", (), {"__module__": library, "dtype": "complex64"})()
    with pytest.raises(TypeError, match=re.escape(f"not support {library}: pass {number}, for")):
        lk.neg_kl_complex_normal(tensor, 0.0)


@pytest.mark.parametrize("library", ["torch", "tensorflow", "jaxlib", "mlx", "paddle"])
def test_functions_without_an_adapter_convert_nothing_in_silence(library):
    name = library.removesuffix("lib")
    with pytest.raises(TypeError, match=rf"this function does not support {name}: pass"):
        lk.special.array_api.kl_gap(tensor_of(library)())
    with pytest.raises(TypeError, match=rf"^log_sigma2 .* does not support {name}: pass"):
        lk.special.neg_kl_normal_and_grad(0.5, tensor_of(library)())


@pytest.mark.parametrize("library", ["torch", "jaxlib", "tensorflow", "mlx"])
def test_tensors_in_lists_are_not_converted_in_silence(library):
    tensor = tensor_of(library)()
    for value in ([tensor], (0.5, tensor), [[1.0, 2.0], [0.5, tensor]], [np.ones(2), [(tensor,)]]):
        with pytest.raises(TypeError, match=rf"^log_alpha is a .* that holds a {library}\.Tensor"):
            lk.neg_kl(value)
        with pytest.raises(TypeError, match=r"^log_sigma2 is a .*: stack its elements into one "):
            lk.kl_normal(0.5, value)


@pytest.mark.parametrize(
    ("dtype", "values"),
    [
        *((None, ["a"]), (None, [True]), (None, [1j]), ("boolean", [True]), ("category", ["a"])),
        ("datetime64[ns, UTC]", ["2020-01-01"]),
    ],
)
def test_columns_of_pandas_that_hold_no_numbers(dtype, values, pd):
    column = pd.Series(values, dtype=dtype)
    sentence = r"^log_alpha must hold real .* but pandas.{} of dtype .* was given: "
    with pytest.raises(TypeError, match=sentence.format("Series")):
        lk.neg_kl(column)
    with pytest.raises(TypeError, match=sentence.format("DataFrame")):
        lk.neg_kl(pd.DataFrame({"a": [1.0], "b": column}))


@pytest.mark.parametrize("dtype", ["Float32", "Float64", "Int64"])
def test_nullable_columns_of_pandas(dtype, pd):
    got = lk.neg_kl(pd.Series([1, None], dtype=dtype))
    assert isinstance(got, pd.Series)
    assert float(got[0]) == pytest.approx(float(lk.neg_kl(1.0)), rel=1e-6)


@pytest.mark.parametrize(
    ("values", "dtype"),
    [
        *(([True, None], "Boolean"), (["a"], "String"), (["a"], "Categorical"), ([None], "Null")),
        *(([1], dtype) for dtype in ("Date", "Duration", "Decimal", "Int128")),
        ([[1.0]], "List"),
    ],
)
def test_columns_of_polars_that_hold_no_numbers(values, dtype, pl):
    if not hasattr(pl, dtype):
        pytest.skip(f"this polars has no {dtype}")
    column = pl.Series(values)
    if dtype != "List":
        kind = getattr(pl, dtype)
        column = column.cast(kind(5, 2) if dtype == "Decimal" else kind)
    sentence = rf"^log_alpha must hold real .* but polars.Series of dtype {dtype}.* was given: conv"
    for function in OF_LOG_ALPHA:
        with pytest.raises(TypeError, match=sentence):
            function(column)
    with pytest.raises(TypeError, match=r"^log_sigma2 must hold real .* but polars.Series of dtyp"):
        lk.kl_normal(0.5, column)
    with pytest.raises(TypeError, match=r"^log_alpha must hold real .* but polars.\w*Frame of dty"):
        lk.neg_kl(pl.DataFrame({"x": column}).lazy())


@pytest.mark.parametrize("dtype", ["Int8", "Float16"])
def test_columns_of_polars_of_half_precision(dtype, pl):
    """polars has float16, but no ufuncs of it."""
    if not hasattr(pl, "Float16"):
        pytest.skip("this polars has no Float16")
    column = pl.Series([0.0, 1.0]).cast(getattr(pl, dtype))
    words = (
        f"^log_alpha is of type polars.Series of dtype {dtype}, for which polars cannot compute "
        "this function: convert it to float64, or to an array of NumPy$"
    )
    with pytest.raises(TypeError, match=words):
        lk.kl(column)
    assert same(lk.kl(column.cast(pl.Float64)).to_numpy(), lk.kl([0.0, 1.0]))


class Symbolic:
    """A symbolic array, as in a graph."""

    def __array__(self, *_, **__):
        raise ValueError("it has no values yet")


def test_what_has_no_values():
    words = r"^log_alpha cannot be read as one array \(it has no values yet\): pass an array"
    with pytest.raises(ValueError, match=words):
        lk.neg_kl(Symbolic())


@pytest.mark.parametrize(
    "scalar", [np.float64(0.5), np.float32(0.5), np.float16(0.5), np.int8(2), Temperature(-8.0)]
)
def test_scalars_of_numpy_count_as_numbers(scalar):
    for dtype in (xs.float64, xs.float32):
        array = xs.asarray(X, dtype=dtype)
        for given in (scalar, float(scalar)):
            got = lk.neg_kl_normal(array, given)
            assert got.dtype == dtype
            assert same(np.asarray(got), np.asarray(lk.neg_kl_normal(array, float(scalar))))
        assert lk.kl_normal(scalar, array).dtype == dtype


@pytest.mark.parametrize(
    "other", [None, True, 1j, "x", np.complex64(1), np.bool_(True), np.datetime64("2020", "s")]
)
def test_what_is_no_number_beside_an_array(other):
    kind = re.escape(f"of dtype {other.dtype} ") if isinstance(other, np.generic) else ""
    given = f"but .*{kind}was given: "
    with pytest.raises(TypeError, match=f"^log_sigma2 must hold real numbers.* {given}"):
        lk.kl_normal(xs.asarray(X), other)


def test_two_devices_of_a_namespace():
    here, there = xs.asarray([1.0]), xs.asarray([1.0], device=xs.Device("device1"))
    words = r"^mu is on .*CPU.* and log_sigma2 on .*device1.*: move one with .to_d"
    with pytest.raises(ValueError, match=words):
        lk.kl_normal(here, there)
    with pytest.raises(ValueError, match=r"log_sigma2 on .*CPU"):
        lk.kl_normal(there, here)


OTHERS = [X, np.array(1.0), [1.0] * 7]


@pytest.mark.parametrize(
    ("one", "other"),
    [
        *product([tensor_of("torch")()], [*OTHERS, tensor_of("tensorflow")()]),
        *product([xs.asarray(X)], [*OTHERS, OfAnotherNamespace()]),
    ],
)
def test_libraries_are_not_mixed(one, other):
    for pair in ((one, other), (other, one)):
        with pytest.raises(TypeError, match=r"were given together: convert one, so that all come"):
            lk.neg_kl_normal(*pair)


def test_a_namespace_is_not_mixed_with_dask(da):
    words = "mu of type array_api_strict.Array and log_sigma2 of type dask.array.Array"
    with pytest.raises(TypeError, match=words):
        lk.neg_kl_normal(xs.asarray(X), da.from_array(X))


def test_other_objects_are_read_as_numpy_reads_them():
    assert same(lk.neg_kl(tensor_of("h5py")()), lk.neg_kl(X))
    assert same(lk.neg_kl(memoryview(X)), lk.neg_kl(X))
    assert same(lk.neg_kl(range(3)), lk.neg_kl(np.arange(3)))


def test_ndarray_subclasses_are_kept():
    masked = np.ma.masked_greater(X, 1.0)
    got = lk.kl(masked, zero_at=1.0)
    assert isinstance(got, np.ma.MaskedArray)
    assert got.mask.tolist() == masked.mask.tolist()
    assert same(got.compressed(), lk.kl(masked.compressed(), zero_at=1.0))


@pytest.mark.parametrize("array", [1.0, xs.asarray(1.0)], ids=["numpy", "namespace"])
def test_integers_beyond_a_float(array):
    with pytest.raises(ValueError, match=r"^mu is an integer of 1329 bits, too large for a float"):
        lk.neg_kl_normal(10**400, array)


def test_ragged_rows():
    with pytest.raises(
        ValueError, match=r"^log_alpha cannot be read as one array .* rows of equal length$"
    ):
        lk.neg_kl([[1.0], [1.0, 2.0]])


RELOADED = """
import importlib, sys
import array_api_strict as xs
import numpy as np
import logunif_kl as lk

for name in sorted(name for name in sys.modules if name.startswith("logunif_kl")):
    importlib.reload(sys.modules[name])
    for array in (np.ones(2), xs.asarray([1.0, 1.0])):
        found = lk.kl(array)
        assert type(found) is type(array), name
        assert float(found[0]) == lk.kl(1.0), name
"""


def test_a_module_may_be_loaded_again():
    """As notebooks do after a change of a file: the classes in it are new ones."""
    child.output(RELOADED)
