"""The KL of whole models: what counts, how often, in which transforms, and at what cost."""

import copy
from concurrent.futures import ThreadPoolExecutor
from dataclasses import replace
from functools import partial
from pathlib import Path
from types import SimpleNamespace

import numpy as np
import pytest

torch = pytest.importorskip("torch")

from torch.nn.utils import parametrizations, parametrize  # noqa: E402

import logunif_kl as lk  # noqa: E402
from logunif_kl.nn.torch.convert import hold  # noqa: E402
from logunif_kl.nn.torch.predict import sampling  # noqa: E402
from logunif_kl.torch import nn  # noqa: E402
from tests.torch.nn.cases import (  # noqa: E402
    CASES,
    EVERY,
    LAYERS,
    compiled,
    copies,
    every_backend,
    finite,
    kl_of,
    made,
    tied,
)


def every_layer(dtype=torch.float64):
    """A model that holds every layer with each of its posteriors."""
    made_ = [made(CASES[case], dtype=dtype, posterior=EVERY[name]) for case, name in LAYERS]
    bounded = nn.Multiplicative(max_log_alpha=-1.0)
    made_.append(made(CASES["linear"], dtype=dtype, posterior=bounded))
    return torch.nn.Sequential(torch.nn.Linear(2, 2), torch.nn.ModuleList(made_))


class TestValue:
    def test_types_and_devices(self):
        model = torch.nn.Sequential(
            nn.VariationalLinear(3, 2), nn.VariationalLinear(3, 2, dtype=torch.float64)
        )
        assert nn.kl(model[0]).dtype == torch.float32
        assert nn.kl(model).dtype == torch.float64
        assert nn.kl(model).shape == ()
        assert nn.kl(nn.VariationalLinear(3, 2, device="meta")).is_meta

    @pytest.mark.parametrize("dtype", [torch.float16, torch.bfloat16])
    def test_of_a_half_type_is_added_in_float32(self, dtype):
        """A sum beyond 65504, the largest number of float16."""
        layer = nn.VariationalLinear(300, 300, dtype=dtype)
        exact = np.sum(lk.kl_normal(layer.weight.detach().double().numpy(), -10.0))
        found = nn.kl(layer)
        assert found.dtype == torch.float32
        assert found.item() == pytest.approx(exact, rel=1e-6)
        assert exact > 65504
        found.backward()
        assert layer.weight.grad.dtype == dtype
        assert finite(layer.weight.grad)


