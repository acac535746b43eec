"""The functions over the arrays of the frameworks of `logunif_kl._adapters`, against NumPy's."""

import ast
import math
import pickle
import sys
from pathlib import Path

import numpy as np
import pytest

import logunif_kl as lk
from logunif_kl import _errors, methods
from logunif_kl._dispatch import module_of
from logunif_kl._numpy import operations
from tests.adapters.ways import EVERY, Ways
from tests.methods import formulas

ORDERS = {1: [(0,), (1,), (2,)], 2: [(0, 0), (1, 0), (0, 1), (2, 0), (1, 1), (0, 2)]}
EXPONENT = {
    "float64": (52, -1022),
    "float32": (23, -126),
    "float16": (10, -14),
    "bfloat16": (7, -126),
}
FLOATS = ["float32", "float64"]
RNG = np.random.default_rng(48)
_LOG_SIGMA2 = np.concatenate([RNG.uniform(-20, 20, 1600), RNG.uniform(-80, 80, 400)])
POINTS = {
    1: [
        np.concatenate(
            [RNG.uniform(-15, 15, 1500), RNG.uniform(-80, 80, 400), RNG.uniform(-1.6, -1.4, 100)]
        )
    ],
    2: [
        np.exp(_LOG_SIGMA2 / 2 + RNG.uniform(-6, 6, 2000)) * RNG.choice([-1, 1], 2000),
        _LOG_SIGMA2,
    ],
}


@pytest.fixture(params=EVERY, scope="module")
def ways(request) -> Ways:
    pytest.importorskip(EVERY[request.param].__dict__.get("module", request.param))
    return EVERY[request.param]()


def ulps(got, truth, dtype):
    """The worst error in ulp, where the truth is neither subnormal nor infinite."""
    digits, least = EXPONENT[dtype]
    got, truth = np.asarray(got, "float64"), np.asarray(truth, "float64")
    kept = np.isfinite(truth) & (abs(truth) >= 2.0**least) & (abs(truth) < 2.0 ** (1 - least))
    got, truth = got[kept], truth[kept]
    return (abs(got - truth) / 2.0 ** (np.frexp(truth)[1] - 1 - digits)).max(initial=0.0)


def of(nin):
    return lk.neg_kl if nin == 1 else lk.neg_kl_normal


def truth_of(points, orders, dtype):
    """A derivative by the ufuncs, which other tests compare with the reference."""
    made = operations.of_log_alpha if len(points) == 1 else operations.of_normal
    return made(*orders).ufunc(*rounded(points, dtype))


def rounded(points, dtype):
    if dtype != "bfloat16":
        return [x.astype(dtype).astype("float64") for x in points]
    bits = [x.astype("float32").view("uint32") for x in points]
    return [(b & np.uint32(0xFFFF0000)).view("float32").astype("float64") for b in bits]


def check(ways, how, dtype, orders, points=None):
    points = rounded(points or POINTS[len(orders)], dtype)
    got = ways.run(ways.derivative(of(len(orders)), orders), how, dtype, *points)
    truth, limit = truth_of(points, orders, dtype), ways.ulp[dtype]
    if sum(orders) > 1:
        # A second derivative has zeros, near which a relative error is unbounded.
        limit *= ways.wider
        scale = truth_of(points, (0, 1)[-len(orders) :], dtype) / abs(points[0]) ** orders[0]
        kept = abs(truth) > 0.1 * abs(scale)
        got, truth = got[kept], truth[kept]
    assert ulps(got, truth, dtype) <= limit


@pytest.mark.parametrize("dtype", FLOATS)
@pytest.mark.parametrize("nin", [1, 2])
def test_derivatives(ways, nin, dtype, record_property):
    if dtype == "float64" and not ways.float64:
        pytest.skip(f"{ways.name} has no accurate float64")
    for orders in ORDERS[nin]:
        check(ways, "eager", dtype, orders)
    for what in ("value", "gradient", "second derivative", dtype):
        record_property("capability", f"{of(nin).__name__}:{ways.name}:{what}")


