"""What the layers and functions refuse: the calls and errors of refusals.txt, and a few more."""

import builtins
import inspect
import math  # noqa: F401 (refusals.txt uses it)
import re
import warnings
from functools import partial
from itertools import product
from pathlib import Path

import pytest

torch = pytest.importorskip("torch")

from torch.nn import functional as F  # noqa: E402, F401
from torch.nn import utils  # noqa: E402
from torch.nn.utils import parametrizations  # noqa: E402, F401

import logunif_kl as lk  # noqa: E402
from logunif_kl.torch import nn  # noqa: E402
from tests.torch.nn.cases import CASES, POSTERIORS, Calls, finite, made, tied  # noqa: E402, F401

# Of lazy layers, of weight_norm, and of complex modules.
pytestmark = pytest.mark.filterwarnings("ignore")
X = torch.zeros(2, 4)


def layer(*, posterior="additive", **options):
    return nn.VariationalLinear(3, 2, posterior=posterior, **options)


def scales():
    return made(CASES["linear"], **POSTERIORS["correlated, input"])


def without_shape():
    return nn.LazyVariationalConv1d(2, 3)


def tied_weights(table=nn.VariationalEmbedding, out=nn.VariationalLinear):
    model = torch.nn.ModuleDict({"table": table(4, 3), "out": out(3, 4)})
    model["out"].weight = model["table"].weight
    return model


class Own(nn.VariationalLinear):
    """A class of a user."""


class OwnTable(nn.VariationalEmbedding):
    """Another."""


class Returns:
    """A prior whose method returns what a function gives."""

    def __init__(self, function):
        self.neg_kl = function


def quantized():
    found = torch.nn.Linear(1, 1)
    found.weight = torch.nn.Parameter(torch.ones(1, 1, dtype=torch.int8), requires_grad=False)
    return found


def masked(module):
    return utils.prune.l1_unstructured(module, "weight", amount=1)


def sparse(module, **options):
    with torch.no_grad():
        module.weight.zero_()
    return nn.to_sparse(module, **options)


def fixed():
    """A layer in evaluation mode, without gradients."""
    return nn.VariationalLinear(2, 3).eval().requires_grad_(False)


def given(output, target):
    return target + 0.0 * output.sum()


def bound_of(log_likelihood, size=10, batch=2):
    return nn.ELBO(fixed(), log_likelihood, size)(torch.ones(batch, 2), None)


def network():
    return torch.nn.Sequential(torch.nn.Dropout(), torch.nn.Linear(4, 3))


def returns(value):
    """A model with dropout that returns a value, or calls a function of its input."""
    drop = torch.nn.Dropout().eval()
    return Calls(lambda drop, x: value(x) if callable(value) else value, drop)


def through(module):
    return nn.moments(module, torch.ones(2, 3), torch.ones(2, 3))


def rows(*sections):
    """The calls in sections of refusals.txt, each with its error, which is indented below it."""
    text = (Path(__file__).parent / "refusals.txt").read_text(encoding="utf-8")
    found = []
    for section in re.split(r"^# ", text, flags=re.MULTILINE)[1:]:
        heading, *lines = section.strip().splitlines()
        if not sections or heading.split(":")[0] in sections:
            found += [
                pytest.param(call, *error.strip().split(": ", 1), id=call)
                for call, error in zip(lines[::2], lines[1::2], strict=True)
            ]
    return found


def check(call, kind, message, **names):
    """Make a call, which must raise this error. A message that ends with ``...`` may go on."""
    with pytest.raises(getattr(builtins, kind)) as caught:
        eval(call, globals() | names)
    given = str(caught.value)
    assert len(given) < 250
    if message.endswith("..."):
        assert given.startswith(message.removesuffix("..."))
    else:
        assert given == message


@pytest.mark.parametrize(("call", "kind", "message"), rows())
def test_refusals(call, kind, message):
    check(call, kind, message, mode=True)


@pytest.mark.parametrize(("call", "kind", "message"), rows("inputs"))
def test_inputs_in_evaluation_mode(call, kind, message):
    check(call, kind, message, mode=False)


