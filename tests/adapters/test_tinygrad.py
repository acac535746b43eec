"""tinygrad, whose compiler takes half a minute for each program."""

import os

import numpy as np
import pytest

import logunif_kl as lk
from tests.adapters.test_adapters import POINTS, of, rounded, truth_of, ulps

os.environ.setdefault("DEV", "PYTHON")  # the only device that needs no compiler
tinygrad = pytest.importorskip("tinygrad")
pytestmark = pytest.mark.slow
ENDS = {
    1: [(-np.inf, np.inf, np.nan, 1e4)],
    2: [(0.0, np.inf, 1.0, np.nan), (-1e4, 0.0, -np.inf, 0.0)],
}


def tensor(x, dtype="float32"):
    return tinygrad.Tensor(np.asarray(x, "float32"), dtype=getattr(tinygrad.dtypes, dtype))


@pytest.mark.parametrize("orders", [(0,), (1,), (2,), (0, 0), (1, 0), (0, 1)])
def test_derivatives(orders, record_property):
    nin = len(orders)
    points = [np.r_[x[::20], e] for x, e in zip(POINTS[nin], ENDS[nin], strict=True)]
    at = list(map(tensor, points))
    result = of(nin)(*at)
    for i, order in enumerate(orders):
        for _ in range(order):
            (result,) = result.sum().gradient(at[i])
    got, truth = result.numpy(), truth_of(points, orders, "float32")
    assert result.dtype == tinygrad.dtypes.float32
    assert ulps(got, truth, "float32") <= 0.51
    np.testing.assert_array_equal(np.isnan(got), np.isnan(truth))
    what = ("value", "gradient", "second derivative")[sum(orders)]
    record_property("capability", f"{of(nin).__name__}:tinygrad:{what}")


@pytest.mark.parametrize("dtype", ["float16", "bfloat16"])
def test_half_types_and_sums(dtype, record_property):
    x = rounded([POINTS[1][0][:60]], dtype)[0]
    x = x[abs(x) < 9.0]
    got = lk.neg_kl(tensor(x, dtype)).float().numpy()
    assert ulps(got, lk.neg_kl(x), dtype) <= 0.51
    total = lk.kl(tensor(np.zeros((10, 100)), dtype), reduction="mean", zero_at=2.0)
    assert float(total.float().numpy()) == pytest.approx(float(lk.kl(0.0, zero_at=2.0)), rel=4e-3)
    record_property("capability", f"neg_kl:tinygrad:{dtype}")
    record_property("capability", "kl:tinygrad:sums of many elements")


def test_other_functions():
    x = np.array([0.2, 0.5, 0.9])
    for function in (
        lk.log_alpha.from_dropout_rate,
        lambda x: lk.neg_kl_vector(x, 9.0),
        lk.kl_complex,
    ):
        np.testing.assert_allclose(function(tensor(x)).numpy(), function(x), rtol=1e-6, atol=1e-7)


def test_refused():
    for dtype, words in (("float64", "dtypes.double was given: convert"), ("int32", "dtypes.int")):
        with pytest.raises(
            TypeError, match=f"^log_alpha must be of half, bfloat16 or float.*{words}"
        ):
            lk.neg_kl(tensor([0.5], dtype))
    with pytest.raises(ValueError, match="do not broadcast"):
        lk.kl_normal(tensor([0.5, 1.0]), tensor([1.0] * 3))
    for function in (lk.special.kl_gap, lk.methods.series):
        with pytest.raises(TypeError, match="this function"):
            function(tensor([0.5]))
