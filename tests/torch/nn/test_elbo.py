"""The ELBO: its scale and its sign, its parts, its inputs, and the schedules."""

import contextlib
import copy
import itertools
import math
import types
import weakref
from concurrent.futures import ThreadPoolExecutor
from functools import partial

import pytest

torch = pytest.importorskip("torch")

from torch.distributed import _composable as composable  # noqa: E402
from torch.nn.utils import parametrizations  # noqa: E402
from torch.utils.checkpoint import (  # noqa: E402
    checkpoint,
    create_selective_checkpoint_contexts,
)

import logunif_kl as lk  # noqa: E402
from logunif_kl.torch import nn  # noqa: E402
from tests.torch.nn.cases import Calls, Pair, compiled, seeded  # noqa: E402

# Most of these tests are of layers without noise, of which the ELBO warns.
pytestmark = pytest.mark.filterwarnings("ignore:The model is in evaluation mode")


def fixed(log_alpha=0.0, dtype=torch.float64):
    """A layer of 6 weights with this log alpha, in evaluation mode: no noise, no gradients."""
    torch.manual_seed(0)
    options = {"posterior": nn.Multiplicative(initial=log_alpha), "dtype": dtype}
    return nn.VariationalLinear(2, 3, **options).eval().requires_grad_(False)


def given(output, target):
    """The numbers of the target, as if they were log-likelihoods."""
    return target + 0.0 * output.sum()


class TestScale:
    """Kingma et al. 2015, Eqs. 1 and 3, by hand."""

    def test_of_equation_3(self):
        """N = 1000, M = 4: 250 times the sum of the minibatch."""
        target = torch.tensor([-1.0, -2.0, -3.0, -0.5], dtype=torch.float64)
        bound = nn.ELBO(fixed(), given, 1000)(torch.ones(4, 2, dtype=torch.float64), target)
        assert bound.expected_log_likelihood.item() == -1625.0
        # F(1/2) for each of 6 weights.
        assert bound.neg_kl.item() == pytest.approx(-6 * 0.42668560429604480579, rel=1e-15)
        assert bound.value.item() == pytest.approx(-1625.0 - 2.5601136257762688, rel=1e-15)
        assert bound.loss.item() == pytest.approx(1.6275601136257762688, rel=1e-15)
        assert (bound.kl_weight, bound.dataset_size) == (1.0, 1000)

    def test_the_weight_is_of_the_kl_alone(self):
        elbo = nn.ELBO(fixed(), given, 10, kl_weight=1 / 3)
        target = torch.tensor([-1.0], dtype=torch.float64)
        x = torch.ones(1, 2, dtype=torch.float64)
        for weight in (1 / 3, 0.5, 0.0, torch.tensor(0.25)):
            bound = elbo(x, target) if weight == 1 / 3 else elbo(x, target, weight)
            assert bound.kl_weight == weight
            assert bound.expected_log_likelihood.item() == -10.0
            assert bound.neg_kl.item() == pytest.approx(-2.5601136257762688, rel=1e-15)
            value = -10.0 - float(weight) * 2.5601136257762688
            assert bound.value.item() == pytest.approx(value, rel=1e-15)

    def test_further_dimensions_are_summed(self):
        """Three outputs of an example are one example."""
        target = torch.full((2, 3), -1.0, dtype=torch.float64)
        bound = nn.ELBO(fixed(), given, 10)(torch.ones(2, 2, dtype=torch.float64), target)
        assert bound.expected_log_likelihood.item() == -30.0

    def test_float16_outputs(self):
        """A sum beyond 65504, the largest number of float16."""
        target = torch.full((100,), -10.0, dtype=torch.float16)
        elbo = nn.ELBO(fixed(dtype=torch.float16), lambda output, target: target, 100_000)
        bound = elbo(torch.ones(100, 2, dtype=torch.float16), target)
        assert bound.expected_log_likelihood.item() == -1_000_000.0
        assert bound.value.dtype == torch.float32


class TestSign:
    def test_the_gradients(self):
        """Inputs of 0 have no noise, so the loss pushes log alpha up: that lowers the KL."""
        model = fixed().requires_grad_().train()
        elbo = nn.ELBO(model, nn.normal_log_likelihood, 3)
        x = torch.zeros(3, 2, dtype=torch.float64)
        elbo(x, model.bias.detach().expand(3, 3)).loss.backward()
        assert (model.log_alpha.grad < 0.0).all()
        slope = -lk.neg_kl_grad(0.0) / 3
        assert model.log_alpha.grad[0, 0].item() == pytest.approx(slope, rel=1e-14)


class TestModule:
    def test_parameters_and_modes(self):
        model = fixed()
        elbo = nn.ELBO(model, given, 10)
        assert list(elbo.state_dict()) == ["model.weight", "model.bias", "model.log_alpha"]
        elbo.train()
        assert model.training
        assert "dataset_size=10, kl_weight=1.0" in repr(elbo)

    def test_compiled(self):
        model = fixed(dtype=torch.float32).requires_grad_().train()
        elbo = nn.ELBO(model, nn.categorical_log_likelihood, 100)
        x, y = torch.zeros(2, 2), torch.tensor([0, 1])
        call = compiled(elbo)
        for weight in (torch.tensor(0.5), torch.tensor(1.0)):
            found = call(x, y, weight)
            torch.testing.assert_close(found.loss, elbo(x, y, weight).loss)
        found.loss.backward()
        assert model.log_alpha.grad.abs().sum() > 0.0

    def test_a_warm_up_is_compiled_once_or_twice(self):
        from torch._dynamo.utils import counters

        counters.clear()
        elbo = nn.ELBO(fixed(dtype=torch.float32), nn.categorical_log_likelihood, 100)
        x, y = torch.ones(2, 2), torch.tensor([0, 1])
        call = compiled(elbo)
        for step in range(1, 10):
            weight = nn.linear_warm_up(step, 0, 20)
            torch.testing.assert_close(call(x, y, weight).loss, elbo(x, y, weight).loss)
        # Once for the first number, and once for every other.
        assert counters["stats"]["unique_graphs"] <= 2