MAKE = {
    **{name: partial(case.layer, *case.arguments, **case.options) for name, case in CASES.items()},
    "lazy linear": partial(nn.LazyVariationalLinear, 2),
    "lazy conv": partial(nn.LazyVariationalConv2d, 2, 1),
    "of a module": partial(nn.to_variational, torch.nn.Linear(3, 2)),
    "of a table": partial(nn.VariationalEmbedding.from_pretrained, torch.ones(4, 2)),
}


OPTION_ERRORS = {
    "posterior": ("adaptive", "posterior must be 'additive', 'multiplicative' or 'scaled', but "),
    "posteriour": ("additive", "there is no option 'posteriour': pass one of posterior, sharing, "),
    "dtype": (torch.int64, "dtype must be a real floating type, but torch.int64 was given: pass "),
    "bias": ("no", "bias must be True or False, but 'no' was given: pass one"),
}


@pytest.mark.parametrize(
    ("name", "option"),
    [
        *product(MAKE, ("posterior", "posteriour")),
        *product([name for name in MAKE if name not in ("of a module", "of a table")], ["dtype"]),
        *product([name for name in MAKE if "lin" in name or "conv" in name], ["bias"]),
    ],
)
def test_every_layer_checks_its_options(name, option):
    value, error = OPTION_ERRORS[option]
    with pytest.raises((TypeError, ValueError), match=f"^{re.escape(error)}"):
        MAKE[name](**{option: value})


@pytest.mark.parametrize(("call", "kind", "message"), rows("options_later"))
def test_a_refused_option_changes_nothing(call, kind, message):
    one = layer()
    before = dict(vars(one))
    check(call, kind, message, layer=lambda: one)
    assert vars(one) == before


def test_options_that_may_be_assigned():
    given = {"posterior": "multiplicative", "noise": "independent", "estimator": "per_batch"}
    given |= {"initial": -2.0, "max_log_alpha": 0.0, "penalty": "molchanov"}
    given["generator"] = torch.Generator()
    one = layer(posterior="multiplicative")
    for name, value in given.items():
        setattr(one, name, value)
    assert {name: getattr(one, name) for name in given} == given


def test_help_lists_the_options():
    """Also those that a signature in the code sums up as ``**options``."""
    expected = "posterior: 'str' = 'additive', sharing: 'str' = 'weight', noise: 'str' = "
    for function in (*(case.layer for case in CASES.values()), nn.to_variational):
        assert f"*, {expected}" in str(inspect.signature(function))


def test_a_generator_of_another_device():
    from torch._subclasses.fake_tensor import FakeTensorMode

    one = layer(generator=torch.Generator())
    sentence = "generator is on cpu and the layer on cuda: pass torch.Generator('cuda')"
    # No such device is needed: these tensors have no memory.
    with FakeTensorMode():
        named = {name: torch.empty(p.shape, device="cuda") for name, p in one.named_parameters()}
        x = torch.empty(2, 3, device="cuda")
        with pytest.raises(RuntimeError, match=f"^{re.escape(sentence)}$"):
            torch.func.functional_call(one, named, (x,))


def test_a_fit_is_shown_in_short():
    shown = repr(layer(penalty=lk.fit_polynomial(3)))
    assert "penalty=<Fit: polynomial of degree 3, minimax of the val" in shown
    assert len(shown) < 250


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
        *product(CASES, ("additive", "weight")),
        *((case, "output") for case in CASES if case != "embedding"),
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
    assert finite(layer(x))


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


@pytest.mark.parametrize(
    "other",
    [
        *(torch.ones(2, 3, dtype=dtype) for dtype in (torch.complex64, torch.bool, torch.int32)),
        torch.ones(2, 3, device="meta"),
    ],
    ids=lambda other: f"{other.dtype} on {other.device}",
)
def test_second_parameters_of_another_type_or_device(other):
    layer = nn.VariationalLinear(3, 2)
    layer.log_sigma2 = torch.nn.Parameter(other, requires_grad=False)
    words = f"^log_sigma2 is of {other.dtype} on {other.device}, and the weight of torch.float32 "
    for call in (lambda: nn.kl(layer), lambda: layer(torch.ones(1, 3))):
        with pytest.raises(TypeError, match=words + "on cpu: assign a floating-point torch"):
            call()
