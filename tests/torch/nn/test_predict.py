"""Predictions from samples: what they are of, how the model is run, and what is left behind."""

import copy
import math
from concurrent.futures import ThreadPoolExecutor
from functools import partial
from itertools import product

import numpy as np
import pytest

torch = pytest.importorskip("torch")

from scipy import special, stats  # noqa: E402

from logunif_kl.nn.torch.predict import predict  # noqa: E402
from logunif_kl.torch import nn  # noqa: E402
from tests.child import output  # noqa: E402
from tests.torch.nn.cases import (  # noqa: E402
    Calls,
    Pair,
    compiled,
    filled,
    generator,
    seeded,
)

# In standard errors.
WITHIN = 4.5
START = nn.Additive(initial=0.0)


def network(*noise, outputs=3, dtype=torch.float32):
    """Four inputs; noise, a linear layer, ReLU, and again."""
    with torch.random.fork_rng(devices=[]):
        torch.manual_seed(1)
        first, last = torch.nn.Linear(4, 5, dtype=dtype), torch.nn.Linear(5, outputs, dtype=dtype)
    return torch.nn.Sequential(*noise, first, torch.nn.ReLU(), torch.nn.Dropout(0.3), last)


def examples(n=6, dtype=torch.float32):
    return 3.0 * torch.randn(n, 4, generator=generator(2), dtype=dtype)


class Recorded(torch.nn.Module):
    """A model that keeps its outputs, or its number of rows, and the modes it runs in."""

    def __init__(self, model):
        super().__init__()
        self.model, self.outputs, self.rows, self.modes = model, [], [], []

    def forward(self, x):
        self.rows.append(len(x))
        self.modes.append([module.training for module in self.model.modules()])
        self.outputs.append(self.model(x))
        return self.outputs[-1]