class TestEvaluationMode:
    WORDS = "The model is in evaluation mode, so no noise was drawn"
    CALLS = (
        lambda elbo: elbo(torch.ones(1, 2), torch.tensor([0])),
        lambda elbo: elbo.bound(elbo.model(torch.ones(1, 2)), torch.tensor([0])),
        lambda elbo: torch.compile(elbo, backend="eager")(torch.ones(1, 2), torch.tensor([0])),
    )

    @pytest.fixture
    def elbo(self):
        torch._dynamo.reset()
        plain = torch.nn.Sequential(torch.nn.Linear(2, 2), torch.nn.Linear(2, 2)).eval()
        return nn.ELBO(nn.to_variational(plain), nn.categorical_log_likelihood, 10)

    @pytest.mark.parametrize("call", CALLS)
    @pytest.mark.filterwarnings("ignore")  # of the compiler, which goes back to eager mode
    def test_with_gradients_is_an_error(self, elbo, call):
        with pytest.raises(RuntimeError) as error:
            call(elbo)
        assert str(error.value) == f"{self.WORDS}. Call elbo.train() before training."

    @pytest.mark.parametrize("call", CALLS[:2])
    def test_without_gradients_is_a_warning(self, elbo, call):
        with torch.no_grad(), pytest.warns(UserWarning, match=self.WORDS) as told:
            call(elbo)
        assert [str(warning.message) for warning in told] == [
            f"{self.WORDS}, and the value is not a bound. Use logunif_kl.torch.nn.sampling(elbo)."
        ]
        assert told[0].filename == __file__

    @pytest.mark.parametrize("call", CALLS)
    @pytest.mark.filterwarnings("error")
    def test_noise_is_drawn(self, elbo, call):
        with nn.sampling(elbo.model):
            call(elbo).loss.backward()
        elbo.model[1].train()  # the other is frozen
        call(elbo).loss.backward()
        with torch.no_grad():
            call(elbo)

    @pytest.mark.filterwarnings("error")
    def test_moments_need_no_noise(self, elbo):
        x, target = torch.ones(1, 2), torch.tensor([0])
        expected = nn.expected_categorical_log_likelihood
        nn.ELBO(nn.VBP(elbo.model), expected, 10).eval()(x, target).loss.backward()
        nn.ELBO(elbo.model, expected, 10).bound(nn.moments(elbo.model, x), target).loss.backward()


class TestPartial:
    """What a `functools.partial` holds belongs to the module."""

    def test_a_parameter(self):
        spread = torch.nn.Parameter(torch.zeros(()))
        for likelihood in (
            partial(nn.normal_log_likelihood, log_sigma2=spread),
            partial(partial(nn.normal_log_likelihood, log_sigma2=spread)),
            partial(lambda first, mean, y: nn.normal_log_likelihood(mean, y, first), spread),
        ):
            elbo = nn.ELBO(nn.VariationalLinear(2, 1), likelihood, 10)
            assert any(each is spread for each in elbo.parameters())
            name = [*elbo.state_dict()][-1]
            assert name.startswith("log_likelihood.")
            copied = copy.deepcopy(elbo).double()
            copied.load_state_dict({**copied.state_dict(), name: torch.tensor(2.0)})
            x, y = torch.zeros(1, 2).double(), torch.zeros(1, 1).double()
            copied.model.bias.data.zero_()
            given = copied(x, y).expected_log_likelihood
            expected = nn.normal_log_likelihood(y, y, 2.0).sum()
            torch.testing.assert_close(given / 10, expected, check_dtype=False)
            given.backward()
            assert copied.get_parameter(name).grad == -5.0
            changed = {name: torch.tensor(1.0).double()}
            found = torch.func.functional_call(copied, changed, (x, y)).expected_log_likelihood
            assert found.item() == pytest.approx(given.item() + 5.0)

    def test_modules(self):
        head, model = torch.nn.Linear(2, 2), nn.VariationalLinear(2, 2)

        def likelihood(output, y, head, whole):
            assert whole.net is model
            return nn.categorical_log_likelihood(head(output), y)

        whole = torch.nn.Module()
        whole.net = model
        whole.elbo = nn.ELBO(model, partial(likelihood, head=head, whole=whole), 10)
        # A module that holds the model would hold itself.
        assert [name for name, _ in whole.elbo.log_likelihood.named_children()] == ["head"]
        whole.train().elbo(torch.ones(1, 2), torch.tensor([0])).loss.backward()
        assert head.weight.grad is not None