class TestOnce:
    @pytest.mark.parametrize("posterior", ["additive", "layer"])
    def test_tied_parameters(self, posterior):
        first, second = (nn.VariationalLinear(2, 2, posterior=EVERY[posterior]) for _ in "ab")
        model = torch.nn.Sequential(first, second)
        assert nn.kl(torch.nn.Sequential(first, torch.nn.Sequential(first))) == first.kl()
        apart = nn.kl(model)
        second.weight = first.weight
        # The variances are apart, so these are the weights of two distributions.
        assert nn.kl(model).item() == pytest.approx(2 * nn.kl(first).item(), rel=1e-6)
        setattr(second, second._log_variance_name, first._log_variance)
        assert nn.kl(model) == nn.kl(first) < apart
        assert list(nn.named_kl(model)) == ["0"]

    @pytest.mark.parametrize("posterior", ["additive", "weight", "layer"])
    @pytest.mark.parametrize("make", [lambda: nn.kl, lambda: compiled(nn.kl, "eager")])
    def test_a_padding_that_another_layer_draws(self, posterior, make):
        options = {"posterior": replace(EVERY[posterior], initial=-1.0)}
        table, other, same = (
            nn.VariationalEmbedding(3, 2, padding_idx=i, **options) for i in (0, 1, 0)
        )
        linear = nn.VariationalLinear(2, 3, **options)
        for layer in (table, other, same):
            layer.weight = linear.weight
            setattr(layer, layer._log_variance_name, linear._log_variance)
        kl = make()
        every, rows = linear.kl().item(), table.kl().item()
        assert rows < every
        for models in ([table, linear], [linear, table], [table, other], [other, table, same]):
            assert kl(torch.nn.Sequential(*models)).item() == pytest.approx(every, rel=1e-6)
        assert kl(torch.nn.Sequential(table, same)).item() == pytest.approx(rows, rel=1e-6)

    @pytest.mark.filterwarnings("ignore:.*weight_norm.* is deprecated")
    @pytest.mark.parametrize("how", ["prune", "parametrization", "weight_norm"])
    def test_tied_weights_that_are_computed(self, how):
        """They are one weight if they are computed alike."""
        torch.manual_seed(0)
        model = torch.nn.Sequential(*(nn.VariationalLinear(4, 4, bias=False) for _ in range(2)))
        model[1].weight, model[1].log_sigma2 = model[0].weight, model[0].log_sigma2
        for layer in model:
            if how == "prune":
                torch.nn.utils.prune.l1_unstructured(layer, "weight", 0.25)
            elif how == "parametrization":
                parametrize.register_parametrization(layer, "weight", torch.nn.Tanh())
            else:
                torch.nn.utils.weight_norm(layer)
        if how == "weight_norm":
            model[1].weight_g, model[1].weight_v = model[0].weight_g, model[0].weight_v
        assert nn.kl(model) == nn.kl(model[0])
        assert list(nn.named_kl(model)) == ["0"]
        assert nn.sparsity(model).weights == 16
        nn.kl(model).backward()
        found = model[0].log_sigma2.grad.clone()
        model.zero_grad()
        nn.kl(model[0]).backward()
        assert torch.equal(found, model[0].log_sigma2.grad)
        if how == "prune":
            model[1].weight_mask.logical_not_()
            assert nn.kl(model).item() == pytest.approx(sum(nn.kl(each).item() for each in model))
            assert nn.sparsity(model).weights == 32
        if how == "parametrization":
            with pytest.raises(Exception, match="two layers share a parameter from which a mask"):
                torch.compile(nn.kl, backend="eager", fullgraph=True)(model)
            torch.compiler.reset()

    def test_scales_of_the_same_number(self):
        correlated = nn.Correlated("layer")
        first, second = (nn.VariationalLinear(2, 2, posterior=correlated) for _ in range(2))
        second.weight, second.log_alpha = first.weight, first.log_alpha
        assert nn.kl(torch.nn.Sequential(first, second)) == nn.kl(first)
        model = tied()
        assert nn.kl(model) == nn.kl(model[0])

    def test_an_alpha_for_two_weights(self):
        """Two layers with one dropout rate have twice as many weights."""
        first, second = (nn.VariationalLinear(2, 2, posterior=nn.Multiplicative()) for _ in "ab")
        second.log_alpha = first.log_alpha
        model = torch.nn.Sequential(first, second)
        assert nn.kl(model).item() == pytest.approx(2 * nn.kl(first).item(), rel=1e-6)


def nodes(value):
    """The names of the steps of autograd from a value to the parameters."""
    found, todo, seen = [], [value.grad_fn], set()
    while todo:
        node = todo.pop()
        if node is not None and node not in seen:
            seen.add(node)
            found.append(node.name())
            todo += [following for following, _ in node.next_functions]
    return [name for name in found if "AccumulateGrad" not in name]


class TestCalls:
    def test_one_for_a_type(self):
        model = torch.nn.Sequential(*[nn.VariationalLinear(2, 2) for _ in range(50)])
        model.append(nn.VariationalLinear(2, 2, posterior=nn.Multiplicative()))
        assert len(nodes(nn.neg_kl(model))) == 1
        model.append(nn.VariationalLinear(2, 2, dtype=torch.float64))
        names = nodes(nn.neg_kl(model))
        assert len([name for name in names if "Total" in name]) == 2
        assert len(names) <= 4

    def test_no_tensor_is_copied(self):
        from validation.benchmarks.in_torch import cpu_peak_bytes

        model = torch.nn.Sequential(*[nn.VariationalLinear(500, 500) for _ in range(4)])
        parameters = list(model.parameters())
        size = sum(p.nbytes for p in parameters)
        with torch.no_grad():
            assert cpu_peak_bytes(lambda: nn.neg_kl(model)) < 0.01 * size

        def backward():
            return torch.autograd.grad(nn.neg_kl(model), parameters, allow_unused=True)

        assert cpu_peak_bytes(backward) < 1.01 * size