class TestWhatIsFound:
    """The result against the definitions, by NumPy and SciPy, from the outputs themselves."""

    def found(self, likelihood, batch_size, **options):
        model = Recorded(network(dtype=torch.float64))
        options |= {"likelihood": likelihood, "batch_size": batch_size, "generator": generator()}
        found = nn.predict(model, examples(dtype=torch.float64), 7, **options)
        return found, torch.cat(model.outputs).reshape(7, 6, 3).numpy()

    # In one pass, in several, and one for each sample.
    @pytest.mark.parametrize("batch_size", [42, 20, 6])
    def test_categorical(self, batch_size):
        found, outputs = self.found("categorical", batch_size)
        p = np.exp(outputs) / np.exp(outputs).sum(2, keepdims=True)
        np.testing.assert_allclose(found.mean, p.mean(0), rtol=1e-14)
        np.testing.assert_allclose(found.variance, p.var(0, ddof=1), rtol=1e-12)
        entropy = stats.entropy(p.mean(0), axis=1)
        of_samples = stats.entropy(p, axis=2).mean(0)
        np.testing.assert_allclose(found.entropy, entropy, rtol=1e-13)
        np.testing.assert_allclose(found.mutual_information, entropy - of_samples, atol=1e-14)
        np.testing.assert_allclose(found.expected_entropy, of_samples, rtol=1e-13)
        assert found.samples == 7

    @pytest.mark.parametrize("batch_size", [42, 20])
    @pytest.mark.parametrize(
        ("link", "function"), [("logit", special.expit), ("probit", special.ndtr)]
    )
    def test_bernoulli(self, batch_size, link, function):
        found, outputs = self.found("bernoulli", batch_size, link=link)
        p = function(outputs)
        np.testing.assert_allclose(found.mean, p.mean(0), rtol=1e-14)
        entropy = stats.bernoulli(p.mean(0)).entropy()
        np.testing.assert_allclose(found.entropy, entropy, rtol=1e-13)
        of_samples = stats.bernoulli(p).entropy().mean(0)
        np.testing.assert_allclose(found.mutual_information, entropy - of_samples, atol=1e-14)

    @pytest.mark.parametrize(
        ("link", "function"), [("logit", special.expit), ("probit", special.ndtr)]
    )
    def test_bernoulli_of_a_large_margin(self, link, function):
        """PyTorch's ndtr is 0 below -8.3 in float64."""
        model = nn.VariationalLinear(1, 1, dtype=torch.float64)
        with torch.no_grad():
            model.bias.fill_(-9.0)
        found = nn.predict(
            model, torch.zeros(1, 1, dtype=torch.float64), 2, likelihood="bernoulli", link=link
        )
        np.testing.assert_allclose(found.mean, function(-9.0), rtol=1e-13)

    @pytest.mark.parametrize("log_sigma2", [None, -2.0, torch.tensor([0.0, -1.0, 2.0])])
    def test_normal(self, log_sigma2):
        found, outputs = self.found("normal", 20, log_sigma2=log_sigma2)
        variance = outputs.var(0, ddof=1)
        sigma2 = np.exp(np.asarray(0.0 if log_sigma2 is None else log_sigma2, float))
        np.testing.assert_allclose(found.mean, outputs.mean(0), rtol=1e-13)
        np.testing.assert_allclose(found.variance, variance, rtol=1e-12)
        predictive = stats.norm(scale=np.sqrt(variance + sigma2)).entropy()
        np.testing.assert_allclose(found.entropy, predictive, rtol=1e-12)
        of_noise = np.broadcast_to(stats.norm(scale=np.sqrt(sigma2)).entropy(), variance.shape)
        np.testing.assert_allclose(found.expected_entropy, of_noise, rtol=1e-12, atol=1e-15)

    @pytest.mark.parametrize("batch_size", [42, 20, 6])
    def test_normal_with_its_own_variance(self, batch_size):
        inner = Recorded(network(dtype=torch.float64))
        heads = Calls(lambda outputs: (outputs[:, :2], 0.1 * outputs[:, 2:]))
        model, x = torch.nn.Sequential(inner, heads), examples(dtype=torch.float64)
        options = {"likelihood": "normal", "generator": generator()}
        found = nn.predict(model, x, 7, batch_size=batch_size, **options)
        outputs = torch.cat(inner.outputs).reshape(7, 6, 3).numpy()
        mean, sigma2 = outputs[..., :2], np.exp(0.1 * outputs[..., 2:])
        np.testing.assert_allclose(found.mean, mean.mean(0), rtol=1e-13)
        np.testing.assert_allclose(found.variance, mean.var(0, ddof=1), rtol=1e-12)
        of_all = np.sqrt(mean.var(0, ddof=1) + sigma2.mean(0))
        np.testing.assert_allclose(found.entropy, stats.norm(scale=of_all).entropy(), rtol=1e-12)
        of_samples = stats.norm(scale=np.sqrt(sigma2)).entropy().mean(0)
        of_samples = np.broadcast_to(of_samples, (6, 2))
        np.testing.assert_allclose(found.expected_entropy, of_samples, rtol=1e-12)

    def test_a_module_with_an_attribute_named_estimator(self):
        """The attribute is the user's: the rows of a pass have noise of their own."""

        class Net(torch.nn.Module):
            def __init__(self):
                super().__init__()
                self.w, self.estimator = torch.nn.Parameter(torch.ones(3, 4)), "ridge"

            def forward(self, x):
                return torch.nn.functional.linear(x, self.w)

        model = nn.to_variational(Net(), parameters=["w"]).eval()
        filled(model, w_log_sigma2=torch.zeros(3, 4))
        found = nn.predict(model, torch.ones(8, 4), 100, likelihood="normal", generator=generator())
        torch.testing.assert_close(found.variance.mean(), torch.tensor(4.0), rtol=0.25, atol=0.0)

    def test_classes_in_the_last_dimension(self):
        """As of language models, beside the same model with the classes in dimension 1."""
        last = torch.nn.Sequential(network(outputs=6), torch.nn.Unflatten(1, (2, 3)))
        found = nn.predict(last, examples(), 9, class_dim=-1, generator=generator())
        second = torch.nn.Sequential(last, Calls(lambda x: x.movedim(-1, 1)))
        expected = nn.predict(second, examples(), 9, class_dim=1, generator=generator())
        torch.testing.assert_close(found.mean, expected.mean.movedim(1, -1), rtol=0.0, atol=0.0)
        torch.testing.assert_close(found.variance, expected.variance.movedim(1, -1))
        torch.testing.assert_close(found.entropy, expected.entropy, rtol=0.0, atol=0.0)
        torch.testing.assert_close(found.mean.sum(-1), torch.ones(6, 2))
        assert found.entropy.shape == found.mutual_information.shape == (6, 2)
        with pytest.raises(ValueError, match=r"\(\d+, 2, 3\), whose classes may be in"):
            nn.predict(last, examples(), 9)

    @pytest.mark.parametrize("log_sigma2", [-1e3, 1e3])
    def test_noise_of_the_data_beyond_the_range_of_its_variance(self, log_sigma2):
        found, outputs = self.found("normal", 20, log_sigma2=log_sigma2)
        log_variance = np.log(outputs.var(0, ddof=1))
        information = 0.5 * np.logaddexp(0.0, log_variance - log_sigma2)
        np.testing.assert_allclose(found.mutual_information, information, rtol=1e-5)
        entropy = 0.5 * (math.log(2 * math.pi * math.e) + np.logaddexp(log_variance, log_sigma2))
        np.testing.assert_allclose(found.entropy, entropy, rtol=1e-5)

    def test_information_that_float32_would_lose(self):
        """Of two equal classes with logits +-d: to first order in d^2, d^2/2 for a fair coin."""
        model = torch.nn.Sequential(torch.nn.Dropout(0.5), torch.nn.Linear(1, 2, bias=False))
        d = 1e-5
        filled(model[1], weight=torch.tensor([[d / 2], [-d / 2]]))
        found = nn.predict(model, torch.ones(1, 1), 4000, generator=generator())
        # Logits differ by 2d or 0, equally often: p - 1/2 is d/2 or 0, of variance (d/4)^2.
        assert found.mutual_information.item() == pytest.approx(2 * (d / 4) ** 2, rel=0.01)
        assert found.mutual_information.dtype == torch.float32

    def test_a_number_is_not_rounded_to_float32(self):
        model, x = torch.nn.Dropout(0.5), torch.ones(2, 3, dtype=torch.float64)
        options = {"likelihood": "normal"}
        found, expected = (
            nn.predict(model, x, 5, log_sigma2=each, generator=generator(), **options).entropy
            for each in (-1.1, torch.full((3,), -1.1, dtype=torch.float64))
        )
        torch.testing.assert_close(found, expected, rtol=1e-15, atol=0.0)

    def test_never_negative_and_at_most_the_entropy(self):
        drop, x = torch.nn.Dropout(0.0), torch.ones(2, 3)
        found = nn.predict(drop, x, 3, likelihood="normal", log_sigma2=-math.inf)
        assert (found.mutual_information == 0.0).all()
        assert (found.entropy == -math.inf).all()
        certain = nn.VariationalLinear(4, 3, posterior=nn.Additive(initial=-200.0))
        for seed, model in enumerate([*[network()] * 5, certain]):
            found = nn.predict(model, examples(50), 3, generator=generator(seed))
            assert (found.mutual_information >= 0.0).all()
            assert (found.mutual_information <= found.entropy).all()
        # Of equal samples, up to rounding in float64.
        torch.testing.assert_close(found.mean, certain.eval()(examples(50)).softmax(1))
        assert found.mutual_information.max() < 1e-15
        assert found.variance.max() < 1e-31

    def test_certain_and_impossible_classes(self):
        """Logits of -inf and of 1e30 have entropy 0; those of NaN spoil their own example alone."""
        x = torch.tensor([[-math.inf, 0.0, 1.0], [1e30, 0.0, 1.0], [math.nan, 0.0, 1.0]])
        found = nn.predict(torch.nn.Dropout(0.0), x, 2)
        p = math.exp(1.0) / (1.0 + math.exp(1.0))
        assert found.entropy[0].item() == pytest.approx(stats.bernoulli(p).entropy(), rel=1e-6)
        assert found.entropy[1] == found.mutual_information[0] == found.mutual_information[1] == 0
        assert found.entropy[2].isnan()