class TestLogLikelihoods:
    @pytest.mark.parametrize("kind", ["closure", "default", "object", "parameter"])
    def test_what_a_function_reads(self, kind):
        """A function hides the parameters of a module, which Adam would not see."""
        model, head = nn.VariationalLinear(3, 2), torch.nn.Linear(2, 2)
        spread = head.bias

        class Likelihood:
            def __init__(self, given):
                self.head = given

            def __call__(self, output, target):
                return nn.categorical_log_likelihood(self.head(output), target)

        def made(head):
            return {
                "closure": lambda x, y: nn.categorical_log_likelihood(head(x), y),
                "default": lambda x, y, head=head: nn.categorical_log_likelihood(head(x), y),
                "object": Likelihood(head),
                "parameter": lambda x, y: nn.normal_log_likelihood(x, y, log_sigma2=spread),
            }[kind]

        with pytest.warns(UserWarning, match="^log_likelihood reads (head|spread), whose param"):
            nn.ELBO(model, made(head), 10)
        # Without parameters to train of its own, there is nothing to say.
        for fine in (torch.nn.CrossEntropyLoss(), model, torch.nn.Sequential(model)):
            if kind != "parameter":
                nn.ELBO(model, made(fine), 10)
        head.requires_grad_(False)
        nn.ELBO(model, made(head), 10)

    def test_what_functions_read_in_turn(self):
        """In containers, as methods of objects that are no modules, and of other functions."""

        class Likelihood:
            def __init__(self, given):
                self.spread, self.scale = given, 2.0

            def log_prob(self, x, y):
                return nn.normal_log_likelihood(x / self.scale, y, log_sigma2=self.spread)

        def made(spread):
            several, named, owner = [spread], {"a": {"b": spread}}, Likelihood(spread)
            normal = nn.normal_log_likelihood
            inner = lambda x, y: normal(x, y, spread)  # noqa: E731
            return {
                "several": lambda x, y: normal(x, y, several[0]),
                "named": lambda x, y: normal(x, y, named["a"]["b"]),
                "spread": owner.log_prob,
                "log_prob": lambda x, y: owner.log_prob(x, y),
                "inner": lambda x, y: inner(x, y),
                "list": partial(lambda x, y, held: normal(x, y, held[0]), held=several),
                "owner": partial(Likelihood.log_prob, owner),
                "generator": lambda x, y: sum(normal(x, y, each) for each in several),
            }

        model = nn.VariationalLinear(3, 1)
        elbo = nn.ELBO(model, lambda x, y: later(x, y), 10)  # of a function that is not there yet
        later = nn.normal_log_likelihood
        for name, function in made(torch.nn.Parameter(torch.zeros(()))).items():
            with pytest.warns(
                UserWarning, match="^log_likelihood reads .*, whose parameters"
            ) as told:
                elbo = nn.ELBO(model, function, 10)
            assert len(told) == 1, name
            assert len([*elbo.parameters()]) == len([*model.parameters()])
        for given in (torch.zeros(()), model.bias):
            for function in made(given).values():
                nn.ELBO(model, function, 10)

    @pytest.mark.parametrize("kind", ["method", "lambda", "within", "partial"])
    def test_variational_layers_that_the_bound_leaves_out(self, kind):
        """The module that holds the ELBO trains them, but without their KL."""

        class Coder(torch.nn.Module):
            def __init__(self, decoder):
                super().__init__()
                self.encoder, self.decoder = nn.VariationalLinear(4, 3), decoder
                self.log_sigma2 = torch.nn.Parameter(torch.zeros(()))
                made = {
                    "method": self.likelihood,
                    "lambda": lambda h, x: self.likelihood(h, x),
                    "within": self.within,
                    "partial": partial(Coder.likelihood, self),
                }
                self.elbo = nn.ELBO(self.encoder, made[kind], 10)

            def decoded(self, h):
                return self.decoder(h)

            def likelihood(self, h, x):
                return nn.normal_log_likelihood(self.decoded(h), x, self.log_sigma2)

            def within(self, h, x):
                return sum(self.likelihood(each, x) for each in (h, h))

        with pytest.warns(
            UserWarning, match="^log_likelihood runs decoder, .* leaves out their KL"
        ):
            Coder(nn.VariationalLinear(3, 4))
        whole = Coder(torch.nn.Linear(3, 4))  # whose parameters the module trains
        assert len([*whole.parameters()]) == 6

    def test_a_name_is_not_the_attribute_of_another(self):
        """`model.scale` is no global `scale`."""
        model, scope = nn.VariationalLinear(3, 1), {"scale": torch.nn.Parameter(torch.ones(()))}
        exec("def likelihood(x, y, given): return -(x - y / given.scale).square()", scope)
        nn.ELBO(model, partial(scope["likelihood"], given=model), 10)

    def test_an_index_that_is_ignored(self):
        found = nn.categorical_log_likelihood(torch.zeros(2, 4), torch.tensor([-100, 1]))
        torch.testing.assert_close(found, torch.tensor([0.0, -math.log(4)]))

    def test_categorical(self):
        logits = torch.tensor([[1.0, 2.0, 0.5], [0.0, 0.0, 0.0]], dtype=torch.float64)
        target = torch.tensor([1, 2])
        expected = torch.distributions.Categorical(logits=logits).log_prob(target)
        for kind in (torch.int64, torch.int32, torch.uint8):
            found = nn.categorical_log_likelihood(logits, target.to(kind))
            torch.testing.assert_close(found, expected)
        images = torch.randn(2, 3, 4, 5)
        assert nn.categorical_log_likelihood(images, torch.zeros(2, 4, 5).long()).shape == (2, 4, 5)

    def test_bernoulli(self):
        logits = torch.tensor([-1.0, 3.0], dtype=torch.float64)
        target = torch.tensor([1.0, 0.0], dtype=torch.float64)
        expected = torch.distributions.Bernoulli(logits=logits).log_prob(target)
        torch.testing.assert_close(nn.bernoulli_log_likelihood(logits, target), expected)
        torch.testing.assert_close(nn.bernoulli_log_likelihood(logits, target.long()), expected)

    @pytest.mark.parametrize("log_sigma2", [0.0, -1.5, torch.tensor([0.5, -2.0]).double()])
    def test_normal(self, log_sigma2):
        mean = torch.tensor([[0.3, -1.0], [2.0, 0.0]], dtype=torch.float64)
        target = torch.tensor([[0.0, 1.0], [2.5, -1.0]], dtype=torch.float64)
        sigma = torch.as_tensor(log_sigma2, dtype=torch.float64).mul(0.5).exp()
        expected = torch.distributions.Normal(mean, sigma).log_prob(target)
        found = partial(nn.normal_log_likelihood, log_sigma2=log_sigma2)(mean, target)
        torch.testing.assert_close(found, expected)


class TestSchedules:
    def test_linear(self):
        found = [nn.linear_warm_up(step, 10, 30) for step in (0, 10, 15, 20, 30, 1000)]
        assert found == [0.0, 0.0, 0.25, 0.5, 1.0, 1.0]
        assert nn.linear_warm_up(0.5, 0, 2) == 0.25

    def test_cosine(self):
        found = [nn.cosine_warm_up(step, 10, 30) for step in (0, 10, 20, 30, 1000)]
        assert found == pytest.approx([0.0, 0.0, 0.5, 1.0, 1.0], abs=1e-15)
        assert nn.cosine_warm_up(15, 10, 30) == pytest.approx(0.5 - math.sqrt(2) / 4)

    def test_cyclical(self):
        found = [nn.cyclical_warm_up(step, 10, 0.4) for step in (0, 1, 4, 9, 10, 22)]
        assert found == [0.0, 0.25, 1.0, 1.0, 0.0, 0.5]


