"""The kernels of C on the tensor's memory: for whom, over how many threads, in how much memory."""

import math
import os
import tracemalloc

import numpy as np
import pytest

from logunif_kl._numpy import ufuncs
from tests import child

torch = pytest.importorskip("torch")

import logunif_kl.torch as lt  # noqa: E402
from logunif_kl.torch import _cpu, _cpu_float32, _cpu_parallel, _kernels  # noqa: E402
from tests.torch.cases import MAIN, layouts, plain_copies, weights  # noqa: E402
from tests.torch.test_transforms import compare  # noqa: E402

FLOAT32 = pytest.mark.skipif(
    not _cpu_float32.available(torch.zeros(1)), reason="the C extension is not in use"
)
EXACT, SINGLE = _cpu.Cpu(), _cpu_float32.CpuFloat32()
BLOCK = _cpu_parallel._BLOCK
SIZES = [0, 1, 7, BLOCK - 1, BLOCK, BLOCK + 1, 5 * BLOCK + 13]


@pytest.fixture(params=[1, 2, 5])
def threads(request, set_threads):
    set_threads(request.param)


@pytest.mark.parametrize("n", SIZES)
@pytest.mark.parametrize("dtype", [torch.float32, torch.float64], ids=str)
def test_it_is_the_ufunc(n, dtype, threads):
    mu, log_sigma2 = weights(n, dtype)
    expected = ufuncs.neg_kl_normal_and_grad(mu.numpy(), log_sigma2.numpy())
    total, *slopes = EXACT.sum_with_gradients(mu, log_sigma2)
    got = [*EXACT.with_gradients(mu, log_sigma2), *slopes, EXACT.value(mu, log_sigma2)]
    for tensor, i in zip(got, (0, 1, 2, 1, 2, 0), strict=True):
        np.testing.assert_array_equal(tensor, expected[i])
    exact = math.fsum(expected[0].astype(np.float64))
    for found in (total, EXACT.value_sum(mu, log_sigma2)):
        assert found.dtype == dtype
        assert abs(found.item() - exact) <= torch.finfo(dtype).eps * abs(exact)
    for order, ufunc in enumerate((ufuncs.neg_kl, ufuncs.neg_kl_grad, ufuncs.neg_kl_hess)):
        np.testing.assert_array_equal(EXACT.of_log_alpha(mu, order), ufunc(mu.numpy()))


@pytest.mark.parametrize(
    ("kernels", "dtype"),
    [
        *((EXACT, dtype) for dtype in (torch.float32, torch.float64, torch.bfloat16)),
        *(pytest.param(SINGLE, d, marks=FLOAT32) for d in (torch.float32, torch.bfloat16)),
    ],
)
def test_a_sum_does_not_depend_on_the_threads(kernels, dtype, set_threads):
    arguments = weights(7 * BLOCK + 5, dtype)
    found = set()
    for count in (1, 2, 3, 7):
        set_threads(count)
        found.add(kernels.value_sum(*arguments).item())
        if kernels is EXACT:
            found.add(kernels.sum_with_gradients(*arguments)[0].item())
    assert len(found) == 1


def test_who_is_taken():
    from torch._subclasses.fake_tensor import FakeTensorMode

    x = torch.ones(3)
    assert _cpu.takes(x, torch.nn.Parameter(x), x.expand(2, 3), x[::2])
    seen = []

    def look(y):
        seen.append(_cpu.takes(y))
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

    def count(like):
        made.append(like.numel())
        return torch.empty(like.shape)

    with pytest.MonkeyPatch.context() as patch:
        patch.setattr(_cpu, "empty", count)
        patch.setattr(_cpu_float32, "empty", count)
        function(*arguments)
        tracemalloc.start()
        before = tracemalloc.get_traced_memory()[0]
        tracemalloc.reset_peak()
        result = function(*arguments)
        peak = tracemalloc.get_traced_memory()[1] - before
        tracemalloc.stop()
    assert result.shape == ()
    kept = grad and not one and not _cpu_float32.available(arguments[0])
    assert made == ([n] * 4 if kept else [])
    scratch = 4 * 3 * BLOCK * (torch.get_num_threads() + 1)
    # Without C, the arithmetic over NumPy has temporaries of its own in each block.
    assert peak < (2 * n if ufuncs.kernel_name() == "python" else scratch) < 4 * n


