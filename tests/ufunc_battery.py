"""What every user may expect of a NumPy ufunc, for the compiled and the Python form alike.

A test class inherits `UfuncBattery` and has a fixture `functions` with the ten as attributes.
"""

import math
import tracemalloc

import numpy as np
import pytest

INF, NAN = math.inf, math.nan
UNARY = ["kl_gap", "kl_gap_grad", "kl_gap_hess", "neg_kl", "neg_kl_grad", "neg_kl_hess", "kl"]
BINARY = ["neg_kl_normal_and_grad", "neg_kl_normal_value", "kl_normal"]
ALL = [*UNARY, *BINARY]
DTYPES = ["float16", "float32", "float64"]

# Exact results. `test_sign_of_zero` tests the signs of zeros.
LIMITS = {
    "kl_gap": [(0.0, 0.0), (-0.0, 0.0), (INF, INF), (-1.0, NAN), (-INF, NAN), (NAN, NAN)],
    "kl_gap_grad": [(0.0, 1.0), (-0.0, 1.0), (INF, 0.0), (-1.0, NAN), (-INF, NAN), (NAN, NAN)],
    "kl_gap_hess": [
        *((0.0, -2 / 3), (-0.0, -2 / 3), (INF, 0.0), (-1.0, NAN), (-INF, NAN), (NAN, NAN))
    ],
    "neg_kl": [(INF, 0.0), (-INF, -INF), (NAN, NAN)],
    "neg_kl_grad": [(INF, 0.0), (-INF, 0.5), (NAN, NAN)],
    "neg_kl_hess": [(INF, 0.0), (-INF, 0.0), (NAN, NAN)],
    "kl": [(INF, 0.0), (-INF, INF), (NAN, NAN)],
}


def same(a, b) -> bool:
    """Whether arrays are equal bit for bit, apart from the bits of NaNs."""
    a, b = np.asarray(a), np.asarray(b)
    if a.dtype != b.dtype or a.shape != b.shape:
        return False
    nan = np.isnan(a)
    if not np.array_equal(nan, np.isnan(b)):
        return False
    return np.array_equal(a[~nan], b[~nan]) and np.array_equal(
        np.signbit(a[~nan]), np.signbit(b[~nan])
    )


def listed(results) -> list[np.ndarray]:
    """The results of a ufunc, of which there may be one or several."""
    return list(results) if isinstance(results, tuple) else [results]


def all_same(first, second) -> bool:
    """Whether the arrays of two sequences are equal, each bit for bit."""
    return all(same(a, b) for a, b in zip(first, second, strict=True))


def sample(dtype="float64", n=1000) -> np.ndarray:
    """Arguments of every size for every function, with the limits and NaN."""
    x = np.linspace(0, 40, n - 6)
    with np.errstate(over="ignore", under="ignore"):
        return np.concatenate([x, [0.0, 1e-300, 1e-5, 1e300, INF, NAN]]).astype(dtype)


class Recorder:
    """Overrides ufuncs (NEP 13), and returns the arguments of the call."""

    def __array_ufunc__(self, ufunc, method, *inputs, **kwargs):
        return ufunc, method, inputs, kwargs


class Below(Recorder):
    def __array_ufunc__(self, ufunc, method, *inputs, **kwargs):
        return "below"


class Unwilling:
    def __array_ufunc__(self, *args, **kwargs):
        return NotImplemented


class Opposed:
    __array_ufunc__ = None


class Labelled(np.ndarray):
    """A subclass that keeps a label."""

    label = None

    def __array_finalize__(self, parent):
        self.label = getattr(parent, "label", None)