class TestAgainstTheBlog:
    """The formulas of dropout as a Bayesian network, computed without sampling."""

    def test_the_mean_is_that_over_all_masks(self):
        """Binary dropout is a mixture of 2^inputs deltas, of which each mask is one."""
        p, rows = 0.3, 4
        linear = torch.nn.Linear(rows, 3, dtype=torch.float64)
        x = examples(1, torch.float64)
        masks = torch.tensor(list(product([0.0, 1.0], repeat=rows)), dtype=torch.float64)
        kept = masks.sum(1)
        weights = (1 - p) ** kept * p ** (rows - kept)
        assert weights.sum().item() == pytest.approx(1.0)
        each = linear(x * masks / (1 - p)).softmax(1).detach()
        mean = (weights[:, None] * each).sum(0)
        variance = (weights[:, None] * (each - mean) ** 2).sum(0)
        of_samples = (weights * torch.special.entr(each).sum(1)).sum()
        information = torch.special.entr(mean).sum() - of_samples

        model, n = torch.nn.Sequential(torch.nn.Dropout(p), linear), 200_000
        found = nn.predict(model, x, n, generator=generator())
        assert ((found.mean[0] - mean).abs() < WITHIN * (variance / n).sqrt()).all()
        assert found.mutual_information.item() == pytest.approx(information.item(), rel=0.02)
        torch.testing.assert_close(found.variance[0], variance, rtol=0.02, atol=0.0)