# PyTorch's own threads are not in the child: what waits for them, as plain operations do, hangs.
FORK = """
import torch, numpy as np
import logunif_kl.torch as lt
from logunif_kl.torch import _cpu_parallel
from tests.faults.test_processes import in_a_fork
torch.set_num_threads(3)
x = torch.from_numpy(np.linspace(-9, 9, 8 * _cpu_parallel._BLOCK))
expected = lt.neg_kl(x).numpy()
assert _cpu_parallel._pool is not None

def same():
    assert _cpu_parallel._pool is None
    return np.array_equal(lt.neg_kl(x).numpy(), expected)

print(in_a_fork(same, 30.0))
"""
FORK_FLOAT32 = """
import torch
import logunif_kl.torch as lt
from tests.faults.test_processes import in_a_fork
torch.set_num_threads(2)
mu, log_sigma2 = torch.linspace(-3, 3, 300_000).requires_grad_(), torch.full((300_000,), -8.0)

def found():
    value = lt.kl_normal(mu, log_sigma2, reduction="sum")
    (slope,) = torch.autograd.grad(value, mu)
    return value.item(), slope.numpy().tobytes()

before = found()
print(in_a_fork(lambda: found() == before, 30.0))
"""
# Without it, PyTorch reads memory that was freed.
BY_C = pytest.mark.skipif(_kernels.library() is None, reason=str(_kernels.why_not()))


@pytest.mark.skipif(not hasattr(os, "fork"), reason="there is no fork here")
@pytest.mark.parametrize(
    "code", [FORK, pytest.param(FORK_FLOAT32, marks=BY_C)], ids=["exact", "float32"]
)
def test_after_a_fork(code):
    assert child.output(code) == "0\n"


def test_tensors_of_zeros_that_have_no_memory():
    zeros = torch._efficientzerotensor(3)
    log_sigma2 = torch.full((3,), -1.0)
    assert lt.neg_kl_normal(zeros, log_sigma2).tolist() == [0.0, 0.0, 0.0]
    leaf = torch.ones(3, requires_grad=True)
    (gradient,) = torch.autograd.grad(lt.neg_kl_normal(leaf, log_sigma2), leaf, zeros)
    assert (gradient + 0.0 * leaf.detach()).tolist() == [0.0, 0.0, 0.0]


AT_EXIT = """
import atexit, sys, torch
import logunif_kl.torch as lt
from logunif_kl.torch import _cpu_parallel
torch.set_num_threads(1)
x = torch.linspace(-9, 9, 8 * _cpu_parallel._BLOCK)

def found():
    return lt.neg_kl(x), lt.neg_kl(x, reduction="sum"), lt.neg_kl_normal(x, x)

expected = found()
torch.set_num_threads(3)
if sys.argv[1] == "begun":
    lt.neg_kl(x)
assert (_cpu_parallel._pool is not None) is (sys.argv[1] == "begun")
atexit.register(lambda: print(*map(torch.equal, found(), expected)))
"""


@pytest.mark.parametrize("pool", ["begun", "none"])
def test_when_the_interpreter_ends(pool):
    done = child.run(AT_EXIT, pool)
    assert (done.returncode, done.stdout, done.stderr) == (0, "True True True\n", "")


