"""Gaussian weights of any module: when they are drawn, and what is computed with them."""

import contextlib
import copy
import gc
import itertools
import math
import pickle
import threading
import warnings
from concurrent.futures import ThreadPoolExecutor
from functools import partial

import pytest

torch = pytest.importorskip("torch")

import logunif_kl as lk  # noqa: E402
from logunif_kl.nn.torch.noise import normal  # noqa: E402
from logunif_kl.nn.torch.noise.draws import Drawn  # noqa: E402
from logunif_kl.torch import nn  # noqa: E402
from tests.torch.nn.cases import (  # noqa: E402
    Calls,
    copies,
    every_backend,
    generator,
    kl_by_parameters,
    seeded,
)


class Loop(torch.nn.Module):
    """A cell that runs over time steps, and a transposed convolution."""

    def __init__(self):
        super().__init__()
        self.cell, self.up = torch.nn.GRUCell(3, 4), torch.nn.ConvTranspose1d(4, 2, 3)

    def forward(self, x):
        state = x.new_zeros(x.shape[1], 4)
        for each in x:
            state = self.cell(each, state)
        return self.up(state.unsqueeze(-1))


class Twice(torch.nn.Module):
    """Two modules that share a weight, and a parameter that the module itself uses."""

    def __init__(self):
        super().__init__()
        self.first, self.second = torch.nn.Bilinear(3, 3, 3), torch.nn.Bilinear(3, 3, 3)
        self.second.weight = self.first.weight
        self.scale = torch.nn.Parameter(torch.randn(3))

    def forward(self, x):
        return self.second(self.first(x, x), x) * self.scale


def attention(*options):
    return torch.nn.MultiheadAttention(4, 2, *options, dropout=0.0, batch_first=True)


# A module, and how it is called.
MODULES = {
    "attention": (attention, lambda m, x: m(x, x, x)[0], (2, 3, 4)),
    "attention of other widths": (
        partial(torch.nn.MultiheadAttention, 4, 2, kdim=3, vdim=5, batch_first=True),
        lambda m, x: m(x, x[..., :3], torch.cat([x, x[..., :1]], -1))[0],
        (2, 3, 4),
    ),
    "LSTM": (partial(torch.nn.LSTM, 3, 4, 2), lambda m, x: m(x)[0], (5, 2, 3)),
    "GRU": (partial(torch.nn.GRU, 3, 4, bidirectional=True), lambda m, x: m(x)[0], (5, 2, 3)),
    "RNN": (partial(torch.nn.RNN, 3, 4, bias=False), lambda m, x: m(x)[0], (5, 2, 3)),
    "LSTMCell": (partial(torch.nn.LSTMCell, 3, 4), lambda m, x: m(x)[0], (2, 3)),
    "RNNCell": (partial(torch.nn.RNNCell, 3, 4), lambda m, x: m(x), (2, 3)),
    "transposed 1d": (partial(torch.nn.ConvTranspose1d, 2, 3, 3), lambda m, x: m(x), (2, 2, 4)),
    "transposed 2d": (
        partial(torch.nn.ConvTranspose2d, 2, 4, 3, stride=2, groups=2),
        lambda m, x: m(x),
        (2, 2, 3, 3),
    ),
    "transposed 3d": (
        partial(torch.nn.ConvTranspose3d, 1, 2, 2),
        lambda m, x: m(x),
        (1, 1, 2, 2, 2),
    ),
    "bilinear": (partial(torch.nn.Bilinear, 3, 3, 2), lambda m, x: m(x, x), (4, 3)),
    "bags": (
        partial(torch.nn.EmbeddingBag, 5, 3),
        lambda m, x: m((x.abs() * 2).long().clamp(max=4)),
        (2, 4),
    ),
    "encoder layer": (
        partial(torch.nn.TransformerEncoderLayer, 4, 2, 8, dropout=0.0, batch_first=True),
        lambda m, x: m(x),
        (2, 3, 4),
    ),
    "loop": (Loop, lambda m, x: m(x), (3, 2, 3)),
    "twice": (Twice, lambda m, x: m(x), (2, 3)),
}
CERTAIN, NOISY = nn.Additive(initial=-60.0), nn.Additive(initial=-1.0)
every_module = pytest.mark.parametrize("name", MODULES)


def made(name, **options):
    torch.manual_seed(1)
    make, call, shape = MODULES[name]
    plain = make()
    options = {"posterior": nn.Additive(initial=-2.0), **options}
    return plain, nn.to_variational(plain, **options), call, torch.randn(shape)


def weights(model):
    """Return the names of Gaussian weights, each shared one once."""
    suffix = "_log_sigma2"
    return [n.removesuffix(suffix) for n, _ in model.named_parameters() if n.endswith(suffix)]


@pytest.fixture
def drawn(monkeypatch):
    """Record all noise that is drawn."""
    found, original = [], normal.normals

    def normals(*given):
        found.append(original(*given))
        return found[-1]

    monkeypatch.setattr(normal, "normals", normals)
    return found