@pytest.mark.filterwarnings(
    "ignore:Numba will use object mode", "ignore:Tensor do not have 'place'"
)
@pytest.mark.parametrize("nin", [1, 2])
def test_programs(ways, nin, record_property):
    first = (1, 0)[:nin]
    points = [x[::31] for x in POINTS[nin]]
    for how in ways.programs:
        wide = "float64" if ways.float64 else "float32"
        truth = truth_of(rounded(points, wide), first, wide)
        function = of(nin) if how == "forward" else ways.derivative(of(nin), first)
        limit = ways.ulp_of_programs.get(how, ways.ulp[wide])
        assert ulps(ways.run(function, how, wide, *rounded(points, wide)), truth, wide) <= limit
        record_property("capability", f"{of(nin).__name__}:{ways.name}:{how}")


@pytest.mark.parametrize("dtype", ["float16", "float32"])
def test_forward_through_casts_and_sums(ways, dtype):
    if "forward" not in ways.programs:
        pytest.skip(f"{ways.name} has no forward mode")
    got = ways.run(lambda x: lk.kl(x, reduction="mean"), "forward", dtype, 0.5)
    assert got == pytest.approx(-lk.neg_kl_grad(0.5), rel=1e-3)


def test_half_types(ways, record_property):
    points = [x[:500] for x in POINTS[1]]
    for dtype in ways.half:
        x = rounded(points, dtype)
        kept = abs(x[0]) < 9.0
        for orders in ORDERS[1][:2]:
            got = ways.run(ways.derivative(lk.neg_kl, orders), "eager", dtype, *x)
            assert ulps(got[kept], truth_of(x, orders, dtype)[kept], dtype) <= 0.51
        record_property("capability", f"neg_kl:{ways.name}:{dtype}")


def test_limits(ways):
    ends = np.array([-np.inf, np.inf, np.nan, 1e4, -1e4])
    pairs = np.array([(0.0, 1.0), (0.0, -1e4), (np.inf, 0.0), (1.0, np.inf), (np.nan, 0.0)]).T
    for name in ("neg_kl", "kl", "neg_kl_grad", "neg_kl_hess", "neg_kl_normal", "kl_normal"):
        at = pairs if "normal" in name else (ends,)
        got = ways.run(getattr(lk, name), "eager", "float32", *at)
        np.testing.assert_array_equal(got, getattr(lk, name)(*(x.astype("float32") for x in at)))
    slopes = ways.run(ways.derivative(lk.neg_kl_normal, (1, 0)), "eager", "float32", *pairs[:, :2])
    np.testing.assert_array_equal(slopes, [0.0, 0.0])


@pytest.mark.parametrize("reduction", ["sum", "mean"])
def test_sums(ways, reduction, record_property):
    """Of a million elements, and with the constant added to each."""

    def function(x):
        return lk.kl(x, reduction=reduction, zero_at=2.0)

    truth = float(lk.kl(0.0, zero_at=2.0)) * (10**6 if reduction == "sum" else 1)
    got = ways.run(function, "eager", "float32", np.zeros(10**6))
    assert got.shape == ()
    assert float(got) == pytest.approx(truth, rel=1e-6)
    assert math.isnan(ways.run(lambda x: lk.kl(x, reduction="mean"), "eager", "float32", []))
    record_property("capability", f"kl:{ways.name}:sums of many elements")


def test_shapes_and_numbers(ways):
    for shape in ((), (0,), (2, 1, 3)):
        for function in (lk.neg_kl, lambda x: lk.kl_normal(x, -1.0)):
            assert ways.run(function, "eager", "float32", np.zeros(shape)).shape == shape
    mu, log_sigma2 = np.array([0.5, -1.0, 2.0]), np.array([[-2.0], [0.5]])
    _, d_mu, d_log_sigma2 = lk.special.neg_kl_normal_and_grad(mu, log_sigma2)
    for i, truth in ((0, d_mu.sum(0)), (1, d_log_sigma2.sum(1, keepdims=True))):
        orders = (1 - i, i)
        got = ways.run(
            ways.derivative(lk.neg_kl_normal, orders), "eager", "float32", mu, log_sigma2
        )
        np.testing.assert_allclose(got, truth, rtol=1e-6)
    got = ways.run(
        ways.derivative(lambda m: lk.kl_normal(m, np.float32(-2)), (1,)), "eager", "float32", mu
    )
    np.testing.assert_allclose(got, -lk.special.neg_kl_normal_and_grad(mu, -2.0)[1], rtol=1e-6)


