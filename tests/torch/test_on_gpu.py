"""What runs on a GPU in PyTorch, eager and compiled: errors in ulp, graphs, layers, and training.

The float32 kernels of a GPU have more tests in `test_triton.py`.
"""

import math

import pytest

torch = pytest.importorskip("torch")

import logunif_kl.torch as lkt  # noqa: E402
from logunif_kl.torch import nn  # noqa: E402
from tests.on_gpu import NORMAL, UNARY, assert_accurate, points_of  # noqa: E402
from tests.torch.cases import weights  # noqa: E402

pytestmark = [
    pytest.mark.gpu,
    pytest.mark.skipif(not torch.cuda.is_available(), reason="PyTorch finds no GPU"),
    pytest.mark.filterwarnings("ignore:TensorFloat32 tensor cores"),  # a hint of the compiler
]
# In ulp, eager and compiled: found on an H100.
MOST = {"float64": 2.45, "float32": 3.53}


def on_gpu(array, dtype):
    return torch.from_numpy(array).to("cuda", getattr(torch, dtype))


def back(tensor):
    return tensor.detach().cpu().numpy()


@pytest.fixture(params=[False, True], ids=["eager", "compiled"])
def made(request):
    """Leave a function as it is, and compile it."""
    torch.compiler.reset()
    return torch.compile if request.param else lambda function: function


class TestErrors:
    @pytest.mark.parametrize("dtype", ["float64", "float32"])
    @pytest.mark.parametrize("name", UNARY)
    def test_of_log_alpha(self, name, dtype, made):
        (x,) = points_of(name, dtype)
        got = back(made(getattr(lkt, name))(on_gpu(x, dtype)))
        assert_accurate(name, [x], got, MOST)

    @pytest.mark.parametrize("dtype", ["float64", "float32"])
    @pytest.mark.parametrize("reduction", ["none", "sum"])
    def test_of_mean_and_variance(self, dtype, reduction, made):
        points = points_of("neg_kl_normal", dtype)
        arguments = [on_gpu(p, dtype).requires_grad_() for p in points]
        value = made(lkt.neg_kl_normal)(*arguments, reduction=reduction)
        value.sum().backward()
        results = [value, *(a.grad for a in arguments)]
        for name, result in list(zip(NORMAL, results, strict=True))[reduction == "sum" :]:
            assert_accurate(name, points, back(result), MOST)

    @pytest.mark.parametrize("dtype", ["bfloat16", "float16"])
    def test_of_half_types(self, dtype, made):
        """All numbers of the type."""
        bits = torch.arange(-(2**15), 2**15, dtype=torch.int16)
        x = bits.view(getattr(torch, dtype)).cuda()
        x = x[~x.isnan()].requires_grad_()
        value = made(lkt.neg_kl)(x)
        value.sum().backward()
        exact = lkt.neg_kl(x.detach().double().cpu()).to(x.dtype)
        slope = lkt.neg_kl_grad(x.detach().double().cpu()).to(x.dtype)
        # Rounding a float32 result again differs in a few cases from rounding once.
        for found, wanted in ((value, exact), (x.grad, slope)):
            assert int((found.detach().cpu() != wanted).sum()) <= 10

    @pytest.mark.parametrize("dtype", ["float64", "float32"])
    def test_sums(self, dtype, made):
        mu, log_sigma2 = (
            t.to("cuda", getattr(torch, dtype)) for t in weights(1_000_003, torch.float64)
        )
        exact = math.fsum(back(lkt.neg_kl_normal(mu, log_sigma2).double()))
        found = made(lkt.neg_kl_normal)(mu, log_sigma2, reduction="sum")
        assert float(found) == pytest.approx(exact, rel=4e-7 if dtype == "float32" else 1e-14)

    @pytest.mark.parametrize("dtype", [torch.float64, torch.float32])
    def test_higher_derivatives_and_transforms(self, dtype):
        """As on the CPU."""
        mu, log_sigma2 = weights(100, dtype)

        def total(m, s):
            return lkt.neg_kl_normal(m, s, reduction="sum")

        def found(m, s):
            hessian = torch.func.hessian(total, (0, 1))(m, s)
            flat = [block for row in hessian for block in row]
            along = torch.func.jvp(total, (m, s), (torch.ones_like(m), s))
            each = torch.func.vmap(torch.func.grad(total, (0, 1)))(m, s)
            return [*flat, *along, *each]

        both = zip(found(mu, log_sigma2), found(mu.cuda(), log_sigma2.cuda()), strict=True)
        for wanted, got in both:
            torch.testing.assert_close(got.cpu(), wanted)