class TestDeltaPosterior:
    def test_value_and_gradient_are_those_of_the_risk(self):
        """A delta posterior: the bound is the risk with an L2 term, and its maximum that of MAP.

        The prior is N(0, 1/lambda), and the bias is a delta. The constant K/2 log(2 pi/lambda), and
        the entropy of q, depend on no mean.
        """
        lam, x = 0.7, examples(40, torch.float64)
        target = (x[:, 0] > x[:, 1]).long() + (x[:, 2] > 1.0).long()
        layer = nn.VariationalLinear(4, 3, posterior=nn.Additive(initial=-40.0)).double()
        means = layer.weight, layer.bias
        elbo = nn.ELBO(layer, nn.categorical_log_likelihood, len(x), kl_weight=0.0)
        prior = torch.distributions.Normal(0.0, lam**-0.5)
        q = torch.distributions.Normal(layer.weight, (0.5 * layer.log_sigma2).exp())
        divergence = torch.distributions.kl_divergence(q, prior).sum()
        divergence = divergence - prior.log_prob(layer.bias).sum()
        bound = -elbo(x, target).expected_log_likelihood + divergence
        output = torch.nn.functional.linear(x, *means)
        error = torch.nn.functional.cross_entropy(output, target, reduction="sum")
        risk = error + 0.5 * lam * sum(mean.square().sum() for mean in means)
        entropy = 0.5 * means[0].numel() * (math.log(2 * math.pi * math.e) - 40.0)
        k = sum(mean.numel() for mean in means)
        constant = 0.5 * k * math.log(2 * math.pi / lam) - entropy
        assert bound.item() == pytest.approx(risk.item() + constant, rel=1e-7)
        slopes = [torch.autograd.grad(value, means) for value in (bound, risk)]
        torch.testing.assert_close(*slopes, rtol=1e-6, atol=1e-6)


class WithFunctional(torch.nn.Module):
    def __init__(self):
        super().__init__()
        self.last = torch.nn.Linear(4, 3)
        self.norm = torch.nn.BatchNorm1d(4)

    def forward(self, x):
        return self.last(torch.nn.functional.dropout(self.norm(x), 0.5, self.training))


