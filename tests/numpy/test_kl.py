"""KL with its own sign, the value without derivatives, and one number for an argument."""

import numpy as np
import pytest

import logunif_kl as lk
from logunif_kl._numpy import blocked, ufuncs
from tests.ufunc_battery import pickled, same, sample

DTYPES = ["float16", "float32", "float64"]
NAMES = ["kl", "kl_normal", "neg_kl_normal_value"]


@pytest.fixture(params=["in use", "python"])
def function(request):
    """Finds a ufunc by name: the one in use, or that of Python."""
    if request.param == "python":
        return ufuncs.python_ufunc
    return lambda name: getattr(ufuncs, name)


def both_signs(dtype: str) -> np.ndarray:
    x = sample(dtype)
    return np.concatenate([x, -x])


def test_forms():
    for name in NAMES:
        kind = blocked.BlockedUFunc if ufuncs.kernel_name() == "python" else np.ufunc
        assert isinstance(getattr(ufuncs, name), kind)
        assert pickled(getattr(ufuncs, name)) is getattr(ufuncs, name)
        assert getattr(ufuncs, name).__doc__.startswith(f"{name}(x")


@pytest.mark.parametrize("dtype", DTYPES)
def test_signs(function, dtype):
    x = both_signs(dtype)
    assert same(function("kl")(x), -function("neg_kl")(x))
    mu, log_sigma2 = x, x[::-1].copy()
    value = function("neg_kl_normal_and_grad")(mu, log_sigma2)[0]
    assert same(function("neg_kl_normal_value")(mu, log_sigma2), value)
    assert same(function("kl_normal")(mu, log_sigma2), -value)


@pytest.mark.parametrize("dtype", DTYPES)
def test_sign_of_zero(function, dtype):
    """-KL vanishes from below, KL from above."""
    inf, zero = np.array([np.inf], dtype), np.array([0.0, -0.0], dtype)
    assert not np.signbit(function("kl")(inf)).any()
    assert np.signbit(function("neg_kl")(inf)).all()
    assert not np.signbit(function("kl_normal")(zero, zero)).any()
    assert np.signbit(function("neg_kl_normal_value")(zero, zero)).all()
    assert not np.signbit(lk.kl(inf)).any()
    assert not np.signbit(lk.kl_normal(zero, zero)).any()


@pytest.mark.parametrize("dtype", DTYPES)
def test_constant(dtype):
    x = np.linspace(-20, 20, 999).astype(dtype)
    for options in ({"zero_at": 1.0}, {"log_c": -2.5}):
        assert (lk.kl(x, **options) == -lk.neg_kl(x, **options)).all()
        assert (lk.kl_normal(x, x, **options) == -lk.neg_kl_normal(x, x, **options)).all()
    assert lk.kl(0.0, zero_at=1.0) == 0.0


@pytest.mark.parametrize("dtype", DTYPES)
@pytest.mark.parametrize("name", ["kl_normal", "neg_kl_normal_value", "neg_kl_normal_and_grad"])
@pytest.mark.parametrize("size", [1, 7, 255, 513, 5000])
def test_one_number_and_strides(name, dtype, size):
    """The memory of the operands decides nothing but the time."""
    f = getattr(ufuncs, name)
    mu = np.random.default_rng(5).normal(size=2 * size).astype(dtype)
    log_sigma2 = np.linspace(-9, 3, 2 * size).astype(dtype)
    one = log_sigma2.dtype.type(-3)
    for a, b in [(mu, one), (one, log_sigma2), (mu[::2], log_sigma2[size:]), (mu[::-1], one)]:
        arrays = [np.array(x) for x in np.broadcast_arrays(a, b)]
        for got, truth in zip(np.atleast_2d(f(a, b)), np.atleast_2d(f(*arrays)), strict=True):
            assert same(got, truth)
    rows = np.zeros((3, 2 * size), dtype)
    outs = tuple(row[::2] for row in rows[: f.nout])
    f(mu[:size], log_sigma2[::2], out=outs)
    truths = np.atleast_2d(f(mu[:size].copy(), log_sigma2[::2].copy()))
    assert all(same(got, truth) for got, truth in zip(outs, truths, strict=True))


def test_in_place():
    x = np.linspace(-9, 9, 1001)
    y = x.copy()
    ufuncs.kl(y, out=y)
    assert same(y, ufuncs.kl(x))
    mu, log_sigma2 = x.copy(), x[::-1].copy()
    truth = ufuncs.kl_normal(mu, log_sigma2)
    assert same(ufuncs.kl_normal(mu, log_sigma2, out=log_sigma2), truth)