def test_a_cuda_graph_repeats_both_passes():
    with torch.cuda.stream(torch.cuda.Stream()):
        mu, log_sigma2 = (t.cuda().requires_grad_() for t in weights(10_000))

        def passes():
            value = lkt.neg_kl_normal(mu, log_sigma2, reduction="sum")
            return value, *torch.autograd.grad(value, (mu, log_sigma2))

        wanted = passes()
        graph = torch.cuda.CUDAGraph()
        with torch.cuda.graph(graph, stream=torch.cuda.current_stream()):
            found = passes()
        graph.replay()
        for a, b in zip(found, wanted, strict=True):
            assert torch.equal(a, b)
        with torch.no_grad():
            mu.mul_(0.5)
        graph.replay()
        for a, b in zip(found, passes(), strict=True):
            assert torch.equal(a, b)


def network():
    with torch.random.fork_rng(devices=[]):
        torch.manual_seed(1)
        plain = torch.nn.Sequential(
            *(torch.nn.Conv2d(1, 8, 3), torch.nn.ReLU(), torch.nn.Flatten()),
            *(torch.nn.Linear(8 * 6 * 6, 50), torch.nn.ReLU(), torch.nn.Linear(50, 10)),
        )
    return nn.to_variational(plain).cuda()


def digits():
    generator = torch.Generator().manual_seed(2)
    x = torch.randn(500, 1, 8, 8, generator=generator)
    return x.cuda(), (x.sum((1, 2, 3)) > 0).long().cuda()


class TestLayers:
    def test_the_divergence_and_its_gradients_are_those_of_the_cpu(self):
        models = network(), network().cpu()
        for model in models:
            nn.kl(model).backward()
        gpu, cpu = models
        torch.testing.assert_close(nn.kl(gpu).cpu(), nn.kl(cpu))
        for a, b in zip(gpu.parameters(), cpu.parameters(), strict=True):
            assert (a.grad is None) == (b.grad is None)
            if a.grad is not None:
                torch.testing.assert_close(a.grad.cpu(), b.grad)

    @pytest.mark.parametrize("half", [None, torch.bfloat16, torch.float16])
    def test_trains(self, half, made):
        model, (x, y) = network(), digits()
        elbo = nn.ELBO(model, nn.categorical_log_likelihood, len(y), kl_weight=1e-3)
        optimizer = torch.optim.Adam(model.parameters(), lr=1e-2, fused=True)
        loss_of = made(lambda x, y: elbo(x, y).loss)
        losses = []
        for _ in range(100):
            optimizer.zero_grad()
            with torch.autocast("cuda", half, enabled=half is not None):
                loss = loss_of(x, y)
            loss.backward()
            optimizer.step()
            losses.append(float(loss.detach()))
        assert losses[-1] < 0.5 * losses[0]
        assert all(map(math.isfinite, losses))
        model.eval()
        wrong = float((model(x).argmax(1) != y).float().mean())
        assert wrong < 0.02
        pruned, sparse = nn.to_deterministic(model, 3.0), nn.to_sparse(model, 3.0, max_density=1.0)
        assert any(isinstance(module, nn.SparseLayer) for module in sparse.modules())
        # Without TF32, in which convolutions have 11 bits.
        with torch.backends.cudnn.flags(enabled=True, allow_tf32=False):
            torch.testing.assert_close(sparse(x), pruned(x), rtol=1e-4, atol=1e-4)
        # In float64 a small weight that is lost is seen too.
        wide = x.double()
        found, wanted = (network.double()(wide) for network in (sparse, pruned))
        torch.testing.assert_close(found, wanted, rtol=1e-9, atol=1e-9)
        predicted = nn.predict(model, x, 20)
        assert predicted.mean.device.type == "cuda"

    def test_both_passes_use_one_noise(self, made):
        layer = nn.VariationalLinear(30, 20, device="cuda", posterior=nn.Additive(initial=-1.0))
        x = torch.randn(50, 30, device="cuda")
        output = made(layer)(x)
        (output.square().sum() / 2.0).backward()
        with torch.no_grad():
            variance = x.square() @ layer.log_sigma2.exp().T
            noise = (output - (x @ layer.weight.T + layer.bias)) / variance.sqrt()
            of_variance = output * noise / (2.0 * variance.sqrt())
            expected = (of_variance.T @ x.square()) * layer.log_sigma2.exp()
        torch.testing.assert_close(layer.log_sigma2.grad, expected, rtol=1e-4, atol=1e-4)