NOISY = {
    "Dropout": (lambda: torch.nn.Dropout(0.5), (4, 3)),
    "Dropout in place": (lambda: torch.nn.Dropout(0.5, inplace=True), (4, 3)),
    "Dropout1d": (lambda: torch.nn.Dropout1d(0.5), (4, 3, 2)),
    "Dropout2d": (lambda: torch.nn.Dropout2d(0.5), (4, 3, 2, 2)),
    "Dropout3d": (lambda: torch.nn.Dropout3d(0.5), (4, 3, 1, 2, 2)),
    "AlphaDropout": (lambda: torch.nn.AlphaDropout(0.5), (4, 3)),
    "FeatureAlphaDropout": (lambda: torch.nn.FeatureAlphaDropout(0.5), (4, 3, 2)),
    "GaussianDropoutA": (lambda: nn.GaussianDropoutA(0.5), (4, 3)),
    "GaussianDropoutLinear": (lambda: nn.GaussianDropoutLinear(3, 2, 0.5), (4, 3)),
    "VariationalConv2d": (lambda: nn.VariationalConv2d(3, 2, 1, posterior=START), (4, 3, 2, 2)),
    "TransformerEncoder": (
        lambda: torch.nn.TransformerEncoder(
            torch.nn.TransformerEncoderLayer(4, 2, 8, dropout=0.5, batch_first=True), 1
        ),
        (4, 3, 4),
    ),
}


class TestNoise:
    @pytest.mark.parametrize("name", NOISY)
    @pytest.mark.parametrize("training", [True, False])
    def test_is_drawn(self, name, training):
        """In either mode, by all modules of torch and of this library; x is as it was."""
        make, shape = NOISY[name]
        model = make().train(training)
        x = torch.rand(shape, generator=generator(3)) + 0.5
        before = x.clone()
        found = nn.predict(model, x, 20, likelihood="normal", generator=generator())
        assert (found.variance > 0.0).any()
        assert model.training is training
        assert torch.equal(x, before)

    @pytest.mark.parametrize(
        ("call", "make"),
        [
            (lambda of, x: of(x, x, x)[0], partial(torch.nn.MultiheadAttention, 4, 2)),
            (lambda of, x: of(x)[0], partial(torch.nn.LSTM, 4, 3, 2)),
        ],
        ids=["attention", "LSTM"],
    )
    def test_of_a_rate_of_another_module(self, call, make):
        x = torch.randn(2, 5, 4, generator=generator(3))
        noisy = Calls(call, make(dropout=0.5, batch_first=True)).eval()
        found = nn.predict(noisy, x, 10, likelihood="normal")
        assert (found.variance > 0.0).all()

    def test_of_a_module_that_is_named(self):
        model = WithFunctional().eval()
        with pytest.raises(ValueError, match="in which no layer draws noise"):
            nn.predict(model, examples(), 5)
        for modules in (WithFunctional, (WithFunctional, torch.nn.Bilinear)):
            found = nn.predict(model, examples(), 5, modules=modules)
            assert (found.mutual_information > 0.0).all()
        assert int(model.norm.num_batches_tracked) == 0

    def test_other_modules_are_in_evaluation_mode(self):
        """Batch normalisation neither uses the statistics of the batch nor changes its own."""
        norm = torch.nn.BatchNorm1d(4)
        model = Recorded(network(norm)).train()
        nn.predict(model, examples(), 3, batch_size=18)
        # The model itself, its parts: batch normalisation, linear, ReLU, dropout, linear.
        assert model.modes == [[False, False, False, False, True, False]]
        assert int(norm.num_batches_tracked) == 0
        assert all(module.training for module in model.modules())

    def test_within_sampled(self):
        layer = nn.VariationalLinear(3, 2, posterior=nn.Additive(initial=0.0))
        with nn.sampled(layer), pytest.raises(RuntimeError, match=r"call predict outside of"):
            nn.predict(layer, torch.ones(4, 3), 5)

    def test_after_an_error(self):
        passed = []

        def fails(x):
            if passed:
                raise KeyError("mine")
            passed.append(x)
            return x

        model = network(nn.GaussianDropoutA(0.1), Calls(fails)).train()
        model[0].eval()
        modes = [module.training for module in model.modules()]
        fast = torch.backends.mha.get_fastpath_enabled()
        torch.manual_seed(5)
        state = torch.get_rng_state()
        for _ in range(2):  # in the pass that samples, and in the one before it
            with pytest.raises(KeyError, match="mine"):
                nn.predict(model, examples(), 3, generator=generator())
        assert [module.training for module in model.modules()] == modes
        assert model[0]._lk_sampling == 0
        assert torch.backends.mha.get_fastpath_enabled() is fast
        assert torch.equal(torch.get_rng_state(), state)
        x = examples()
        assert torch.equal(model[0](x), x)

    def test_no_gradient_is_kept(self):
        x = examples().requires_grad_()
        found = nn.predict(network(), x, 3)
        assert not any(value.requires_grad for value in found[:4])