def test_ends_of_conversions(ways):
    x = np.array([-np.inf, -85.0, 0.0, 80.0, np.inf, np.nan])
    for function in (lk.log_alpha.to_alpha, lk.log_alpha.to_u, lk.log_alpha.to_dropout_rate):
        got, truth = ways.run(function, "eager", "float32", x), function(x.astype("float32"))
        np.testing.assert_allclose(got, truth, rtol=3e-7)


def test_arithmetic_of_paddle():
    """It computes on a GPU and in static graphs, where the ufuncs of NumPy do not."""
    paddle = pytest.importorskip("paddle")
    call = module_of("paddle").call
    ends = np.array([-np.inf, np.inf, np.nan, 1e4, -1e4])
    for order in range(3):
        operation = operations.of_log_alpha(order)
        for x in (POINTS[1][0][::4], ends):
            got = call(operation, paddle.to_tensor(x)).numpy()
            assert ulps(got, operation.ufunc(x), "float64") <= 2.0
        np.testing.assert_array_equal(got, operation.ufunc(ends))
    smallest = [(1.9e-117, 3e-33), (-544.2, -136.0)]  # Paddle's == takes them for 0
    points = [np.r_[x[::4], y] for x, y in zip(POINTS[2], smallest, strict=True)]
    for orders in ORDERS[2][:3]:
        got = call(operations.of_normal(*orders), *map(paddle.to_tensor, points)).numpy()
        assert ulps(got, truth_of(points, orders, "float64"), "float64") <= 2.0


@pytest.mark.filterwarnings("ignore:Tensor do not have 'place'")
def test_full_graphs_of_paddle():
    """Lengths are not known, and Paddle would rewrite the code of the package."""
    paddle = pytest.importorskip("paddle")
    module_of("paddle")

    def function(mu, log_sigma2):
        return lk.kl_normal(mu, log_sigma2, zero_at=2.0), lk.log_alpha.from_normal(mu, -1.0)

    def by_series(log_alpha):
        return methods.series(log_alpha)

    def by_powers(log_alpha):
        return methods.molchanov(log_alpha)

    specs = [paddle.static.InputSpec([n, 3], "float32") for n in (None, 1)]
    compiled = paddle.jit.to_static(function, input_spec=specs, full_graph=True)
    mu, log_sigma2 = np.linspace(-1.0, 1.0, 12, dtype="float32").reshape(4, 3), np.ones((1, 3), "f")
    got = compiled(*map(paddle.to_tensor, (mu, log_sigma2)))
    for result, truth in zip(got, function(mu, log_sigma2), strict=True):
        np.testing.assert_array_max_ulp(result.numpy(), truth, 1)
    x = got[0]
    found = paddle.jit.to_static(by_powers, input_spec=specs[:1], full_graph=True)(x).numpy()
    np.testing.assert_array_max_ulp(found, methods.molchanov(x.numpy()), 1)
    with pytest.raises(TypeError, match=r"NumPy computes this function, but cannot read"):
        paddle.jit.to_static(by_series, input_spec=specs[:1], full_graph=True)(x)


def test_other_functions(ways):
    x = np.array([0.2, 0.5, 0.9])
    convert, group = lk.log_alpha.from_dropout_rate, lambda x: lk.neg_kl_vector(x, 9.0)
    for function, orders, truth in (
        (convert, (0,), convert(x)),
        (convert, (1,), 1.0 / (x * (1.0 - x))),
        (lk.log_alpha.to_alpha, (1,), np.exp(x)),
        (group, (0,), lk.neg_kl_vector(x, 9.0)),
        (group, (1,), lk.neg_kl_vector_grad(x, 9.0)),
        (lk.kl_complex, (1,), -lk.neg_kl_complex_grad(x)),
        (lk.kl_complex, (2,), -lk.neg_kl_complex_hess(x)),
    ):
        got = ways.run(ways.derivative(function, orders), "eager", "float32", x)
        np.testing.assert_allclose(got, truth, rtol=2e-6, atol=1e-6)


@pytest.mark.parametrize("name", formulas.NAMES)
def test_formulas(ways, name):
    value, slope, x = formulas.of(name)
    for function, truth in ((value, value), (ways.derivative(value, (1,)), slope)):
        got = ways.run(function, "eager", "float32", x)
        assert ulps(got, truth(x.astype("float32")), "float32") <= ways.ulp_of_formulas


def test_numpy_cannot_read_the_tracers_of_mlx():
    mx = pytest.importorskip("mlx.core")
    for transform in (mx.vmap, mx.compile):
        with pytest.raises(TypeError, match=r"NumPy computes this function, but cannot read"):
            transform(methods.series)(mx.array([-1.0]))


