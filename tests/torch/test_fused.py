"""The kernels of C on the tensor's memory: for whom, over how many threads, in how much memory."""

import math
import os
import subprocess
import sys
import tracemalloc

import numpy as np
import pytest

from logunif_kl import _backend

torch = pytest.importorskip("torch")

import logunif_kl.torch as lt  # noqa: E402
from logunif_kl.torch import _fused, _single  # noqa: E402

BLOCK = _fused._BLOCK
SIZES = [0, 1, 7, BLOCK - 1, BLOCK, BLOCK + 1, 5 * BLOCK + 13]


def weights(n, dtype=torch.float32):
    generator = torch.Generator().manual_seed(n + 1)
    mu = torch.randn(n, generator=generator, dtype=torch.float64)
    log_sigma2 = 4 * torch.randn(n, generator=generator, dtype=torch.float64) - 6
    return mu.to(dtype), log_sigma2.to(dtype)


@pytest.fixture(params=[1, 2, 5])
def threads(request):
    """As many threads as torch is told to use."""
    before = torch.get_num_threads()
    torch.set_num_threads(request.param)
    yield request.param
    torch.set_num_threads(before)


@pytest.mark.parametrize("n", SIZES)
@pytest.mark.parametrize("dtype", [torch.float32, torch.float64], ids=str)
def test_it_is_the_ufunc(n, dtype, threads):
    mu, log_sigma2 = weights(n, dtype)
    expected = _backend.neg_kl_normal(mu.numpy(), log_sigma2.numpy())
    got = _fused.normal(mu, log_sigma2)
    total, *slopes = _fused.normal_total_and_gradients(mu, log_sigma2)
    for tensor, array in zip((*got, *slopes), (*expected, *expected[1:]), strict=True):
        np.testing.assert_array_equal(tensor, array)
    np.testing.assert_array_equal(_fused.normal_value(mu, log_sigma2), expected[0])
    exact = math.fsum(expected[0].astype(np.float64))
    eps = torch.finfo(dtype).eps
    for found in (total, _fused.normal_total(mu, log_sigma2)):
        assert found.dtype == dtype
        assert abs(found.item() - exact) <= eps * abs(exact)
    for order, ufunc in enumerate((_backend.neg_kl, _backend.neg_kl_grad, _backend.neg_kl_hess)):
        np.testing.assert_array_equal(_fused.derivative(mu, order), ufunc(mu.numpy()))


@pytest.mark.parametrize("dtype", [torch.float32, torch.float64, torch.bfloat16], ids=str)
def test_a_sum_does_not_depend_on_the_threads(dtype):
    arguments = weights(7 * BLOCK + 5, dtype)
    before = torch.get_num_threads()
    found = set()
    try:
        for count in (1, 2, 3, 7):
            torch.set_num_threads(count)
            found.add(_fused.normal_total(*arguments).item())
            found.add(_fused.normal_total_and_gradients(*arguments)[0].item())
    finally:
        torch.set_num_threads(before)
    assert len(found) == 1


@pytest.mark.parametrize("dtype", [torch.bfloat16, torch.float16], ids=str)
def test_half_types_over_threads(dtype, threads):
    mu, log_sigma2 = weights(3 * BLOCK + 1, dtype)
    with torch.inference_mode():
        got = _fused.normal(mu, log_sigma2)
    expected = _fused.normal(mu.float(), log_sigma2.float())
    for half, single in zip(got, expected, strict=True):
        assert torch.equal(half, single.to(dtype))


def test_who_is_taken():
    from torch._subclasses.fake_tensor import FakeTensorMode

    x = torch.ones(3)
    assert _fused.takes(x, torch.nn.Parameter(x), x.expand(2, 3), x[::2])
    seen = []

    def look(y):
        seen.append(_fused.takes(y))
        return y * 1.0

    class Subclass(torch.Tensor):
        pass

    look(x.to("meta"))
    look(x.as_subclass(Subclass))
    look(torch.ones(2, dtype=torch.complex64).conj().imag)
    torch.func.vmap(look)(x)
    torch.func.grad(lambda y: look(y).sum())(x)
    torch.func.functionalize(look)(x)
    torch.fx.experimental.proxy_tensor.make_fx(look)(x)
    with FakeTensorMode() as mode:
        look(mode.from_tensor(x))
    assert not any(seen)
    assert len(seen) >= 8


def test_one_call_is_traced_as_arithmetic():
    """A tensor that is traced with its real values is no plain tensor."""
    graph = torch.fx.experimental.proxy_tensor.make_fx(lambda x: lt.neg_kl(x))(torch.ones(3))
    other = torch.linspace(-3, 3, 3)
    torch.testing.assert_close(graph(other), lt.neg_kl(other))


@pytest.mark.parametrize("grad", [False, True])
@pytest.mark.parametrize("one", [False, True], ids=["normal", "log_alpha"])
def test_a_sum_takes_no_array_of_values(one, grad):
    n = 64 * BLOCK
    arguments = [x.requires_grad_(grad) for x in weights(n)]

    def function(mu, log_sigma2):
        if one:
            return lt.neg_kl(log_sigma2, reduction="sum")
        return lt.neg_kl_normal(mu, log_sigma2, reduction="sum")

    made = []
    empty = _fused.empty

    def count(like):
        made.append(like.numel())
        return empty(like)

    with pytest.MonkeyPatch.context() as patch:
        patch.setattr(_fused, "empty", count)
        function(*arguments)
        tracemalloc.start()
        before = tracemalloc.get_traced_memory()[0]
        tracemalloc.reset_peak()
        result = function(*arguments)
        peak = tracemalloc.get_traced_memory()[1] - before
        tracemalloc.stop()
    assert result.shape == ()
    kept = grad and not one and not _single.available(arguments[0])
    assert made == ([n] * 4 if kept else [])
    assert peak < 4 * 3 * BLOCK * (torch.get_num_threads() + 1) < 4 * n


FORK = """
import os, torch, numpy as np
import logunif_kl.torch as lt
from logunif_kl.torch import _fused
torch.set_num_threads(3)
# By NumPy: torch's own threads do not survive a fork.
x = torch.from_numpy(np.linspace(-9, 9, 8 * _fused._BLOCK))
expected = lt.neg_kl(x).numpy()
assert _fused._pool is not None
child = os.fork()
if child == 0:
    assert _fused._pool is None
    os._exit(0 if np.array_equal(lt.neg_kl(x).numpy(), expected) else 1)
print(os.waitstatus_to_exitcode(os.waitpid(child, 0)[1]))
"""


@pytest.mark.skipif(not hasattr(os, "fork"), reason="there is no fork here")
def test_after_a_fork():
    done = subprocess.run(
        [sys.executable, "-c", FORK], capture_output=True, text=True, check=True, timeout=60
    )
    assert done.stdout == "0\n"
