"""What the layers refuse, each in one sentence that says what to do."""

import re
import warnings
from itertools import product

import pytest

torch = pytest.importorskip("torch")

import logunif_kl as lk  # noqa: E402
from logunif_kl.torch import nn  # noqa: E402
from tests.torch.nn.cases import CASES, POSTERIORS, made  # noqa: E402

ARGUMENTS = [
    (
        {"posterior": "adaptive"},
        ValueError,
        "posterior must be 'additive' or 'multiplicative', but 'adaptive' was given: pass one of "
        "these",
    ),
    (
        {"posterior": None},
        ValueError,
        "posterior must be 'additive' or 'multiplicative', but None was given: pass one of these",
    ),
    (
        {"posterior": "multiplicative", "sharing": "row"},
        ValueError,
        "sharing must be 'weight', 'output', 'input' or 'layer', but 'row' was given: pass one of "
        "these",
    ),
    (
        {"noise": "gaussian"},
        ValueError,
        "noise must be 'independent' or 'correlated', but 'gaussian' was given: pass one of these",
    ),
    (
        {"estimator": "flipout"},
        ValueError,
        "estimator must be 'local', 'per_example' or 'per_batch', but 'flipout' was given: pass "
        "one of these",
    ),
    (
        {"sharing": "layer"},
        ValueError,
        "sharing='layer' was given with posterior='additive', where alpha is no parameter: pass "
        "posterior='multiplicative'",
    ),
    (
        {"noise": "correlated"},
        ValueError,
        "noise='correlated' was given with posterior='additive', where alpha is no parameter: "
        "pass posterior='multiplicative'",
    ),
    (
        {"max_log_alpha": 0.0},
        ValueError,
        "max_log_alpha=0.0 was given with posterior='additive', where alpha is no parameter: pass "
        "posterior='multiplicative'",
    ),
    (
        {"posterior": "multiplicative", "noise": "correlated"},
        ValueError,
        "noise='correlated' scales the inputs, but sharing='weight' was given: pass "
        "sharing='input' or sharing='layer'",
    ),
    (
        {"posterior": "multiplicative", "max_log_alpha": float("nan")},
        ValueError,
        "max_log_alpha must be finite, but nan was given: pass 0.0 for alpha <= 1, or None for no "
        "bound",
    ),
    (
        {"posterior": "multiplicative", "max_log_alpha": "0"},
        TypeError,
        "max_log_alpha must be one real number, but str '0' was given: pass a float",
    ),
    (
        {"initial": float("inf")},
        ValueError,
        "initial must be finite, but inf was given: pass the initial log_sigma2",
    ),
    (
        {"initial": True},
        TypeError,
        "initial must be one real number, but bool True was given: pass a float",
    ),
    (
        {"generator": 3},
        TypeError,
        "generator must be a torch.Generator or None, but int 3 was given: pass "
        "torch.Generator().manual_seed(...)",
    ),
    (
        {"dtype": torch.int64},
        TypeError,
        "dtype must be a real floating type, but torch.int64 was given: pass torch.float32",
    ),
    (
        {"dtype": torch.complex64},
        TypeError,
        "dtype must be a real floating type, but torch.complex64 was given: complex weights have "
        "a KL of their own, so pass their means to neg_kl_complex_normal, or parameters of real "
        "weights",
    ),
]


@pytest.mark.parametrize(("options", "error", "sentence"), ARGUMENTS)
@pytest.mark.parametrize("case", CASES)
def test_arguments(case, options, error, sentence):
    case = CASES[case]
    with pytest.raises(error, match=f"^{re.escape(sentence)}$"):
        case.layer(*case.arguments, **case.options, **options)


LATER = [
    *(
        (options, kind, words)
        for options, kind, words in ARGUMENTS
        if len(options) == 1 and not {"dtype", "posterior", "noise", "sharing"} & set(options)
    ),
    (
        {"sharing": "layer"},
        AttributeError,
        "sharing belongs to the parameters of the layer and cannot be changed: make a new layer",
    ),
    (
        {"noise": "correlated"},
        AttributeError,
        "noise belongs to the parameters of the layer and cannot be changed: make a new layer",
    ),
    (
        {"posterior": "multiplicative"},
        AttributeError,
        "posterior belongs to the parameters of the layer and cannot be changed: make a new layer",
    ),
    (
        {"penalty": "foo"},
        ValueError,
        "there is no penalty 'foo': pass one of 'exact', 'kingma', 'molchanov', 'lower_bound', "
        "'series', 'kummer', 'quadrature', a Fit or a NormalPrior",
    ),
]