class TestGenerator:
    def model(self):
        return network(nn.GaussianDropoutA(0.3, generator=generator(8)))

    def test_decides_all_noise(self):
        """Without changing the others."""
        model = self.model()
        torch.manual_seed(5)
        states = torch.get_rng_state(), model[0].generator.get_state()
        first, second = (nn.predict(model, examples(), 4, generator=generator(1)) for _ in "ab")
        assert torch.equal(torch.get_rng_state(), states[0])
        assert torch.equal(model[0].generator.get_state(), states[1])
        assert all(torch.equal(a, b) for a, b in zip(first[:4], second[:4], strict=True))
        other = nn.predict(model, examples(), 4, generator=generator(2))
        assert not torch.equal(first.mean, other.mean)
        # Each source of noise by itself.
        for noise in (torch.nn.Dropout(0.5), nn.GaussianDropoutA(0.5, generator=generator(9))):
            predict = partial(nn.predict, noise, examples(), 4, likelihood="normal")
            means = [predict(generator=generator(seed)).mean for seed in (1, 1, 2)]
            assert torch.equal(means[0], means[1])
            assert not torch.equal(means[0], means[2])
        # Without one, the global seed decides.
        means = [seeded(nn.predict, network(), examples(), 4, seed=s).mean for s in (3, 3, 4)]
        assert torch.equal(means[0], means[1])
        assert not torch.equal(means[0], means[2])

    def test_in_threads_with_copies(self):
        model = network(torch.nn.Dropout(0.5))

        def mean(each):
            return nn.predict(each, examples(), 50, generator=generator(1)).mean

        alone = mean(model)
        with ThreadPoolExecutor(4) as pool:
            for found in pool.map(mean, [copy.deepcopy(model) for _ in range(12)]):
                assert torch.equal(found, alone)

    def test_in_a_process_that_was_forked_during_another_call(self):
        """A DataLoader forks its workers, which do not have the thread of that call."""
        code = """
import os, signal, threading, torch
from logunif_kl.torch import nn

torch.set_num_threads(1)
model, x = nn.VariationalLinear(2, 1), torch.ones(1, 2)

def predict(rows):
    with nn.sampling(model):
        pass
    nn.predict(model, rows, 2, likelihood="normal", generator=torch.Generator())

def rows():
    began.set()
    assert forked.wait(60.0)
    yield x

class Loader(torch.utils.data.DataLoader):
    def __iter__(self):
        return rows()

began, forked = threading.Event(), threading.Event()
thread = threading.Thread(target=predict, args=(Loader([0]),))
thread.start()
assert began.wait(60.0)
child = os.fork()
if not child:
    signal.alarm(60)
    predict(x)
    os._exit(0)
forked.set()
thread.join()
assert os.waitpid(child, 0)[1] == 0
"""
        output(code)

    def test_goes_on_from_call_to_call(self):
        """Also where it is the generator of a layer itself, or a global one."""
        model = self.model()
        for drawn_by in (generator(1), model[0].generator, torch.default_generator):
            means = [nn.predict(model, examples(), 4, generator=drawn_by).mean for _ in "ab"]
            assert not torch.equal(*means)


PER_EXAMPLE = partial(nn.VariationalLinear, 4, 3, estimator="per_example")
PER_BATCH = partial(nn.VariationalLinear, 4, 3, estimator="per_batch", posterior=START)