class TestGradient:
    @pytest.mark.parametrize("dtype", [torch.float32, torch.float64])
    def test_as_layer_by_layer(self, dtype):
        """Values and gradients."""
        model = every_layer(dtype)
        parts = nn.named_kl(model)
        assert list(parts) == [f"1.{i}" for i in range(len(model[1]))]
        assert all(value == model.get_submodule(name).kl() for name, value in parts.items())
        alone = sum(parts.values())
        torch.testing.assert_close(nn.kl(model), alone)
        assert nn.neg_kl(model) == -nn.kl(model)
        parameters = list(model[1].parameters())
        expected = torch.autograd.grad(alone, parameters, allow_unused=True)
        found = torch.autograd.grad(nn.kl(model), parameters, allow_unused=True)
        for a, b in zip(found, expected, strict=True):
            assert (a is None) == (b is None)
            assert a is None or torch.equal(a, b)

    def test_a_frozen_layer(self):
        model = torch.nn.Sequential(nn.VariationalLinear(2, 2), nn.VariationalLinear(2, 2))
        model[0].requires_grad_(False)
        model[1].log_sigma2.requires_grad_(False)
        nn.kl(model).backward()
        assert model[0].weight.grad is None
        assert model[1].log_sigma2.grad is None
        assert model[1].weight.grad.abs().sum() > 0.0

    def test_several_at_once(self):
        """A batch of gradients, and the gradients of these."""
        layer = nn.VariationalLinear(2, 3, dtype=torch.float64, posterior=nn.Additive(initial=-3.0))
        value = nn.neg_kl(torch.nn.Sequential(layer, nn.VariationalLinear(2, 2)))
        (alone,) = torch.autograd.grad(value, layer.weight, create_graph=True)
        (second,) = torch.autograd.grad(alone.sum(), layer.weight, retain_graph=True)
        factors = torch.tensor([1.0, -2.0], dtype=torch.float64)
        for create_graph in (False, True):
            options = {"is_grads_batched": True, "retain_graph": True, "create_graph": create_graph}
            (batch,) = torch.autograd.grad(value, layer.weight, factors, **options)
            torch.testing.assert_close(batch, factors[:, None, None] * alone)
        (found,) = torch.autograd.grad((3.0 * batch[0] + batch[1]).sum(), layer.weight)
        torch.testing.assert_close(found, second)


def small(dtype=torch.float64):
    torch.manual_seed(1)
    shared = nn.Multiplicative("output", initial=-1.0)
    return torch.nn.Sequential(
        nn.VariationalLinear(3, 2, dtype=dtype),
        nn.VariationalConv1d(2, 2, 3, dtype=dtype, posterior=shared),
        nn.VariationalLinear(2, 2, dtype=dtype, posterior=nn.Additive(initial=-3.0)),
    )


class TestTransforms:
    def test_an_ensemble(self):
        models = [small() for _ in range(3)]
        for k, model in enumerate(models):
            model[0].log_sigma2.data += k
        of = partial(kl_of, models[0])
        stacked = {k: v.detach() for k, v in torch.func.stack_module_state(models)[0].items()}
        found = torch.vmap(of)(stacked)
        torch.testing.assert_close(found, torch.stack([nn.kl(m) for m in models]))
        gradients = torch.vmap(torch.func.grad(of))(stacked)
        nn.kl(models[2]).backward()
        torch.testing.assert_close(gradients["0.log_sigma2"][2], models[2][0].log_sigma2.grad)

    def test_forward_mode(self):
        model = small()
        of, parameters = partial(kl_of, model), dict(model.named_parameters())
        tangents = {name: torch.ones_like(p) for name, p in parameters.items()}
        _, slope = torch.func.jvp(of, (parameters,), (tangents,))
        gradient = torch.func.grad(of)(parameters)
        torch.testing.assert_close(slope, sum(g.sum() for g in gradient.values()))

    @every_backend
    @pytest.mark.parametrize("dtype", [torch.float32, torch.float64])
    def test_compiled(self, dtype, backend):
        model = small(dtype)
        model.append(model[0])
        # Tied, not the same module.
        model.append(nn.VariationalLinear(3, 2, dtype=dtype))
        model[-1].weight, model[-1].log_sigma2 = model[0].weight, model[0].log_sigma2
        value = nn.neg_kl(model)
        torch.testing.assert_close(value, sum(layer.neg_kl() for layer in model[:3]))
        expected = torch.autograd.grad(value, model[0].weight)[0]
        found = compiled(lambda: nn.neg_kl(model), backend)()
        torch.testing.assert_close(found, value, rtol=1e-6, atol=0.0)
        found.backward()
        torch.testing.assert_close(model[0].weight.grad, expected, rtol=1e-6, atol=0.0)