@pytest.mark.parametrize(("options", "error", "sentence"), LATER)
def test_options_that_are_assigned_later(options, error, sentence):
    layer = nn.VariationalLinear(3, 2)
    before = dict(vars(layer))
    ((name, value),) = options.items()
    with pytest.raises(error, match=f"^{re.escape(sentence)}$"):
        setattr(layer, name, value)
    assert vars(layer) == before


def test_options_that_may_be_assigned():
    layer = nn.VariationalLinear(3, 2, posterior="multiplicative")
    given = {
        "posterior": "multiplicative",
        "noise": "independent",
        "estimator": "per_batch",
        "initial": -2.0,
        "max_log_alpha": 0.0,
        "penalty": "molchanov",
        "generator": torch.Generator(),
    }
    for name, value in given.items():
        setattr(layer, name, value)
    assert {name: getattr(layer, name) for name in given} == given


def test_a_penalty_without_a_gradient():
    with pytest.raises(ValueError, match="penalty='monte_carlo' was given, a method without a gr"):
        nn.VariationalLinear(3, 2, penalty="monte_carlo")


@pytest.mark.parametrize(
    ("options", "sentence"),
    [
        ({"max_norm": 1.0}, "max_norm=1.0 changes the means and not their variances: leave it out"),
        ({"sparse": True}, "sparse=True was given, but the KL has a dense gradient: leave it out"),
    ],
)
def test_of_an_embedding(options, sentence):
    with pytest.raises(ValueError, match=f"^{re.escape(sentence)}$"):
        nn.VariationalEmbedding(4, 2, **options)


@pytest.mark.parametrize("training", [True, False])
@pytest.mark.parametrize(
    ("layer", "x", "error", "sentence"),
    [
        (
            nn.VariationalLinear(3, 2),
            torch.ones(2, 4),
            ValueError,
            "input of shape (2, 4) was given to a layer of 3 inputs: pass one whose last length is "
            "3",
        ),
        (
            nn.VariationalLinear(3, 2),
            torch.ones(()),
            ValueError,
            "input of shape () was given to a layer of 3 inputs: pass one whose last length is 3",
        ),
        (
            nn.VariationalConv2d(4, 2, 1, groups=2),
            torch.ones(5, 3, 2, 2),
            ValueError,
            "input of shape (5, 3, 2, 2) was given to a layer of 4 channels: pass one of 4 "
            "dimensions, the second of length 4",
        ),
        (
            nn.VariationalConv1d(4, 2, 1),
            torch.ones(2, 2, 4, 3),
            ValueError,
            "input of shape (2, 2, 4, 3) was given to a layer of 4 channels: pass one of 3 "
            "dimensions, the second of length 4",
        ),
        (
            nn.VariationalLinear(3, 2),
            torch.ones(2, 3, dtype=torch.int64),
            TypeError,
            "input must hold real numbers, but a tensor of torch.int64 was given: convert it with "
            ".float()",
        ),
        (
            nn.VariationalLinear(3, 2),
            torch.ones(2, 3, dtype=torch.complex64),
            TypeError,
            "input must hold real numbers, but a tensor of torch.complex64 was given: pass its "
            "real and imaginary parts, as by torch.view_as_real",
        ),
        (
            nn.VariationalConv1d(3, 2, 1),
            [1.0],
            TypeError,
            "input must be a torch.Tensor, but list was given: convert it with torch.as_tensor",
        ),
    ],
)
def test_inputs(layer, x, error, sentence, training):
    with pytest.raises(error, match=f"^{re.escape(sentence)}$"):
        layer.train(training)(x)


class TestKl:
    def test_of_weights_under_correlated_noise(self):
        sentence = (
            "the KL of weights under correlated noise is infinite (Hron et al. 2017, section 3): "
            "pass of='scales'"
        )
        layer = made(CASES["linear"], **POSTERIORS["correlated, input"])
        for function in (layer.kl, layer.neg_kl):
            with pytest.raises(ValueError, match=f"^{re.escape(sentence)}$"):
                function(of="weights")

    def test_of_scales_under_independent_noise(self):
        sentence = (
            "there are no scales under independent noise: pass of='weights', or make the layer "
            "with noise='correlated'"
        )
        with pytest.raises(ValueError, match=f"^{re.escape(sentence)}$"):
            made(CASES["linear"]).kl(of="scales")

    def test_of_another_name(self):
        with pytest.raises(ValueError, match="of must be 'weights' or 'scales', but 'rows' was gi"):
            made(CASES["linear"]).kl(of="rows")