class TestPasses:
    @pytest.mark.parametrize(
        ("make", "n", "samples", "constants", "batch_size", "rows"),
        [
            (network, 6, 10, {}, 60, [60]),
            (network, 6, 10, {}, 59, [30] * 2),
            (network, 6, 10, {}, 6, [6] * 10),
            (network, 6, 10, {}, 4, [4] * 15),
            (network, 6, 10, {}, 20, [18, 18, 12, 12]),
            # By default, a pass of few examples without noise, and then as many as keep the bound
            # on the elements of the largest output, which has 5 in a row.
            (network, 40, 2, {"LEAST": 1, "ELEMENTS": 50}, None, [16, *[10] * 8]),
            (network, 3, 2, {"LEAST": 1, "ELEMENTS": 1}, None, [3, *[1] * 6]),
            # A pass has a few rows if memory allows.
            (network, 40, 2, {"ELEMENTS": 1}, None, [16] * 6),
            (network, 40, 2, {"ELEMENTS": 1, "MOST_ELEMENTS": 20}, None, [16, *[4] * 20]),
            # Weights for each example count.
            (PER_EXAMPLE, 2, 20, {"LEAST": 1, "ELEMENTS": 120}, None, [2, *[10] * 4]),
            # The rows of a pass share the weights, so that they would be one sample.
            (PER_BATCH, 5, 8, {}, 1000, [5] * 8),
            (network, 0, 5, {}, None, [0, 0]),
        ],
    )
    def test_have_so_many_rows(self, make, n, samples, constants, batch_size, rows, monkeypatch):
        for name, value in constants.items():
            monkeypatch.setattr(predict, name, value)
        model = Recorded(make())
        found = nn.predict(model, examples(n), samples, batch_size=batch_size)
        assert model.rows == rows
        assert found.mean.shape == (n, 3)
        assert batch_size or not any(model.modes[0])
        assert n == 0 or (found.mutual_information > 0.0).any()

    def test_the_pass_before_draws_nothing(self):
        calls = (partial(nn.predict, network(), examples(), 4, batch_size=b) for b in (None, 10**6))
        assert torch.equal(*(seeded(call).mean for call in calls))

    @pytest.mark.parametrize("device", ["accelerator", "cpu"])
    def test_half_as_many_where_memory_runs_out(self, device):
        class Small(Recorded):
            most = 9

            def forward(self, x):
                if len(x) > self.most:
                    self.rows.append(-len(x))
                    if device == "cpu":
                        torch.empty(2**60)  # the allocator's own error
                    raise torch.OutOfMemoryError("out of memory")
                return super().forward(x)

        model = Small(network())
        found = nn.predict(model, examples(), 6, batch_size=1000)
        assert model.rows == [-36, -18, 6, 6, 6, 6, 6, 6]
        assert found.samples == 6
        model.most = 0
        kind = RuntimeError if device == "cpu" else torch.OutOfMemoryError
        with pytest.raises(kind, match="memory"):
            nn.predict(model, examples(), 6, batch_size=1)
        assert all(module.training for module in model.modules())

    def test_unbatched(self):
        """Of any input, as it is: a sequence whose examples are the second dimension."""
        held = torch.nn.Dropout(0.5), torch.nn.RNN(4, 3)
        model = Calls(lambda drop, rnn, pair: pair[1] * rnn(drop(pair[0]))[0].mean(0), *held)
        x = (torch.randn(7, 2, 4, generator=generator(3)), 2.0)
        found = nn.predict(model, x, 5, batched=False)
        assert found.mean.shape == (2, 3)
        assert (found.mutual_information > 0.0).all()
        model = torch.nn.Sequential(torch.nn.Dropout(0.5), Calls(torch.sum))
        found = nn.predict(model, torch.ones(100), 5, likelihood="normal", batched=False)
        assert found.mean.shape == found.entropy.shape == ()