class TestInputs:
    """What the model is called with, and what it returns."""

    class Named(dict):
        """As the outputs of Hugging Face are."""

    def test_several(self):
        model, (a, b), y = Pair(), torch.randn(2, 4, 3), torch.tensor([0, 1, 1, 0])
        elbo = nn.ELBO(model, nn.categorical_log_likelihood, 100)
        expected = seeded(lambda: elbo.bound(model(a, b), y).value)
        for x in ((a, b), {"b": b, "a": a}):
            assert seeded(elbo, x, y).value == expected

    def test_logits_of_an_output(self):
        class Model(Pair):
            def forward(self, a):
                return TestInputs.Named(loss=None, logits=self.layer(a))

        x, y = torch.randn(4, 3), torch.tensor([0, 1, 1, 0])
        elbo = nn.ELBO(Model(), nn.categorical_log_likelihood, 100, mask_from=3.0)
        assert "mask_from=3" in repr(elbo)
        assert torch.isfinite(elbo(x, y).value)
        with pytest.raises(ValueError, match="mask_from=3 masks the means when the ELBO calls"):
            elbo.bound(elbo.model(x), y)
        with torch.no_grad():
            assert torch.isfinite(elbo.bound(elbo.model(x), y).value)
        # A dict reaches the log-likelihood as it is.
        plain = nn.ELBO(
            type("Own", (Model,), {"forward": lambda self, a: {"logits": self.layer(a)}})(),
            lambda output, y: nn.categorical_log_likelihood(output["logits"], y),
            100,
        )
        assert torch.isfinite(plain(x, y).value)

    @pytest.mark.parametrize("run", [lambda elbo: elbo, compiled], ids=["eager", "compiled"])
    def test_samples(self, run):
        model, x, y = nn.VariationalLinear(3, 2), torch.randn(4, 3), torch.randn(4, 2)
        elbo = nn.ELBO(model, nn.normal_log_likelihood, 100, samples=3)
        bound = seeded(run(elbo), x, y)
        bound.loss.backward()
        one = nn.ELBO(model, nn.normal_log_likelihood, 100)
        each = seeded(lambda: [one(x, y) for _ in range(3)])
        expected = sum(b.expected_log_likelihood for b in each) / 3
        torch.testing.assert_close(bound.expected_log_likelihood, expected)
        torch.testing.assert_close(bound.value, expected + each[0].neg_kl)
        assert "dataset_size=100, kl_weight=1.0, samples=3" in repr(elbo)

    def test_sequences(self):
        """Logits of shape (M, time, classes), and padded labels."""
        logits, y = torch.randn(2, 5, 7), torch.randint(7, (2, 5))
        y[0, 3:] = -1
        of_last = partial(nn.categorical_log_likelihood, class_dim=-1, ignore_index=-1)
        found = of_last(logits, y)
        expected = logits.log_softmax(-1).gather(-1, y.clamp(min=0).unsqueeze(-1)).squeeze(-1)
        torch.testing.assert_close(found, expected * (y >= 0))
        soft = torch.softmax(torch.randn(2, 5, 7), -1)
        torch.testing.assert_close(
            nn.categorical_log_likelihood(logits, soft, class_dim=2),
            (soft * logits.log_softmax(-1)).sum(-1),
        )

    @pytest.mark.parametrize(
        ("logits", "target", "words"),
        [
            ((2, 5, 7), torch.zeros(2, 5).long(), "fit class_dim=-1: pass class_dim"),
            ((2, 7, 7), torch.zeros(2, 7).long(), "fit class_dim=-1 as well as class_dim=1: pass"),
            ((2, 5, 7), torch.full((2, 5, 7), 1 / 7), "fit class_dim=-1 as well as class_dim=1"),
            ((2, 3, 3, 3), torch.zeros(2, 3, 3).long(), "as well as class_dim=1: pass class_dim"),
            ((2, 5, 7), torch.zeros(2, 3).long(), r"target of shape \(2, 3\) was given for logits"),
        ],
    )
    def test_the_dimension_of_the_classes_is_never_guessed(self, logits, target, words):
        logits = torch.randn(logits)
        expected = partial(nn.expected_categorical_log_likelihood, nn.Moments(logits))
        for likelihood in (partial(nn.categorical_log_likelihood, logits), expected):
            with pytest.raises(ValueError, match=words):
                likelihood(target)
        if "class_dim" in words:
            found = nn.expected_categorical_log_likelihood(nn.Moments(logits), target, class_dim=-1)
            same = nn.categorical_log_likelihood(logits, target, class_dim=-1)
            torch.testing.assert_close(found, same)

    def test_a_head_of_two(self):
        """The mean and the logarithm of the variance."""
        mean, log_sigma2, y = torch.randn(3, 4, 2)
        found = nn.normal_log_likelihood((mean, log_sigma2), y)
        torch.testing.assert_close(found, nn.normal_log_likelihood(mean, y, log_sigma2))