class UfuncBattery:
    """Tests of ufuncs. A subclass has a fixture `functions`.

    What a call does is the same for all functions of one argument, so two stand for them.
    """

    @pytest.fixture(params=["kl_gap", "neg_kl_hess"])
    def f(self, request, functions):
        return getattr(functions, request.param)

    @pytest.fixture(params=BINARY)
    def of_two(self, request, functions):
        return getattr(functions, request.param)

    @pytest.fixture(params=ALL)
    def any_f(self, request, functions):
        return getattr(functions, request.param)

    # Values

    @pytest.mark.parametrize("dtype", DTYPES)
    @pytest.mark.parametrize("name", UNARY)
    def test_limits(self, functions, name, dtype):
        with np.errstate(all="raise"):
            for argument, truth in LIMITS[name]:
                got = getattr(functions, name)(np.dtype(dtype).type(argument))
                assert got.dtype == dtype
                assert np.array_equal(got, np.dtype(dtype).type(truth), equal_nan=True), argument

    @pytest.mark.parametrize("dtype", DTYPES)
    def test_limits_of_normal(self, functions, dtype):
        kind = np.dtype(dtype).type
        largest = np.finfo(dtype).max
        outputs = {"no signal": (0.0, 0.0, 0.0), "no noise": (-INF, 0.0, 0.5)}
        outputs["undefined"] = (NAN, NAN, NAN)
        rows = [(0.0, s, "no signal") for s in (-largest, -1500, -700, 0.0, 1500, largest, INF)]
        rows += [(INF, s, "no noise") for s in (-INF, -largest, -700, 0.0, 700, 1500, largest)]
        rows += [(1.0, INF, "no signal"), (largest, INF, "no signal")]
        rows += [(0.0, -INF, "undefined"), (INF, INF, "undefined"), (NAN, 0.0, "undefined")]
        with np.errstate(all="raise"):
            for mu, log_sigma2, case in rows:
                for signed in (mu, -mu):
                    got = functions.neg_kl_normal_and_grad(kind(signed), kind(log_sigma2))
                    np.testing.assert_array_equal(got, outputs[case], str((signed, log_sigma2)))

    @pytest.mark.parametrize("dtype", DTYPES)
    def test_sign_of_zero(self, functions, dtype):
        """-KL tends to 0 from below and KL from above, wherever u is 0 or underflows."""
        x, zero = np.array([INF, 6e4, 6e4, INF], dtype), np.zeros(4, dtype)
        assert same(functions.neg_kl(x), -zero)
        assert same(functions.kl(x), zero)
        for mu, log_sigma2 in ((zero, x), (-zero, -x[1]), (zero + 1, zero + INF)):
            assert same(functions.neg_kl_normal_and_grad(mu, log_sigma2)[0], -zero)
            assert same(functions.neg_kl_normal_value(mu, log_sigma2), -zero)
            assert same(functions.kl_normal(mu, log_sigma2), zero)

    @pytest.mark.parametrize("dtype", DTYPES)
    def test_forms_agree(self, functions, dtype):
        """KL is the negative of -KL, and the value alone is the first of the three results."""
        both_signs = np.concatenate([sample(dtype), -sample(dtype)])
        for x in (both_signs, sample(dtype, 40_000) - 20):
            assert same(functions.kl(x), -functions.neg_kl(x))
            mu, log_sigma2 = x, x[::-1].copy()
            value = functions.neg_kl_normal_and_grad(mu, log_sigma2)[0]
            assert same(functions.neg_kl_normal_value(mu, log_sigma2), value)
            assert same(functions.kl_normal(mu, log_sigma2), -value)

    @pytest.mark.parametrize("dtype", DTYPES)
    def test_no_warning_for_any_number(self, any_f, dtype):
        bits = np.arange(2**16, dtype="uint16").view("float16")
        with np.errstate(all="ignore"):
            wide = np.concatenate([sample(), [1e-310, 5e-324, 1e308, 710, 745, 760], bits])
            numbers = np.concatenate([wide, -wide]).astype(dtype)
        arguments = (numbers, numbers[::-1].copy())[: any_f.nin]
        with np.errstate(all="raise"):
            any_f(*arguments)
            for several in zip(*(a[900:1010] for a in arguments), strict=True):
                any_f(*several)

    # Types

    @pytest.mark.parametrize("dtype", DTYPES)
    def test_each_type_gives_its_own(self, any_f, dtype):
        for result in listed(any_f(*[np.ones(3, dtype)] * any_f.nin)):
            assert result.dtype == dtype

    def test_other_types_are_promoted_as_by_exp(self, f):
        for value in [*(np.array([0, 1, 1], dtype) for dtype in "?bBhHiIqQ"), 0.5, 1, True]:
            got, wanted = f(value), np.exp(value)
            assert type(got) is type(wanted)
            assert got.dtype == wanted.dtype
            assert same(got, f(np.asarray(value, got.dtype)))

    @pytest.mark.parametrize(
        "value",
        [
            *(1j, None, "1", object(), 10**30, np.longdouble(1), np.complex64(1)),
            *(np.zeros(2, dtype) for dtype in ("O", "M8[s]", "V4", "g")),
        ],
        ids=lambda value: type(value).__name__,
    )
    def test_other_types_are_refused(self, f, value):
        with pytest.raises(TypeError, match="not supported for the input types"):
            f(value)

    def test_dtype(self, f):
        x = sample("float32")
        assert same(f(x, dtype="float64"), f(x.astype("float64")))
        with np.errstate(over="ignore"):
            assert same(f(sample(), dtype=np.float32), f(x))

    @pytest.mark.parametrize("dtype", ["i4", "c16", "g", "O"])
    def test_dtype_without_a_loop(self, f, dtype):
        with pytest.raises(TypeError, match="No loop matching"):
            f(1.0, dtype=dtype)

    def test_signature(self, f):
        x = sample("float32")
        wide = f(x.astype("float64"))
        assert same(f(x, signature="d->d"), wide)
        assert same(f(x, signature=("d", None)), wide)
        assert same(f(x, signature=(None, np.float64)), wide)
        with pytest.raises(TypeError, match="both 'signature' and 'dtype'"):
            f(x, signature="d->d", dtype="d")
        with pytest.raises(TypeError, match=r"No loop matching|did not contain a loop"):
            f(x, signature="f->d")
        with pytest.raises(ValueError, match="type-string"):
            f(x, signature="dd->d")

    def test_casting(self, f):
        assert f(np.ones(2), casting="no").dtype == "float64"
        with pytest.raises(TypeError, match=r"Cannot cast ufunc '\w+' input"):
            f(np.ones(2), dtype="float32", casting="safe")
        with pytest.raises(TypeError, match=r"Cannot cast ufunc '\w+' output"):
            f(np.ones(2), out=np.ones(2, "float32"), casting="safe")
        with pytest.raises(ValueError, match="casting must be one of"):
            f(np.ones(2), casting="anyhow")
        whole = np.ones(2, "i8")
        assert f(np.ones(2), out=whole, casting="unsafe") is whole

    # Outputs

    def test_out(self, any_f):
        x = [sample()] * any_f.nin
        outs = tuple(np.full(x[0].shape, 7.0) for _ in range(any_f.nout))
        got = any_f(*x, out=outs if any_f.nout > 1 else outs[0])
        for g, o, t in zip(listed(got), outs, listed(any_f(*x)), strict=True):
            assert g is o
            assert same(o, t)

    def test_out_in_other_ways(self, f):
        x, truth = sample(), f(sample())
        for given in ((np.empty_like(x),), (None,)):
            assert same(f(x, out=given), truth)
        out = np.empty_like(x)
        assert f(x, out) is out
        assert same(out, truth)
        assert same(f(x, None), truth)
        wide = np.zeros((3, 2))
        assert f(np.array([1.0, 2.0]), out=wide) is wide
        assert same(wide, np.broadcast_to(f(np.array([1.0, 2.0])), (3, 2)))

    def test_some_of_three_outputs(self, functions):
        f, x = functions.neg_kl_normal_and_grad, sample()
        truth, middle = f(x, 1.0), np.empty_like(x)
        got = f(x, 1.0, out=(None, middle, None))
        assert got[1] is middle
        assert all_same(got, truth)

    def test_out_of_another_type(self, f):
        x = sample()
        out = np.empty(x.shape, "float32")
        with np.errstate(all="ignore"):
            assert same(f(x, out=out), f(x).astype("float32"))
            wide = np.empty(x.shape, "float64")
            assert same(f(x.astype("float32"), out=wide), f(x.astype("float32")).astype("float64"))
        with pytest.raises(TypeError, match=r"Cannot cast ufunc '\w+' output"):
            f(x, out=np.empty(x.shape, "i8"))

    def test_wrong_out(self, f):
        x, frozen = np.ones(3), np.ones(3)
        frozen.flags.writeable = False
        for out, error, words in (
            (frozen, ValueError, "read-only"),
            (np.ones(1), ValueError, "broadcast"),
            (np.ones(4), ValueError, "broadcast"),
            ([1.0], TypeError, "must be of ArrayType"),
            ((x, x), ValueError, "one entry per ufunc output"),
        ):
            with pytest.raises(error, match=words):
                f(x, out=out)
        with pytest.raises(TypeError, match="both a positional and keyword"):
            f(x, x.copy(), out=x.copy())

    def test_wrong_calls(self, any_f):
        x = [np.ones(2)] * any_f.nin
        for wrong in ([], x * 9):
            with pytest.raises(TypeError, match="positional argument"):
                any_f(*wrong)
        for keyword in ("axis", "colour"):
            with pytest.raises(TypeError, match=f"unexpected keyword argument '{keyword}'"):
                any_f(*x, **{keyword: 0})
        with pytest.raises(TypeError, match="'subok' must be a boolean"):
            any_f(*x, subok=1)
        with pytest.raises(ValueError, match="order must be one of"):
            any_f(*x, order="Q")

    # Masks

    def test_where(self, f):
        x = sample()
        mask = np.arange(x.size) % 3 == 0
        out = np.full(x.shape, 7.0)
        assert f(x, out=out, where=mask) is out
        assert same(out, np.where(mask, f(x), 7.0))
        assert same(f(x, out=x.copy(), where=[False]), x)
        assert same(f(x, out=np.full(x.shape, 7.0), where=True), f(x))
        with pytest.raises(TypeError, match="according to the rule 'safe'"):
            f(x, out=x.copy(), where=mask.astype(np.int8))

    @pytest.mark.parametrize("shift", [0, 1])
    def test_where_with_an_overlap(self, f, shift):
        x = sample()
        given, out = x[: x.size - shift], x[shift:]
        mask = np.arange(out.size) % 2 == 0
        truth = x.copy()
        truth[shift:][mask] = f(given)[mask]
        assert f(given, out=out, where=mask) is out
        assert same(x, truth)

    def test_where_broadcasts_and_casts(self, f):
        for dtype in DTYPES:
            out = np.full((2, 3), 7.0, dtype)
            f(np.ones(3), out=out, where=np.array([[True], [False]]))
            assert same(out, np.array([[f(1.0)] * 3, [7.0] * 3], dtype))

    # Shapes

    @pytest.mark.parametrize("dtype", DTYPES)
    def test_any_layout_gives_the_same(self, f, dtype):
        x = sample(dtype, 1200).reshape(10, 120)
        truth = f(x)
        shuffled = np.zeros((20, 240), dtype)
        shuffled[::2, ::2] = x
        raw = np.zeros(x.nbytes + 1, "u1")[1:]
        unaligned = raw.view(dtype).reshape(x.shape)
        unaligned[...] = x
        for other in (
            np.asfortranarray(x),
            shuffled[::2, ::2],
            unaligned,
            x.astype(np.dtype(dtype).newbyteorder()),
            x[::-1, ::-1].copy()[::-1, ::-1],
        ):
            assert same(f(other), truth)
        assert same(f(x.T), truth.T)
        assert same(f(x[3, 5:9]), truth[3, 5:9])
        assert same(f(np.broadcast_to(x[:, :1], x.shape)), np.broadcast_to(truth[:, :1], x.shape))

    def test_order(self, f):
        x = np.ones((3, 4))
        assert f(x.T).flags.f_contiguous
        assert f(np.asfortranarray(x), order="C").flags.c_contiguous
        assert f(x, order="F").flags.f_contiguous

    def test_scalars_and_lists(self, f):
        assert same(f([[1.0, 2.0]]), f(np.array([[1.0, 2.0]])))
        assert type(f(1.0)) is np.float64
        assert type(f(np.float32(1.0))) is np.float32
        assert type(f(np.array(1.0))) is np.float64
        out = np.array(0.0)
        assert f(1.0, out=out) is out
        assert out == f(1.0)

    @pytest.mark.parametrize("shape", [(0,), (3, 0), (0, 2, 1)])
    def test_empty(self, any_f, shape):
        for result in listed(any_f(*[np.zeros(shape, "float32")] * any_f.nin)):
            assert result.shape == shape
            assert result.dtype == "float32"

    def test_read_only_input_and_in_place(self, f):
        x = sample()
        truth = f(x)
        x.flags.writeable = False
        assert same(f(x), truth)
        x.flags.writeable = True
        assert f(x, out=x) is x
        assert same(x, truth)

    def test_overlap(self, f):
        for n in (100, 10_000):
            for source, target in (
                (slice(None, -1), slice(1, None)),
                (slice(1, None), slice(None, -1)),
                (slice(None, None, -1), slice(None)),
            ):
                x = np.linspace(0, 5, n)
                truth = f(x[source].copy())
                f(x[source], out=x[target])
                assert same(x[target], truth)

    @pytest.mark.parametrize("dtype", DTYPES)
    @pytest.mark.parametrize("size", [1, 7, 255, 513, 5000])
    def test_numbers_and_strides(self, of_two, dtype, size):
        """The results do not depend on the memory of the operands."""
        mu = np.random.default_rng(5).normal(size=2 * size).astype(dtype)
        log_sigma2 = np.linspace(-9, 3, 2 * size).astype(dtype)
        one = log_sigma2.dtype.type(-3)
        for a, b in [(mu, one), (one, log_sigma2), (mu[::2], log_sigma2[size:]), (mu[::-1], one)]:
            arrays = [np.array(x) for x in np.broadcast_arrays(a, b)]
            assert all_same(listed(of_two(a, b)), listed(of_two(*arrays)))
        rows = np.zeros((3, 2 * size), dtype)
        outs = tuple(row[::2] for row in rows[: of_two.nout])
        of_two(mu[:size], log_sigma2[::2], out=outs)
        assert all_same(outs, listed(of_two(mu[:size].copy(), log_sigma2[::2].copy())))

    def test_overlap_of_two_inputs(self, functions):
        x, y = np.linspace(-9, 9, 1001), np.linspace(9, -9, 1001)
        truth = functions.kl_normal(x, y)
        assert same(functions.kl_normal(x, y, out=y), truth)
        x = np.linspace(0.1, 5, 10_000)
        truth = functions.neg_kl_normal_and_grad(x[:-1].copy(), x[1:].copy())
        second = np.empty_like(truth[1])
        functions.neg_kl_normal_and_grad(x[:-1], x[1:], out=(x[:-1], second, None))
        assert same(x[:-1], truth[0])
        assert same(second, truth[1])

    def test_broadcasting(self, functions):
        mu, log_sigma2 = np.linspace(-1, 1, 5)[:, None], np.linspace(-3, 3, 4)
        whole = [a.copy() for a in np.broadcast_arrays(mu, log_sigma2)]
        got, full = (functions.neg_kl_normal_and_grad(*x) for x in ((mu, log_sigma2), whole))
        assert all_same(got, full)
        with pytest.raises(ValueError, match="broadcast"):
            functions.neg_kl_normal_and_grad(np.ones(2), np.ones(3))

    # Other objects

    def test_subclasses(self, f):
        x = np.ones(3).view(Labelled)
        x.label = "weights"
        assert type(f(x)) is Labelled
        assert f(x).label == "weights"
        assert type(f(x, subok=False)) is np.ndarray
        plain = np.empty(3)
        assert f(x, out=plain) is plain

    def test_masked_arrays(self, f):
        x = np.ma.masked_array([1.0, 2.0, 3.0], mask=[False, True, False])
        got = f(x)
        assert isinstance(got, np.ma.MaskedArray)
        assert got.mask.tolist() == [False, True, False]
        assert same(got.compressed(), f(np.array([1.0, 3.0])))

    def test_overriding(self, f):
        other = Recorder()
        assert f(other) == (f, "__call__", (other,), {})
        out = np.ones(2)
        assert f(other, out=out, where=[True])[3] == {"out": (out,), "where": [True]}
        assert f(1.0, out=other) == (f, "__call__", (1.0,), {"out": (other,)})

    def test_overriding_by_two(self, functions):
        f, first, second = functions.neg_kl_normal_and_grad, Recorder(), Below()
        assert f(first, second) == f(second, first) == "below"
        assert f(Unwilling(), first)[2][1] is first

    def test_refusing_to_override(self, f):
        with pytest.raises(TypeError, match="all returned NotImplemented"):
            f(Unwilling())
        with pytest.raises(TypeError, match="does not support ufuncs"):
            f(Opposed())

    def test_dask(self, f, da):
        x = sample()
        lazy = f(da.from_array(x, chunks=300))
        assert isinstance(lazy, da.Array)
        assert lazy.dtype == "float64"
        assert lazy.chunks == ((300, 300, 300, 100),)
        assert same(lazy.compute(scheduler="threads"), f(x))

    def test_xarray(self, f, xr):
        x = xr.DataArray(np.ones((2, 3)), dims=("layer", "weight"), coords={"layer": [1, 2]})
        got = f(x)
        assert got.dims == x.dims
        assert got.coords["layer"].to_numpy().tolist() == [1, 2]
        assert same(got.to_numpy(), f(np.ones((2, 3))))

    # The object

    def test_attributes(self, any_f):
        nin = 2 if "normal" in any_f.__name__ else 1
        nout = 3 if any_f.__name__ == "neg_kl_normal_and_grad" else 1
        assert (any_f.nin, any_f.nout, any_f.nargs) == (nin, nout, nin + nout)
        assert any_f.types == [f"{c * nin}->{c * nout}" for c in "efd"]
        assert (any_f.ntypes, any_f.identity, any_f.signature) == (3, None, None)
        assert repr(any_f) == f"<ufunc '{any_f.__name__}'>"
        assert any_f.__doc__.startswith(f"{any_f.__name__}(x")
        assert len(any_f.__doc__.splitlines()) > 3

    # Resources

    @pytest.mark.parametrize("dtype", ["float32", "float64"])
    def test_memory(self, any_f, dtype):
        x = [np.linspace(0.1, 30, 300_000, dtype=dtype)] * any_f.nin
        any_f(*x)
        assert extra_memory(lambda: any_f(*x)) < 2**20

    def test_memory_of_a_mask_and_a_cast(self, f):
        x, out = np.linspace(0, 30, 300_000), np.zeros(300_000, "float32")
        mask = np.ones(300_000, bool)
        assert extra_memory(lambda: f(x, out=out, where=mask)) < 2**20


def extra_memory(call) -> int:
    """Bytes at the peak of a call, beyond what it returns."""
    tracemalloc.start()
    try:
        result = call()
        held, peak = tracemalloc.get_traced_memory()
    finally:
        tracemalloc.stop()
    assert result is not None
    return peak - held