class TestTypes:
    @pytest.mark.parametrize("dtype", [torch.float16, torch.bfloat16])
    def test_half(self, dtype):
        """The sums are those of the outputs, and not rounded again."""
        model = Recorded(network().to(dtype))
        found = nn.predict(model, examples().to(dtype), 10, batch_size=60)
        p = model.outputs[0].double().reshape(10, 6, 3).softmax(2)
        for value in found[:4]:
            assert value.dtype == torch.float32
        torch.testing.assert_close(found.mean, p.mean(0).float(), rtol=2e-7, atol=0.0)
        information = torch.special.entr(p.mean(0)).sum(1) - torch.special.entr(p).sum(2).mean(0)
        torch.testing.assert_close(found.mutual_information, information.float())

    @pytest.mark.parametrize("backend", ["eager", pytest.param("inductor", marks=pytest.mark.slow)])
    def test_compiled(self, backend):
        plain = network(nn.GaussianDropoutA(0.2), torch.nn.BatchNorm1d(4)).eval()
        model = compiled(plain, backend)
        x = examples()
        without = model(x)
        first, second = (nn.predict(model, x, 400, generator=generator(1)) for _ in "ab")
        assert torch.equal(first.mean, second.mean)
        assert torch.equal(model(x), without)
        for mode in (True, False):
            nn.predict(model.train(mode), x, 2)
            assert all(module.training is mode for module in model.modules())
        eager = nn.predict(plain, x, 400, generator=generator(2))
        error = ((first.variance + eager.variance) / 400).sqrt()
        assert ((first.mean - eager.mean).abs() < WITHIN * error).all()
        assert (first.mutual_information > 0.0).all()


@pytest.mark.gpu
@pytest.mark.skipif(not torch.cuda.is_available(), reason="there is no GPU")
class TestOnCuda:
    def test_the_generator_decides_and_the_others_are_left(self):
        model, x = network(nn.GaussianDropoutA(0.3)).cuda(), examples().cuda()
        states = torch.get_rng_state(), torch.cuda.get_rng_state()
        means = [nn.predict(model, x, 4, generator=generator(s)).mean for s in (1, 1, 2)]
        assert torch.equal(means[0], means[1])
        assert not torch.equal(means[0], means[2])
        assert torch.equal(torch.get_rng_state(), states[0])
        assert torch.equal(torch.cuda.get_rng_state(), states[1])

    def test_the_numbers_are_those_of_the_cpu(self):
        model, n = network(), 20_000
        on_cpu = nn.predict(model, examples(), n, generator=generator(1))
        found = nn.predict(model.cuda(), examples().cuda(), n, generator=generator(2))
        error = (2 * on_cpu.variance / n).sqrt()
        assert ((found.mean.cpu() - on_cpu.mean).abs() < WITHIN * error).all()
        # Two seeds on the CPU differ by up to 2 %.
        information = found.mutual_information.cpu()
        torch.testing.assert_close(information, on_cpu.mutual_information, rtol=0.06, atol=0.0)


def test_log_probabilities_are_logits():
    model = torch.nn.Sequential(network(), torch.nn.LogSoftmax(1))
    both = [nn.predict(m, examples(), 5, generator=generator()) for m in (model, model[0])]
    torch.testing.assert_close(both[0].mutual_information, both[1].mutual_information)


class TestInputs:
    def test_several(self):
        model, (a, b) = Pair(), torch.randn(2, 5, 3)
        generator = torch.Generator()
        given = [a * b, (a, b), {"b": b, "a": a}]
        found = [nn.predict(model, x, 20, generator=generator.manual_seed(1)) for x in given]
        for each in found[1:]:
            assert all(map(torch.equal, each[:4], found[0][:4]))

    def test_a_loader(self, terminal):
        model, x, shown = Pair(), torch.randn(7, 3), terminal()
        # Almost without noise, so that a row of another example is seen.
        model.layer.log_sigma2.data.fill_(-30.0)
        for data in (torch.utils.data.TensorDataset(x, torch.arange(7)), [*x]):
            loader = torch.utils.data.DataLoader(data, 3)
            found = nn.predict(model, loader, 3, progress=True)
            expected = model.eval()(x).softmax(1)
            torch.testing.assert_close(found.mean, expected, rtol=1e-5, atol=1e-6)
        assert "predictions" in shown.getvalue()