class TestMasks:
    @pytest.mark.parametrize("kind", ["layer", "sampled"])
    def test_parameters_that_change_within_the_run(self, kind):
        """Each call has the mask of its own parameters."""
        options = {"modules": (), "parameters": ["weight"]} if kind == "sampled" else {}
        layer = nn.to_variational(
            torch.nn.Linear(3, 2), **options, posterior=nn.Additive(initial=-60.0)
        )
        noisy = {
            name: torch.zeros_like(p) - 9.0 if "log_" in name else p.detach() + 9.0
            for name, p in layer.named_parameters()
        }

        class Twice(torch.nn.Module):
            def __init__(self):
                super().__init__()
                self.layer = layer

            def forward(self, x):
                first = self.layer(x)
                return first, torch.func.functional_call(self.layer, noisy, (x,)), self.layer(x)

        outputs = []

        def likelihood(output, target):
            outputs.extend(output)
            return -output[1].square()

        x = torch.full((1000, 3), 1e-2)
        nn.ELBO(Twice(), likelihood, 1000, mask_from=-20.0)(x, x)
        expected = x @ dict(layer.named_parameters())["weight"].T + layer.bias
        torch.testing.assert_close(outputs[0], expected)
        torch.testing.assert_close(outputs[2], expected)
        # Without the masked means, only the noise of 3 weights is left.
        assert (outputs[1] - noisy["bias"]).abs().max() < 0.05

    # Where the RNN breaks the graph, the compiler looks at tensors that are no leaves.
    @pytest.mark.filterwarnings("ignore:The .grad attribute of a Tensor")
    @pytest.mark.parametrize("compiled", [False, True])
    def test_noisy_means_are_not_in_the_likelihood(self, compiled):
        torch.manual_seed(1)
        plain = torch.nn.Sequential(torch.nn.Linear(3, 4), torch.nn.RNN(4, 2))
        plain.append(type("First", (torch.nn.Module,), {"forward": lambda self, x: x[0]})())
        model = nn.to_variational(plain, posterior=nn.Additive(initial=0.0))
        x, y = torch.randn(5, 3), torch.randn(5, 2)
        elbo = nn.ELBO(model, nn.normal_log_likelihood, 100, mask_from=3.0)
        run = torch.compile(elbo, backend="aot_eager") if compiled else elbo
        noisy = {name: each > 3.0 for name, each in nn.log_alpha(model).items()}
        assert sum(int(each.sum()) for each in noisy.values()) > 0
        bound = seeded(run, x, y)
        bound.expected_log_likelihood.backward()
        names = ("0.weight", "1.weight_ih_l0", "1.weight_hh_l0")
        for each, name in zip(noisy.values(), names, strict=True):
            gradient = model.get_parameter(name).grad
            assert (gradient[each] == 0.0).all()
            assert (gradient[~each] != 0.0).all()
        expected = nn.neg_kl(model)
        torch.testing.assert_close(bound.neg_kl, expected)
        nn.zero_means(model, 3.0)
        zeroed = seeded(nn.ELBO(model, nn.normal_log_likelihood, 100), x, y)
        torch.testing.assert_close(bound.expected_log_likelihood, zeroed.expected_log_likelihood)
        assert zeroed.neg_kl != bound.neg_kl
        torch.compiler.reset()

    @pytest.mark.parametrize("reentrant", [False, True])
    @pytest.mark.parametrize("kind", ["layers", "sampled", "evaluation"])
    def test_the_second_run_of_a_checkpoint(self, kind, reentrant):
        """Two runs of the model, of which each has another mask."""

        def slopes(run):
            torch.manual_seed(1)
            plain = torch.nn.Sequential(torch.nn.Linear(3, 4), torch.nn.RNN(4, 2))
            chosen = (torch.nn.Linear, torch.nn.RNN) if kind == "sampled" else torch.nn.Linear
            model = nn.to_variational(plain, modules=chosen, posterior=nn.Additive(initial=0.0))
            if kind == "evaluation":
                model[0].eval()
                model.append(nn.VariationalLinear(2, 2))

            def forward(x):
                for layer in model:
                    x = run(layer, x)
                    x = x[0] if isinstance(x, tuple) else x
                return x

            model.forward = forward
            x, y = torch.randn(5, 3, requires_grad=True), torch.randn(5, 2)
            elbos = [nn.ELBO(model, nn.normal_log_likelihood, 9, mask_from=t) for t in (3.0, 1.0)]
            bounds = [seeded(elbo, x, y) for elbo in elbos]
            sum(bound.expected_log_likelihood for bound in bounds).backward()
            return [x.grad, *(p.grad for p in model.parameters() if p.grad is not None)]

        def products(context, operator, *args, **kwargs):
            return operator is torch.ops.aten.mul.Tensor

        once = partial(checkpoint, use_reentrant=reentrant)
        runs = [once, partial(once, once)]
        if not reentrant:
            keep = partial(create_selective_checkpoint_contexts, products)
            runs.append(partial(once, context_fn=keep))
        expected = slopes(lambda layer, x: layer(x))
        for run in runs:
            torch.testing.assert_close(slopes(run), expected)

        def within(layer, x):
            found = once(layer, x)
            return (found[0] if isinstance(found, tuple) else found).tanh()

        if not reentrant:  # The hooks of the inner checkpoint hide those of the outer one.
            composed = lambda layer, x: composable.checkpoint(Calls(within, layer))(x)  # noqa: E731
            torch.testing.assert_close(slopes(composed), slopes(within))

    @pytest.mark.parametrize("context", ["mask", nn.sampled, nn.sampling])
    def test_a_compiled_part_in_a_reentrant_checkpoint(self, context):
        """The state of its second run is not compared. Without a context it is the same."""
        torch.compiler.reset()
        layer = nn.VariationalLinear(3, 2, posterior=nn.Additive(initial=0.0))
        model = torch.nn.Sequential(torch.compile(layer, backend="eager"))
        model.forward = partial(checkpoint, model[0], use_reentrant=True)
        threshold = 1.0 if context == "mask" else None
        elbo = nn.ELBO(model, nn.normal_log_likelihood, 9, mask_from=threshold)
        x, y = torch.randn(5, 3, requires_grad=True), torch.randn(5, 2)
        within = contextlib.nullcontext() if context == "mask" else context(model)
        with within, pytest.raises(RuntimeError, match="a compiled part of the model was called"):
            elbo(x, y)
        elbo.mask_from = None
        elbo(x, y).loss.backward()
        assert layer.log_sigma2.grad.abs().max() > 0.0

    @pytest.mark.parametrize(
        "normalised",
        [
            parametrizations.weight_norm,
            parametrizations.spectral_norm,
            parametrizations.orthogonal,
            torch.nn.utils.weight_norm,
            torch.nn.utils.spectral_norm,
            partial(torch.nn.utils.prune.random_unstructured, name="weight", amount=0.25),
            partial(nn.prune, threshold=-60.0),
        ],
    )
    @pytest.mark.filterwarnings("ignore:.*weight_norm.* is deprecated:FutureWarning")
    def test_weights_that_are_computed(self, normalised):
        """All means are masked, and no parameter changes."""
        model = normalised(nn.VariationalLinear(4, 3, posterior=nn.Additive(initial=-50.0)))
        before = copy.deepcopy(model.state_dict())
        outputs = []

        def likelihood(output, y):
            outputs.append(output)
            return -(output - y).square()

        elbo = nn.ELBO(model, likelihood, 5, mask_from=-70.0)
        elbo(torch.randn(5, 4), torch.zeros(5, 3)).loss.backward()
        torch.testing.assert_close(outputs[0], model.bias.expand(5, 3), atol=1e-6, rtol=0.0)
        for name, x in model.state_dict().items():
            assert "original" not in name or torch.equal(x, before[name])

    def test_ties_are_kept(self):
        """All functions keep a weight whose log alpha is the threshold."""
        layer = nn.VariationalLinear(4, 1, bias=False, posterior=nn.Additive(initial=0.0))
        layer.weight.data = torch.tensor([[1.0, 0.5, 0.1, 0.01]])
        threshold = layer.log_alpha_of_weights()[0, 1].item()
        elbo = nn.ELBO(layer, nn.normal_log_likelihood, 9, mask_from=threshold)
        elbo(torch.ones(2, 4), torch.zeros(2, 1)).expected_log_likelihood.backward()
        assert layer.weight.grad.count_nonzero() == nn.sparsity(layer, threshold).kept == 2
        nn.zero_means(layer, threshold)
        assert layer.weight.count_nonzero() == 2

    def test_a_call_in_another_thread(self):
        layer = nn.VariationalLinear(3, 2)
        model = torch.nn.Sequential(layer)
        model.forward = lambda x: ThreadPoolExecutor(1).submit(layer, x).result()
        elbo = nn.ELBO(model, nn.normal_log_likelihood, 9, mask_from=3.0)
        with pytest.raises(RuntimeError, match="in another thread"):
            elbo(torch.ones(2, 3), torch.zeros(2, 2))
        assert layer(torch.ones(2, 3)).shape == (2, 2)