def test_a_generator_of_another_device():
    from torch._subclasses.fake_tensor import FakeTensorMode

    layer = nn.VariationalLinear(3, 2, generator=torch.Generator())
    sentence = "generator is on cpu and the layer on cuda: pass torch.Generator('cuda')"
    # No such device is needed: these tensors have none.
    with FakeTensorMode():
        named = {name: torch.empty(p.shape, device="cuda") for name, p in layer.named_parameters()}
        x = torch.empty(2, 3, device="cuda")
        with pytest.raises(RuntimeError, match=f"^{re.escape(sentence)}$"):
            torch.func.functional_call(layer, named, (x,))


def test_checkpoint_contexts():
    with pytest.raises(TypeError, match=r"^model must be a torch.nn.Module, but int was given: "):
        nn.checkpoint_contexts(3)


def without_shape():
    with warnings.catch_warnings(action="ignore"):
        return nn.LazyVariationalConv1d(2, 3)


NO_SHAPE = (
    "a LazyVariationalConv1d was given that has no shape yet: run a batch through the model first"
)


@pytest.mark.parametrize(
    ("call", "error", "sentence"),
    [
        (lambda: nn.kl(without_shape()), ValueError, NO_SHAPE),
        (lambda: without_shape().kl(), ValueError, NO_SHAPE),
        (lambda: without_shape().log_alpha_of_weights(), ValueError, NO_SHAPE),
        (
            nn.VariationalLayer,
            TypeError,
            "VariationalLayer is the base class of the layers: make a VariationalLinear, or "
            "another of its subclasses",
        ),
        (
            lambda: nn.GaussianDropoutLinear(3, 2, True),
            TypeError,
            "p must be a dropout rate, but True was given: p stands before bias, so pass bias=True "
            "by its name",
        ),
        (
            lambda: nn.GaussianDropoutA()([1.0]),
            TypeError,
            "input must be a torch.Tensor, but list was given: convert it with torch.as_tensor",
        ),
        (
            lambda: nn.GaussianDropoutA()(torch.ones(2, dtype=torch.int64)),
            TypeError,
            "input must hold real numbers, but a tensor of torch.int64 was given: convert it with "
            ".float()",
        ),
        (
            lambda: nn.GaussianDropoutLinear(3, 2)(torch.ones(2, 4)),
            ValueError,
            "input of shape (2, 4) was given to a layer of 3 inputs: pass one whose last length is "
            "3",
        ),
        *(
            (
                lambda kind=kind, given=given: kind(*given, bias="no"),
                TypeError,
                "bias must be True or False, but 'no' was given: pass one",
            )
            for kind, given in (
                (nn.VariationalLinear, (1, 1)),
                (nn.VariationalConv2d, (1, 1, 1)),
                (nn.LazyVariationalLinear, (1,)),
                (nn.LazyVariationalConv3d, (1, 1)),
                (nn.GaussianDropoutLinear, (1, 1)),
            )
        ),
        (
            lambda: nn.VariationalEmbedding.from_pretrained([[1.0]]),
            TypeError,
            "embeddings must be a torch.Tensor, but list was given: convert it with "
            "torch.as_tensor",
        ),
        (
            lambda: nn.VariationalEmbedding.from_pretrained(torch.ones(3)),
            ValueError,
            "embeddings must be rows of a table, but the shape (3,) was given: reshape it to 2 "
            "dimensions",
        ),
        (
            lambda: nn.VariationalEmbedding.from_pretrained(torch.ones(3, 1), freeze="yes"),
            TypeError,
            "freeze must be True or False, but 'yes' was given: pass one",
        ),
    ],
)
def test_more(call, error, sentence):
    with pytest.raises(error, match=f"^{re.escape(sentence)}$"):
        call()


def test_a_fit_is_shown_in_short():
    layer = nn.VariationalLinear(3, 2, penalty=lk.fit_polynomial(3))
    assert "penalty=Fit(" in repr(layer)
    assert len(repr(layer)) < 250


def resized(case, posterior):
    """A layer whose weight got another number of rows, and its second parameter not."""
    if case.startswith("Lazy"):
        with warnings.catch_warnings(action="ignore"):
            layer = getattr(nn, case)(15, **POSTERIORS[posterior])
        layer(torch.ones(1, 10))
    else:
        layer = made(CASES[case], **POSTERIORS[posterior])
    rows, *others = layer.weight.shape
    layer.weight = torch.nn.Parameter(torch.ones(20 * rows, *others))
    return layer