@every_module
class TestCalls:
    def test_in_evaluation_mode_the_means(self, name):
        plain, model, call, x = made(name)
        assert (call(model.eval(), x) == call(plain.eval(), x)).all()
        state = model.state_dict()
        assert {n: p for n, p in state.items() if "log_sigma2" not in n}.keys() == {
            *plain.state_dict()
        }

    def test_one_draw_and_its_gradients(self, name, drawn, monkeypatch):
        """As of the plain network with these weights, by autograd."""
        plain, model, call, x = made(name, modules=_sampled_only)
        names = weights(model)
        noises = {}
        original = nn.SampledModule._lk_with_noise

        def sample(self, name, noise):
            noises[id(self._parameters[name])] = noise
            return original(self, name, noise)

        monkeypatch.setattr(nn.SampledModule, "_lk_with_noise", sample)
        output = call(model, x)
        assert len(drawn) == len(names)
        output.square().sum().backward()
        state = dict(plain.named_parameters())
        own = {n: state[n].detach().clone().requires_grad_() for n in names}
        variances = {n: torch.full_like(own[n], -2.0).requires_grad_() for n in names}
        given = {
            n: own[n] + (0.5 * variances[n]).exp() * noises[id(model.get_parameter(n))]
            for n in names
        }
        with torch.nn.utils.stateless._reparametrize_module(plain, given, tie_weights=True):
            for each in plain.modules():
                if isinstance(each, torch.nn.RNNBase):
                    each._flat_weights = [getattr(each, n) for n in each._flat_weights_names]
            expected = call(plain, x)
        torch.testing.assert_close(output, expected)
        expected.square().sum().backward()
        for n in names:
            torch.testing.assert_close(model.get_parameter(n).grad, own[n].grad)
            found = model.get_parameter(f"{n}_log_sigma2").grad
            torch.testing.assert_close(found, variances[n].grad)
        assert (call(model, x) != output).any()
        assert len(drawn) == 2 * len(names)

    def test_the_kl(self, name):
        plain, model, _, _ = made(name)
        model = model.double()
        expected, count = kl_by_parameters(model)
        assert nn.kl(model).item() == pytest.approx(expected, rel=1e-13)
        by_name = sum(value.item() for value in nn.named_kl(model).values())
        assert by_name == pytest.approx(expected, rel=1e-13)
        nn.kl(model).backward()
        assert all(model.get_parameter(n).grad.abs().max() > 0 for n in weights(model))
        of_model = nn.conversion(model)
        every = sum(of_model.variational.values()) + sum(n for n, _ in of_model.left.values())
        assert every == sum(p.numel() for p in model.parameters())
        gaussian = nn.sparsity(model).layers
        assert gaussian.keys() - {"not converted"} == nn.log_alpha(model).keys()
        assert count == sum(n.weights for key, n in gaussian.items() if key != "not converted")
        assert nn.sparsity(plain).weights == nn.sparsity(model).weights
        assert {*nn.parameter_groups(model, 0.1)[1]["params"]} == {
            p for n, p in model.named_parameters() if "log_sigma2" in n
        }

    def test_pruned(self, name):
        plain, model, call, x = made(name)
        threshold = nn.density_threshold(model, 0.4)
        counts = nn.sparsity(model, threshold)
        gaussian = sum(v.weights for k, v in counts.layers.items() if k != "not converted")
        kept = sum(v.kept for k, v in counts.layers.items() if k != "not converted")
        assert kept == math.floor(0.4 * gaussian + 1e-6)
        dense = nn.to_deterministic(model, threshold).eval()
        assert type(dense) is type(plain)
        assert dense.state_dict().keys() == plain.state_dict().keys()
        assert nn.sparsity(dense) == counts
        assert not any(m._forward_hooks or m._forward_pre_hooks for m in dense.modules())
        expected = call(dense, x)
        with warnings.catch_warnings():  # Some modules may keep dead units.
            warnings.filterwarnings("ignore", "to_compact kept")
            compact = nn.to_compact(model, threshold)
        for small in (nn.to_sparse(model, threshold), compact):
            torch.testing.assert_close(call(small, x), expected, rtol=1e-5, atol=1e-6)
        loaded = nn.load_sparse(model, nn.to_sparse(model, threshold).state_dict())
        torch.testing.assert_close(call(loaded, x), expected, rtol=1e-5, atol=1e-6)
        if name == "twice":
            return  # a shared weight cannot have two masks
        nn.prune(model, threshold)
        torch.testing.assert_close(call(model.eval(), x), expected)
        assert nn.sparsity(model) == counts
        nn.prune(model, threshold)  # again, with the same masks
        optimizer = torch.optim.SGD(model.parameters(), lr=1e-3)
        for _ in range(2):
            optimizer.zero_grad()
            (call(model.train(), x).sum() + 1e-3 * nn.kl(model)).backward()
            optimizer.step()
        assert nn.sparsity(model, math.inf).kept == counts.kept
        again = nn.to_deterministic(pickle.loads(pickle.dumps(model))).eval()
        torch.testing.assert_close(call(again, x), call(model.eval(), x))

    def test_copies(self, name):
        plain, model, call, x = made(name)
        loaded = nn.to_variational(plain)
        loaded.load_state_dict(model.state_dict())
        expected = seeded(call, model, x)
        for each in (*copies(model), loaded):
            assert type(each) is type(model)
            assert (seeded(call, each, x) == expected).all()

    def test_a_sample_that_is_kept(self, name, drawn):
        _, model, call, x = made(name)
        for mode in (True, False):
            model.train(mode)
            with nn.sampled(model, generator(3)):
                count = len(drawn)
                first = call(model, x)
                assert (call(model, x) == first).all()
                assert len(drawn) == count
                first.sum().backward()
                call(model, x).sum().backward()  # with a graph of its own
            plain = nn.to_sample(model, generator(3))
            assert plain.training is mode
            assert not any(isinstance(m, normal.StochasticModule) for m in plain.modules())
            torch.testing.assert_close(call(plain, x), first, rtol=1e-5, atol=1e-6)
        with nn.sampled(model):
            assert (call(model, x) != first).any()
        assert (call(model, x) == call(model, x)).all()

    # Where a recurrent module breaks the graph, the compiler looks at samples, which are no leaves.
    @pytest.mark.filterwarnings("ignore:The .grad attribute of a Tensor")
    @every_backend
    def test_compiled(self, name, backend):
        _, model, call, x = made(name)
        whole = name not in ("LSTM", "GRU", "RNN")  # torch.compile does not trace these modules
        compiled = torch.compile(model, fullgraph=whole, backend=backend)
        assert (call(compiled, x) != call(compiled, x)).any()
        (call(compiled, x).square().sum() + nn.kl(model)).backward()
        assert all(p.grad is not None for p in model.parameters())
        with nn.sampled(model):
            expected = call(model, x)
            torch.testing.assert_close(call(compiled, x), expected, rtol=1e-5, atol=1e-6)
        assert (call(compiled, x) != call(compiled, x)).any()
        model.eval()
        torch.testing.assert_close(call(compiled, x), call(model, x), rtol=1e-5, atol=1e-6)
        torch.compiler.reset()


def _sampled_only(name, module):
    """Leave the layers plain, so that all noise is that of sampled weights."""
    return not isinstance(module, (torch.nn.Linear, torch.nn.Embedding)) or "out_proj" in name