class Head(torch.nn.Module):
    def __init__(self):
        super().__init__()
        self.log_sigma2 = torch.nn.Parameter(torch.zeros(()))

    def log_prob(self, output, target):
        return nn.normal_log_likelihood(output, target, self.log_sigma2)


def test_a_likelihood_with_variational_layers():
    """Their KL counts, and their noisy means are left out, as those of the model."""

    class Last(torch.nn.Module):
        def __init__(self):
            super().__init__()
            self.last = nn.VariationalLinear(2, 1, posterior=nn.Additive(initial=0.0))

        def forward(self, output, target):
            return nn.normal_log_likelihood(self.last(output), target)

    torch.manual_seed(0)
    model, last = nn.VariationalLinear(3, 2), Last()
    x, y = torch.ones(4, 3), torch.ones(4, 1)
    bound = nn.ELBO(model, last, 10, mask_from=-math.inf)(x, y)
    torch.testing.assert_close(-bound.neg_kl, nn.kl(model) + nn.kl(last))
    bound.expected_log_likelihood.backward()
    assert not last.last.weight.grad.any()
    assert last.last.log_sigma2.grad.all()


def test_a_method_of_a_module():
    """Its parameters are those of the ELBO; another likelihood can be assigned."""
    head = Head()
    elbo = nn.ELBO(nn.VariationalLinear(3, 1), head.log_prob, 10)
    assert [p is head.log_sigma2 for p in elbo.parameters()].count(True) == 1
    elbo.double()
    elbo(torch.ones(2, 3).double(), torch.ones(2, 1).double()).loss.backward()
    assert head.log_sigma2.grad.dtype == torch.float64
    twin = copy.deepcopy(elbo)
    twin.log_likelihood.owner.log_sigma2.data.fill_(1.0)
    assert head.log_sigma2 == 0.0
    elbo.log_likelihood = nn.normal_log_likelihood
    assert "log_likelihood" not in " ".join(elbo.state_dict())
    # A method of the model itself, or of a module that holds the model, is registered there.
    layer = nn.VariationalLinear(3, 1)
    layer.log_prob = Head.log_prob.__get__(layer)
    assert len(list(nn.ELBO(layer, layer.log_prob, 10).parameters())) == 3


class Slotted:
    """A log-likelihood whose parameter no attribute in a ``__dict__`` holds."""

    __slots__ = ("scale",)

    def __init__(self, scale):
        self.scale = scale

    def __call__(self, output, target):
        return nn.normal_log_likelihood(output, target, log_sigma2=self.scale)


class Coder(torch.nn.Module):
    def __init__(self, decoder, holds):
        super().__init__()
        self.encoder, self.decoder = nn.VariationalLinear(4, 3), decoder
        self.log_sigma2 = torch.nn.Parameter(torch.zeros(()))
        if holds:
            self.elbo = nn.ELBO(self.encoder, self.likelihood, 10)

    def likelihood(self, h, x):
        return nn.normal_log_likelihood(self.decoder(h), x, self.log_sigma2)


class Decodes(Slotted):
    """A log-likelihood whose decoder, and how it runs, no ``__dict__`` holds."""

    __slots__ = ("run",)

    def __init__(self, run, decoder=None):
        super().__init__(torch.nn.Linear(3, 4) if decoder is None else decoder)
        self.run = run

    def __call__(self, output, target):
        return nn.normal_log_likelihood(self.run(self.scale, output), target)


class Boxed(torch.nn.Module):
    """A model that returns an object."""

    def __init__(self):
        super().__init__()
        self.layer = nn.VariationalLinear(4, 3)

    def forward(self, x):
        return types.SimpleNamespace(hidden=Slotted(self.layer(x)))


def _frozen():
    elbo = nn.ELBO(nn.VariationalLinear(4, 3), Decodes(lambda decoder, h: decoder(h)), 10)
    elbo.model.requires_grad_(False)
    return elbo


def _again(how):
    """Run an ELBO before its decoder, or that of a copy, becomes another."""
    coder, x = Coder(torch.nn.Linear(3, 4), holds=True), torch.randn(5, 4)
    if how == "copied":
        coder.elbo.log_likelihood = lambda h, x: coder.likelihood(h, x)
    elif how == "trained":
        coder.elbo.log_likelihood = Decodes(lambda decoder, h: decoder(h))
        coder.elbo.log_likelihood.scale.requires_grad_(False)
    coder.elbo(x, x)
    if how == "copied":
        return copy.deepcopy(coder.elbo)
    if how == "converted":
        coder.decoder = nn.to_variational(coder.decoder)
    elif how == "trained":
        coder.elbo.log_likelihood.scale.requires_grad_(True)
    else:
        coder.decoder = nn.VariationalLinear(3, 4)
    return coder.elbo


def _in_place(scale, output):
    output *= scale
    return output


class OwnParameter(torch.nn.Parameter):
    pass


def _moved():
    coder = Coder(torch.nn.Linear(3, 4), holds=True)
    coder.elbo.model = nn.VariationalLinear(4, 3)
    return copy.copy(coder.elbo)