class TestSampling:
    def test_draws_in_evaluation_mode_and_ends(self):
        layer = nn.VariationalLinear(3, 2, posterior=nn.Additive(initial=0.0))
        model = torch.nn.Sequential(layer, torch.nn.Dropout(0.5)).eval()
        x = torch.ones(5, 3)
        mean = model(x)
        assert torch.equal(model(x), mean)
        with nn.sampling(model):
            drawn = model(x)
            assert not torch.equal(drawn, mean)
            # Binary dropout would make zeros.
            assert (drawn != 0.0).all()
            assert not model.training
            with nn.sampling(model):
                pass
            assert not torch.equal(model(x), mean)
        assert torch.equal(model(x), mean)

    @pytest.mark.parametrize("enabled", [True, False])
    def test_ends_with_the_last_context(self, enabled):
        """As two threads do, the first to begin is the first to end, also for the fast path."""
        layer, x = nn.VariationalLinear(1, 1).eval(), torch.ones(1)
        first, second = nn.sampling(layer), nn.sampling(torch.nn.Sequential(layer))
        mha = torch.backends.mha
        before = mha.get_fastpath_enabled()
        try:
            mha.set_fastpath_enabled(enabled)
            first.__enter__()
            second.__enter__()
            first.__exit__(None, None, None)
            assert layer(x) != layer(x)
            assert not mha.get_fastpath_enabled()
            second.__exit__(None, None, None)
            assert layer(x) == layer(x)
            assert mha.get_fastpath_enabled() is enabled
            with pytest.raises(RuntimeError, match="mine"), nn.sampling(layer):
                raise RuntimeError("mine")
            assert layer(x) == layer(x)
            assert mha.get_fastpath_enabled() is enabled
        finally:
            mha.set_fastpath_enabled(before)

    @pytest.mark.parametrize(
        "made",
        [nn.sampled, lambda model: sampling.in_training(model, [])],
        ids=["sampled", "as in predict"],
    )
    @pytest.mark.parametrize("order", [(0, 1, 2), (1, 0, 2), (2, 1, 0)])
    def test_contexts_that_end_in_any_order_leave_nothing(self, made, order):
        """As those of threads, of asynchronous tasks, or of generators do."""
        layer, x = nn.VariationalLinear(3, 2, posterior=nn.Additive(initial=0.0)), torch.ones(3)
        contexts = [made(layer) for _ in order]
        for each in contexts:
            each.__enter__()
        last = layer(x)
        for at, each in enumerate(order):
            contexts[each].__exit__(None, None, None)
            if 2 not in order[: at + 1]:  # the one that began last holds
                assert torch.equal(layer(x), last)
        assert layer.training
        assert not torch.equal(layer(x), layer(x))
        assert not sampling._assigned

    def test_of_many_threads(self):
        layer = nn.VariationalLinear(1, 1, posterior=nn.Additive(initial=0.0)).eval()

        def draw(_):
            with nn.sampling(layer):
                return bool(layer(torch.ones(1)) != layer(torch.ones(1)))

        with ThreadPoolExecutor(8) as pool:
            assert all(pool.map(draw, range(400)))
        assert layer._lk_sampling == 0

    @pytest.mark.parametrize("copied", [copy.deepcopy, nn.to_sample, nn.to_deterministic])
    @pytest.mark.parametrize("context", [nn.sampling, nn.sampled])
    def test_opened_while_the_model_is_copied(self, context, copied):
        class Opens:
            def __deepcopy__(self, memo):
                with context(model):
                    return self

        model = torch.nn.Sequential(nn.VariationalLinear(2, 2))
        model[0].note = Opens()
        copied(model)
        with context(model):
            assert not {"_lk_sampling", "_lk_kept"} & set(model[0].__getstate__())

    @pytest.mark.parametrize("copied", [copy.deepcopy, nn.to_sample, nn.to_deterministic])
    def test_copies_of_a_compiled_layer_are_its_own(self, copied):
        torch.compiler.reset()
        layer = nn.VariationalLinear(2, 2, bias=False)
        layer.compile(backend="eager")
        found = copied(layer).eval()
        torch.nn.init.zeros_(found.weight)
        assert not found(torch.ones(1, 2)).any()

    def test_of_many_threads_each_keeps_its_own_noise(self, monkeypatch):
        layers = [nn.VariationalLinear(2, 2) for _ in range(20)]
        model, made = torch.nn.Sequential(*layers), {}

        class Recorded(hold.KeptNoise):
            def __init__(self, keys, generator):
                super().__init__(keys, generator)
                made[generator.initial_seed()] = self

        def numbers(seed):
            with nn.sampled(model, torch.Generator().manual_seed(seed)):
                return made[seed].numbers()

        monkeypatch.setattr(hold, "KeptNoise", Recorded)
        alone = [*map(numbers, range(80))]
        with ThreadPoolExecutor(8) as pool:
            assert [*pool.map(numbers, range(80))] == alone
        assert {len(each) for each in alone} == {20}

    def test_samples_of_many_threads_are_their_own(self):
        """They leave the noise of the model as it is, which another thread may train."""
        layers = [nn.VariationalLinear(4, 4) for _ in range(20)]
        model = torch.nn.Sequential(*layers)

        def sample(seed):
            plain = nn.to_sample(model, torch.Generator().manual_seed(seed))
            return torch.cat([each.weight.flatten() for each in plain])

        def trains(_):
            first, second = layers[0](torch.ones(2, 4))
            return not torch.equal(first, second)

        alone = [*map(sample, range(40))]
        with ThreadPoolExecutor(8) as pool, ThreadPoolExecutor(1) as another:
            found, trained = pool.map(sample, range(40)), another.map(trains, range(2000))
            assert all(map(torch.equal, found, alone))
            assert all(trained)

    @pytest.mark.parametrize(
        "layer",
        [
            nn.VariationalLinear(3, 1, posterior=nn.Additive(initial=0.0)),
            nn.GaussianDropoutA(),
            nn.GaussianDropoutLinear(3, 1),
        ],
    )
    def test_is_not_of_a_copy(self, layer):
        x = torch.ones(1, 3)
        with nn.sampling(layer.eval()):
            made = [*copies(layer)]
            for each in made:
                assert torch.equal(each(x), each(x))
        for each in made:
            with nn.sampling(each):
                assert not torch.equal(each(x), each(x))

    def test_of_a_layer_that_is_converted_within(self):
        model = torch.nn.Sequential(nn.VariationalLinear(3, 1))
        with nn.sampling(model):
            nn.to_deterministic(model, inplace=True)
        assert not hasattr(model[0], "_lk_sampling")