def test_refused(ways):
    if ways.name == "autograd":
        pytest.skip("outside a derivative, its arrays are NumPy's")

    def array(dtype):
        return ways.symbol(np.ones(2, dtype))

    with pytest.raises(TypeError, match=r"^log_alpha must be of float16.*int32 was given"):
        lk.neg_kl(array("int32"))
    for other in (None, "1", 1j, True):
        with pytest.raises(TypeError, match=r"^log_sigma2 must hold real numbers"):
            lk.kl_normal(array("float32"), other)
    with pytest.raises(ValueError, match=r"^reduction must be"):
        lk.kl(array("float32"), reduction="max")
    with pytest.raises(TypeError, match=r"convert one|this function does not support"):
        lk.kl_normal(array("float32"), type("Tensor", (), {"__module__": "casadi"})())
    with pytest.raises(
        ValueError, match=r"^mu of shape \(2,\) and log_sigma2 of shape \(3,\) do not"
    ):
        lk.kl_normal(array("float32"), ways.symbol(np.ones(3, "float32")))
    for function in (lk.special.array_api.kl_gap, lk.special.kl_gap):
        with pytest.raises(TypeError, match=r"^u is of type .* this function does not support"):
            function(array("float32"))
    with pytest.raises(TypeError, match=r"^mu is of type .* this function does not support"):
        lk.kl_complex_normal(array("float32"), 0.0)


@pytest.mark.parametrize("name", [*EVERY, "keras", "tinygrad", "numba"])
def test_adapters_are_short(name):
    """At most 80 lines, docstrings and blank lines apart, and one entry in a table."""
    path = "_numba/__init__.py" if name == "numba" else f"_adapters/{name}.py"
    source = (Path(lk.__file__).parent / path).read_text(encoding="utf-8")
    tree = ast.parse(source)
    spoken = {
        line
        for node in ast.walk(tree)
        if isinstance(node, (ast.Module, ast.ClassDef, ast.FunctionDef)) and ast.get_docstring(node)
        for line in range(node.body[0].lineno, node.body[0].end_lineno + 1)
    }
    lines = [i for i, line in enumerate(source.splitlines(), 1) if line.strip() and i not in spoken]
    assert len(lines) <= (120 if name == "numba" else 80)


@pytest.mark.filterwarnings("ignore:Numba will use object mode")
def test_formulas_by_numba_in_pytensor():
    """PyTensor's mode of numba reads the path of a ufunc, which a formula does not have."""
    pytensor = pytest.importorskip("pytensor")
    pytest.importorskip("numba")
    x = pytensor.tensor.dvector("x")
    got = pytensor.function([x], lk.methods.molchanov(x), mode="NUMBA")(np.array([-1.5]))
    assert got[0] == lk.methods.molchanov(-1.5)


def test_graphs_of_pytensor_are_pickled():
    pytensor = pytest.importorskip("pytensor")
    x = pytensor.tensor.dvector("x")
    y = pickle.loads(pickle.dumps((x, pytensor.grad(lk.neg_kl(x, reduction="sum"), x))))
    assert y[1].eval({y[0]: [0.5]}) == lk.neg_kl_grad(0.5)


def test_a_framework_that_is_not_in_the_list(monkeypatch):
    """One entry and one file are enough."""
    from tests.adapters import dual

    monkeypatch.setitem(_errors.FRAMEWORKS, "tests", _errors.Framework("_adapters.dual"))
    monkeypatch.setitem(sys.modules, "logunif_kl._adapters.dual", dual)
    x = np.array([-2.0, 0.5])
    got = lk.kl(dual.Dual(x, np.ones(2)), reduction="mean", zero_at=1.0)
    assert got.x == lk.kl(x, reduction="mean", zero_at=1.0)
    assert got.dx == -lk.neg_kl_grad(x).mean()
    got = lk.neg_kl_normal(dual.Dual(x, np.ones(2)), -3.0)
    value, d_mu, _ = lk.special.neg_kl_normal_and_grad(x, -3.0)
    np.testing.assert_allclose([got.x, got.dx], [value, d_mu], rtol=4e-16)
    with pytest.raises(TypeError, match=r"^log_alpha must be of float64, but tests.Dual of "):
        lk.neg_kl(dual.Dual(x.astype("float32"), x))