NOT_REGISTERED = {
    "slots": lambda: nn.ELBO(
        nn.VariationalLinear(4, 4), Slotted(torch.nn.Parameter(torch.zeros(()))), 10
    ),
    "distribution": lambda: (
        lambda normal: nn.ELBO(
            nn.VariationalLinear(4, 4), lambda output, x: normal.log_prob(output - x), 10
        )
    )(torch.distributions.Normal(0.0, torch.nn.Parameter(torch.ones(())))),
    "method of a module around": lambda: (
        lambda coder: nn.ELBO(coder.encoder, coder.likelihood, 10)
    )(Coder(torch.nn.Linear(3, 4), holds=False)),
    "partial of a module around": lambda: (
        lambda coder: nn.ELBO(coder.encoder, partial(Coder.likelihood, coder), 10)
    )(Coder(torch.nn.Linear(3, 4), holds=False)),
    "function of a module around": lambda: (
        lambda coder: nn.ELBO(coder.encoder, lambda h, x: coder.likelihood(h, x), 10)
    )(Coder(torch.nn.Linear(3, 4), holds=False)),
    "another model": _moved,
    "output in an object": lambda: nn.ELBO(
        Boxed(), Decodes(lambda decoder, h: decoder(h.hidden.scale)), 10
    ),
    "reentrant checkpoint": lambda: nn.ELBO(
        nn.VariationalLinear(4, 3),
        Decodes(lambda decoder, h: checkpoint(decoder, h, use_reentrant=True)),
        10,
    ),
    "the model is frozen": _frozen,
    "a copy": lambda: _again("copied"),
    "converted after a call": lambda: _again("converted"),
    "assigned after a call": lambda: _again("assigned"),
    "trained after a call": lambda: _again("trained"),
    "in place": lambda: nn.ELBO(
        torch.nn.Sequential(nn.VariationalLinear(4, 4)),
        Decodes(_in_place, torch.nn.Parameter(torch.ones(()))),
        10,
    ),
    "a kind of parameter": lambda: nn.ELBO(
        nn.VariationalLinear(4, 4), Slotted(OwnParameter(torch.zeros(()))), 10
    ),
    "variational later": lambda: nn.to_variational(Coder(torch.nn.Linear(3, 4), holds=True)).elbo,
}


@pytest.mark.parametrize("make", NOT_REGISTERED.values(), ids=NOT_REGISTERED)
def test_the_first_call_tells_of_every_parameter_that_the_elbo_does_not_have(make):
    x = torch.randn(5, 4)
    elbo = make()
    with pytest.warns(UserWarning, match="^log_likelihood depends on a parameter of shape"):
        elbo(x, x).loss.backward()
    elbo(x, x).loss.backward()  # Once is enough.


def test_what_the_graph_of_a_log_likelihood_may_hold():
    """Parameters of the module that holds the ELBO, of the input, and of what is registered."""
    x, features = torch.randn(5, 4), torch.nn.Linear(4, 4)
    Coder(torch.nn.Linear(3, 4), holds=True).elbo(x, x).loss.backward()
    fixed = torch.nn.Parameter(torch.zeros(()), requires_grad=False)
    for function in (
        nn.normal_log_likelihood,
        Slotted(torch.zeros(())),
        Slotted(fixed),
        partial(nn.normal_log_likelihood, log_sigma2=torch.nn.Parameter(torch.zeros(()))),
    ):
        elbo = nn.ELBO(nn.VariationalLinear(4, 4), function, 10)
        elbo(features(x), features(x)).loss.backward()
        elbo(features(x), torch.nn.Parameter(torch.zeros(5, 4))).loss.backward()
        torch.func.functional_call(elbo, dict(elbo.named_parameters()), (x, x)).loss.backward()


class Listed(torch.nn.Module):
    def __init__(self, coder):
        super().__init__()
        self.owners = [coder]

    def forward(self, h, x):
        return self.owners[0].likelihood(h, x)


class Weak(torch.nn.Module):
    def __init__(self, coder):
        super().__init__()
        self.owner = weakref.ref(coder)

    def forward(self, h, x):
        return self.owner().likelihood(h, x)


class Dead:
    """It holds a proxy of an object that is gone, and a long chain of objects."""

    def __init__(self):
        self.proxies = [weakref.proxy(set())]
        self.chain = None
        for _ in range(3000):
            self.chain = types.SimpleNamespace(following=self.chain)

    def __call__(self, output, target):
        return nn.normal_log_likelihood(output, target)


@pytest.mark.parametrize("kind", [Listed, Weak])
def test_a_module_that_reads_the_module_that_holds_the_elbo(kind):
    coder, x = Coder(torch.nn.Linear(3, 4), holds=False), torch.randn(5, 4)
    coder.elbo = nn.ELBO(coder.encoder, kind(coder), 10)
    coder.elbo(x, x).loss.backward()


def test_a_partial_of_a_function_that_reads_the_module_that_holds_the_elbo():
    coder, x = Coder(torch.nn.Linear(3, 4), holds=False), torch.randn(5, 4)

    def function(h, x, log_sigma2):
        return nn.normal_log_likelihood(coder.decoder(h), x, log_sigma2)

    coder.elbo = nn.ELBO(coder.encoder, partial(function, log_sigma2=coder.log_sigma2), 10)
    coder.elbo(x, x).loss.backward()


def test_a_frozen_variational_network_that_a_log_likelihood_reads():
    """The target of a Q network, whose KL no step changes."""
    model, x = nn.VariationalLinear(4, 4), torch.randn(5, 4)
    target = copy.deepcopy(model).requires_grad_(False).eval()
    elbo = nn.ELBO(model, lambda output, y: nn.normal_log_likelihood(output, target(y)), 10)
    elbo(x, x).loss.backward()


def test_objects_that_a_log_likelihood_holds():
    elbo, x = nn.ELBO(nn.VariationalLinear(4, 4), Dead(), 10), torch.randn(5, 4)
    elbo(x, x).loss.backward()


def test_parameters_that_are_computed_from_parameters():
    layer, log_sigma2 = nn.VariationalLinear(4, 4), torch.nn.Parameter(torch.zeros(()))
    elbo = nn.ELBO(layer, partial(nn.normal_log_likelihood, log_sigma2=log_sigma2), 10)
    x, faster = torch.randn(5, 4), {k: 0.5 * v for k, v in elbo.named_parameters()}
    torch.func.functional_call(elbo, faster, (x, x)).loss.backward()
    assert log_sigma2.grad is not None


def test_a_state_of_the_model_that_depends_on_its_input():
    class Keeps(torch.nn.Module):
        def __init__(self):
            super().__init__()
            self.layer = nn.VariationalLinear(4, 4)

        def forward(self, x):
            self.last = x
            return self.layer(x)

    features, model, x = torch.nn.Linear(4, 4), Keeps(), torch.randn(5, 4)
    elbo = nn.ELBO(model, lambda h, y: nn.normal_log_likelihood(h + model.last, y), 10)
    elbo(features(x), x).loss.backward()