class TestDraws:
    def test_one_for_each_outermost_call(self, drawn):
        model = nn.to_variational(Loop())
        x = torch.ones(5, 2, 3)
        for calls in (1, 2):
            model(x)
            assert len(drawn) == 3 * calls  # of two matrices of the cell, and of the convolution
        model.cell(x[0])
        model.cell(x[0])
        assert len(drawn) == 10
        outer = torch.nn.Sequential(model)  # not converted, so that it is no outermost call
        outer(x)
        assert len(drawn) == 13

    def test_shared_with_a_layer(self):
        table, bag = torch.nn.Linear(2, 5, bias=False), torch.nn.EmbeddingBag(5, 2)
        bag.weight = table.weight
        model = nn.to_variational(torch.nn.ModuleList([table, bag]))
        assert model[1].weight_log_sigma2 is model[0].log_sigma2
        assert list(nn.named_kl(model)) == ["0"]

    def test_the_fast_path_of_attention_is_right(self):
        """In evaluation mode, without gradients, and within `sampling`."""
        model = made("encoder layer", posterior=NOISY)[1].eval()
        x = torch.randn(2, 3, 4)
        with torch.no_grad(), nn.sampled(model, generator(3)):
            found = model(x)
        assert (found != model(x)).any()
        torch.testing.assert_close(found, nn.to_sample(model, generator(3))(x))

    def test_hooks_run_in_calls_only(self):
        """A hook that changes the output of an embedding does not change its sample."""
        table = nn.VariationalEmbedding(5, 2, padding_idx=1, posterior=NOISY)
        table.register_forward_hook(lambda module, x, output: 10.0 * output)
        x = torch.arange(5)
        with nn.sampled(table, generator(3)):
            found = table(x)
        assert (nn.to_sample(table, generator(3))(x) == found).all()

    def test_a_generator(self):
        drawn_by, x = generator(3), torch.ones(5, 2, 3)
        model, state = nn.to_variational(Loop(), generator=drawn_by), torch.get_rng_state()
        first = model(x)
        drawn_by.manual_seed(3)
        assert (model(x) == first).all()
        assert torch.equal(torch.get_rng_state(), state)

    def test_options(self):
        model = nn.to_variational(torch.nn.LSTM(2, 2), penalty="molchanov")
        weight = model.weight_ih_l0.detach().double(), model.weight_ih_l0_log_sigma2.double()
        log_alpha = weight[1] - 2.0 * weight[0].abs().log()
        expected = -lk.methods.molchanov(log_alpha.detach().numpy()).sum()
        found = float(nn.named_kl(model)["weight_ih_l0"].detach())
        assert found == pytest.approx(expected, rel=1e-5)
        assert repr(model).startswith("SampledLSTM(2, 2, sampled=['weight_ih_l0', ")

    def test_half_types(self):
        noisy = nn.Additive(initial=60.0)
        model = nn.to_variational(torch.nn.Bilinear(2, 2, 2), posterior=noisy).half()
        assert torch.isfinite(model(torch.zeros(1, 2).half(), torch.ones(1, 2).half())).all()
        model = nn.to_variational(torch.nn.Bilinear(2, 2, 2)).bfloat16()
        assert nn.kl(model).dtype == torch.float32
        assert model(*[torch.ones(1, 2).bfloat16()] * 2).dtype == torch.bfloat16

    def test_in_threads_a_call_keeps_its_own_samples(self):
        barrier, x = threading.Barrier(3), torch.ones(2, 3)

        def run(cell, x):
            first = cell(x)
            barrier.wait(60.0)  # All threads are within their calls.
            return torch.stack([first, cell(x)])

        model = nn.to_variational(Calls(run, torch.nn.GRUCell(3, 3)), posterior=NOISY)
        with ThreadPoolExecutor(3) as pool:
            found = [*pool.map(model, [x] * 3)]
        for each in found:
            assert torch.equal(each[0], each[1])
        assert not torch.equal(found[0], found[1])