@pytest.mark.parametrize("posterior", ["additive", "weight", "scaled"])
def test_parameter_groups(posterior):
    layer = nn.VariationalLinear(3, 2, posterior=EVERY[posterior])
    frozen = torch.nn.Linear(2, 1).requires_grad_(False)
    model = torch.nn.Sequential(layer, torch.nn.LayerNorm(2), layer, frozen)
    nn.prune(layer)
    decayed, others = nn.parameter_groups(model, 0.1, lr=2.0)
    own = {
        "additive": ["log_sigma2_orig"],
        "weight": ["log_alpha"],
        "scaled": ["log_sigma2_orig", "scale_log_sigma2"],
    }[posterior]
    assert {id(p) for p in others["params"]} == {id(getattr(layer, name)) for name in own}
    assert len(decayed["params"]) == (5 if posterior == "scaled" else 4)
    assert (decayed["weight_decay"], others["weight_decay"], others["lr"]) == (0.1, 0.0, 2.0)


COMPUTED = [
    parametrizations.weight_norm,
    torch.nn.utils.weight_norm,
    torch.nn.utils.spectral_norm,
]
deprecated = pytest.mark.filterwarnings("ignore:.*weight_norm.* is deprecated:FutureWarning")


@deprecated
@pytest.mark.parametrize("wrap", COMPUTED)
def test_parameter_groups_of_computed_variances(wrap):
    layer = wrap(nn.VariationalLinear(3, 2), "log_sigma2")
    decayed, others = nn.parameter_groups(layer, 0.1)
    names = {id(parameter): name for name, parameter in layer.named_parameters()}
    assert {names[id(each)] for each in decayed["params"]} == {"weight", "bias"}
    assert all("log_sigma2" in names[id(each)] for each in others["params"])
    assert len(others["params"]) == (1 if wrap is torch.nn.utils.spectral_norm else 2)


@deprecated
@pytest.mark.parametrize("wrap", COMPUTED)
def test_computed_weights_of_equal_shapes_have_different_noise(wrap):
    layers = [nn.VariationalLinear(4, 4, posterior=nn.Additive(initial=0.0)) for _ in range(2)]
    model = torch.nn.Sequential(*map(wrap, layers))
    x = torch.eye(4)
    with nn.sampled(model), torch.no_grad():
        drawn = [layer(x) for layer in layers]
    model.eval()
    first, second = (a - layer(x).detach() for a, layer in zip(drawn, layers, strict=True))
    assert (first - second).abs().min() > 1e-6