@FLOAT32
class TestFloat32:
    """Float32 throughout, value and derivatives apart."""

    @pytest.mark.parametrize("n", SIZES)
    def test_it_is_the_ufunc(self, n, threads):
        ufuncs = _kernels.ufuncs()
        mu, log_sigma2 = weights(n)
        factor = torch.linspace(-1, 2, n)
        m, s, f = (x.numpy() for x in (mu, log_sigma2, factor))
        np.testing.assert_array_equal(SINGLE.value(mu, log_sigma2), ufuncs.value(m, s))
        for upstream, plain in ((factor, f), (torch.tensor(0.3), np.float32(0.3))):
            slopes = SINGLE.gradient(upstream, mu, log_sigma2)
            for got, wanted in zip(slopes, ufuncs.gradient(plain, m, s), strict=True):
                np.testing.assert_array_equal(got, wanted)
        exact = math.fsum(ufuncs.value(m, s))
        found = SINGLE.value_sum(mu, log_sigma2)
        assert found.dtype == torch.float32
        assert abs(found.item() - exact) <= 2.0**-24 * (1 + 2.0**-20) * abs(exact)

    def test_a_sum_beyond_float32(self):
        mu = torch.full((100,), 3e38)
        assert SINGLE.value_sum(mu, torch.full((100,), -3e38)).item() == -math.inf
        assert SINGLE.value_sum(mu[:1], torch.full((1,), -3e38)).item() == pytest.approx(-1.5e38)

    @pytest.mark.parametrize("dtype", [torch.bfloat16, torch.float16], ids=str)
    def test_half_types(self, dtype, threads):
        half = weights(3 * BLOCK + 1, dtype)
        wide = [x.float() for x in half]
        with torch.inference_mode():
            assert torch.equal(SINGLE.value(*half), SINGLE.value(*wide).to(dtype))
            for factor in (torch.tensor(0.3), torch.linspace(-1, 2, len(half[0])).to(dtype)):
                expected = SINGLE.gradient(factor.float(), *wide)
                got = SINGLE.gradient(factor, *half)
                same = [torch.equal(x, y.to(dtype)) for x, y in zip(got, expected, strict=True)]
                assert same == [True] * 2
        total = SINGLE.value_sum(*half)
        assert total.dtype == torch.float32
        assert total.item() == pytest.approx(SINGLE.value_sum(*wide).item(), rel=2.0**-23)

    @pytest.mark.parametrize("name", layouts())
    def test_layouts(self, name):
        factor, *given = layouts()[name]
        plain = plain_copies(*given)
        value, slopes = SINGLE.value(*given), SINGLE.gradient(factor, *given)
        upstream = factor.expand(value.shape).contiguous()
        wanted = SINGLE.value(*plain), *SINGLE.gradient(upstream, *plain)
        assert all(map(torch.equal, (value, *slopes), wanted))
        total = SINGLE.value_sum(*given).item()
        assert total == pytest.approx(math.fsum(value.flatten().tolist()), rel=2.0**-23)

    @pytest.mark.parametrize("reduction", ["none", "sum", "mean"])
    def test_nothing_is_kept_but_the_arguments(self, reduction):
        mu, log_sigma2 = (x.requires_grad_() for x in weights(5000))
        kept = []
        with torch.autograd.graph.saved_tensors_hooks(kept.append, lambda x: x):
            lt.neg_kl_normal(mu, log_sigma2, reduction=reduction)
        assert [x.data_ptr() for x in kept] == [mu.data_ptr(), log_sigma2.data_ptr()]

    @pytest.mark.parametrize("reduction", ["none", "sum"])
    def test_the_factor_of_a_sum_stays_one_number(self, reduction, monkeypatch):
        seen = []
        direct = _kernels.library()
        if direct is None:
            pytest.skip(_kernels.why_not())

        class Watched:
            value, value_sum = direct.value, direct.value_sum

            @staticmethod
            def gradient(factor, *arguments):
                seen.append(any(factor.stride()))
                return direct.gradient(factor, *arguments)

        monkeypatch.setattr(_cpu_float32, "library", lambda: Watched)
        mu, log_sigma2 = (x.reshape(10, 50).T.requires_grad_() for x in weights(500))
        lt.neg_kl_normal(mu, log_sigma2, reduction=reduction).sum().backward()
        assert seen == [False]
        assert mu.grad.shape == log_sigma2.grad.shape == (50, 10)

    def test_a_tangent_of_a_backward(self):
        """The forward mode over a backward without a graph: the derivative is not dropped."""
        import torch.autograd.forward_ad as forward

        mu, log_sigma2 = MAIN[1].arguments(torch.float32)
        with forward.dual_level():
            dual = forward.make_dual(mu.requires_grad_(), torch.full_like(mu, 2.0))
            (slope,) = torch.autograd.grad(lt.neg_kl_normal(dual, log_sigma2).sum(), [dual])
            found = forward.unpack_dual(slope).tangent / 2.0
        compare(MAIN[1], {(2, 0): found}, torch.float32)


@FLOAT32
def test_the_default_dtype_is_not_that_of_a_sum():
    _cpu_float32._number.cache_clear()
    before = torch.get_default_dtype()
    mu = torch.ones(3, dtype=torch.float32)
    expected = lt.neg_kl_normal(mu, mu, reduction="sum")
    _cpu_float32._number.cache_clear()
    torch.set_default_dtype(torch.float64)
    try:
        found = lt.neg_kl_normal(mu, mu, reduction="sum")
    finally:
        torch.set_default_dtype(before)
    assert (found.dtype, found) == (torch.float32, expected)


WITHOUT = """
import sys
sys.modules["logunif_kl._numpy._float32"] = None
import torch
import logunif_kl.torch as lt
from logunif_kl.torch import _cpu_float32
assert not _cpu_float32.available(torch.zeros(1))
mu = torch.tensor([0.0, 1.0, -1.0], requires_grad=True)
lt.neg_kl_normal(mu, 0.0, reduction="sum").backward()
print(mu.grad)
"""


@pytest.mark.parametrize("kernel", ["", "python"])
def test_without_them(kernel):
    found = child.output(WITHOUT, env={**os.environ, "LOGUNIF_KL_KERNEL": kernel})
    assert found == "tensor([-0.0000, -0.7248,  0.7248])\n"