class TestCare:
    """Calls, networks and attributes that are out of the ordinary."""

    def test_a_call_that_failed(self, drawn):
        """By an error before the last draw, or by an interruption after it."""

        class Fails(Loop):
            interrupted = False

            def forward(self, x):
                found = super().forward(x)
                if self.interrupted:
                    raise KeyboardInterrupt
                return found

        model, x = nn.to_variational(Fails()), torch.ones(5, 2, 3)
        for given, error in ((torch.ones(5, 2, 7), RuntimeError), (x, KeyboardInterrupt)):
            model.interrupted = error is KeyboardInterrupt
            for _ in range(2):
                with pytest.raises(error):
                    model(given)
        model.interrupted, count = False, len(drawn)
        first, second = model(x), model(x)
        assert len(drawn) == count + 6
        assert model.cell._lk_held.own.calls == []
        assert (first != second).any()
        first.sum().backward()

    def test_a_part_that_is_called_after_a_call_failed(self):
        """It is no part of that call any more, whose samples have ended."""
        model = nn.to_variational(torch.nn.Sequential(torch.nn.GRU(3, 4), torch.nn.ReLU()))
        x = torch.ones(5, 2, 3)
        with pytest.raises(TypeError):
            model(x)  # the GRU returns a tuple
        assert not torch.equal(model[0](x)[0], model[0](x)[0])

    @pytest.mark.parametrize("error", [KeyboardInterrupt, ValueError])
    def test_an_error_in_a_part_that_the_network_catches(self, error):
        """PyTorch calls no hooks after the first, and not `enter` if another hook raises before."""
        cell = torch.nn.GRUCell(3, 3)

        def stop(module, args):
            raise error

        if error is ValueError:
            cell.register_forward_pre_hook(stop)

        def run(part, other, x):
            with contextlib.suppress(error):
                part(x)
            return other(x) - other(x)

        model = nn.to_variational(
            Calls(run, Calls(lambda cell, x: cell(x), cell), torch.nn.GRUCell(3, 3)),
            modules=torch.nn.GRUCell,
        )
        if error is KeyboardInterrupt:
            model.held[0].held[0].register_forward_pre_hook(stop)
        for _ in range(2):
            assert (model(torch.ones(2, 3)) == 0.0).all()
        other = model.held[1]
        assert (other(torch.ones(2, 3)) != other(torch.ones(2, 3))).any()

    def test_a_module_that_calls_itself(self, drawn):
        class Recursive(torch.nn.Module):
            def __init__(self):
                super().__init__()
                self.cell = torch.nn.RNNCell(2, 2)

            def forward(self, x, times=3):
                return self(self.cell(x), times - 1) if times else x

        nn.to_variational(Recursive())(torch.ones(1, 2))
        assert len(drawn) == 2

    @pytest.mark.parametrize("context", [torch.no_grad, torch.inference_mode])
    def test_a_first_use_without_gradients(self, context, drawn):
        def run(cell, x):
            with context():
                state = cell(x)
            return cell(x, state.clone())

        model = nn.to_variational(Calls(run, torch.nn.GRUCell(3, 3)))
        model(torch.ones(2, 3)).sum().backward()
        assert all(p.grad is not None for p in model.parameters())
        assert len(drawn) == 2

    @pytest.mark.filterwarnings("ignore:The PyTorch API of nested tensors")
    def test_a_padding_mask_of_a_transformer(self):
        layer = torch.nn.TransformerEncoderLayer(4, 2, 8, batch_first=True)
        plain = torch.nn.TransformerEncoder(layer, 2).eval()
        model = nn.to_variational(plain)
        x, mask = torch.randn(2, 3, 4), torch.tensor([[False, False, True], [False] * 3])
        with torch.no_grad():
            found, expected = (each(x, src_key_padding_mask=mask) for each in (model, plain))
        torch.testing.assert_close(found[~mask], expected[~mask])
        assert nn.to_deterministic(model).use_nested_tensor is plain.use_nested_tensor

    def test_names_of_users(self):
        class Vae(torch.nn.Module):
            def __init__(self):
                super().__init__()
                self.latent = torch.nn.Parameter(torch.ones(2, 2))
                self.generator, self.penalty = torch.nn.Linear(2, 2), 10.0

            def _sample(self, x):
                return x @ self.latent

            _mean = _weight = _draws = _normals = _kept = _held = _sample

            def forward(self, x):
                return self.generator(self._sample(x) + self._mean(x) + self._draws(x))

        model = nn.to_variational(Vae(), modules=(), parameters=["latent"])
        x = torch.ones(1, 2)
        assert (model(x) != model(x)).any()
        assert model.penalty == 10.0
        plain = nn.to_deterministic(model)
        assert plain.penalty == 10.0
        assert (plain(x) == model.eval()(x)).all()
        nn.predict(model, x, 3, generator=torch.Generator())
        nn.checkpoint_contexts(model)

    def test_dropout_of_converted_modules(self):
        class Own(torch.nn.Module):
            def __init__(self):
                super().__init__()
                self.w = torch.nn.Parameter(torch.eye(4))

            def forward(self, x):
                return torch.nn.functional.dropout(x @ self.w, 0.5, self.training)

        mha = torch.nn.MultiheadAttention(4, 2, dropout=0.5, batch_first=True)
        for model in (Calls(lambda m, x: m(x, x, x)[0], mha), Calls(lambda m, x: m(x), Own())):
            options = {"modules": type(model.held[0]), "posterior": CERTAIN}
            made = nn.to_variational(model, **options).eval()
            found = nn.predict(made, torch.randn(2, 3, 4), 8, likelihood="normal", modules=Own)
            assert found.variance.max() > 1e-4

    def test_parameters_that_are_reset(self):
        for make in (lambda: torch.nn.GRUCell(3, 2), lambda: torch.nn.LSTM(3, 2)):
            model = nn.to_variational(make(), posterior=nn.Additive(initial=-7.0))
            model.reset_parameters()
            for name, parameter in model.named_parameters():
                assert bool((parameter == -7.0).all()) is name.endswith("log_sigma2")

    @pytest.mark.filterwarnings("ignore:The .grad attribute")  # by the compiler
    @pytest.mark.parametrize("broken", [False, True])
    def test_a_compiled_network_draws_once(self, broken):
        """Also in another thread than the first, and if the compiler breaks the graph."""

        def twice(cell, x):
            first = cell(x)
            if broken:
                torch._dynamo.graph_break()
            return torch.stack([first, cell(x)])

        torch.compiler.reset()
        model, x = nn.to_variational(Calls(twice, torch.nn.GRUCell(3, 3))), torch.ones(2, 3)
        run = torch.compile(model, backend="eager")
        outputs = [run(x), run(x), ThreadPoolExecutor(1).submit(run, x).result()]
        assert all(torch.equal(first, second) for first, second in outputs)
        assert all((one != two).any() for one, two in itertools.combinations(outputs, 2))

    @pytest.mark.filterwarnings("ignore:The .grad attribute")  # by the compiler
    @pytest.mark.parametrize("part", [False, True])
    def test_compiled_before_the_conversion(self, part):
        torch.compiler.reset()
        plain, x = (
            torch.nn.Sequential(torch.nn.Linear(3, 3), torch.nn.GRUCell(3, 2)),
            torch.ones(2, 3),
        )
        expected = plain(x)
        compiled = torch.compile(plain[1] if part else plain, backend="eager")
        model = nn.to_variational(torch.nn.Sequential(plain[0], compiled) if part else compiled)
        assert (model(x) != model(x)).any()
        assert torch.equal(nn.to_deterministic(model)(x), expected)
        close = torch.testing.assert_close
        close(nn.to_sparse(model, threshold=math.inf)(x), expected)
        close(nn.to_compact(model, threshold=math.inf)(x), expected)

    @pytest.mark.slow
    @pytest.mark.filterwarnings("ignore:The .grad attribute")  # by the compiler
    def test_dynamic_shapes_leave_no_samples(self):
        """The compiler breaks the graph at the GRU, after the call has begun."""

        class Net(torch.nn.Module):
            def __init__(self):
                super().__init__()
                self.first, self.gru = torch.nn.Linear(3, 2), torch.nn.GRU(2, 2)

            def forward(self, x):
                return self.gru(self.first(x))[0]

        torch.compiler.reset()
        model = nn.to_variational(Net(), posterior=nn.Additive(initial=0.0))
        run = torch.compile(model, backend="eager", dynamic=True)
        for batch in (2, 3):
            run(torch.randn(batch, 4, 3))
            assert model.gru._lk_held.own.samples == {}

    @pytest.mark.parametrize("context", [nn.sampling, nn.sampled])
    def test_weights_that_are_reset_in_any_state(self, context):
        """As for cross-validation, or after `to_empty`: all weights are drawn anew."""

        class Own(torch.nn.Module):
            def __init__(self):
                super().__init__()
                self.w = torch.nn.Parameter(torch.zeros(2, 2))

            def reset_parameters(self):
                with torch.no_grad():
                    self.w.normal_()

        for make in (Own, lambda: torch.nn.Linear(2, 2), lambda: torch.nn.MultiheadAttention(2, 1)):
            chosen = {"parameters": lambda name, _: name == "w"}
            model = nn.to_variational(make(), posterior=nn.Additive(initial=-7.0), **chosen)
            with torch.no_grad():
                for p in model.parameters():
                    p.fill_(3.0)
            nn.prune(model, 100.0)
            with context(model):
                for module in model.modules():
                    if hasattr(module, "reset_parameters"):
                        module.reset_parameters()
            for name, p in model.named_parameters():
                assert (p != 3.0).all()
                assert bool((p == -7.0).all()) is ("log_sigma2" in name)

    @pytest.mark.parametrize("kind", [nn.Additive, nn.Multiplicative, nn.Scaled])
    def test_variances_that_hugging_face_has_not_loaded(self, kind):
        """It marks loaded parameters, and then each module after its own layers are initialised.

        The means that it loaded stay, although the variances are missing.
        """
        parts = [nn.VariationalLinear(2, 2, posterior=kind(initial=-7.0))]
        parts.append(nn.to_variational(torch.nn.LSTM(2, 2), posterior=nn.Additive(initial=-7.0)))

        def _initialize_weights(module):
            if not getattr(module, "_is_hf_initialized", False):
                own = [p for name, p in module.named_parameters() if is_mean(name)]
                for p in own:
                    p.data.fill_(5.0)  # as many classes do, whether it was loaded or not
                module._is_hf_initialized = True

        def is_mean(name):
            return "log_" not in name and name != "scale"

        for loaded, each in itertools.product(("all", "means", "none"), parts):
            each.__dict__.pop("_is_hf_initialized", None)
            with torch.no_grad():
                for name, p in each.named_parameters():
                    p._is_hf_initialized = loaded == "all" or (loaded == "means" and is_mean(name))
                    p.fill_(3.0)
            _initialize_weights(each)
            for name, p in each.named_parameters():
                initial = 5.0 if is_mean(name) else 1.0 if name == "scale" else -7.0
                assert bool((p == (3.0 if p._is_hf_initialized else initial)).all())

    def test_a_module_without_a_reset_has_none(self):
        model = nn.to_variational(Twice(), parameters=["scale"])
        assert not hasattr(model, "reset_parameters")

    def test_slices_of_a_list(self):
        def run(weights, x):
            for weight in weights[:-1]:
                x = x @ weight
            return x @ weights[-1]

        weights = torch.nn.ParameterList([torch.randn(2, 2) for _ in range(3)])
        plain = Calls(run, weights)
        model, x = nn.to_variational(plain, parameters=lambda *_: True), torch.randn(3, 2)
        model(x).sum().backward()
        assert all(p.grad is not None for p in model.parameters())
        assert torch.equal(model.eval()(x), plain(x))

    def test_parts_that_were_converted_apart(self, drawn):
        """Converted once more, the whole draws each weight once in its calls."""
        model = Loop()
        model.cell = nn.to_variational(model.cell)
        model.up = nn.to_variational(model.up)
        model(torch.ones(5, 2, 3))
        assert len(drawn) == 11
        model = nn.to_variational(model)
        model(torch.ones(5, 2, 3))
        assert len(drawn) == 14
        with pytest.raises(ValueError, match="are variational already"):
            nn.to_variational(model)

    def test_a_module_of_two_names(self):
        for make in (lambda: torch.nn.GRUCell(2, 2), lambda: torch.nn.Linear(2, 2)):
            model = torch.nn.Module()
            model.a = model.b = make()
            made = nn.to_variational(model, parameters=lambda name, p: p.ndim > 1)
            assert made.a is made.b
            assert type(nn.to_deterministic(made).a) is type(model.a)
        model.a = model.b = torch.nn.GRUCell(2, 2)
        made = nn.to_variational(model, modules=(), parameters=["a.weight_ih", "b.weight_hh"])
        assert [*nn.log_alpha(made)] == ["a.weight_ih", "a.weight_hh"]

    def test_other_output_projections(self):
        mha = attention()
        mha.out_proj = torch.nn.Linear(4, 4)
        made, x = nn.to_variational(mha), torch.randn(2, 3, 4)
        assert [*nn.log_alpha(made)] == ["in_proj_weight", "out_proj.weight"]
        first = nn.to_variational(attention(), modules=type(attention().out_proj))
        assert [*nn.log_alpha(nn.to_variational(first))] == ["in_proj_weight", "out_proj.weight"]
        assert isinstance(nn.to_deterministic(made)(x, x, x)[0], torch.Tensor)

        class Own(torch.nn.MultiheadAttention):
            def __init__(self):
                super().__init__(4, 2)
                self.out_proj = torch.nn.Identity()

        assert [*nn.log_alpha(nn.to_variational(Own(), modules=Own))] == ["in_proj_weight"]

    def test_weights_that_are_untied_or_tied_later(self, drawn):
        model, x = nn.to_variational(Twice()), torch.ones(2, 3)
        model.second.weight = torch.nn.Parameter(torch.full((3, 3, 3), 100.0))
        output = model(x)
        assert output.abs().max() > 10.0
        output.sum().backward()
        assert model.second.weight.grad is not None
        assert len(drawn) == 2
        model.second.weight = model.first.weight
        model(x)
        assert len(drawn) == 3

    def test_one_weight_with_two_variances_or_masks(self):
        """As `tie_weights` of Hugging Face after the conversion, or torch's prune, makes them."""
        model, x = nn.to_variational(Twice(), posterior=CERTAIN), torch.ones(2, 3)
        model.second.weight = model.first.weight
        model.second.weight_log_sigma2 = torch.nn.Parameter(torch.zeros(3, 3, 3))
        first, second = model.first(x, x), model.second(x, x)
        torch.testing.assert_close(first, model.eval().first(x, x))
        assert (second - model.second(x, x)).abs().max() > 0.1
        model.train()(x).sum().backward()
        assert model.second.weight_log_sigma2.grad.abs().max() > 0.0
        with nn.sampled(model, generator(3)):
            expected = model(x)
        assert torch.equal(nn.to_sample(model, generator(3))(x), expected)
        again = nn.to_variational(Twice(), posterior=CERTAIN)
        for at, module in enumerate((again.first, again.second)):
            mask = torch.ones(3, 3, 3)
            mask[at] = 0.0
            torch.nn.utils.prune.custom_from_mask(module, "weight", mask)
        torch.testing.assert_close(again(x), again.eval()(x))

    @pytest.mark.parametrize("context", [contextlib.nullcontext, nn.sampling])
    def test_parameters_that_an_offloading_hook_replaces(self, context):
        """As accelerate's do, which leave parameters on the device "meta" between calls."""
        model = nn.to_variational(Calls(lambda cell, x: cell(x) - cell(x), torch.nn.GRUCell(3, 3)))
        cell, kept = next(m for m in model.modules() if isinstance(m, nn.SampledModule)), {}

        def load(module, args):
            for name, each in module._parameters.items():
                getattr(module, name)  # which reads the weight
                module._parameters[name] = torch.nn.Parameter(kept.setdefault(name, each.detach()))

        def offload(module, args, output):
            for name, each in module._parameters.items():
                module._parameters[name] = torch.nn.Parameter(each.detach().to("meta"))

        cell.register_forward_pre_hook(load)
        cell.register_forward_hook(offload)
        with context(model.train(context is contextlib.nullcontext)):
            assert (model(torch.ones(2, 3)) == 0.0).all()
            assert (cell(torch.ones(2, 3)) != cell(torch.ones(2, 3))).any()

    def test_offloaded_parameters_are_refused_between_calls(self):
        """Changes of them would be lost in silence."""
        accelerate = pytest.importorskip("accelerate")
        model = nn.to_variational(torch.nn.Linear(3, 3), posterior=NOISY).eval()
        accelerate.cpu_offload(model, execution_device=torch.device("cpu"))
        for call in (nn.kl, nn.zero_means, nn.prune, nn.sparsity):
            with pytest.raises(
                RuntimeError, match=r"^accelerate keeps the weight of the model else"
            ):
                call(model)
        accelerate.hooks.remove_hook_from_module(model, recurse=True)
        nn.zero_means(model, -math.inf)
        assert (model(torch.ones(3)) == model.bias).all()

    @pytest.mark.parametrize("context", [nn.sampling, nn.sampled])
    @pytest.mark.parametrize("make", [torch.nn.Linear, torch.nn.GRUCell])
    def test_copies_of_parametrized_modules_within_a_context(self, make, context):
        model, x = nn.to_variational(make(3, 3), posterior=NOISY).eval(), torch.ones(2, 3)
        name = next(n for n, _ in model.named_parameters() if "bias" in n)
        torch.nn.utils.parametrize.register_parametrization(model, name, torch.nn.Identity())
        with context(model):
            copied = copy.deepcopy(model)
        assert torch.equal(copied(x), model(x))

    def test_tied_weights_that_are_converted_one_by_one(self):
        with pytest.warns(UserWarning, match="'second' .* convert it too"):
            model = nn.to_variational(Twice(), modules=lambda name, _: name == "first")
        model = nn.to_variational(model, modules=lambda name, _: name == "second")
        assert model.first.weight_log_sigma2 is model.second.weight_log_sigma2

    def test_names_of_tied_weights_in_lists(self):
        """As transformers 4 has them."""
        model = Twice()
        model._tied_weights_keys = ["second.weight", "second.bias"]
        model = nn.to_variational(model)
        names = ["second.weight", "second.bias", "second.weight_log_sigma2"]
        assert model._tied_weights_keys == names
        assert nn.to_deterministic(model)._tied_weights_keys == names[:2]

    @pytest.mark.parametrize("penalty", ["exact", "molchanov"])
    def test_padding_of_bags(self, penalty):
        """The row has no KL, with and without a mask."""
        weight = torch.linspace(0.2, 2.0, 10).reshape(5, 2)
        kls = []
        for kind in (torch.nn.EmbeddingBag, torch.nn.Embedding):
            plain = kind.from_pretrained(weight, padding_idx=1)
            model = nn.to_variational(plain, penalty=penalty, posterior=nn.Additive(initial=-2.0))
            kls.append([nn.kl(model).item(), nn.kl(nn.prune(model, 0.0)).item()])
        assert kls[0] == pytest.approx(kls[1], rel=1e-6)