@pytest.mark.filterwarnings("ignore:`torch.jit.script` is deprecated")
def test_a_log_likelihood_of_torchscript():
    head, x = torch.jit.script(torch.nn.Bilinear(4, 4, 1)), torch.randn(5, 4)
    elbo = nn.ELBO(nn.VariationalLinear(4, 4), head, 10)
    elbo(x, x).loss.backward()
    assert len([*elbo.parameters()]) == 5


def test_a_vbp_in_the_likelihood_draws_no_noise():
    vbp = nn.VBP(torch.nn.Sequential(nn.VariationalLinear(3, 4)))

    def decode(decoder, h, x):
        return nn.normal_log_likelihood(decoder(h).mean, x)

    elbo, x = nn.ELBO(nn.VariationalLinear(4, 3), partial(decode, vbp), 10), torch.randn(5, 4)
    vbp.eval()
    elbo(x, x).loss.backward()


def test_an_object_that_reads_the_module_that_holds_the_elbo():
    class Likelihood:
        def __init__(self, coder):
            self.coder = coder

        def __call__(self, h, x):
            return self.coder.likelihood(h, x)

    coder, x = Coder(torch.nn.Linear(3, 4), holds=False), torch.randn(5, 4)
    coder.elbo = nn.ELBO(coder.encoder, Likelihood(coder), 10)
    coder.elbo(x, x).loss.backward()


def test_a_model_that_returns_a_distribution():
    class Model(torch.nn.Module):
        def __init__(self):
            super().__init__()
            self.layer = nn.VariationalLinear(4, 4)

        def forward(self, x):
            return torch.distributions.Normal(self.layer(x), 1.0)

    x, features = torch.randn(5, 4), torch.nn.Linear(4, 4)
    elbo = nn.ELBO(Model(), lambda normal, y: normal.log_prob(y), 10)
    elbo(features(x), x).loss.backward()


@pytest.mark.parametrize("context", [nn.sampling, nn.sampled])
def test_the_layers_of_a_likelihood_draw_noise_too(context):
    decode = lambda decoder, h, x: nn.normal_log_likelihood(decoder(h), x)  # noqa: E731
    decoder, x = nn.VariationalLinear(3, 4), torch.randn(5, 4)
    elbo = nn.ELBO(nn.VariationalLinear(4, 3), partial(decode, decoder), 10).eval()
    words = "The module of log_likelihood is in evaluation mode, so no noise was drawn"
    with torch.no_grad(), context(elbo.model), pytest.warns(UserWarning, match=words):
        elbo(x, x)
    with torch.no_grad(), context(elbo):
        elbo(x, x)
    elbo.train()
    decoder.eval()
    with pytest.raises(RuntimeError, match=words):
        elbo(x, x)
    decoder.requires_grad_(False)
    elbo(x, x).loss.backward()
    elbo.eval().requires_grad_(False)
    with context(elbo.model), pytest.warns(UserWarning, match=words):
        elbo(x, x)


def test_a_frozen_encoder_in_evaluation_mode():
    encoder = nn.VariationalLinear(4, 3).requires_grad_(False).eval()
    decode = lambda decoder, h, x: nn.normal_log_likelihood(decoder(h), x)  # noqa: E731
    elbo, x = nn.ELBO(encoder, partial(decode, nn.VariationalLinear(3, 4)), 10), torch.randn(5, 4)
    elbo(x, x).loss.backward()
    with torch.no_grad(), pytest.warns(UserWarning, match="The model is in evaluation mode"):
        elbo(x, x)


def test_layers_before_a_vbp_draw_noise():
    last = nn.VBP(nn.VariationalLinear(3, 2))
    model, x = torch.nn.Sequential(nn.VariationalLinear(4, 3), last), torch.randn(5, 4)
    elbo = nn.ELBO(model, lambda h, y: nn.normal_log_likelihood(h.mean, y), 10)
    elbo(x, x[:, :2]).loss.backward()
    with pytest.raises(RuntimeError, match="The model is in evaluation mode"):
        elbo.eval()(x, x[:, :2])
    with nn.sampling(elbo):
        elbo(x, x[:, :2])


def test_a_sum_of_tasks_that_pairs_examples():
    target = torch.tensor([0, 1, 2, 0]), torch.zeros(4, 1)

    def two(output, target):
        one = nn.categorical_log_likelihood(output[:, :3], target[0])
        return one + nn.normal_log_likelihood(output[:, 3:], target[1])

    elbo = nn.ELBO(nn.VariationalLinear(2, 6), lambda o, t: two(o[:, 1:5], t), 10)
    with pytest.warns(UserWarning, match=r"^log_likelihood returned shape \(4, 4\) for 4 examples"):
        elbo(torch.ones(4, 2), target)
    # Four outputs of each of four examples, and the next of five tokens.
    for outputs, function in (
        (4, nn.normal_log_likelihood),
        (5, lambda o, t: nn.normal_log_likelihood(o[:, :-1], t[:, 1:])),
    ):
        elbo = nn.ELBO(nn.VariationalLinear(2, outputs), function, 10)
        elbo(torch.ones(4, 2), torch.ones(4, outputs)).loss.backward()


@pytest.mark.parametrize("dtype", [torch.bfloat16, torch.float16])
@pytest.mark.parametrize("kind", [float, torch.tensor])
def test_the_noise_of_a_half_mean_keeps_its_digits(kind, dtype):
    torch.manual_seed(0)
    mean, target = torch.randn(50).to(dtype), torch.randn(50)
    moments = nn.Moments(mean, torch.ones(50, dtype=dtype))
    pairs = (
        (nn.normal_log_likelihood, mean, mean.float()),
        (
            nn.expected_normal_log_likelihood,
            moments,
            nn.Moments(moments.mean.float(), moments.variance.float()),
        ),
    )
    for (function, half, single), y in itertools.product(pairs, (target, target.to(dtype))):
        found = function(half, y, kind(-9.03))
        expected = function(single, y.float(), kind(-9.03))
        assert found.dtype == torch.float32
        torch.testing.assert_close(found, expected, rtol=1e-6, atol=0.0)