@pytest.mark.parametrize("training", [False, True])
def test_the_kl_of_a_weight_that_spectral_norm_computes(training):
    """After an optimizer's step, as after the next call; the estimate of the norm stays."""
    layer = torch.nn.utils.spectral_norm(nn.VariationalLinear(4, 4)).eval()
    layer(torch.eye(4))
    with torch.no_grad():
        layer.weight_orig[:, 0] *= 50.0
    estimate = layer.weight_u.clone()
    found = nn.kl(layer.train(training)).item()
    assert torch.equal(layer.weight_u, estimate)
    layer.eval()(torch.eye(4))
    assert found == nn.kl(layer).item()


class Trainer:
    """What a Trainer of Hugging Face does in a step, with the model's own loss."""

    def __init__(self, model, scaled):
        self.model, self.model_accepts_loss_kwargs = model, scaled

    def compute_loss(self, model, inputs, return_outputs=False, num_items_in_batch=None):
        squares = (model(inputs) - 1.0).square().sum(1)
        scaled = self.model_accepts_loss_kwargs and num_items_in_batch is not None
        loss = squares.sum() / num_items_in_batch if scaled else squares.mean()
        return (loss, squares) if return_outputs else loss

    def step(self, parts, inputs):
        self.current_gradient_accumulation_steps = parts
        self.model.zero_grad()
        for part in inputs.chunk(parts):
            loss = self.compute_loss(self.model, part, num_items_in_batch=len(inputs))
            (loss if self.model_accepts_loss_kwargs else loss / parts).backward()
        return [p.grad.clone() for p in self.model.parameters()]


def recipe(trainer, labels):
    """The class of the page, with another Trainer and number of labels."""
    page = Path(__file__).parents[3] / "docs" / "guide" / "recipes.md"
    lines = (
        page.read_text().partition(">>> class BoundTrainer")[2].partition("\n>>>")[0].split("\n")
    )
    code = "\n".join(["class BoundTrainer" + lines[0], *(each[4:] for each in lines[1:])])
    known = {"transformers": SimpleNamespace(Trainer=trainer), "nn": nn, "labels": labels}
    exec(code, known)
    return known["BoundTrainer"]


@pytest.mark.parametrize("scaled", [False, True])
def test_the_recipe_for_accumulated_gradients(scaled):
    """As on the page: in 1, 4 and 16 parts, the gradient is that of the bound."""
    model = nn.VariationalLinear(3, 2, posterior=nn.Additive(initial=-80.0))
    trainer, x = recipe(Trainer, 100)(model, scaled), torch.randn(16, 3)
    (nn.kl(model) / 100 + (model(x) - 1.0).square().sum(1).mean()).backward()
    expected = [p.grad.clone() for p in model.parameters()]
    for parts in (1, 4, 16):
        torch.testing.assert_close(trainer.step(parts, x), expected)


@pytest.mark.parametrize("parts", [1, 4])
def test_the_recipe_in_a_trainer_of_hugging_face(tmp_path, parts):
    """The loss is the mean over the labels that are predicted, plus the KL over their number."""
    transformers = pytest.importorskip("transformers")
    sizes = {"vocab_size": 12, "n_positions": 8, "n_embd": 16, "n_layer": 1, "n_head": 2}
    none = dict.fromkeys(("resid_pdrop", "embd_pdrop", "attn_pdrop"), 0.0)
    config = transformers.GPT2Config(**sizes, **none, bos_token_id=0, eos_token_id=0)
    plain = transformers.GPT2LMHeadModel(config)
    gpt = nn.to_variational(plain, posterior=nn.Additive(initial=-60.0))
    gpt.loss_type = "ForCausalLM"
    texts = torch.randint(12, (16, 8))
    arguments = transformers.TrainingArguments(
        str(tmp_path),
        max_steps=1,
        use_cpu=True,
        report_to="none",
        save_strategy="no",
        logging_strategy="no",
        disable_tqdm=True,
        per_device_train_batch_size=16 // parts,
        gradient_accumulation_steps=parts,
    )
    trainer = recipe(transformers.Trainer, 16 * 7)(
        gpt,
        arguments,
        train_dataset=[{"input_ids": text, "labels": text} for text in texts],
        optimizers=(torch.optim.SGD(gpt.parameters(), lr=0.0), None),
    )
    found = trainer.train().training_loss
    with torch.no_grad():
        logits = gpt.eval()(input_ids=texts).logits[:, :-1]
        mean = torch.nn.functional.cross_entropy(logits.flatten(0, 1), texts[:, 1:].flatten())
        expected = float(mean + nn.kl(gpt) / (16 * 7))
    assert found == pytest.approx(expected, rel=1e-5)