def _given(model, x, again):
    return model(x, again)


class TestTransforms:
    def test_functional_calls(self):
        model, x = nn.to_variational(Loop()), torch.ones(5, 2, 3)
        zeros = {n: torch.zeros_like(p) for n, p in model.named_parameters() if "log" not in n}
        silent = {n: torch.full_like(p, -1e4) for n, p in model.named_parameters() if "log" in n}
        assert (torch.func.functional_call(model, {**zeros, **silent}, (x,)) == 0.0).all()

    def test_candidate_weights_within_one_call(self):
        """Each may have the `id` of one that was freed."""

        def run(bilinear, x):
            found = []
            for i in range(20):
                weight = {"weight": torch.full((1, 1, 1), float(i))}
                found.append(torch.func.functional_call(bilinear, weight, (x, x)))
                del weight
            return torch.cat(found).flatten()

        plain = torch.nn.Bilinear(1, 1, 1, bias=False)
        model = nn.to_variational(Calls(run, plain), posterior=CERTAIN)
        torch.testing.assert_close(model(torch.ones(1, 1)), torch.arange(20.0))

    def test_vmap(self):
        plain = torch.nn.ConvTranspose1d(2, 3, 2)
        model, x = nn.to_variational(plain, posterior=NOISY), torch.ones(2, 2, 4)
        different, same = (
            torch.func.vmap(model, randomness=each)(torch.stack([x, x]))
            for each in ("different", "same")
        )
        assert (different[0] != different[1]).all()
        assert (same[0] == same[1]).all()

    def test_checkpoints(self):
        model, x = nn.to_variational(Loop()), torch.ones(5, 2, 3)
        again = partial(torch.utils.checkpoint.checkpoint, model, use_reentrant=False)
        losses = [seeded(run, x).square().sum() for run in (model, again)]
        found = [torch.autograd.grad(loss, [*model.parameters()]) for loss in losses]
        assert all(map(torch.equal, *found))

    @pytest.mark.parametrize("reentrant", [False, True])
    @pytest.mark.parametrize("kept", [False, True])
    @pytest.mark.filterwarnings("ignore:None of the inputs have requires_grad")  # in a nested one
    def test_a_weight_that_is_used_twice_in_checkpoints(self, kept, reentrant):
        """Parts that run again have the samples of the call, and leave other noise as it was."""

        class Cell(torch.nn.Module):
            def __init__(self):
                super().__init__()
                self.weight = torch.nn.Parameter(torch.eye(3))

            def forward(self, h):
                return torch.tanh(h @ self.weight)

        class Steps(torch.nn.Module):
            def __init__(self):
                super().__init__()
                self.cell = Cell()

            def forward(self, h, order):
                run = partial(torch.utils.checkpoint.checkpoint, use_reentrant=reentrant)
                cell = self.cell

                def twice(h):
                    return cell(torch.nn.functional.dropout(cell(h), 0.4))

                def quiet(h):
                    with torch.enable_grad() if reentrant else torch.no_grad():
                        gate = twice(h)
                    return h * gate

                return {
                    "quiet": lambda h: quiet(h),
                    "one, quiet": lambda h: run(quiet, h),
                    "no checkpoint": lambda h: twice(twice(h)),
                    "one": lambda h: run(lambda h: twice(twice(h)), h),
                    "nested": lambda h: run(lambda h: run(lambda h: twice(twice(h)), h), h),
                    "first": lambda h: twice(run(twice, h)),
                    "two": lambda h: run(twice, run(twice, h)),
                    "second": lambda h: run(twice, twice(h)),
                    "outer and inner": lambda h: run(lambda h: run(twice, twice(h)), h),
                }[order](h)

        model, x = nn.to_variational(Steps(), modules=Cell, posterior=NOISY), torch.eye(3)

        def slopes(order, times=1, call=model):
            model.zero_grad()
            x.grad = None
            with nn.sampled(model, generator(3)) if kept else contextlib.nullcontext():
                total = seeded(call, x.requires_grad_(), order).sum()
                for _ in range(times):
                    total.backward(retain_graph=True)
            found = [weight.grad for weight in model.parameters() if weight.grad is not None]
            return [x.grad / times, *(each / times for each in found)]

        torch.testing.assert_close(slopes("one, quiet"), slopes("quiet"))
        expected = slopes("no checkpoint")
        for other in (False, True):
            call = partial(torch.utils.checkpoint.checkpoint, model, use_reentrant=other)
            for order in ("one", "first", "no checkpoint"):
                torch.testing.assert_close(slopes(order, call=call), expected)
        for order in ("one", "nested", "first"):
            for times in (1, 2):
                torch.testing.assert_close(slopes(order, times), expected)
        words = r"drawn in this call before a torch.utils.checkpoint or an autograd Function that"
        for order in ("two", "second", "outer and inner"):
            if kept:
                torch.testing.assert_close(slopes(order), expected)
            else:
                with pytest.raises(RuntimeError, match=words):
                    slopes(order)

    @pytest.mark.parametrize("reentrant", [False, True])
    def test_samples_end_with_the_graph(self, reentrant):
        """Without the garbage collector, which may run late."""

        def twice(cell, x):
            run = partial(torch.utils.checkpoint.checkpoint, use_reentrant=reentrant)
            return run(lambda h: cell(cell(h)), x)

        model = nn.to_variational(Calls(twice, torch.nn.RNNCell(3, 3)), posterior=NOISY)
        gc.collect()
        gc.disable()
        try:
            model(torch.ones(2, 3, requires_grad=True)).sum().backward()
            assert not [each for each in gc.get_objects() if type(each) is Drawn]
        finally:
            gc.enable()

    @pytest.mark.parametrize("reentrant", [False, True])
    @pytest.mark.parametrize("kept", [False, True])
    @pytest.mark.parametrize("frozen", [False, True])
    def test_a_backward_pass_within_the_call(self, frozen, kept, reentrant):
        """Its second run draws again, too, and the call goes on with its own samples."""
        dropout = torch.nn.Dropout(0.4)
        again = partial(torch.utils.checkpoint.checkpoint, use_reentrant=reentrant)

        def train(cell, x, run):
            run(lambda h: dropout(cell(dropout(h))), x).square().sum().backward()
            return cell(x.detach())

        model = nn.to_variational(Calls(train, torch.nn.GRUCell(3, 3)), posterior=NOISY)
        model.requires_grad_(not frozen)
        x = torch.eye(3).requires_grad_()

        def found(run):
            model.zero_grad()
            x.grad = None
            with nn.sampled(model, generator(3)) if kept else contextlib.nullcontext():
                output = seeded(model, x, run)
            return [output, x.grad, *[p.grad for p in model.parameters() if p.grad is not None]]

        torch.testing.assert_close(found(again), found(lambda part, h: part(h)))

    def test_an_interrupted_backward_pass_within_the_call(self):
        interrupted = []

        class Stop(torch.nn.Module):
            def forward(self, h):
                if len(interrupted) == 1:
                    raise KeyboardInterrupt
                interrupted.append(h)
                return h

        def train(cell, stop, x):
            run = torch.utils.checkpoint.checkpoint
            run(lambda h: stop(cell(h)) * h, x, use_reentrant=False).sum().backward()
            return x

        net = Calls(train, torch.nn.GRUCell(3, 3), Stop())
        model, x = nn.to_variational(net), torch.eye(3).requires_grad_()
        with pytest.raises(KeyboardInterrupt):
            model(x)
        model.function = lambda cell, stop, x: cell(x)
        assert not torch.equal(model(x), model(x))
        assert model.held[0]._lk_held.own.outside == []

    @pytest.mark.filterwarnings("ignore:The .grad attribute")  # by the compiler
    @pytest.mark.parametrize("reentrant", [False, True])
    def test_a_compiled_part_in_a_checkpoint(self, reentrant):
        """The compiler does not know that a backward pass runs the second run."""

        def twice(cell, x):
            return cell(torch.nn.functional.dropout(cell(x), 0.4))

        torch.compiler.reset()
        model = nn.to_variational(Calls(twice, torch.nn.GRUCell(3, 3)), posterior=NOISY)
        model.held[0].compile(backend="eager")
        x = torch.eye(3).requires_grad_()
        again = partial(torch.utils.checkpoint.checkpoint, model, use_reentrant=reentrant)

        def found(run):
            model.zero_grad()
            x.grad = None
            seeded(run, x).sin().sum().backward()
            return [x.grad, *[weight.grad for weight in model.parameters()]]

        torch.testing.assert_close(found(again), found(model))

    @pytest.mark.parametrize("reentrant", [False, True])
    def test_calls_that_begin_in_a_checkpoint_are_apart(self, reentrant):
        model = nn.to_variational(torch.nn.RNN(3, 3), posterior=NOISY)
        x = torch.eye(3).requires_grad_()

        def twice(x):
            return model(model(x)[0])[0]

        seeded(twice, x).sum().backward()
        expected = [x.grad.clone(), *[weight.grad.clone() for weight in model.parameters()]]
        model.zero_grad()
        x.grad = None
        run = partial(torch.utils.checkpoint.checkpoint, use_reentrant=reentrant)
        seeded(run, twice, x).sum().backward()
        found = [x.grad, *[weight.grad for weight in model.parameters()]]
        torch.testing.assert_close(found, expected)

    @pytest.mark.parametrize("how", ["alone", "before", "twice"])
    def test_a_function_that_runs_again(self, how):
        """As those of reversible networks, which restore the generator of PyTorch."""

        class Again(torch.autograd.Function):
            @staticmethod
            def forward(ctx, part, x, *parameters):
                ctx.part, ctx.state = part, torch.get_rng_state()
                ctx.save_for_backward(x, *parameters)
                return part(x)

            @staticmethod
            def backward(ctx, slope):
                x, *parameters = ctx.saved_tensors
                x = x.detach().requires_grad_()
                for mode in (torch.no_grad, torch.enable_grad):  # as if to invert the part first
                    with torch.random.fork_rng(), mode():
                        torch.set_rng_state(ctx.state)
                        y = ctx.part(x)
                return None, *torch.autograd.grad(y, [x, *parameters], slope)

        def steps(cell, x, again):
            def part(x):
                return cell(cell(x)) if how == "twice" else cell(x)

            x = cell(x) if how == "before" else x
            return Again.apply(part, x, *cell.parameters()) if again else part(x)

        model = nn.to_variational(Calls(steps, torch.nn.GRUCell(3, 3)), posterior=NOISY)
        x, words = torch.ones(2, 3), "before a torch.utils.checkpoint or an autograd Function"

        def slopes(again, within=contextlib.nullcontext, after=False, **options):
            def likelihood(output, target):
                return -((output - target) ** 2)

            model.zero_grad()
            torch.manual_seed(0)
            elbo = nn.ELBO(Calls(partial(_given, again=again), model), likelihood, 2, **options)
            with within(model):
                loss = elbo(x, x).loss
                if not after:
                    loss.backward()
            if after:
                loss.backward()
            return [each.grad.clone() for each in model.parameters()]

        ways = [{"within": lambda module: nn.sampled(module, generator(3))}]
        if how != "alone":
            with pytest.raises(RuntimeError, match=words):
                slopes(True)
        else:
            ways += [{}, {"mask_from": -1.0}]
        for options in ways:
            found, expected = (slopes(again, **options) for again in (True, False))
            assert all(map(torch.allclose, found, expected)), options
        with pytest.raises(RuntimeError, match="but its noise is not that of the first run"):
            slopes(True, nn.sampled, after=True)

    def test_a_sample_within_a_checkpoint(self):
        """The second run draws it again, which must not give another sample."""
        model, x = nn.to_variational(Loop()), torch.ones(5, 2, 3)

        def run(draws):
            with nn.sampled(model, draws()):
                return model(x).square()

        def gradients(draws, checkpointed):
            again = partial(torch.utils.checkpoint.checkpoint, use_reentrant=False)
            loss = seeded(lambda draws: again(run, draws) if checkpointed else run(draws), draws)
            return torch.autograd.grad(loss.sum(), [*model.parameters()])

        for draws in (lambda: None, lambda: generator(3)):
            assert all(map(torch.equal, gradients(draws, True), gradients(draws, False)))
        shared = generator(3)
        with pytest.raises(RuntimeError, match=r"begin sampled\(model, generator\) outside of"):
            gradients(lambda: shared, True)

    def test_a_weight_of_a_module_without_noise(self):
        class Words(torch.nn.Embedding):
            """A subclass, which is not converted."""

        class Tied(torch.nn.Module):
            def __init__(self):
                super().__init__()
                self.words, self.out = Words(7, 4), torch.nn.Linear(4, 7, bias=False)
                self.out.weight = self.words.weight

            def forward(self, x):
                return self.out(self.words(x).tanh())

        with pytest.warns(UserWarning, match="keeps the weight|without noise"):
            model = nn.to_variational(Tied(), posterior=nn.Additive(initial=0.0))
        x = torch.arange(7)
        with nn.sampled(model, generator(3)):
            expected = model(x)
        assert torch.equal(nn.to_sample(model, generator(3))(x), expected)
        with pytest.raises(ValueError, match="share a weight, of which each would need a mask"):
            nn.prune(model)

    def test_exports(self):
        model, x = nn.to_variational(Loop()), torch.randn(5, 2, 3)
        training = torch.export.export(model, (x,)).module()
        assert (training(x) != training(x)).any()
        model.eval()
        torch.testing.assert_close(torch.export.export(model, (x,)).module()(x), model(x))

    @pytest.mark.filterwarnings("ignore::torch.jit.TracerWarning", "ignore:.torch.jit.trace")
    @pytest.mark.parametrize(
        "program",
        [
            lambda model, x: torch.export.export(model, (x,)).module(),
            lambda model, x: torch.jit.trace(model, (x,), check_trace=False),
        ],
        ids=["export", "trace"],
    )
    def test_programs_keep_the_sample(self, program):
        plain = torch.nn.Sequential(torch.nn.Linear(4, 3), torch.nn.GRUCell(3, 2))
        model, x = nn.to_variational(plain), torch.randn(5, 4)
        with nn.sampled(model):
            expected, found = model(x), program(model, x)
        torch.testing.assert_close(found(x), expected)

    def test_a_bound(self):
        model, x = nn.to_variational(Twice()), torch.randn(8, 3)
        elbo = nn.ELBO(model, nn.normal_log_likelihood, 100)
        with pytest.raises(RuntimeError, match="in evaluation mode, so no noise was drawn"):
            elbo.eval()(x, x)