@pytest.mark.parametrize(
    ("case", "posterior"),
    [
        # An alpha for each column of a table fits any number of rows.
        *(
            pair
            for pair in product(CASES, ("additive", "weight", "output"))
            if pair != ("embedding", "output")
        ),
        ("embedding", "correlated, input"),
        ("LazyVariationalLinear", "additive"),
        ("LazyVariationalLinear", "output"),
    ],
)
def test_weights_of_another_size(case, posterior):
    """No function reads numbers beside the second parameter, or counts by a division of sizes."""
    layer = resized(case, posterior)
    name, given = layer._log_variance_name, tuple(layer._log_variance.shape)
    weight = tuple(layer.weight.shape)
    own = (20 * given[0], *given[1:]) if given[0] > 1 else given
    what = "scales" if layer.noise == "correlated" else "weight"
    to = own if layer.noise == "correlated" else weight
    sentence = (
        f"{name} of shape {given} does not broadcast to {to}, the shape of the {what}: assign a "
        f"torch.nn.Parameter of shape {own} to {name}"
    )
    calls = [nn.kl, nn.neg_kl, nn.named_kl, nn.log_alpha, nn.sparsity, nn.prune, nn.to_sparse]
    calls += [type(layer).neg_kl, lambda layer: nn.to_deterministic(layer, 3.0)]
    if case == "embedding":
        calls.append(lambda layer: layer(torch.tensor([0])))
    for call in calls:
        with pytest.raises(ValueError, match=f"^{re.escape(sentence)}$"):
            call(layer)


def test_inputs_that_were_cut():
    layer = nn.VariationalLinear(4, 2)
    layer.weight.data = layer.weight.data[:, ::2]
    x = torch.ones(5, 2)
    sentence = (
        r"log_sigma2 of shape \(2, 4\) does not broadcast to \(2, 2\), the shape of the weight: "
        r"assign a torch\.nn\.Parameter of shape \(2, 2\) to log_sigma2"
    )
    elbo = nn.ELBO(layer, lambda y, target: -((y - target) ** 2), dataset_size=5)
    for call in (
        lambda: nn.kl(layer),
        lambda: layer(x),
        lambda: nn.moments(layer, x),
        lambda: elbo(x, torch.ones(5, 2)),
    ):
        with pytest.raises(ValueError, match=f"^{sentence}$"):
            call()
    layer.log_sigma2.data = layer.log_sigma2.data[:, ::2]
    assert torch.isfinite(layer(x)).all()


def test_a_table_that_was_resized():
    """As by `resize_token_embeddings` of Transformers, which knows the weight alone."""
    table = nn.VariationalEmbedding(50, 8)
    resized = torch.nn.Embedding(53, 8)
    table.weight.data = resized.weight.data
    table.num_embeddings = 53
    with pytest.raises(ValueError, match=r"^log_sigma2 of shape \(50, 8\) does not broadcast to "):
        nn.kl(table)
    table.log_sigma2 = torch.nn.Parameter(torch.full((53, 8), -10.0))
    truth = lk.kl_normal(table.weight.detach().double().numpy(), -10.0).sum()
    assert nn.kl(table).item() == pytest.approx(truth, rel=1e-5)
    assert table(torch.tensor([52])).shape == (1, 8)


@pytest.mark.parametrize("dtype", [torch.complex64, torch.bool, torch.int32])
def test_second_parameters_that_are_not_of_floating_point(dtype):
    layer = nn.VariationalLinear(3, 2)
    layer.log_sigma2 = torch.nn.Parameter(torch.ones(2, 3, dtype=dtype), requires_grad=False)
    words = f"^log_sigma2 is of {dtype} on cpu, and the weight of torch.float32 on cpu: assign a "
    for call in (lambda: nn.kl(layer), lambda: layer(torch.ones(1, 3))):
        with pytest.raises(TypeError, match=words + "floating-point torch.nn.Parameter"):
            call()


def test_a_second_parameter_on_another_device():
    layer = nn.VariationalLinear(3, 2)
    layer.log_sigma2 = torch.nn.Parameter(torch.ones(2, 3, device="meta"))
    for call in (lambda: nn.kl(layer), lambda: layer(torch.ones(1, 3))):
        with pytest.raises(TypeError, match=r"^log_sigma2 is of torch\.float32 on meta, and the "):
            call()


def test_a_model_that_cannot_be_copied():
    hooked = torch.nn.utils.weight_norm(torch.nn.ConvTranspose1d(2, 2, 3))
    with pytest.raises(TypeError, match="the model holds a tensor that was computed"):
        nn.to_variational(torch.nn.Sequential(torch.nn.Linear(2, 2), hooked))