class TestChoice:
    def test_types(self):
        class Own(torch.nn.Module):
            def __init__(self):
                super().__init__()
                self.table = torch.nn.Parameter(torch.randn(3, 2))
                self.bias_of_rows = torch.nn.Parameter(torch.randn(3, 1))

        model = torch.nn.Sequential(torch.nn.Linear(3, 3), Own())
        with pytest.warns(UserWarning, match=r"left module '1' \(Own\)"):
            assert type(nn.to_variational(model)[1]) is Own
        made = nn.to_variational(model, modules=Own)
        assert type(made[0]) is torch.nn.Linear
        assert isinstance(made[1], nn.SampledModule)
        assert isinstance(made[1], Own)
        assert [*nn.log_alpha(made)] == ["1.table"]
        assert type(nn.to_deterministic(made)[1]) is Own
        both = nn.to_variational(made, modules=lambda name, module: name == "0")
        assert [*nn.log_alpha(both)] == ["0", "1.table"]

    def test_a_subclass_of_a_layer(self):
        class Twofold(torch.nn.Linear):
            def forward(self, x):
                return 2.0 * super().forward(x)

        made = nn.to_variational(torch.nn.Sequential(Twofold(2, 2)), modules=Twofold)
        x = torch.ones(1, 2)
        assert (made(x) != made(x)).any()
        assert isinstance(made[0], Twofold)

    def test_attention_is_whole(self):
        model = torch.nn.TransformerEncoderLayer(4, 2, 8)
        made = nn.to_variational(model, modules=torch.nn.MultiheadAttention)
        assert [*nn.log_alpha(made)] == ["self_attn.in_proj_weight", "self_attn.out_proj.weight"]

    @pytest.mark.parametrize(
        "parameters",
        [["scale", "first.bias"], lambda name, _: name in ("scale", "first.bias")],
        ids=["names", "function"],
    )
    def test_parameters(self, parameters, drawn):
        made = nn.to_variational(Twice(), modules=(), parameters=parameters)
        assert [*nn.log_alpha(made)] == ["scale", "first.bias"]
        made(torch.ones(2, 3))
        assert [tuple(each.shape) for each in drawn] == [(3,), (3,)]
        every = nn.to_variational(Twice(), parameters=lambda *_: True)
        assert len(nn.log_alpha(every)) == 4

    def test_counts_of_what_is_left(self):
        """Parameters that are not Gaussian count as not converted, except biases."""
        with pytest.warns(UserWarning, match="'second' .* convert it too"):
            made = nn.to_variational(Twice(), modules=[], parameters=["first.weight"])
        assert nn.sparsity(made).layers == {
            "first.weight": nn.Sparsity(27, 27),
            "not converted": nn.Sparsity(3, 3),
        }
        linear = nn.to_variational(torch.nn.Linear(3, 2), modules=(), parameters=["bias"])
        assert nn.sparsity(linear, math.inf).layers == {
            "bias": nn.Sparsity(2, 2),
            "not converted": nn.Sparsity(6, 6),
        }
        original = torch.nn.Module()
        original.gain_orig = torch.nn.Parameter(torch.ones(3))
        made = nn.to_variational(original, modules=(), parameters=["gain_orig"])
        assert nn.sparsity(made, math.inf).layers == {"gain_orig": nn.Sparsity(3, 3)}

    def test_other_posteriors_leave_them(self):
        model = torch.nn.Sequential(torch.nn.Linear(2, 2), torch.nn.LSTM(2, 2))
        with pytest.warns(UserWarning, match="left module '1'"):
            made = nn.to_variational(model, posterior=nn.Multiplicative())
        assert nn.conversion(made).left["1"] == (
            48,
            "LSTM is plain, and to_variational can convert it",
        )
